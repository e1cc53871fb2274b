import datetime
import itertools
import math
import random
from time import tzset

import pytest

import ibbmaster
from ibbmaster.errors import ConfigurationError, StoreError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.logs.log import time_search
from ibbmaster.logs.log.directory import BinlogDirectory, open_directory
from ibbmaster.logs.log.time_search import SAMPLE, find_time, parse_time, shown_time, step_notes, time_start
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.storage.ibb.chunk import RecordType
from ibbmaster.storage.ibb.commit import CommitHeader, encode_commit_header
from tests.built_logs import FIXTURES

BEGIN = 1_700_000_000
TRADITIONAL = ("classic/10.11/domains", "classic/11.8/chained", "classic/11.8/group-commit")
LOGS = ("ibb/domains", "ibb-mariadb/mixed", *TRADITIONAL)


class TimedLog:
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


def test_few_places_are_looked_at_and_a_number_given_again_has_the_state_of_its_place(timed_log):
    log = timed_log([BEGIN + number for number in range(1500)])
    for time in (BEGIN, BEGIN + 700, BEGIN + 1499, BEGIN + 9999):
        found = find_time(log.engine, time)
        assert len(found.steps) <= 2 + math.log2(len(log.engine.files())) + math.log2(16)
        assert not found.sets_back
    log = timed_log([BEGIN + number for number in range(900)], numbers_max=300)
    for number in (1, 150, 299):
        assert log.number_of(BEGIN + number) == number


def test_groups_of_long_statements_lead_no_search_astray(timed_log):
    """They are as old as the begin of their statement; a few come in any place."""
    rng = random.Random(random.random())
    times = [BEGIN + number * 10 for number in range(900)]
    for number in rng.sample(range(50, 900), 60):
        times[number] -= rng.randrange(400)
    log = timed_log(times)
    for time in rng.sample(range(BEGIN, times[-1]), 400):
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
        with pytest.raises(StoreError, match="it has no time"):
            time_start(empty.engine, parse_time("", "2026-11-20 20:54Z"))


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


def at(seconds):
    return datetime.datetime.fromtimestamp(seconds, tz=datetime.UTC).isoformat()


@pytest.mark.parametrize("name", LOGS)
def test_a_range_between_two_times_has_every_transaction_of_these_times(name, pytestconfig):
    rng = random.Random(f"{pytestconfig.getoption('--seed')} {name}")
    with ibbmaster.open(FIXTURES / name) as log:
        times = [group.timestamp for group in log]
        gtids = [group.gtid for group in log]
        assert times == sorted(times), "of these captures"
        for _ in range(max(2, pytestconfig.getoption("--range-cuts") // 20)):
            begin, end = sorted(rng.choices(range(times[0], times[-1] + 3), k=2))
            expected = [gtid for gtid, time in zip(gtids, times, strict=True) if begin <= time <= end]
            if not expected:
                with pytest.raises(ConfigurationError):
                    log.through(after=at(begin), until=at(end))
                continue
            part = log.through(after=at(begin), until=at(end))
            assert [group.gtid for group in part.groups()] == expected
            assert part.staged.is_over


def test_parts_of_a_second_count_and_until_a_time_to_come_is_what_is_logged_now():
    with ibbmaster.open(FIXTURES / "ibb/domains") as log:
        part = log.through(until="2030-01-01 00:00Z")
        assert (part.state, part.staged.is_over) == (log.state, True)
        times = [group.timestamp for group in log]
        half = times[len(times) // 2] + 0.5
        assert sum(1 for _ in log.through(until=at(half)).groups()) == sum(time <= half for time in times)
        assert sum(1 for _ in log.through(after=at(half)).groups()) == sum(time >= half for time in times)


def test_who_gave_a_time_is_shown_the_position_that_it_means():
    with ibbmaster.open(FIXTURES / "ibb/domains") as log:
        (note,) = log.through(after="2026-11-20 20:57:30Z").staged.notes
        assert note.startswith("--after 2026-11-20 20:57:30+00:00 is position [0-77-9,")


def test_an_answer_says_that_a_clock_was_set_back():
    with ibbmaster.open(FIXTURES / "ibb/types") as log:
        given = parse_time("", "2026-11-20 20:54:13Z")
        found = time_start(log.engine, given).found
        before, after = (found.steps[0], found.steps[0]._replace(time=found.steps[0].time - 90))

        (note,) = step_notes(found._replace(sets_back=((before, after),)), given)

    assert note.startswith("note: the times of the log step back by 90 s between 0-1-1 (2026-11-20 20:5")


@pytest.mark.parametrize("text", ["2026-11-20 14:03:05+01:00", "2026-11-20T13:03:05Z", "20261120T130305Z"])
def test_a_time_with_a_zone_is_what_it_says(text):
    given = parse_time("--after", text)
    assert (given.seconds, given.is_local) == (1795179785.0, False)
    assert "local" not in str(given)


def test_a_time_without_a_zone_is_local_and_says_so(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    tzset()
    try:
        given = parse_time("--after", "2026-11-20 14:03:05")
        assert given.seconds == 1795179785.0
        assert str(given) == "2026-11-20 14:03:05+01:00 (local time)"
        assert shown_time(given.seconds + 1, given) == "2026-11-20 14:03:06+01:00"
    finally:
        monkeypatch.undo()
        tzset()


@pytest.mark.parametrize("text", ["noon", "", "2026-13-01 00:00", "0-1-7", "25:00", "9999999999"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ConfigurationError, match=r"^--until .*: expected a time, as "):
        parse_time("--until", text)


def test_a_time_is_told_from_a_position_and_one_that_no_calendar_has_is_a_number():
    assert time_search.is_time("2026-11-20 14:03")
    assert not time_search.is_time("0-1-7,1-1-9")
    assert time_search.is_date("2026-11-20")
    assert not time_search.is_date("0-1-7")
    assert shown_time(1e30, parse_time("--after", "2026-11-20 14:03Z")) == "1e+30 s since 1970"
