"""Dates and times of all formats, beside Python's calendar."""

from __future__ import annotations

import datetime
import random

import pytest

from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.event.rows.kinds.kind import read_declared
from ibbmaster.event.rows.kinds.temporal import (
    Date,
    DateTime,
    Moment,
    Time,
    Timestamp,
    civil_date,
    date_text,
    datetime2_text,
    days_of,
    moment_of,
    old_datetime_text,
    old_time_text,
    old_timestamp_text,
    time2_text,
    timestamp2_text,
)

EPOCH = datetime.date(1970, 1, 1)
UTC = datetime.UTC


def encoder(kind, declared: str):
    return kind.write(read_declared("column a", declared)).encode


def test_the_calendar_is_that_of_python():
    for days in (*range(-800, 800), *(random.randrange(-719162, 2932897) for _ in range(2000))):
        day = EPOCH + datetime.timedelta(days=days)
        assert civil_date(days) == (day.year, day.month, day.day)
        assert days_of(day.year, day.month, day.day) == days


def test_a_date_is_packed_in_three_bytes():
    assert encoder(Date(), "date")("2026-05-10") == (2026 << 9 | 5 << 5 | 10).to_bytes(3, "little")
    assert date_text(b"\0\0\0") == "0000-00-00"
    assert date_text((2026 << 9 | 5 << 5).to_bytes(3, "little")) == "2026-05-00"


# As protocol/event/rows.md says, worked out by hand: 2026-05-10 03:48:16 and fractions
@pytest.mark.parametrize(
    ("read", "data", "text"),
    [
        (datetime2_text(0), "99b9d43c10", "2026-05-10 03:48:16"),
        (datetime2_text(3), "99b9d43c10 1388", "2026-05-10 03:48:16.500"),
        (datetime2_text(6), "99b9d43c10 07a120", "2026-05-10 03:48:16.500000"),
        (datetime2_text(0), "8000000000", "0000-00-00 00:00:00"),
        (time2_text(0), "800000", "00:00:00"),
        (time2_text(0), "800001", "00:00:01"),
        (time2_text(0), "7fffff", "-00:00:01"),
        (time2_text(2), "7fffff ce", "-00:00:00.50"),
        (time2_text(0), "b46efb", "838:59:59"),
        (timestamp2_text(0), "00000001", "1970-01-01 00:00:01"),
        (timestamp2_text(2), "00000000 00", "0000-00-00 00:00:00.00"),
        (timestamp2_text(1), "00000000 32", "1970-01-01 00:00:00.5"),
        (timestamp2_text(0), "ffffffff", "2106-02-07 06:28:15"),
        (old_timestamp_text(0), "01000000", "1970-01-01 00:00:01"),
        (old_timestamp_text(3), "00000001 01f4", "1970-01-01 00:00:01.500"),
        (old_time_text(0), (123456).to_bytes(3, "little").hex(), "12:34:56"),
        (old_time_text(0), (-8385959).to_bytes(3, "little", signed=True).hex(), "-838:59:59"),
        (old_time_text(1), ((3020400 + 3661) * 10 + 5).to_bytes(4, "big").hex(), "01:01:01.5"),
        (old_time_text(1), ((3020400 - 3661) * 10 - 5).to_bytes(4, "big").hex(), "-01:01:01.5"),
        (old_datetime_text(0), (20260510034816).to_bytes(8, "little").hex(), "2026-05-10 03:48:16"),
        (
            old_datetime_text(1),
            (((((2026 * 13 + 5) * 32 + 10) * 24 + 3) * 3600 + 48 * 60 + 16) * 10 + 5).to_bytes(6, "big").hex(),
            "2026-05-10 03:48:16.5",
        ),
    ],
)  # fmt: skip
def test_each_format_reads_as_mariadb_shows_it(read, data, text):
    assert read(bytes.fromhex(data)) == text


@pytest.mark.parametrize(
    ("read", "data", "problem"),
    [
        (datetime2_text(0), "0000000001", "datetime 0000000001 is negative"),
        (datetime2_text(2), "99b9d43c10 64", "fraction 100 has more than 2 digits"),
        (old_time_text(0), (8387060).to_bytes(3, "little").hex(), "time 8387060 is out of range"),
        (old_time_text(0), (126000).to_bytes(3, "little").hex(), "time 126000 is out of range"),
        (old_time_text(1), "ffffffff", "out of range"),
        (old_datetime_text(0), (20261310034816).to_bytes(8, "little").hex(), "out of range"),
        (old_datetime_text(0), (20260510034861).to_bytes(8, "little").hex(), "out of range"),
        (old_datetime_text(1), "ffffffffffff", "out of range"),
    ],
)
def test_what_is_no_moment_is_refused(read, data, problem):
    with pytest.raises(ValueError, match=problem):
        read(bytes.fromhex(data))


@pytest.mark.parametrize("digits", range(7))
def test_random_moments_read_back_with_the_digits_of_their_type(digits):
    stamp, moment = encoder(Timestamp(), f"timestamp({digits})"), encoder(DateTime(), f"datetime({digits})")
    for _ in range(100):
        value = datetime.datetime(1971, 1, 1) + datetime.timedelta(microseconds=random.randrange(4 * 10**15))
        text = value.isoformat(" ", "microseconds")[: 19 + (digits and digits + 1)]
        assert datetime2_text(digits)(moment(value)) == text
        assert timestamp2_text(digits)(stamp(value)) == text


def test_a_moment_with_a_zone_is_stored_as_that_of_utc():
    zone = datetime.timezone(datetime.timedelta(hours=-5, minutes=-30))
    value = datetime.datetime(2026, 5, 10, 3, 48, 16, tzinfo=zone)
    assert encoder(Timestamp(), "timestamp")(value) == int(value.timestamp()).to_bytes(4, "big")


@pytest.mark.parametrize("value", ["1970-01-01 00:00:00", "1969-12-31", "2106-02-07 06:28:16"])
def test_a_timestamp_begins_after_1970_and_ends_in_2106(value):
    with pytest.raises(ValueError, match="is no TIMESTAMP"):
        encoder(Timestamp(), "timestamp")(value)


@pytest.mark.parametrize("value", ["2026-02-30", "2026-13-01", "2026-00-01", "2026-01-01 24", "26-01-01", "x", 5, None])
def test_what_is_no_day_of_the_calendar_is_refused(value):
    with pytest.raises(ValueError, match=r"is no date and time|there is no such day"):
        moment_of(value)


def test_a_moment_is_taken_from_texts_and_pythons_own():
    assert moment_of("2024-02-29T23:59:58.5") == Moment(2024, 2, 29, 23, 59, 58, 500000)
    assert moment_of(datetime.date(2024, 2, 29)) == Moment(2024, 2, 29)
    assert moment_of(datetime.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC)) == Moment(2024, 2, 29, 1, 2, 3, 4)


@pytest.mark.parametrize("value", ["839:00:00", "12:60:00", "12:00", "x", None])
def test_what_is_no_time_is_refused(value):
    with pytest.raises(ValueError, match="is no TIME"):
        encoder(Time(), "time")(value)


def test_a_second_has_at_most_six_digits():
    with pytest.raises(EventError, match="column 3 has 7 digits of a second"):
        Time().layout("column 3", ColumnType.TIME2, 7, b"\x07")
    with pytest.raises(ConfigurationError, match="column a: 7 digits of a second, at most 6"):
        encoder(Time(), "time(7)")


@pytest.mark.parametrize("kind", [Time(), DateTime(), Timestamp()])
def test_the_digits_of_the_old_formats_are_those_declared(kind):
    old = Column(name="a", type=kind.old, metadata=0, kind=ValueKind.TIME)
    new = Column(name="a", type=kind.new, metadata=3, kind=ValueKind.TIME, scale=3)
    declared = read_declared("column a", "time(2)")

    assert (kind.declare(old, declared), kind.declare(new, declared)) == ({"scale": 2}, {})
