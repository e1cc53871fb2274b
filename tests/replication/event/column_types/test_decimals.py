"""DECIMAL values: the example of MariaDB's manual, all digits both ways, and groups that no number has."""

import random
from decimal import Decimal

import pytest

from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.replication.event.column_types.decimals import decimal_reader, decimal_size, digit_groups
from ibbmaster.replication.event.column_types.registry import BY_WORD
from ibbmaster.replication.event.rows.column import ColumnType
from tests.replication.event.conftest import written


@pytest.mark.parametrize(
    ("text", "data"), [("1234567890.1234", "81 0dfb38d2 04d2"), ("-1234567890.1234", "7e f204c72d fb2d")]
)
def test_the_example_of_mariadbs_source_comes_out_both_ways(text, data):
    data = bytes.fromhex(data)
    assert written("decimal(14,4)").encode(text) == data
    assert decimal_reader(14, 4)(data) == Decimal(text)


def test_any_number_reads_back_with_all_its_digits():
    for _ in range(300):
        digits = random.randint(1, 65)
        scale = random.randint(0, min(digits, 38))
        number = Decimal((random.randint(0, 1), tuple(random.randrange(10) for _ in range(digits)), -scale))
        read = decimal_reader(digits, scale)(written(f"decimal({digits},{scale})").encode(number))
        assert read == number
        assert read.as_tuple().exponent == -scale


def test_numbers_sort_as_their_bytes_do():
    numbers = sorted(Decimal(random.randrange(-(10**6), 10**6)).scaleb(-2) for _ in range(100))
    encode = written("decimal(10,2)").encode
    assert sorted(map(encode, numbers)) == list(map(encode, numbers))


@pytest.mark.parametrize("value", ["100", "-100", "0.123", "Infinity", "NaN", "1e99", "x"])
def test_what_does_not_fit_or_is_no_number_is_refused_not_rounded(value):
    problem = "'x' is no number" if value == "x" else r"does not fit into DECIMAL\(4,2\)"
    with pytest.raises(ValueError, match=problem):
        written("decimal(4,2)").encode(value)


def test_a_group_above_its_largest_number_is_refused():
    with pytest.raises(ValueError, match="has a group above 99"):
        decimal_reader(2, 0)(b"\xff")


@pytest.mark.parametrize(("digits", "scale"), [(0, 0), (66, 0), (40, 39), (3, 4)])
def test_no_table_has_such_a_type(digits, scale):
    with pytest.raises(EventError, match=rf"column 1 is DECIMAL\({digits},{scale}\)"):
        BY_WORD["decimal"].layout("column 1", ColumnType.NEWDECIMAL, 0, bytes([digits, scale]))
    if digits:
        with pytest.raises(ConfigurationError, match=rf"column a: DECIMAL\({digits},{scale}\) does not exist"):
            written(f"decimal({digits},{scale})")


def test_a_decimal_without_numbers_has_ten_digits():
    assert written("decimal").metadata == b"\x0a\x00"


# What the manual of MariaDB says of the storage of DECIMAL: four bytes for nine digits, and 1 to 4 for what is left
LEFT = {0: 0, 1: 1, 2: 1, 3: 2, 4: 2, 5: 3, 6: 3, 7: 4, 8: 4}


@pytest.mark.parametrize("digits", range(1, 66))
def test_the_size_is_that_of_the_manual(digits):
    for scale in range(min(digits, 38) + 1):
        parts = (digits - scale, scale)
        assert decimal_size(digits, scale) == sum(part // 9 * 4 + LEFT[part % 9] for part in parts)


def test_what_is_not_nine_digits_is_farthest_from_the_point():
    sizes = ((1, 0), (9, 0), (10, 2), (14, 4), (20, 20), (65, 30))
    groups = [[1], [9], [8, 2], [1, 9, 4], [9, 9, 2], [8, 9, 9, 9, 9, 9, 9, 3]]
    assert [digit_groups(digits, scale) for digits, scale in sizes] == groups
