import json

import pytest

from ibbmaster.primary.dialogue import privileges
from ibbmaster.primary.dialogue.information_schema import Catalog
from ibbmaster.primary.dialogue.show import Shower
from ibbmaster.primary.dialogue.sql import parse
from ibbmaster.replication.wire.response import Err
from tests.case_table import cases_beside
from tests.primary.dialogue.conftest import refused

ALL = frozenset(
    (
        *(privileges.BINLOG_MONITOR, privileges.REPLICATION_MASTER_ADMIN, privileges.SLAVE_MONITOR),
        *(privileges.PROCESS, privileges.SHOW_DATABASES, privileges.SELECT),
    )
)


@pytest.fixture
def ask(new_evaluator, new_schema):
    def ask(sql, *, held=ALL, database="", last_error=None):
        evaluator = new_evaluator()
        evaluator.who.database = database
        facts = evaluator._facts
        status = lambda: {"Uptime": 60, "Threads": 2}  # noqa: E731
        schema = lambda: new_schema(facts, held)  # noqa: E731
        catalog = Catalog(facts, evaluator.settings, facts.processes, status, schema)
        relation = Shower(facts, evaluator, catalog, held, facts.binlog_end, last_error).answer(parse(sql)[0])
        rows = [tuple(row) for row in relation.rows]
        assert all(len(row) == len(relation.columns) for row in rows)
        return [column.name for column in relation.columns], rows

    return ask


CASES = {sql: json.loads(answer) for sql, (answer,) in cases_beside(__file__).items()}
REFUSED = {sql: code for sql, code in CASES.items() if isinstance(code, int)}


@pytest.mark.parametrize("sql", [sql for sql in CASES if sql not in REFUSED])
def test_what_is_there_is_shown(ask, sql):
    found, rows = ask(sql)[1], CASES[sql]
    assert list(map(list, found)) == rows if rows is not None else found


def test_names_of_columns_tell_what_was_asked(ask):
    assert ask("SHOW DATABASES LIKE 'm%'")[0] == ["Database (m%)"]
    assert ask("SHOW TABLES FROM mysql LIKE 'g%'")[0] == ["Tables_in_mysql (g%)"]
    assert ask("SHOW GRANTS")[0] == ["Grants for repl@%"]


def test_the_index_of_the_one_table_is_its_primary_key(ask):
    assert [row[4] for row in ask("SHOW KEYS FROM mysql.gtid_slave_pos")[1]] == ["domain_id", "sub_id"]
    assert "PRIMARY KEY (`domain_id`,`sub_id`)" in ask("SHOW CREATE TABLE mysql.gtid_slave_pos")[1][0][1]


def test_the_last_error_is_shown(ask):
    error = Err(code=1146, sqlstate="42S02", text="Table 'a.b' doesn't exist")
    assert ask("SHOW ERRORS", last_error=error)[1] == [("Error", 1146, "Table 'a.b' doesn't exist")]


def test_who_may_not_see_all_databases_sees_one(ask):
    assert ask("SHOW DATABASES", held=frozenset())[1] == [("information_schema",)]
    assert ask("SHOW TABLES FROM mysql", held=frozenset())[1] == []


@pytest.mark.parametrize(("sql", "code"), REFUSED.items(), ids=list(REFUSED))
def test_what_does_not_exist_has_the_code_of_mariadb(ask, sql, code):
    assert refused(ask, sql)[0] == code


@pytest.mark.parametrize(
    "sql",
    ["SHOW BINARY LOGS", "SHOW MASTER STATUS", "SHOW BINLOG EVENTS", "SHOW SLAVE HOSTS", "SHOW ALL SLAVES STATUS"],
)
def test_what_is_for_some_is_refused_to_others(ask, sql):
    assert refused(ask, sql, held=frozenset())[0] == 1227


def test_a_table_without_a_database_is_in_that_of_the_session(ask):
    assert len(ask("SHOW COLUMNS FROM gtid_slave_pos", database="mysql")[1]) == 4
    assert ask("SHOW TABLES", database="mysql")[1] == [("gtid_slave_pos",)]


@pytest.mark.parametrize(("profile", "count"), [("classic-10.11", 506), ("classic-11.8", 552)])
def test_as_many_are_listed_as_by_real_servers(new_dialog, profile, count):
    dialog = new_dialog(profile)
    assert len(list(dialog.query(b"SHOW COLLATION")[0].rows)) == count
    assert len(list(dialog.query(b"SELECT * FROM information_schema.collations")[0].rows)) == count
    assert len(list(dialog.query(b"SHOW CHARACTER SET")[0].rows)) == 40
