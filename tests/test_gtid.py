import random

import pytest

from ibbmaster.errors import DuplicateDomainError, GtidError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from tests.case_table import cases_beside


@pytest.mark.parametrize("text", ["0-1-100", "4294967295-4294967295-18446744073709551615", " 1-2-3 "])
def test_a_gtid_is_read_and_shown(text):
    assert str(Gtid.parse(text)) == text.strip()


@pytest.mark.parametrize(
    "text", ["", "0-1", "0-1-2-3", "a-1-2", "-1-1-1", "0-1-18446744073709551616", "4294967296-1-1", "0-1-١", "0 -1-1"]
)
def test_what_is_no_gtid_is_refused(text):
    with pytest.raises(GtidError, match="is not a valid GTID"):
        Gtid.parse(text)


def test_a_position_has_one_gtid_a_domain():
    position = GtidPosition.parse("7-1-2,0-1-5")
    assert (str(position), len(position), position[7].seq_no) == ("0-1-5,7-1-2", 2, 2)
    assert len(GtidPosition.parse(" ")) == 0
    with pytest.raises(DuplicateDomainError, match=r"GTID 0-1-3 and 0-1-2 conflict \(duplicate domain id 0\)"):
        GtidPosition.parse("0-1-2,0-1-3")


def test_a_state_knows_the_latest_of_each_domain():
    state = GtidState.parse("0-1-5,0-2-6,3-1-1")
    state.log(Gtid.parse("0-1-7"))
    assert str(state) == "0-2-6,0-1-7,3-1-1"
    assert str(state.latest(0)) == "0-1-7"
    assert state.highest_seq_no(0) == 7
    assert (state.seq_no(0, 2), state.seq_no(0, 3), state.latest(9)) == (6, None, None)
    assert str(state.position()) == "0-1-7,3-1-1"


def test_a_state_is_continued_by_what_is_newer_than_all_of_its_domain_and_of_a_pair_it_has():
    state = GtidState.parse("0-1-5,0-2-9,7-1-1")
    found = [
        text
        for text in ("0-1-10", "0-2-10", "0-1-9", "0-1-6", "0-3-10", "1-1-1", "7-1-2")
        if state.is_continued_by(Gtid.parse(text))
    ]
    assert found == ["0-1-10", "0-2-10", "7-1-2"]
    assert not GtidState().is_continued_by(Gtid.parse("0-1-1"))


def test_states_are_equal_if_their_pairs_and_latest_ones_are_and_copies_are_their_own():
    assert GtidState.parse("0-1-1,0-2-2,0-3-3") == GtidState.parse("0-2-2,0-1-1,0-3-3")
    assert GtidState.parse("0-1-1,0-2-2") != GtidState.parse("0-2-2,0-1-1")
    state = GtidState.parse("0-1-1")
    twin = state.copy()
    twin.log(Gtid.parse("0-1-2"))
    twin.drop_domain(9)
    assert str(state) == "0-1-1"


BEFORE = cases_beside(__file__)


@pytest.mark.parametrize(("state", "position", "is_before"), BEFORE.values(), ids=BEFORE)
def test_a_state_is_before_a_position_if_the_replica_has_all_of_it(state, position, is_before):
    assert GtidState.parse(state).is_before(GtidPosition.parse(position)) is (is_before == "yes")


@pytest.mark.parametrize("seed", range(20))
def test_who_has_all_of_a_state_has_all_of_one_that_grows_to_it(seed):
    rng = random.Random(seed)

    def some_gtids(count):
        return [
            Gtid(domain_id=rng.randrange(3), server_id=rng.randrange(1, 4), seq_no=rng.randrange(1, 6))
            for _ in range(count)
        ]

    growing = decided = 0
    for _ in range(2000):
        state = GtidState(some_gtids(rng.randrange(6)))
        later = state.copy() if rng.random() < 0.7 else GtidState(some_gtids(3))
        for gtid in some_gtids(rng.randrange(3)):
            later.log(gtid)
        if rng.random() < 0.1:
            later.drop_domain(rng.randrange(3))
        if not state.grows_to(later):
            continue
        growing += 1
        position = GtidPosition({gtid.domain_id: gtid for gtid in some_gtids(4)}.values())
        if later.is_before(position):
            decided += 1
            assert state.is_before(position), (state, later, position)
    assert growing > 200
    assert decided > 20
    state = GtidState.parse("0-1-5,0-2-6")
    assert state.grows_to(GtidState.parse("0-1-5,0-2-6,1-1-1"))
    assert not state.grows_to(GtidState.parse("0-2-6,0-1-5"))
    assert not state.grows_to(GtidState.parse("0-2-7"))
    assert not state.grows_to(GtidState.parse("1-1-1"))
