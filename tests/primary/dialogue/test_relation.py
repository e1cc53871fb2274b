"""Tables as values: chosen from, cut to size, turned into an answer; their values as other types, as MariaDB 10.11 has
them."""

import itertools
import random
import re
from decimal import Decimal

import pytest

from ibbmaster.primary.dialogue.relation import PATTERN_MAX, Relation, bytes_of, integer_of, matcher, text_of
from ibbmaster.replication.wire.response import ColumnDefinition, FieldType
from tests.case_table import data_beside
from tests.primary.dialogue.conftest import refused

DATA = data_beside(__file__)
COLUMNS = tuple(
    ColumnDefinition(name=name, column_type=FieldType.VAR_STRING, length=64) for name in ("Log_name", "Size")
)
ROWS = [("a", 1), ("b", None), ("c", 3)]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        *((None, ROWS), ((0, 1), ROWS[:1]), ((1, 1), ROWS[1:2]), ((2, None), ROWS[2:]), ((0, 2**64 - 1), ROWS)),
        ((9, 9), []),
    ],
)
def test_a_limit_leaves_rows_out_in_front_and_behind(limit, expected):
    assert list(Relation(COLUMNS, iter(ROWS)).limited(limit).rows) == expected
    assert list(Relation(COLUMNS, itertools.repeat(("a", 1))).limited((0, 2)).rows) == [("a", 1)] * 2  # without end


def test_an_answer_has_texts_and_keeps_null():
    answer = Relation(COLUMNS, ROWS).result(status=2)

    assert answer.columns == COLUMNS
    assert list(answer.rows) == [(b"a", b"1"), (b"b", None), (b"c", b"3")]


def expected(pattern: str, text: str) -> bool:
    signs = {"%": ".*", "_": "."}
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    plain = "".join(re.escape(part[1]) if len(part) == 2 else signs.get(part, re.escape(part)) for part in parts)
    return re.fullmatch(plain, text, re.DOTALL | re.IGNORECASE) is not None


@pytest.mark.parametrize(("pattern", "text", "matches"), DATA["like"])
def test_like_matches_as_sql_says(pattern, text, matches):
    assert matcher(pattern)(text) is matches


def test_random_patterns_match_what_regular_expressions_match():
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    for _ in range(3000):
        pattern = "".join(rng.choices(["a", "B", "%", "_", "\\%", "\\_", "\\a"], k=rng.randrange(7)))
        text = "".join(rng.choices("aAbB%_", k=rng.randrange(7)))
        assert matcher(pattern)(text) == expected(pattern, text), (seed, pattern, text)


def test_a_cunning_pattern_takes_no_longer_than_a_plain_one_and_has_only_so_many_letters():
    assert not matcher("%a" * 200 + "%b")("a" * 5000)  # doubling, it would outlive the universe
    assert not matcher("%a" * (PATTERN_MAX // 2))("a")
    assert refused(matcher, "a" * (PATTERN_MAX + 1))[0] == 1235


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((5, "5"), (1e20, "1e20"), (1e-7, "1e-7"), (2.0, "2"), (2.5, "2.5")),
        *((Decimal("1.50"), "1.50"), (Decimal("1E+3"), "1000"), ("é", "é"), (b"a\xff", "a\udcff")),
    ],
)
def test_a_value_is_shown_as_mariadb_shows_it(value, text):
    assert text_of(value) == text
    assert (bytes_of(b"a\xff\x00"), bytes_of(None)) == (b"a\xff\x00", None)


@pytest.mark.parametrize(
    ("value", "number"),
    [("12abc", 12), (" 1.5e1x", 15), ("abc", 0), ("-3", -3), (".5", 0), (b"7", 7), (None, None), (4, 4), ("7.9", 8)],
)
def test_a_text_counts_as_the_number_it_begins_with(value, number):
    assert integer_of(value) == number


@pytest.mark.parametrize(("value", "integer"), [(2.5, 2), (3.5, 4), (Decimal("2.5"), 3), (Decimal("-2.5"), -3)])
def test_a_double_rounds_to_even_and_a_decimal_away_from_zero(value, integer):
    assert integer_of(value) == integer


@pytest.mark.parametrize("value", [1e30, Decimal(2**64), "1e300"])
def test_a_number_beyond_64_bits_is_refused_as_an_integer(value):
    assert refused(integer_of, value)[0] == 1690
