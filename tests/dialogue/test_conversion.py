"""Values taken as other types; what is expected was asked of MariaDB 10.11."""

from decimal import Decimal

import pytest

from ibbmaster.dialogue.conversion import bytes_of, integer_of, number_of, text_of
from tests.dialogue.conftest import refused


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((5, "5"), (1e20, "1e20"), (1e-7, "1e-7"), (2.0, "2"), (2.5, "2.5")),
        *((Decimal("1.50"), "1.50"), (Decimal("1E+3"), "1000"), ("é", "é"), (b"a\xff", "a\udcff")),
    ],
)
def test_a_value_is_shown_as_mariadb_shows_it(value, text):
    assert text_of(value) == text


def test_bytes_that_are_no_text_go_into_a_row_as_they_are():
    assert bytes_of(b"a\xff\x00") == b"a\xff\x00"
    assert bytes_of(None) is None


@pytest.mark.parametrize(
    ("value", "number"),
    [("12abc", 12.0), (" 1.5e1x", 15.0), ("abc", 0.0), ("-3", -3.0), (".5", 0.5), (b"7", 7.0), (None, None), (4, 4)],
)
def test_a_text_counts_as_the_number_it_begins_with(value, number):
    assert number_of(value) == number


@pytest.mark.parametrize(
    ("value", "integer"), [(2.5, 2), (3.5, 4), (Decimal("2.5"), 3), (Decimal("-2.5"), -3), ("7.9", 8)]
)
def test_a_double_rounds_to_even_and_a_decimal_away_from_zero(value, integer):
    assert integer_of(value) == integer


@pytest.mark.parametrize("value", [1e30, Decimal(2**64), "1e300"])
def test_a_number_beyond_64_bits_is_refused_as_an_integer(value):
    assert refused(integer_of, value)[0] == 1690
