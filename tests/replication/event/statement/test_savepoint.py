import pytest

from ibbmaster.replication.event.statement.savepoint import SavepointStep, savepoint_step
from ibbmaster.sqltext.cursor import Cursor
from ibbmaster.sqltext.token import ANSI_QUOTES, tokens
from tests.case_table import data_beside

STEPS = data_beside(__file__)


def step_of(sql, sql_mode=0):
    cursor = Cursor(tokens(sql, sql_mode))
    found = savepoint_step(cursor)
    assert cursor.rest() == [*tokens(sql, sql_mode)], "it only looks ahead"
    return found


@pytest.mark.parametrize(("sql", "step"), STEPS.items(), ids=STEPS)
def test_a_savepoint_is_compared_without_case_accents_and_blanks_at_its_end(sql, step):
    assert step_of(sql) == SavepointStep(*step)


@pytest.mark.parametrize("sql", ["", "SAVEPOINT", "RELEASE SAVEPOINT a", "COMMIT", "ROLLBACK TO", "SAVEPOINT 'a'"])
def test_other_statements_are_no_step(sql):
    assert step_of(sql) is None


def test_double_quotes_are_those_of_a_name_only_in_ansi_quotes():
    assert step_of('SAVEPOINT "a"') is None
    assert step_of('SAVEPOINT "a"', ANSI_QUOTES) == SavepointStep(False, "A")
