"""SHOW out of its words."""

import pytest

from ibbmaster.dialogue.sql import parse
from ibbmaster.dialogue.statement import GivenTable, Show
from ibbmaster.sqltext.expression import ColumnName, Literal, Operation
from ibbmaster.sqltext.token import SqlError

SHOWN = {
    "SHOW GLOBAL VARIABLES LIKE 'a%'": Show(what="VARIABLES", scope="global", pattern="a%"),
    "SHOW LOCAL STATUS": Show(what="STATUS", scope="session"),
    "SHOW VARIABLES WHERE Value = 1": Show(
        what="VARIABLES", where=Operation("=", (ColumnName(("Value",)), Literal(1)))
    ),
    "SHOW FULL PROCESSLIST": Show(what="PROCESSLIST", is_full=True),
    "SHOW MASTER LOGS": Show(what="BINARY LOGS"),
    "SHOW BINLOG STATUS": Show(what="MASTER STATUS"),
    "SHOW REPLICA HOSTS": Show(what="SLAVE HOSTS"),
    "SHOW ALL REPLICAS STATUS": Show(what="ALL SLAVES STATUS"),
    "SHOW SCHEMAS": Show(what="DATABASES"),
    "SHOW CHARSET LIKE 'utf8%'": Show(what="CHARACTER SET", pattern="utf8%"),
    "SHOW STORAGE ENGINES": Show(what="ENGINES"),
    "SHOW WARNINGS LIMIT 1, 2": Show(what="WARNINGS", limit=(1, 2)),
    "SHOW COUNT(*) ERRORS": Show(what="COUNT", pattern="ERRORS"),
    "SHOW FULL TABLES FROM a LIKE 'b'": Show(what="TABLES", is_full=True, database="a", pattern="b"),
    "SHOW TABLE STATUS IN `a b`": Show(what="TABLE STATUS", database="a b"),
    "SHOW COLUMNS FROM t FROM d": Show(what="COLUMNS", table=GivenTable("t", "d")),
    "SHOW FIELDS IN d.t": Show(what="COLUMNS", table=GivenTable("t", "d")),
    "SHOW KEYS FROM t": Show(what="INDEX", table=GivenTable("t")),
    "SHOW CREATE TABLE IF NOT EXISTS d.t": Show(what="CREATE TABLE", table=GivenTable("t", "d"), if_not_exists=True),
    "SHOW CREATE PACKAGE BODY p": Show(what="CREATE PACKAGE BODY", table=GivenTable("p")),
    "SHOW ENGINE innodb STATUS": Show(what="ENGINE", table=GivenTable("innodb")),
    "SHOW BINLOG EVENTS": Show(what="BINLOG EVENTS"),
    "SHOW BINLOG EVENTS IN 'f' FROM 4 LIMIT 2 OFFSET 3": Show(
        what="BINLOG EVENTS", file_name="f", offset=4, limit=(3, 2)
    ),
    "SHOW GRANTS": Show(what="GRANTS"),
    "SHOW GRANTS FOR CURRENT_USER()": Show(what="GRANTS"),
    "SHOW GRANTS FOR 'repl'@'%'": Show(what="GRANTS", user="repl"),
}


@pytest.mark.parametrize(("sql", "show"), SHOWN.items(), ids=list(SHOWN))
def test_what_is_shown_is_what_the_words_say(sql, show):
    assert parse(sql) == [show]


@pytest.mark.parametrize(
    "sql",
    [
        *("SHOW", "SHOW NOTHING", "SHOW VARIABLES LIKE", "SHOW COLUMNS", "SHOW COUNT(*) x", "SHOW CREATE x y"),
        *("SHOW ENGINE innodb", "SHOW WARNINGS LIMIT 'a'", "SHOW BINLOG EVENTS FROM x", "SHOW MASTER STATUS LIMIT 1"),
        "SHOW VARIABLES LIKE 'a' WHERE 1",
    ],
)
def test_what_cannot_be_shown_is_a_syntax_error(sql):
    with pytest.raises(SqlError):
        parse(sql)
