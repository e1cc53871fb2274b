"""Where a session is in the log: at its end, where it stopped, or where it has gone."""

import pytest

from ibbmaster.dialogue.session_position import SessionPosition
from ibbmaster.dialogue.user_variables import UserVariables
from ibbmaster.gtid import GtidPosition
from ibbmaster.wire.refusal import RefusedError


@pytest.fixture
def position(new_facts):
    facts = new_facts()
    facts.tables.catalogs += [("0-1-3", None)]
    return SessionPosition(facts, UserVariables())


def at(position):
    return str(position.snapshot().position)


def grow(position, gtid):
    """The log ends behind one more group; returns where it ended before."""
    tables = position._tables
    before = tables.newest
    tables.newest = lambda: _with(before(), gtid)


def _with(snapshot, gtid):
    state = snapshot.state.copy()
    for one in GtidPosition.parse(gtid).values():
        state.log(one)
    return type(snapshot)(end=snapshot.end, file_name=snapshot.file_name, state=state)


END, GROWN = "0-2-8,3-1-1", "0-1-9,3-1-1"


def test_a_session_sees_the_end_of_the_log(position):
    assert at(position) == END
    grow(position, "0-1-9")
    assert at(position) == GROWN
    assert position.stopped is None


def test_a_lock_stops_it_until_it_is_given_back(position):
    position.lock()
    grow(position, "0-1-9")
    assert at(position) == END
    assert position.end() == ("binlog-000001.ibb", 16640)
    position.unlock()
    assert at(position) == GROWN


# As mysql-test/suite/binlog_in_engine/binlog_legacy_pos.test
def test_a_transaction_with_a_snapshot_stops_it_until_its_end(position):
    position.begin(has_snapshot=True)
    grow(position, "0-1-9")
    assert (at(position), str(position.state().position())) == (END, END)
    position.end_transaction()
    assert at(position) == GROWN


def test_another_transaction_does_not(position):
    position.begin(has_snapshot=False)
    grow(position, "0-1-9")
    assert at(position) == GROWN


def test_the_next_transaction_ends_the_one_before(position):
    position.begin(has_snapshot=True)
    grow(position, "0-1-9")
    position.begin(has_snapshot=True)
    assert at(position) == GROWN


@pytest.mark.parametrize("has_snapshot", [True, False])
def test_a_transaction_under_a_lock_keeps_its_place_when_the_lock_goes(position, has_snapshot):
    position.lock()
    snapshot = position.snapshot()
    grow(position, "0-1-9")
    position.begin(has_snapshot=has_snapshot)
    position.unlock()
    assert position.snapshot() is snapshot
    position.end_transaction()
    assert at(position) == GROWN


def test_a_lock_ends_a_transaction(position):
    position.begin(has_snapshot=True)
    grow(position, "0-1-9")
    position.lock()
    position.unlock()
    assert at(position) == GROWN


def test_a_variable_takes_it_anywhere_and_back(position):
    position.lock()
    position._variables.assign("ibb_position", "0-1-3")
    assert at(position) == "0-1-3"
    assert position.end() == ("binlog-000000.ibb", 500)
    assert position.snapshot() is position.snapshot()
    position._variables.assign("ibb_position", "")
    assert at(position) == END
    position._variables.assign("ibb_position", None)
    assert at(position) == END


@pytest.mark.parametrize(("value", "code"), [("0-1-99", 1945), ("nonsense", 1941), ("0-1-1,0-2-2", 1943), (5, 1941)])
def test_a_place_that_is_none_is_refused(position, value, code):
    position._variables.assign("ibb_position", value)
    with pytest.raises(RefusedError) as caught:
        position.snapshot()
    assert caught.value.err.code == code
