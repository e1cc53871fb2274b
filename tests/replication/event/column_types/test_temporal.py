import datetime
import random

import pytest

from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.replication.event.column_types.kind import read_declared
from ibbmaster.replication.event.column_types.registry import BY_WORD, kind_of
from ibbmaster.replication.event.rows.column import ColumnType, ValueKind
from tests.case_table import data_beside
from tests.replication.event.conftest import column_of, written

DATA = data_beside(__file__)


def reader(column_type, digits=0):
    column = column_of(column_type, ValueKind.DATETIME, metadata=digits, scale=digits)
    return kind_of(column).convert(column)


def test_a_date_is_packed_in_three_bytes():
    assert written("date").encode("2026-05-10") == (2026 << 9 | 5 << 5 | 10).to_bytes(3, "little")
    assert reader(ColumnType.DATE)(b"\0\0\0") == "0000-00-00"
    assert reader(ColumnType.DATE)((2026 << 9 | 5 << 5).to_bytes(3, "little")) == "2026-05-00"


# As protocol/event/rows.md says, worked out by hand: 2026-05-10 03:48:16 and fractions
@pytest.mark.parametrize(("column_type", "digits", "data", "text"), DATA["moments"])
def test_each_format_reads_as_mariadb_shows_it(column_type, digits, data, text):
    assert reader(ColumnType[column_type], digits)(bytes.fromhex(data)) == text


@pytest.mark.parametrize(("column_type", "digits", "data", "problem"), DATA["none"])
def test_what_is_no_moment_is_refused(column_type, digits, data, problem):
    with pytest.raises(ValueError, match=problem):
        reader(ColumnType[column_type], digits)(bytes.fromhex(data))


@pytest.mark.parametrize("digits", range(7))
def test_random_moments_read_back_with_the_digits_of_their_type(digits):
    stamp = written(f"timestamp({digits})").encode
    moment = written(f"datetime({digits})").encode
    for _ in range(100):
        value = datetime.datetime(1971, 1, 1) + datetime.timedelta(microseconds=random.randrange(4 * 10**15))
        text = value.isoformat(" ", "microseconds")[: 19 + (digits and digits + 1)]
        assert reader(ColumnType.DATETIME2, digits)(moment(value)) == text
        assert reader(ColumnType.TIMESTAMP2, digits)(stamp(value)) == text


def test_a_moment_with_a_zone_is_stored_as_that_of_utc():
    zone = datetime.timezone(datetime.timedelta(hours=-5, minutes=-30))
    value = datetime.datetime(2026, 5, 10, 3, 48, 16, tzinfo=zone)
    assert written("timestamp").encode(value) == int(value.timestamp()).to_bytes(4, "big")


@pytest.mark.parametrize(
    ("word", "value"),
    [
        *(("timestamp", value) for value in ("1970-01-01 00:00:00", "1969-12-31", "2106-02-07 06:28:16")),
        *(("time", value) for value in ("839:00:00", "12:60:00", "12:00", "x", None)),
    ],
)
def test_a_timestamp_before_1971_or_after_2106_and_what_is_no_time_are_refused(word, value):
    with pytest.raises(ValueError, match=f"is no {word.upper()}"):
        written(word).encode(value)


def test_a_second_has_at_most_six_digits():
    with pytest.raises(EventError, match="column 3 has 7 digits of a second"):
        BY_WORD["time"].layout("column 3", ColumnType.TIME2, 7, b"\x07")
    with pytest.raises(ConfigurationError, match="column a: 7 digits of a second, at most 6"):
        written("time(7)")


@pytest.mark.parametrize("kind", [BY_WORD["time"], BY_WORD["datetime"], BY_WORD["timestamp"]])
def test_the_digits_of_the_old_formats_are_those_declared(kind):
    old, new = column_of(kind.old), column_of(kind.new, scale=3)
    declared = read_declared("column a", "time(2)")

    assert (kind.declare(old, declared), kind.declare(new, declared)) == ({"scale": 2}, {})
