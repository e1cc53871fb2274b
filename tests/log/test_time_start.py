"""A range between any two times is a range of the log, whose ends are where the log passes them."""

import dataclasses
import datetime
import random
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.errors import ConfigurationError, StoreError
from ibbmaster.log.given_time import parse_time
from ibbmaster.log.time_start import step_notes, time_start

FIXTURES = Path(__file__).parents[2] / "fixtures"
LOGS = (
    "ibb/domains",
    "ibb-mariadb/mixed",
    "classic/10.11/domains",
    "classic/11.8/chained",
    "classic/11.8/group-commit",
)


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


def test_parts_of_a_second_count():
    with ibbmaster.open(FIXTURES / "ibb/domains") as log:
        times = [group.timestamp for group in log]
        half = times[len(times) // 2] + 0.5
        part = log.through(until=at(half))
        assert sum(1 for _ in part.groups()) == sum(time <= half for time in times)
        part = log.through(after=at(half))
        assert sum(1 for _ in part.groups()) == sum(time >= half for time in times)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"after": "2020-01-01 00:00Z"}, "is before this log, which begins at 2026-11-20 20:57:28"),
        ({"until": "2020-01-01 00:00Z"}, "is before this log, which begins at 2026-11-20 20:57:28"),
        ({"after": "2030-01-01 00:00Z"}, "--after 2030-01-01 .* is after the end of this log, which is at 2026-11-20"),
        ({"after": "2026-11-20 20:57:34Z", "until": "2026-11-20 20:57:30Z"}, "nothing is in this range"),
    ],
)
def test_a_range_of_times_that_has_nothing_is_refused_with_what_there_is(options, text):
    with ibbmaster.open(FIXTURES / "ibb/domains") as log, pytest.raises(ConfigurationError, match=text):
        log.through(**options)


def test_until_a_time_to_come_is_what_is_logged_now():
    with ibbmaster.open(FIXTURES / "ibb/domains") as log:
        part = log.through(until="2030-01-01 00:00Z")
        assert (part.state, part.staged.is_over) == (log.state, True)


def test_who_gave_a_time_is_shown_the_position_that_it_means():
    with ibbmaster.open(FIXTURES / "ibb/domains") as log:
        (note,) = log.through(after="2026-11-20 20:57:30Z").staged.notes
        assert note.startswith("--after 2026-11-20 20:57:30+00:00 is position [0-77-9,")


def test_an_answer_says_that_a_clock_was_set_back():
    with ibbmaster.open(FIXTURES / "ibb/types") as log:
        given = parse_time("", "2026-11-20 20:54:13Z")
        found = time_start(log.engine, given).found
        before, after = (found.steps[0], dataclasses.replace(found.steps[0], time=found.steps[0].time - 90))

        (note,) = step_notes(dataclasses.replace(found, sets_back=((before, after),)), given)

    assert note.startswith("note: the times of the log step back by 90 s between 0-1-1 (2026-11-20 20:5")


def test_an_empty_log_has_no_time(tmp_path):
    with ibbmaster.open(tmp_path) as log, pytest.raises(StoreError, match="it has no time"):
        time_start(log.engine, parse_time("", "2026-11-20 20:54Z"))
