import datetime
import random

import pytest

from ibbmaster.sqltext import moment as moments

EPOCH = datetime.datetime(1970, 1, 1)
FIRST_DAY = datetime.date(1970, 1, 1)
UTC = datetime.UTC


@pytest.mark.parametrize("seed", range(3))
def test_moments_are_written_and_read_as_the_calendar_has_them(seed):
    random_source = random.Random(seed)
    for _ in range(2000):
        microseconds = random_source.randrange(-1_900 * 10**13, 25_000 * 10**13)
        moment = EPOCH + datetime.timedelta(microseconds=microseconds)
        text = moments.moment_text(microseconds, 6)
        assert text == f"{moment:%Y-%m-%d %H:%M:%S.%f}".rjust(26, "0"), (seed, microseconds)
        assert moments.parse_moment(text) == microseconds, (seed, microseconds)


@pytest.mark.parametrize(
    "text", ["", "2026", "2026-02-30", "2026-13-01", "2026-01-01 24:00:00", "2026-01-01 1:61", "x"]
)
def test_what_is_no_moment_is_told_apart(text):
    assert moments.parse_moment(text) is None


def test_durations_end_where_time_ends():
    assert moments.duration_text(-90_061_000_000) == "-25:01:01"
    assert moments.duration_text(10**15, 2) == "838:59:59.99"
    assert moments.parse_duration("-25:01:01.5") == -90_061_500_000
    assert moments.parse_duration("25:61:01") is None
    assert moments.time_of_day_text(90_061_000_000) == "01:01:01"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("SYSTEM", 0), ("+05:30", 19800), ("-1:00", -3600), ("+14:00", 50400)),
        *((text, None) for text in ("+14:01", "-13:00", "UTC", "Europe/Berlin", "5")),
    ],
)
def test_time_zones_without_tables_are_distances_to_utc(text, seconds):
    assert moments.parse_time_zone(text) == seconds


def test_the_calendar_is_that_of_python():
    for days in (*range(-800, 800), *(random.randrange(-719162, 2932897) for _ in range(2000))):
        day = FIRST_DAY + datetime.timedelta(days=days)
        assert moments.civil_date(days) == (day.year, day.month, day.day)
        assert moments.days_of(day.year, day.month, day.day) == days


@pytest.mark.parametrize("value", ["2026-02-30", "2026-13-01", "2026-00-32", "2026-01-01 24", "26-01-01", "x", 5, None])
def test_what_is_no_day_of_the_calendar_is_refused(value):
    with pytest.raises(ValueError, match=r"is no date and time|there is no such day"):
        moments.moment_of(value)


def test_a_moment_is_taken_from_texts_with_zeros_and_pythons_own():
    assert moments.moment_of("0000-00-00 00:00:00") == moments.Moment(0, 0, 0)
    assert moments.moment_of("2026-00-01")[:3] == (2026, 0, 1)
    assert moments.moment_of("2026-02-00")[:3] == (2026, 2, 0)
    assert moments.moment_of("2024-02-29T23:59:58.5") == moments.Moment(2024, 2, 29, 23, 59, 58, 500000)
    assert moments.moment_of(datetime.date(2024, 2, 29)) == moments.Moment(2024, 2, 29)
    assert moments.moment_of(datetime.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC)) == moments.Moment(
        2024, 2, 29, 1, 2, 3, 4
    )


def test_people_write_moments_with_other_signs_and_fewer_digits():
    assert moments.loose_moment(" 2026/5/1 3:08 ") == moments.Moment(2026, 5, 1, 3, 8)
    assert moments.loose_moment("2026.05.01T3:8:9.25").text == "2026-05-01 03:08:09.250000"
    assert moments.loose_moment("0000-00-00") == moments.Moment(0, 0, 0)
    for text in ("2026a05b01", "2026-05", "26-05-01", "2026-05-01 3"):
        with pytest.raises(ValueError, match=r"is no date and time"):
            moments.loose_moment(text)
