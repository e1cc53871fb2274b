"""SELECT: from no table, or from one that is given; codes were asked of MariaDB 10.11."""

from __future__ import annotations

import pytest

from ibbmaster.dialogue.querying import ROW_SIZE_MAX, Querying
from ibbmaster.dialogue.refusal import RefusedError, unknown_table
from ibbmaster.dialogue.relation import Relation
from ibbmaster.dialogue.sql import parse
from ibbmaster.wire.response import ColumnDefinition, FieldType

COLUMNS = tuple(ColumnDefinition(name=name, column_type=FieldType.VAR_STRING, length=64) for name in ("Name", "Size"))
ROWS = [("b", 2), ("a", 10), ("c", None), ("B", 2)]


@pytest.fixture
def querying(new_evaluator):
    def find(table):
        if table.name != "t":
            raise unknown_table(table.database or "d", table.name)
        return Relation(COLUMNS, ROWS)

    return Querying(new_evaluator(), find, 101119)


def answer(querying, sql):
    (select,) = parse(sql)
    relation = querying.answer(select)
    return [column.name for column in relation.columns], [tuple(row) for row in relation.rows]


ANSWERS = {
    "SELECT 1, 'a' AS b": (["1", "b"], [(1, "a")]),
    "SELECT 1 WHERE 0": (["1"], []),
    "SELECT 1 LIMIT 0": (["1"], []),
    "SELECT @@max_statement_time": (["@@max_statement_time"], [("0.000000",)]),
    "SELECT * FROM t": (["Name", "Size"], ROWS),
    "SELECT size, Name n FROM t WHERE size": (["size", "n"], [(2, "b"), (10, "a"), (2, "B")]),
    "SELECT name FROM t WHERE name = 'B'": (["name"], [("b",), ("B",)]),
    "SELECT name FROM t ORDER BY size DESC, 1": (["name"], [("a",), ("b",), ("B",), ("c",)]),
    "SELECT size + 1 s FROM t ORDER BY s LIMIT 2 OFFSET 1": (["s"], [(3,), (3,)]),
    "SELECT DISTINCT size FROM t": (["size"], [(2,), (10,), (None,)]),
    "SELECT COUNT(*), COUNT(1) FROM t WHERE size = 2": (["COUNT(*)", "COUNT(1)"], [(2, 2)]),
    "SELECT upper(name) FROM t LIMIT 1": (["upper(name)"], [("B",)]),
    "SELECT (SELECT COUNT(*) FROM t)": (["(SELECT COUNT(*) FROM t)"], [(4,)]),
}


@pytest.mark.parametrize(("sql", "expected"), ANSWERS.items(), ids=list(ANSWERS))
def test_a_query_gives_its_rows(querying, sql, expected):
    querying.evaluator.subquery = querying.value
    assert answer(querying, sql) == expected


REFUSED = {
    "SELECT a FROM other": 1146,
    "SELECT nothing FROM other": 1146,  # what is missing is told before anything else
    "SELECT nothing FROM t": 1054,
    "SELECT name FROM t WHERE upper(nothing) = 1": 1054,
    "SELECT name FROM t ORDER BY 3": 1054,
    "SELECT name FROM t ORDER BY nothing": 1054,
    "SELECT *": 1096,
    "SELECT 1 FROM t, t x": 1235,
    "SELECT 1 FROM t, other": 1146,
    "SELECT 1 FROM t JOIN t x ON 1": 1235,
    "SELECT 1 FROM (SELECT 1) x": 1235,
    "SELECT 1 FROM (SELECT 1 FROM other) x": 1146,
    "SELECT name FROM t GROUP BY name": 1235,
    "SELECT name FROM t HAVING 1": 1235,
}


@pytest.mark.parametrize(("sql", "code"), REFUSED.items(), ids=list(REFUSED))
def test_what_is_missing_or_not_answered_has_its_code(querying, sql, code):
    with pytest.raises(RefusedError) as caught:
        answer(querying, sql)
    assert caught.value.err.code == code


@pytest.mark.parametrize(
    ("sql", "code"), [("SELECT * FROM t LIMIT 1", 1241), ("SELECT name FROM t", 1242), ("SELECT name, 1 FROM t", 1242)]
)
def test_a_query_in_brackets_is_one_value(querying, sql, code):
    with pytest.raises(RefusedError) as caught:
        querying.value(parse(sql)[0])
    assert caught.value.err.code == code


def test_a_query_in_brackets_without_rows_is_null(querying):
    assert querying.value(parse("SELECT name FROM t WHERE 0")[0]) is None


def test_an_alias_keeps_the_type_of_its_column(querying):
    (column,) = querying.answer(parse("SELECT name AS n FROM t")[0]).columns
    assert (column.name, column.length) == ("n", 64)


def test_a_row_does_not_fill_the_memory(querying):
    text = f"SELECT {', '.join(['@a'] * 17)}"
    querying.evaluator.variables.assign("a", "x" * (ROW_SIZE_MAX // 17 + 1))
    with pytest.raises(RefusedError) as caught:
        answer(querying, text)
    assert caught.value.err.code == 1153
