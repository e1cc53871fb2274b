"""Statements out of their text."""

import contextlib
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from ibbmaster.dialogue.sql import handled_table, named_tables, parse
from ibbmaster.dialogue.statement import (
    Administration,
    Assignment,
    CallProcedure,
    CharsetAssignment,
    Describe,
    Do,
    IsolationAssignment,
    KillStatement,
    KillUser,
    LockTables,
    Nothing,
    Savepoint,
    Select,
    Set,
    SetStatement,
    Transaction,
    Unread,
    Use,
)
from ibbmaster.sqltext.expression import ColumnName, Default, Literal, Star, SystemVariable, UserVariable
from ibbmaster.sqltext.query_tree import GivenTable, Item, OrderKey, SelectBlock
from ibbmaster.sqltext.token import TOKENS_MAX, SqlError, tokenize

DATA = json.loads(Path(__file__).with_suffix(".json").read_text())


def one(sql: str):
    (statement,) = parse(sql)
    return statement


ONE = SelectBlock(items=(Item(Literal(1), "1"),))


def of(sql: str, *tables: GivenTable) -> Select:
    """A query whose form `test_query_reader` looks at, with the tables that it names."""
    return Select(one(sql).query, tables)


def system(name: str, scope: str = "") -> SystemVariable:
    return SystemVariable(name.lower(), scope, name)


def assigned(name: str, value: object, scope: str = "") -> Assignment:
    return Assignment(system(name, scope), Literal(value))


STATEMENTS = {
    "": Nothing(),
    "/* x */": Nothing(),
    "HELP contents": Nothing(),
    "use `a b`;": Use("a b"),
    "KILL 5": KillStatement(5, False),
    "kill hard connection 5": KillStatement(5, False),
    "KILL SOFT QUERY ID 5": KillStatement(5, True),
    "KILL QUERY USER repl": KillUser("repl", True),
    "BEGIN WORK": Transaction("BEGIN"),
    "START TRANSACTION": Transaction("BEGIN"),
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY": Transaction("BEGIN", True),
    "COMMIT AND NO CHAIN NO RELEASE": Transaction("COMMIT"),
    "ROLLBACK": Transaction("ROLLBACK"),
    "ROLLBACK WORK TO SAVEPOINT s": Savepoint("ROLLBACK", "s"),
    "SAVEPOINT s": Savepoint("SAVEPOINT", "s"),
    "RELEASE SAVEPOINT s": Savepoint("RELEASE", "s"),
    "LOCK TABLES a READ LOCAL, b.c AS d LOW_PRIORITY WRITE": LockTables(
        (GivenTable("a"), GivenTable("c", "b")), "LOCK TABLES", writes=True, stops=True
    ),
    "UNLOCK TABLES": LockTables((), None),
    "FLUSH NO_WRITE_TO_BINLOG TABLES WITH READ LOCK": LockTables((), "RELOAD", stops=True),
    "FLUSH BINARY LOGS": Administration("FLUSH"),
    "PURGE BINARY LOGS TO 'x'": Administration("PURGE"),
    "INSERT INTO t VALUES (1)": Administration("INSERT"),
    "DESC a.b c": Describe(GivenTable("b", "a"), "c"),
    "DESCRIBE b 'c%'": Describe(GivenTable("b"), "c%"),
    "CALL a.b(1, 2)": CallProcedure("b", "a"),
    "DO 1, 2": Do((Literal(1), Literal(2))),
    "SET @a = 1, @@global.b := 'x', c = ON": Set(
        (Assignment(UserVariable("a"), Literal(1)), assigned("b", "x", "global"), assigned("c", "ON"))
    ),
    "SET GLOBAL a = 1, b = 2, LOCAL c = DEFAULT": Set(
        (assigned("a", 1, "global"), assigned("b", 2, "global"), Assignment(system("c", "session"), Default()))
    ),
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin, autocommit=0": Set(
        (CharsetAssignment("utf8mb4", "utf8mb4_bin"), assigned("autocommit", 0))
    ),
    "SET CHARACTER SET 'latin1'": Set((CharsetAssignment("latin1", is_names=False),)),
    "SET CHARSET DEFAULT": Set((CharsetAssignment(None, is_names=False),)),
    "SET names = 1": Set((assigned("names", 1),)),
    "SET SESSION TRANSACTION READ ONLY, ISOLATION LEVEL READ COMMITTED": Set(
        (IsolationAssignment("READ-COMMITTED", "session", is_read_only=True),)
    ),
    "SET a = NULL": Set((assigned("a", None),)),
    "SET STATEMENT a = 1 FOR USE x": SetStatement((assigned("a", 1),), Use("x")),
    "SELECT 'a b', 1 + 1, 'q' 'r'": Select(
        SelectBlock(items=(Item(Literal("a b"), "a b"), one("SELECT 1 + 1").query.items[0], Item(Literal("qr"), "qr")))
    ),
    "SELECT x AS y, z w": Select(
        SelectBlock(items=(Item(ColumnName(("x",)), "y", "y"), Item(ColumnName(("z",)), "w", "w")))
    ),
    "SELECT SQL_NO_CACHE DISTINCT 1 FROM a.b AS t WHERE 1 LIMIT 2, 3": Select(
        replace(ONE, source=GivenTable("b", "a", "t"), is_distinct=True, where=Literal(1), limit=(2, 3)),
        (GivenTable("b", "a"),),
    ),
    "SELECT *": Select(SelectBlock(items=(Item(Star(), "*"),))),
    "SELECT 1 ORDER BY x DESC, y ASC": Select(
        replace(ONE, order_by=(OrderKey(ColumnName(("x",)), True), OrderKey(ColumnName(("y",)))))
    ),
    "SELECT 1 FROM DUAL LIMIT 1 OFFSET 2 FOR UPDATE": Select(replace(ONE, limit=(2, 1))),
    "SELECT 1 FROM a LEFT OUTER JOIN b USING (x)": of(
        "SELECT 1 FROM a LEFT JOIN b USING (x)", GivenTable("a"), GivenTable("b")
    ),
    "SELECT 1 FROM a, b": of("SELECT 1 FROM a JOIN b", GivenTable("a"), GivenTable("b")),
    "SELECT 1 FROM b x GROUP BY c HAVING 1 LOCK IN SHARE MODE": Select(
        replace(ONE, source=GivenTable("b", None, "x"), group_by=(ColumnName(("c",)),), having=Literal(1)),
        (GivenTable("b"),),
    ),
    "(SELECT 1)": Select(ONE),
    "SELECT 1 FROM (SELECT 1) t": of("SELECT 1 FROM (SELECT 1) AS t"),
    "SELECT a FROM t UNION SELECT b FROM x.u": Select(None, (GivenTable("t"), GivenTable("u", "x"))),
    "SELECT a FROM t1 WINDOW w AS (PARTITION BY b)": Select(None, (GivenTable("t1"),)),
    "SELECT a FROM t WHERE a IN (SELECT b FROM u)": Select(None, (GivenTable("t"), GivenTable("u"))),
    "WITH x AS (SELECT 1) SELECT 1 FROM t": Select(None, (GivenTable("t"),)),
    "HANDLER t OPEN": Unread("HANDLER", (GivenTable("t"),)),
    "PREPARE s FROM 'x'": Unread("PREPARE", ()),
    "EXPLAIN SELECT 1": Unread("EXPLAIN", ()),
    "SHOW EXPLAIN FOR 5": Unread("SHOW", ()),
}  # fmt: skip


@pytest.mark.parametrize(("sql", "statement"), STATEMENTS.items(), ids=list(STATEMENTS))
def test_a_statement_is_what_its_words_say(sql, statement):
    assert one(sql) == statement


@pytest.mark.parametrize(
    "sql", [sql for sql in STATEMENTS if sql.partition(" ")[0].isalpha() and "`" not in sql and "'" not in sql]
)
def test_case_comments_and_a_semicolon_do_not_matter(sql):
    shouted = "/* x */ " + sql.replace(" ", "\n# y\n\t") + " ; -- z"
    assert type(one(shouted)) is type(STATEMENTS[sql])


def test_several_statements_come_in_their_order():
    assert parse("USE a;USE b;") == [Use("a"), Use("b")]


def test_a_conditional_comment_is_run_by_the_versions_it_names():
    assert parse("/*!100000 USE a */", version=101119) == [Use("a")]
    assert parse("/*!120000 USE a */", version=101119) == [Nothing()]


# near '…' in the error of MariaDB 10.11
@pytest.mark.parametrize(("sql", "near"), DATA["near"])
def test_an_error_is_where_mariadb_sees_it(sql, near):
    with pytest.raises(SqlError) as caught:
        parse(sql)
    assert caught.value.near == near


def test_set_statement_nests_only_so_deep():
    assert isinstance(one("SET STATEMENT a=1 FOR " * 8 + "USE x"), SetStatement)
    with pytest.raises(SqlError):
        parse("SET STATEMENT a=1 FOR " * 2000 + "USE x")


PIECES = """SELECT SET SHOW USE KILL BEGIN LOCK TABLES FLUSH DESC ( ) , ; . * a `b` 'c' 1 = @d @@e FROM JOIN ON UNION
    WHERE LIMIT GLOBAL NAMES STATEMENT FOR DO CALL ROLLBACK TO GRANTS CREATE TABLE LIKE"""


def test_any_words_are_read_or_refused_and_nothing_else():
    read = 0
    for _ in range(4000):
        sql = " ".join(random.choices(PIECES.split(), k=random.randrange(1, 8)))
        with contextlib.suppress(SqlError):
            read += bool(parse(sql))
    assert read


@pytest.mark.parametrize(("sql", "names"), DATA["tables"].items())
def test_every_table_is_found_wherever_it_stands(sql, names):
    found = named_tables(tokenize(sql).tokens)
    assert [f"{table.database}.{table.name}" if table.database else table.name for table in found] == names


def test_work_grows_with_the_text_alone():
    tokens = tokenize("SELECT a FROM t, " + "(" * 4000 + " FROM x" * 1000).tokens
    assert len(tokens) < TOKENS_MAX
    assert named_tables(tokens)[0].name == "t"


def test_a_handler_names_one_table():
    assert handled_table(tokenize("HANDLER d.t OPEN").tokens).database == "d"
