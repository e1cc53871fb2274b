"""SELECT of expressions: codes as of MariaDB 10.11, columns as 11.8.6 described them to a client of utf8mb4."""

from decimal import Decimal

import pytest

from ibbmaster.dialogue.querying import ROW_SIZE_MAX, Querying
from ibbmaster.dialogue.relation import Relation
from ibbmaster.dialogue.sql import parse
from ibbmaster.wire.response import ColumnDefinition
from tests.case_table import cases_beside
from tests.dialogue.conftest import refused


@pytest.fixture
def querying(new_evaluator):
    evaluator = new_evaluator()
    return Querying(evaluator, evaluator.subquery.__self__.compute, 101119)


def answer(querying, sql):
    (select,) = parse(sql)
    relation = querying.answer(select.query)
    return [column.name for column in relation.columns], [tuple(row) for row in relation.rows]


ANSWERS = {
    "SELECT 1, 'a' AS b": (["1", "b"], [(1, "a")]),
    "SELECT 1 LIMIT 0": (["1"], []),
    "SELECT @@max_statement_time": (["@@max_statement_time"], [("0.000000",)]),
}


@pytest.mark.parametrize(("sql", "expected"), ANSWERS.items(), ids=list(ANSWERS))
def test_a_query_gives_its_rows(querying, sql, expected):
    querying.evaluator.subquery = querying.value
    assert answer(querying, sql) == expected


REFUSED = {"SELECT 1, (SELECT a FROM other)": 1146, "SELECT *": 1096}


@pytest.mark.parametrize(("sql", "code"), REFUSED.items(), ids=list(REFUSED))
def test_what_is_missing_or_not_answered_has_its_code(querying, sql, code):
    assert refused(answer, querying, sql)[0] == code


@pytest.mark.parametrize(
    ("sql", "code"), [("SELECT 'row' AS a, 1 FROM t LIMIT 1", 1241), ("SELECT 'rows' AS a FROM t", 1242)]
)
def test_a_query_in_brackets_is_one_value(new_evaluator, sql, code):
    (select,) = parse(sql)
    columns = tuple(ColumnDefinition(name=item.name, column_type=253, length=4) for item in select.query.items)
    rows = [("row", 1)] if code == 1241 else [("a",), ("b",)]
    querying = Querying(new_evaluator(), lambda _: Relation(columns, rows), 101119)
    assert refused(querying.value, select.query)[0] == code


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        *(("(SELECT 5)", 5), ("(SELECT 2.50)", Decimal("2.50")), ("(SELECT 5e-1 * 3)", 1.5)),
        *(("(SELECT CONCAT('a', 1))", "a1"), ("(SELECT BINARY 'a')", b"a")),
        ("(SELECT COUNT(*) FROM (SELECT 1) t)", 1),
    ],
)
def test_a_query_in_brackets_has_a_value_of_its_type(new_evaluator, sql, value):
    (statement,) = parse(f"SET @a = {sql}")
    found = new_evaluator().evaluate(statement.assignments[0].value)
    assert (found, type(found)) == (value, type(value))


def test_a_query_in_brackets_without_rows_is_null(querying):
    assert querying.value(parse("SELECT 1 WHERE 0")[0].query) is None


def test_a_row_does_not_fill_the_memory(querying):
    text = f"SELECT {', '.join(['@a'] * 17)}"
    querying.evaluator.variables.assign("a", "x" * (ROW_SIZE_MAX // 17 + 1))
    assert refused(answer, querying, text)[0] == 1153


@pytest.mark.parametrize(("sql", "described"), cases_beside(__file__).items(), ids=list(cases_beside(__file__)))
def test_a_column_is_described_as_a_real_server_does(new_dialog, sql, described):
    column = new_dialog("classic-11.8").query(sql.encode())[-1].columns[0]
    found = column.column_type, column.length, column.flags, column.decimals
    assert [column.name, *(str(int(each)) for each in found)] == described


def test_now_was_a_datetime_up_to_10_11(new_dialog):
    (column,) = new_dialog("classic-10.11").query(b"SELECT NOW()")[0].columns
    assert column.column_type == 12
