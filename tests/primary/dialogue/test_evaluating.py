"""The values of expressions in a session; what is expected was asked of MariaDB 10.11."""

import pytest

from ibbmaster.facts import NULL
from ibbmaster.primary.dialogue.relation import text_of
from ibbmaster.primary.dialogue.sql import parse
from ibbmaster.primary.dialogue.statement import Assignment
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.sqltext.expression import Star, SystemVariable
from tests.case_table import cases_beside, data_beside
from tests.primary.dialogue.conftest import refused

DATA = data_beside(__file__)
ASKED = {sql: None if text == NULL else text for sql, (text,) in cases_beside(__file__).items()}  # SELECT …


def expression_of(sql: str):
    return parse(f"SELECT {sql}", version=101119)[0].query.items[0].node


@pytest.mark.parametrize(("sql", "text"), ASKED.items(), ids=list(ASKED))
def test_an_expression_has_the_value_that_mariadb_gives_it(new_dialog, sql, text):
    (answer,) = new_dialog("classic-10.11").query(f"SELECT {sql}".encode())

    assert answer.rows is not None, answer
    assert [*answer.rows] == [(None if text is None else text.encode(),)]


@pytest.mark.parametrize(("sql", "code"), DATA["codes"])
def test_what_does_not_exist_or_is_not_carried_out_has_the_code_of_mariadb(new_evaluator, sql, code):
    assert refused(new_evaluator().evaluate, expression_of(sql))[0] == code


def test_a_star_is_no_value(new_evaluator):
    with pytest.raises(RefusedError, match="No tables used"):
        new_evaluator().evaluate(Star())


@pytest.mark.parametrize(("sql", "text"), DATA["clocks"])
def test_clocks_show_the_time_zone_of_the_session(new_evaluator, sql, text):
    evaluator = new_evaluator()
    evaluator.settings.values["time_zone"] = "+02:00"

    assert text_of(evaluator.evaluate(expression_of(sql))) == text


def test_a_session_may_fix_its_time(new_evaluator):
    evaluator = new_evaluator()
    evaluator.settings.values["timestamp"] = 1.5
    assert evaluator.evaluate(expression_of("NOW(1)")) == "2026-05-10 03:48:16.5"  # a statement sees one moment
    evaluator.begin_statement()
    assert evaluator.evaluate(expression_of("NOW(1)")) == "1970-01-01 00:00:01.5"


def test_a_session_knows_itself(new_evaluator):
    evaluator = new_evaluator()
    for sql, value in {"USER()": "repl@::1", "CURRENT_USER": "repl@%", "CONNECTION_ID()": 7, "SCHEMA()": None}.items():
        assert evaluator.evaluate(expression_of(sql)) == value
    evaluator.who.database = "mysql"
    assert evaluator.evaluate(expression_of("DATABASE()")) == "mysql"


def test_a_switch_counts_as_a_number(new_evaluator):
    assert new_evaluator().evaluate(SystemVariable("autocommit", "", "autocommit")) == 1


def test_a_position_of_a_file_is_asked_of_the_primary(new_evaluator):
    ask = expression_of("BINLOG_GTID_POS('binlog.000001', 500)")
    assert new_evaluator().evaluate(ask) == "0-1-5"
    assert new_evaluator().evaluate(expression_of("BINLOG_GTID_POS('binlog.000001', -1)")) is None
    assert refused(new_evaluator("engine").evaluate, ask)[0] == 4247


def test_default_is_for_set_alone(new_evaluator):
    (found,) = parse("SET a = DEFAULT")[0].assignments
    assert isinstance(found, Assignment)
    with pytest.raises(RefusedError, match="DEFAULT here"):
        new_evaluator().evaluate(found.value)
