"""A type that was told is compared with the logged one, by number or as SQL."""

import pytest

from ibbmaster.event.rows.encoding import encode_table_map, written_table
from ibbmaster.event.rows.table_schema import decode_table_schema
from ibbmaster.scorecard.same_type import is_same_type

CASES = {  # as declared, as told, whether that is the same
    "its number": ("int", 3, True),
    "another number": ("int", 8, False),
    "a number whose sign is another matter": ("int unsigned", 3, True),
    "an ENUM by its own number": ("enum('a','b')", 247, True),
    "an ENUM by that of the TABLE_MAP": ("enum('a','b')", 254, True),
    "a SET as an ENUM": ("set('a','b')", 247, False),
    "as information_schema has it": ("int", "int(11)", True),
    "in capitals, with what is around it": ("int", "INT NOT NULL", True),
    "another width of the same integer": ("int", "int(5)", True),
    "a larger integer": ("int", "bigint(20)", False),
    "without its sign": ("int unsigned", "int(10)", False),
    "with a sign that it has not": ("int", "INT UNSIGNED", False),
    "an alias": ("int", "INTEGER", True),
    "a DECIMAL": ("decimal(10,2)", "decimal(10,2)", True),
    "a DECIMAL without its digits": ("decimal(10,2)", "DECIMAL", True),
    "a DECIMAL of other digits": ("decimal(10,2)", "decimal(10,3)", False),
    "a DECIMAL of more digits": ("decimal(10,2)", "decimal(12, 2)", False),
    "a text with its characters": ("varchar(40)", "VARCHAR(40) CHARSET utf8mb4 COLLATE utf8mb4_general_ci", True),
    "a text with its bytes": ("varchar(40)", "varchar(160)", True),
    "a shorter kind of text": ("varchar(40)", "char(40)", False),
    "a moment of its fraction": ("datetime(3)", "datetime(3)", True),
    "a moment of another fraction": ("datetime(3)", "datetime(6)", False),
    "bits": ("bit(12)", "bit(12)", True),
    "more bits": ("bit(12)", "bit(16)", False),
    "labels": ("enum('a','b')", "enum('a','b')", True),
    "a type that there is not": ("int", "UNKNOWN", False),
    "no text": ("int", "", False),
}


@pytest.mark.parametrize(("declared", "told", "is_same"), CASES.values(), ids=CASES)
def test_a_type_is_the_one_that_was_logged(declared, told, is_same):
    table = written_table("shop.t", {"a": declared}, table_id=1)
    (column,) = decode_table_schema(encode_table_map(table, server_id=1)).columns
    assert is_same_type(column, told) is is_same
