"""Savepoints as statements name them."""

from __future__ import annotations

import pytest

from ibbmaster.event.statement.savepoint import SavepointStep, savepoint_step
from ibbmaster.sqltext.token import ANSI_QUOTES

STEPS = {
    "SAVEPOINT `a b`": SavepointStep(False, "A B"),
    "savepoint Größe": SavepointStep(False, "GROSSE"),
    "ROLLBACK": SavepointStep(True, None),
    "ROLLBACK WORK": SavepointStep(True, None),
    "ROLLBACK TO `to`": SavepointStep(True, "TO"),
    "ROLLBACK WORK TO SAVEPOINT x": SavepointStep(True, "X"),
    "ROLLBACK TO savepoint": SavepointStep(True, "SAVEPOINT"),
    "/* a */ ROLLBACK/**/TO/**/`x``y  `": SavepointStep(True, "X`Y"),
}


@pytest.mark.parametrize(("sql", "step"), STEPS.items(), ids=STEPS)
def test_a_savepoint_is_compared_without_case_accents_and_blanks_at_its_end(sql, step):
    assert savepoint_step(sql) == step


@pytest.mark.parametrize("sql", ["", "SAVEPOINT", "RELEASE SAVEPOINT a", "COMMIT", "ROLLBACK TO", "SAVEPOINT 'a'"])
def test_other_statements_are_no_step(sql):
    assert savepoint_step(sql) is None


def test_double_quotes_are_those_of_a_name_only_in_ansi_quotes():
    assert savepoint_step('SAVEPOINT "a"') is None
    assert savepoint_step('SAVEPOINT "a"', ANSI_QUOTES) == SavepointStep(False, "A")
