"""Points in time, against Python's own calendar."""

from __future__ import annotations

import datetime
import random

import pytest

from ibbmaster.dialogue.moment import (
    date_of,
    day_of,
    duration_text,
    moment_text,
    parse_duration,
    parse_moment,
    parse_time_zone,
    time_of_day_text,
)

EPOCH = datetime.datetime(1970, 1, 1)


@pytest.mark.parametrize("seed", range(3))
def test_moments_are_written_and_read_as_the_calendar_has_them(seed):
    random_source = random.Random(seed)
    for _ in range(2000):
        microseconds = random_source.randrange(-1_900 * 10**13, 25_000 * 10**13)
        moment = EPOCH + datetime.timedelta(microseconds=microseconds)
        text = moment_text(microseconds, 6)
        assert text == f"{moment:%Y-%m-%d %H:%M:%S.%f}".rjust(26, "0"), (seed, microseconds)
        assert parse_moment(text) == microseconds, (seed, microseconds)


def test_every_day_of_four_centuries_is_its_own_date():
    for day in range(-719_000, -719_000 + 146_097, 7):
        assert day_of(*date_of(day)) == day


@pytest.mark.parametrize(
    "text", ["", "2026", "2026-02-30", "2026-13-01", "2026-01-01 24:00:00", "2026-01-01 1:61", "x"]
)
def test_what_is_no_moment_is_told_apart(text):
    assert parse_moment(text) is None


def test_durations_end_where_time_ends():
    assert duration_text(-90_061_000_000) == "-25:01:01"
    assert duration_text(10**15, 2) == "838:59:59.99"
    assert parse_duration("-25:01:01.5") == -90_061_500_000
    assert parse_duration("25:61:01") is None
    assert time_of_day_text(90_061_000_000) == "01:01:01"


@pytest.mark.parametrize(
    ("text", "seconds"),
    {
        "SYSTEM": 0,
        "+05:30": 19800,
        "-1:00": -3600,
        "+14:00": 50400,
        "+14:01": None,
        "-13:00": None,
        "UTC": None,
        "Europe/Berlin": None,
        "5": None,
    }.items(),
)
def test_time_zones_without_tables_are_distances_to_utc(text, seconds):
    assert parse_time_zone(text) == seconds
