import random
from collections import Counter
from dataclasses import replace

import pytest

from ibbmaster.errors import FormatError, PositionError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.logs.classic.engine import ClassicBinlog
from ibbmaster.logs.log.directory import LenientDirectory, StrictDirectory, open_directory
from ibbmaster.logs.log.interface import groups_from
from ibbmaster.logs.log.locating import found_group, locate, resume
from ibbmaster.storage.ibb.page import PAGE_SIZE

CAPTURE = "11.8/domains"
ALL = 99  # files of the capture


def groups_of(log):
    return [(group.gtid, group.start) for group in groups_from(log, log.start_of_file()) if group.gtid is not None]


@pytest.mark.parametrize("is_classic", [True, False])
def test_each_domain_is_located_behind_its_last_group(fixtures, grow, is_classic):
    log = ClassicBinlog([fixtures / "classic" / CAPTURE]) if is_classic else open_directory(grow(ALL), is_strict=True)
    groups = groups_of(log)
    for count in range(1, len(groups), 17):
        places = {gtid.domain_id: (gtid, start) for gtid, start in groups[:count]}
        found = locate(log, GtidPosition(gtid for gtid, _ in places.values()))
        assert found.keys() == places.keys()
        for gtid, start in groups:
            is_logged = any(gtid == one for one, _ in groups[:count])
            if gtid.domain_id in found:
                assert (start < found[gtid.domain_id]) == is_logged, (count, gtid)
    with pytest.raises(PositionError, match="this binlog does not hold 0-1-999999"):
        locate(log, GtidPosition.parse("0-1-999999"))


@pytest.mark.parametrize("is_classic", [True, False])
def test_a_group_is_found_with_what_was_logged_before_it(fixtures, grow, is_classic):
    log = ClassicBinlog([fixtures / "classic" / CAPTURE]) if is_classic else open_directory(grow(ALL), is_strict=True)
    groups = groups_of(log)
    for number in range(0, len(groups), 13):
        gtid, start = groups[number]
        with found_group(log, gtid) as (state, group):
            assert (group.gtid, group.start) == (gtid, start)
            assert state == GtidState(one for one, _ in groups[:number])
    for text in ("0-1-999999", "0-9-1", "9-1-1"):
        with pytest.raises(PositionError, match=f"GTID {text} is not in this log"), found_group(log, Gtid.parse(text)):
            pytest.fail("it is there")


def test_around_damage_the_rest_is_looked_through(new_log, event):
    log = new_log(size_pages=4)
    log.commit_all(range(1, 30), event(5000))
    wanted = GtidPosition.parse("0-1-8")
    before = locate(StrictDirectory(log.disk), wanted)
    log.disk.files["binlog-000000.ibb"][PAGE_SIZE + 100] ^= 1  # the page with the state that the search ends at

    with pytest.raises(FormatError):
        locate(StrictDirectory(log.disk), wanted)
    problems = []
    found = locate(LenientDirectory(log.disk), wanted, on_fault=lambda position, _: problems.append(position))

    assert found == before
    assert [position.page_no for position in problems] == [1]


@pytest.mark.parametrize("seed", range(4))
def test_who_resumes_lacks_what_a_walk_over_the_whole_log_says(new_log, event, seed):
    """Domains of two servers each, with numbers that none of them has logged."""
    rng = random.Random(seed)
    log, last = new_log(size_pages=4), Counter()
    for _ in range(100):
        domain_id = rng.randrange(3)
        last[domain_id] += rng.choice((1, 1, 1, 2, 4))
        log.commit(f"{domain_id}-{rng.randint(1, 2)}-{last[domain_id]}", event(rng.choice((50, 50, 4000))))
    directory = StrictDirectory(log.disk)
    groups = groups_of(directory)
    for _ in range(40):
        position = GtidPosition(
            replace(gtid, seq_no=gtid.seq_no - rng.choice((0, 0, 1)))  # which may be a number that was passed over
            for gtid, _ in (rng.choice([group for group in groups if group[0].domain_id == n]) for n in range(3))
            if gtid.seq_no > 1 and rng.random() < 0.8
        )
        found = resume(directory, position)
        lacking = [group for group in groups_from(directory, directory.start_of_file()) if found.lacks(group)]
        assert all(group.start >= found.begin for group in lacking)
        assert [group.gtid for group in lacking] == lacked(groups, position), position


def lacked(groups, position):
    """The GTIDs behind a position: of each domain those behind the number that its server had there, logged or not."""
    found = []
    for gtid, start in groups:
        wanted = position.get(gtid.domain_id)
        pair = None if wanted is None else (wanted.domain_id, wanted.server_id)
        same = {one.seq_no: place for one, place in groups if (one.domain_id, one.server_id) == pair}
        if wanted is None or wanted.seq_no in same:
            is_behind = wanted is None or start > same[wanted.seq_no]
        else:
            is_behind = start >= next(place for seq_no, place in same.items() if seq_no > wanted.seq_no)
        if is_behind:
            found.append(gtid)
    return found
