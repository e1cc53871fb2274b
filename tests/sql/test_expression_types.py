"""The types of expressions over columns; those of MariaDB 11.8, as its drivers are told."""

from __future__ import annotations

import pytest

from ibbmaster.dialogue.sql import parse
from ibbmaster.sql.expression_types import type_of
from ibbmaster.wire.response import ColumnDefinition, FieldType

COLUMNS = {
    "name": ColumnDefinition(name="NAME", column_type=FieldType.VAR_STRING, length=256),
    "long_text": ColumnDefinition(name="LONG_TEXT", column_type=FieldType.BLOB, length=786_420),
    "big": ColumnDefinition(name="BIG", column_type=FieldType.LONGLONG, length=21, flags=0x20),
    "small": ColumnDefinition(name="SMALL", column_type=FieldType.TINY, length=2),
}
TYPES = {
    "CASE name WHEN 'a' THEN 1 WHEN 'b' THEN 2 END": ("LONG", 11),
    "CASE name WHEN 'a' THEN 1 ELSE 'b' END": ("VAR_STRING", 4),
    "IF(small = 0, 10, CAST(big + 11 AS SIGNED INTEGER))": ("LONGLONG", 21),
    "IF(big IS NULL, LEAST(big, 2147483647), big)": ("NEWDECIMAL", 22),
    "CONVERT(CASE name WHEN 'a' THEN 0 ELSE big END, UNSIGNED INTEGER)": ("LONGLONG", 21),
    "UCASE(IF(name LIKE '%', CONCAT(SUBSTRING(long_text, 1), name), long_text))": ("MEDIUM_BLOB", 786_676),
    "CONCAT(name, '.', name)": ("VAR_STRING", 516),
    "small + 1": ("LONGLONG", 21),
    "small / 2": ("NEWDECIMAL", 22),
    "name * 1": ("DOUBLE", 23),
    "name = 'a' OR big IN (1, 2)": ("LONG", 11),
    "name IS NOT NULL": ("LONG", 11),
    "LENGTH(name)": ("LONG", 11),
    "COUNT(name)": ("LONGLONG", 21),
    "SUM(big)": ("NEWDECIMAL", 22),
    "COALESCE(MAX(small), 0)": ("LONG", 11),
    "IFNULL(name, 'a longer text')": ("VAR_STRING", 256),
    "NULLIF(big, 0)": ("LONGLONG", 21),
    "COALESCE(small, 1.5)": ("NEWDECIMAL", 22),
    "COALESCE(small, 1e5)": ("DOUBLE", 23),
    "IF(name, NULL, NULL)": ("NULL", 0),
    "nothing + 1": None,
    "CAST(name AS CHAR)": None,
    "HEX(name)": None,
}


@pytest.mark.parametrize(("sql", "expected"), TYPES.items(), ids=list(TYPES))
def test_an_expression_has_the_type_that_holds_all_its_values(sql, expected):
    (select,) = parse(f"SELECT {sql} x FROM t")
    found = type_of(select.items[0].expression, lambda parts: COLUMNS.get(parts[-1].lower()))
    if expected is None:
        assert found is None
        return
    column = found.definition("x")
    assert (column.name, FieldType(column.column_type).name, column.length) == ("x", *expected)


def test_integers_without_a_sign_stay_so():
    (select,) = parse("SELECT NULLIF(big, 0) FROM t")
    found = type_of(select.items[0].expression, lambda parts: COLUMNS.get(parts[-1].lower()))
    assert found.definition("x").flags == 0xA0
