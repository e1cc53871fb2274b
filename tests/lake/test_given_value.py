"""Values as people write them, by the types of columns."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from ibbmaster.errors import ConfigurationError
from ibbmaster.lake.given_value import parse_value

READ = {
    ("int", "-7"): -7,
    ("bigint", "9223372036854775807"): (1 << 63) - 1,
    ("decimal(20,0)", "18446744073709551615"): Decimal((1 << 64) - 1),
    ("decimal(5,2)", "1.5"): Decimal("1.50"),
    ("double", "1.5e3"): 1500.0,
    ("string", "0x41"): "0x41",
    ("binary", "0x41"): b"A",
    ("binary", "A"): b"A",
    ("date", "2026-01-31"): datetime.date(2026, 1, 31),
    ("timestamp_ntz", "2026-01-31 12:00:01.5"): datetime.datetime(2026, 1, 31, 12, 0, 1, 500_000),
    ("timestamp", "2026-01-31 12:00:00"): datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC),
    ("timestamp", "2026-01-31T12:00:00+01:00"): datetime.datetime(2026, 1, 31, 11, tzinfo=datetime.UTC),
}
REFUSED = [
    ("int", "x"),
    ("int", "2147483648"),
    ("bigint", "1.5"),
    ("decimal(5,2)", "1.505"),
    ("decimal(5,2)", "1000"),
    ("decimal(5,2)", "NaN"),
    ("double", "many"),
    ("binary", "0x4"),
    ("date", "0000-00-00"),
    ("timestamp_ntz", "2026-01-31 12:00:00+00:00"),
    ("timestamp", "yesterday"),
    ("array<float>", "1"),
]


@pytest.mark.parametrize(("given", "value"), READ.items(), ids=str)
def test_a_text_is_a_value_of_its_column(given, value):
    assert parse_value("a", *given) == value


@pytest.mark.parametrize(("kind", "text"), REFUSED)
def test_what_is_no_value_is_refused_by_the_name_of_its_column(kind, text):
    with pytest.raises(ConfigurationError) as caught:
        parse_value("a", kind, text)
    assert str(caught.value) == f"column a is {kind}, and {text!r} is no value of that type"
