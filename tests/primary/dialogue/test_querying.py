"""SELECT of values of a session: codes as of MariaDB 10.11, columns as 11.8.6 described them to a client of utf8mb4."""

import pytest

from ibbmaster.primary.dialogue.evaluating import ROW_SIZE_MAX, values_answer
from ibbmaster.primary.dialogue.sql import parse
from tests.case_table import cases_beside
from tests.primary.dialogue.conftest import refused


def answer(evaluator, sql):
    (select,) = parse(sql)
    relation = values_answer(select.query, evaluator, 101119)
    return [column.name for column in relation.columns], [tuple(row) for row in relation.rows]


ANSWERS = {
    "SELECT 1, 'a' AS b": (["1", "b"], [(1, "a")]),
    "SELECT 1 LIMIT 0": (["1"], []),
    "SELECT @@max_statement_time": (["@@max_statement_time"], [("0.000000",)]),
}


@pytest.mark.parametrize(("sql", "expected"), ANSWERS.items(), ids=list(ANSWERS))
def test_a_query_gives_its_rows(new_evaluator, sql, expected):
    assert answer(new_evaluator(), sql) == expected


def test_a_row_does_not_fill_the_memory(new_evaluator):
    evaluator = new_evaluator()
    evaluator.variables.assign("a", "x" * (ROW_SIZE_MAX // 17 + 1))
    assert refused(answer, evaluator, f"SELECT {', '.join(['@a'] * 17)}")[0] == 1153


@pytest.mark.parametrize(("sql", "described"), cases_beside(__file__).items(), ids=list(cases_beside(__file__)))
def test_a_column_is_described_as_a_real_server_does(new_dialog, sql, described):
    column = new_dialog("classic-11.8").query(sql.encode())[-1].columns[0]
    found = column.column_type, column.length, column.flags, column.decimals
    assert [column.name, *(str(int(each)) for each in found)] == described


def test_now_was_a_datetime_up_to_10_11(new_dialog):
    (column,) = new_dialog("classic-10.11").query(b"SELECT NOW()")[0].columns
    assert column.column_type == 12
