"""A log passes a time where it says, whatever the order of its times, and few places are read to find that."""

import itertools
import math
import random
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.event.gtid_event import GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.ibb.chunk import RecordType
from ibbmaster.ibb.commit import CommitHeader, encode_commit_header
from ibbmaster.log.directory import BinlogDirectory
from ibbmaster.log.strictness import open_directory
from ibbmaster.log.time_search import SAMPLE, find_time

FIXTURES = Path(__file__).parents[2] / "fixtures"
BEGIN = 1_700_000_000


class TimedLog:
    """A log in memory with a group for each time, in two domains, over several files."""

    def __init__(self, new_log, event, times, *, numbers_max=1 << 30):
        """Numbers begin anew after `numbers_max`, as without gtid_strict_mode."""
        self.times = times
        self.gtids = []
        log = new_log(size_pages=32, interval_pages=2)
        for number, time in enumerate(times):
            gtid = Gtid(domain_id=number % 2, server_id=1, seq_no=number % numbers_max + 1)
            head = encode_gtid_event(GtidEvent(gtid=gtid, flags=GtidFlag.TRANSACTIONAL), timestamp=time)
            log.append(RecordType.COMMIT, encode_commit_header(CommitHeader(streams=())) + head + event(2000), gtid)
            self.gtids.append(gtid)
        self.engine = BinlogDirectory(log.disk)
        assert len(self.engine.files()) > 2

    def number_of(self, time):
        found = find_time(self.engine, time)
        number = self.gtids.index(found.group)
        assert found.group_time == self.times[number]
        assert found.state == GtidState(self.gtids[:number])
        return number


@pytest.fixture
def timed_log(new_log, event):
    return lambda times, **numbers: TimedLog(new_log, event, times, **numbers)


def test_each_time_is_found_at_its_first_group(timed_log):
    rng = random.Random(random.random())
    log = timed_log(list(itertools.accumulate((rng.choice([0, 0, 1, 5]) for _ in range(900)), initial=BEGIN)))

    for time in rng.sample(range(BEGIN, log.times[-1] + 1), 40):
        assert log.number_of(time) == next(n for n, one in enumerate(log.times) if one >= time)


def test_the_state_before_a_group_is_that_of_its_place_also_where_its_number_is_given_again(timed_log):
    log = timed_log([BEGIN + number for number in range(900)], numbers_max=300)
    for number in (1, 150, 299):
        assert log.number_of(BEGIN + number) == number


def test_few_places_are_looked_at(timed_log):
    log = timed_log([BEGIN + number for number in range(1500)])
    for time in (BEGIN, BEGIN + 700, BEGIN + 1499, BEGIN + 9999):
        found = find_time(log.engine, time)
        files = len(log.engine.files())
        assert len(found.steps) <= 2 + math.log2(files) + math.log2(16)
        assert not found.sets_back


def test_groups_of_long_statements_lead_no_search_astray(timed_log):
    """They are as old as the begin of their statement; a few come in any place."""
    rng = random.Random(random.random())
    times = [BEGIN + number * 10 for number in range(900)]
    for number in rng.sample(range(50, 900), 60):
        times[number] -= rng.randrange(400)
    log = timed_log(times)
    for time in rng.sample(range(BEGIN, times[-1]), 40):
        number = log.number_of(time)
        assert times[number] >= time
        assert sum(one >= time for one in times[:number]) <= SAMPLE, "only what is out of order itself"


def test_after_a_clock_was_set_back_a_time_is_found_where_the_log_passes_it_and_that_is_noted(timed_log):
    times = [BEGIN + number for number in range(700)] + [BEGIN - 300 + number for number in range(900)]
    log, noted = timed_log(times), 0
    for time in range(BEGIN, BEGIN + 590, 37):
        number = log.number_of(time)
        assert times[number] == time
        assert number == 0 or times[number - 1] < time
        noted += bool(find_time(log.engine, time).sets_back)
    assert noted > 3


def test_after_the_last_group_and_in_an_empty_log_there_is_none(timed_log, tmp_path):
    log = timed_log([BEGIN + number for number in range(900)])
    found = find_time(log.engine, BEGIN + 900)
    assert (found.group, found.first, found.last) == (None, BEGIN, BEGIN + 899)
    assert found.state == log.engine.state()

    with ibbmaster.open(tmp_path) as empty:
        assert find_time(empty.engine, BEGIN) is None


@pytest.mark.parametrize("name", ["ibb/domains", "classic/10.11/domains", "classic/11.8/group-commit"])
def test_times_of_captures_are_found_as_a_scan_finds_them(name):
    with ibbmaster.open(FIXTURES / name) as log:
        groups = [(group.timestamp, group.gtid) for group in log]
        for time in sorted({time for time, _ in groups}):
            assert find_time(log.engine, time).group == next(gtid for one, gtid in groups if one >= time)


def test_a_file_that_is_ready_and_not_used_yet_is_not_where_the_log_ends():
    directory = open_directory(FIXTURES / "ibb/types", is_strict=True)
    assert directory.end().file_no < directory.files()[-1].file_no
    with ibbmaster.open(FIXTURES / "ibb/types") as log:
        for time in (1 << 31, BEGIN):
            assert find_time(directory, time).state == find_time(log.engine, time).state
