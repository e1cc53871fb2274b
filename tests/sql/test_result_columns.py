"""The columns of results."""

from __future__ import annotations

from ibbmaster.dialogue.relation import Relation
from ibbmaster.dialogue.sql import parse
from ibbmaster.dialogue.statement import Select
from ibbmaster.sql.result_columns import result_columns
from ibbmaster.wire.response import ColumnDefinition, FieldType

TABLE = Relation(
    (
        ColumnDefinition(name="NAME", column_type=FieldType.VAR_STRING, length=64, flags=1, original_table="T"),
        ColumnDefinition(name="SIZE", column_type=FieldType.LONG, length=4, original_table="T"),
    )
)


def described(sql, *rows, width=None):
    (query,) = parse(sql)
    select = query if isinstance(query, Select) else None
    count = len(rows[0]) if rows else width
    columns = result_columns(query.source.tokens, select, [TABLE], rows, count)
    return [(column.name, FieldType(column.column_type).name) for column in columns]


def test_a_column_of_a_table_keeps_all_but_its_name():
    (query,) = parse("SELECT name AS n, MAX(size) FROM t")
    first, second = result_columns(query.source.tokens, query, [TABLE], [("a", 1)], 2)
    assert (first.name, first.length, first.flags, first.original_table) == ("n", 64, 1, "T")
    assert (second.name, second.column_type) == ("MAX(size)", FieldType.LONG)


def test_an_expression_over_columns_has_its_type_with_or_without_rows():
    sql = "SELECT IF(size, 1, 2) a, CONCAT(name, 'x') b FROM t"
    expected = [("a", "LONG"), ("b", "VAR_STRING")]
    assert described(sql, width=2) == described(sql, (1, "ax")) == expected


def test_a_value_that_is_not_of_that_type_is_told_as_it_is():
    assert described("SELECT CASE name WHEN 'a' THEN 1 END x FROM t", (1.5,)) == [("x", "DOUBLE")]


def test_what_is_not_understood_is_told_by_its_values():
    sql = "SELECT name, size FROM t UNION SELECT 'x', 1"
    assert described(sql, ("a", 1)) == [("name", "VAR_STRING"), ("size", "LONG")]
    assert described("WITH x AS (SELECT 1 FROM t) SELECT COUNT(*), 5 y FROM x", (3, 5)) == [
        ("COUNT(*)", "LONGLONG"),
        ("y", "LONGLONG"),
    ]


def test_columns_that_nobody_can_name_have_numbers():
    assert described("SELECT * FROM t NATURAL JOIN u", ("a", 1, 2)) == [
        ("column1", "VAR_STRING"),
        ("column2", "LONGLONG"),
        ("column3", "LONGLONG"),
    ]


def test_null_among_the_values_takes_not_null_away():
    (query,) = parse("SELECT COUNT(*), 5 FROM t")
    columns = result_columns(query.source.tokens, query, [TABLE], [(3, None)], 2)
    assert [column.flags & 1 for column in columns] == [1, 0]
