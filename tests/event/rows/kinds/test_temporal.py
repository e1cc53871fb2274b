"""Dates and times of all formats, beside Python's calendar."""

import datetime
import random

import pytest

from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.event.rows.kinds.kind import read_declared
from ibbmaster.event.rows.kinds.registry import kind_of
from ibbmaster.event.rows.kinds.temporal import Date, DateTime, Time, Timestamp


def reader(column_type, digits=0):
    """What reads the bytes of a value as text."""
    column = Column(name="a", type=column_type, metadata=digits, kind=ValueKind.DATETIME, scale=digits)
    return kind_of(column).convert(column)


def encoder(kind, declared: str):
    return kind.write(read_declared("column a", declared)).encode


def test_a_date_is_packed_in_three_bytes():
    assert encoder(Date(), "date")("2026-05-10") == (2026 << 9 | 5 << 5 | 10).to_bytes(3, "little")
    assert reader(ColumnType.DATE)(b"\0\0\0") == "0000-00-00"
    assert reader(ColumnType.DATE)((2026 << 9 | 5 << 5).to_bytes(3, "little")) == "2026-05-00"


# As protocol/event/rows.md says, worked out by hand: 2026-05-10 03:48:16 and fractions
@pytest.mark.parametrize(
    ("read", "data", "text"),
    [
        (reader(ColumnType.DATETIME2, 0), "99b9d43c10", "2026-05-10 03:48:16"),
        (reader(ColumnType.DATETIME2, 3), "99b9d43c10 1388", "2026-05-10 03:48:16.500"),
        (reader(ColumnType.DATETIME2, 6), "99b9d43c10 07a120", "2026-05-10 03:48:16.500000"),
        (reader(ColumnType.DATETIME2, 0), "8000000000", "0000-00-00 00:00:00"),
        (reader(ColumnType.TIME2, 0), "800000", "00:00:00"),
        (reader(ColumnType.TIME2, 0), "800001", "00:00:01"),
        (reader(ColumnType.TIME2, 0), "7fffff", "-00:00:01"),
        (reader(ColumnType.TIME2, 2), "7fffff ce", "-00:00:00.50"),
        (reader(ColumnType.TIME2, 0), "b46efb", "838:59:59"),
        (reader(ColumnType.TIMESTAMP2, 0), "00000001", "1970-01-01 00:00:01"),
        (reader(ColumnType.TIMESTAMP2, 2), "00000000 00", "0000-00-00 00:00:00.00"),
        (reader(ColumnType.TIMESTAMP2, 1), "00000000 32", "1970-01-01 00:00:00.5"),
        (reader(ColumnType.TIMESTAMP2, 0), "ffffffff", "2106-02-07 06:28:15"),
        (reader(ColumnType.TIMESTAMP, 0), "01000000", "1970-01-01 00:00:01"),
        (reader(ColumnType.TIMESTAMP, 3), "00000001 01f4", "1970-01-01 00:00:01.500"),
        (reader(ColumnType.TIME, 0), (123456).to_bytes(3, "little").hex(), "12:34:56"),
        (reader(ColumnType.TIME, 0), (-8385959).to_bytes(3, "little", signed=True).hex(), "-838:59:59"),
        (reader(ColumnType.TIME, 1), ((3020400 + 3661) * 10 + 5).to_bytes(4, "big").hex(), "01:01:01.5"),
        (reader(ColumnType.TIME, 1), ((3020400 - 3661) * 10 - 5).to_bytes(4, "big").hex(), "-01:01:01.5"),
        (reader(ColumnType.DATETIME, 0), (20260510034816).to_bytes(8, "little").hex(), "2026-05-10 03:48:16"),
        (
            reader(ColumnType.DATETIME, 1),
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
        (reader(ColumnType.DATETIME2, 0), "0000000001", "datetime 0000000001 is negative"),
        (reader(ColumnType.DATETIME2, 2), "99b9d43c10 64", "fraction 100 has more than 2 digits"),
        (reader(ColumnType.TIME, 0), (8387060).to_bytes(3, "little").hex(), "time 8387060 is out of range"),
        (reader(ColumnType.TIME, 0), (126000).to_bytes(3, "little").hex(), "time 126000 is out of range"),
        (reader(ColumnType.TIME, 1), "ffffffff", "out of range"),
        (reader(ColumnType.DATETIME, 0), (20261310034816).to_bytes(8, "little").hex(), "out of range"),
        (reader(ColumnType.DATETIME, 0), (20260510034861).to_bytes(8, "little").hex(), "out of range"),
        (reader(ColumnType.DATETIME, 1), "ffffffffffff", "out of range"),
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
        assert reader(ColumnType.DATETIME2, digits)(moment(value)) == text
        assert reader(ColumnType.TIMESTAMP2, digits)(stamp(value)) == text


def test_a_moment_with_a_zone_is_stored_as_that_of_utc():
    zone = datetime.timezone(datetime.timedelta(hours=-5, minutes=-30))
    value = datetime.datetime(2026, 5, 10, 3, 48, 16, tzinfo=zone)
    assert encoder(Timestamp(), "timestamp")(value) == int(value.timestamp()).to_bytes(4, "big")


@pytest.mark.parametrize("value", ["1970-01-01 00:00:00", "1969-12-31", "2106-02-07 06:28:16"])
def test_a_timestamp_begins_after_1970_and_ends_in_2106(value):
    with pytest.raises(ValueError, match="is no TIMESTAMP"):
        encoder(Timestamp(), "timestamp")(value)


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
