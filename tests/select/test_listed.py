"""Queries of tables that every server has: rows, columns, codes, and what bounds them."""

import pytest

from ibbmaster.dialogue.log_tables import TableQuery
from ibbmaster.dialogue.relation import Relation
from ibbmaster.select import engine
from ibbmaster.select.engine import QueryRun
from ibbmaster.sqltext.token import SqlError
from ibbmaster.wire.refusal import RefusedError, not_supported, unknown_table
from ibbmaster.wire.response import ColumnDefinition, FieldType
from ibbmaster.work import BreakReason, BrokenOffError, Work, doing
from tests.select.conftest import query_of
from tests.sessions import session_evaluator

COLUMNS = tuple(
    ColumnDefinition(name=name, column_type=kind, length=64, original_table="TABLES")
    for name, kind in (("TABLE_SCHEMA", FieldType.VAR_STRING), ("Name", FieldType.VAR_STRING), ("Size", FieldType.LONG))
)
ROWS = [("d", "b", 2), ("d", "a", 10), ("D", "c", None), ("d", "B", 2)]


@pytest.fixture
def ask():
    """The names of the columns and the rows of a query over `t` in information_schema."""
    evaluator = session_evaluator()
    evaluator.who.database = "information_schema"

    def find(table):
        if table.name.lower() not in ("t", "u"):
            raise unknown_table("information_schema", table.name)
        return Relation(COLUMNS, ROWS if table.name.lower() == "t" else ROWS[:1])

    def no_rows(table, column_ids, wanted):
        raise not_supported(table.full_name)

    def relation_of(sql):
        query = TableQuery(
            snapshot=None, query=query_of(sql), sql_mode=0, find=find, evaluator=evaluator, text_charset="utf8mb4",
            text_collation_id=45, is_binary=False, version=110806,
        )  # fmt: skip
        return QueryRun(query, no_rows).answer()

    def ask(sql):
        relation = relation_of(sql)
        ask.columns = relation.columns
        rows = [tuple(None if value is None else value.decode() for value in row) for row in relation.rows]
        return [column.name for column in relation.columns], rows

    ask.evaluator, ask.relation = evaluator, relation_of
    return ask


ANSWERS = {
    "SELECT * FROM t": (["TABLE_SCHEMA", "Name", "Size"], ROWS),
    "SELECT size, Name n FROM t WHERE size ORDER BY name": (["size", "n"], [(10, "a"), (2, "b"), (2, "B")]),
    "SELECT name FROM t WHERE name = 'B ' ORDER BY size, 1": (["name"], [("b",), ("B",)]),
    "SELECT name FROM t WHERE table_schema = 'D'": (["name"], [("c",)]),
    "SELECT name FROM t WHERE name LIKE 'B' LIMIT 1 OFFSET 1": (["name"], [("B",)]),
    "SELECT name FROM t WHERE size = '10'": (["name"], [("a",)]),
    "SELECT size + 1 s FROM t ORDER BY s LIMIT 2 OFFSET 1": (["s"], [(3,), (3,)]),
    "SELECT DISTINCT size FROM t": (["size"], [(2,), (10,), (None,)]),
    "SELECT COUNT(*), COUNT(1) FROM t WHERE size = 2": (["COUNT(*)", "COUNT(1)"], [(2, 2)]),
    "SELECT upper(name) FROM t LIMIT 1": (["upper(name)"], [("B",)]),
    "SELECT (SELECT COUNT(*) FROM t)": (["(SELECT COUNT(*) FROM t)"], [(4,)]),
    "SELECT 1 FROM (SELECT 1) x": (["1"], [(1,)]),
    "SELECT size, COUNT(*) c FROM t GROUP BY size HAVING c > 1": (["size", "c"], [(2, 2)]),
    "SELECT a.name, b.name FROM t a JOIN u b ON a.size = b.size ORDER BY 1 DESC": (
        ["name", "name"],
        [("b", "b"), ("B", "b")],
    ),
    "(SELECT name FROM t) ORDER BY name, size DESC LIMIT 1": (["name"], [("a",)]),
    "SELECT IF(size > 2, 'large', 'small') x FROM t WHERE name = 'a'": (["x"], [("large",)]),
    "SELECT name FROM t WHERE name IN (SELECT name FROM u) AND EXISTS (SELECT 1 FROM u)": (["name"], [("b",), ("B",)]),
    "SELECT CASE WHEN size IS NULL THEN 0 ELSE size END FROM t WHERE table_schema = 'D'": (
        ["CASE WHEN size IS NULL THEN 0 ELSE size END"],
        [(0,)],
    ),
    "SELECT name FROM t WHERE (name, size) IN (SELECT name, size FROM u)": (["name"], [("b",), ("B",)]),
    "SELECT name FROM t WHERE LOCATE(name, 'xA') = 2": (["name"], [("a",)]),
    "SELECT CHARSET(name), COLLATION(table_schema) FROM t LIMIT 1": (
        ["CHARSET(name)", "COLLATION(table_schema)"],
        [("utf8mb3", "utf8mb3_general_ci")],
    ),
    "SELECT table_schema, MAX(size) FROM t WHERE table_schema COLLATE utf8_general_ci = 'd' GROUP BY table_schema": (
        ["table_schema", "MAX(size)"],
        [("D", None), ("d", 10)],
    ),
    "SELECT a.name, b.name FROM t a LEFT JOIN t b ON a.size = b.size AND b.name = 'a' WHERE a.table_schema = 'd'": (
        ["name", "name"],
        [("b", None), ("a", "a"), ("B", None)],
    ),
    "SELECT a.name FROM t a LEFT JOIN t b ON a.size = b.size WHERE b.name = CONCAT('A', '')": (["name"], [("a",)]),
    "SELECT name FROM t WHERE name = 'a' OR name = 'c' AND table_schema = 'D'": (["name"], [("a",), ("c",)]),
    "SELECT name FROM t WHERE name = 'a' AND name = 'c'": (["name"], []),
    "SELECT name, COUNT(*) FROM t GROUP BY size ORDER BY size DESC LIMIT 1": (["name", "COUNT(*)"], [("a", 1)]),
    "SELECT name FROM t WHERE name = 'ü\\'' OR name = CONCAT('a', '')": (["name"], [("a",)]),
}
REFUSED = {
    "SELECT a FROM other": 1146,
    "SELECT nothing FROM other": 1146,  # what is missing is told before anything else
    "SELECT 1 FROM t, other": 1146,
    "SELECT 1 FROM (SELECT 1 FROM other) x": 1146,
    "SELECT nothing FROM t": 1054,
    "SELECT name FROM t WHERE upper(nothing) = 1": 1054,
    "SELECT name FROM t ORDER BY 3": 1054,
    "SELECT name FROM t ORDER BY nothing": 1054,
    "SELECT name FROM t, u": 1052,
    "SELECT nothing(name) FROM t": 1305,
    "SELECT concat() FROM t": 1582,
    "SELECT name FROM t WHERE COUNT(*) = 1": 1111,
    "SELECT name FROM t UNION SELECT 1": 1235,
    "(SELECT name FROM t LIMIT 2) ORDER BY 1": 1235,
    "SELECT (SELECT COUNT(*) FROM t b WHERE a.name = 'a') FROM t a": 1235,
    "SELECT (SELECT name, size FROM t) FROM t": 1241,
    "SELECT name FROM t UNION SELECT name FROM t INTERSECT SELECT name FROM u": 1235,
    "SELECT (name, size) IN (SELECT name FROM u) FROM t": 1241,
}


@pytest.mark.parametrize(("sql", "expected"), ANSWERS.items(), ids=list(ANSWERS))
def test_a_query_gives_its_rows(ask, sql, expected):
    names, rows = expected
    assert ask(sql) == (names, [tuple(None if value is None else str(value) for value in row) for row in rows])


@pytest.mark.parametrize(("sql", "code"), REFUSED.items(), ids=list(REFUSED))
def test_what_is_missing_or_not_answered_has_its_code(ask, sql, code):
    with pytest.raises(RefusedError) as caught:
        ask(sql)
    assert caught.value.err.code == code


@pytest.mark.parametrize(
    ("sql", "clause"),
    [
        ("SELECT a.nothing FROM t a", "Unknown column 'a.nothing' in 'SELECT'"),
        ("SELECT 1 FROM t WHERE nothing = 1", "Unknown column 'nothing' in 'WHERE'"),
        ("SELECT 1 FROM t ORDER BY nothing", "Unknown column 'nothing' in 'ORDER BY'"),
        ("SELECT 1 FROM t ORDER BY 9", "Unknown column '9' in 'ORDER BY'"),
    ],
)
def test_a_missing_column_is_told_with_its_clause(ask, sql, clause):
    with pytest.raises(RefusedError) as caught:
        ask(sql)
    assert caught.value.err.text == clause


def test_a_column_keeps_its_definition_and_others_have_that_of_their_expression(ask):
    ask("SELECT name AS n, size, COUNT(*), 'abc', 10 / 4, SUM(size), USER() FROM t")
    kinds = [(column.column_type, column.original_table) for column in ask.columns]
    assert kinds == [
        (FieldType.VAR_STRING, "TABLES"),
        (FieldType.LONG, "TABLES"),
        (FieldType.LONGLONG, ""),
        (FieldType.VAR_STRING, ""),
        (FieldType.NEWDECIMAL, ""),
        (FieldType.NEWDECIMAL, ""),
        (FieldType.VAR_STRING, ""),
    ]
    assert ask.columns[-1].length == 384 * 4


JOINED = "SELECT a.name, a.size + b.size, IF(f.name = 'c', 'x', 1) FROM t a, t b, t c, t d, t e, t f"


@pytest.mark.parametrize("sql", [f"SELECT COUNT(*) FROM ({JOINED.replace('a.name, ', '')}) q", JOINED])
def test_a_query_that_takes_too_long_is_ended(ask, monkeypatch, sql):
    monkeypatch.setattr(engine, "STEPS_MAX", 3_000)
    monkeypatch.setattr(engine, "STEPS_BETWEEN_LOOKS", 1_000)
    with pytest.raises(RefusedError) as caught:
        ask(sql)
    assert caught.value.err.code == 1104


def test_the_rows_of_a_long_answer_are_computed_while_they_are_read(ask):
    relation = ask.relation(JOINED)
    assert relation.is_open
    assert len(list(relation.rows)) == len(ROWS) ** 6


def test_a_statement_that_nobody_waits_for_ends(ask, monkeypatch):
    monkeypatch.setattr(engine, "STEPS_BETWEEN_LOOKS", 1_000)
    work = Work(lambda: 0.0)
    with doing(work):
        rows = iter(ask.relation(JOINED).rows)
        next(rows)
        work.break_off(BreakReason.KILLED)
        with pytest.raises(BrokenOffError):
            list(rows)
    assert ask("SELECT 1 FROM u")[1] == [("1",)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM pragma_database_list",
        "SELECT * FROM sqlite_master",
        "SELECT readfile('/etc/passwd') FROM t",
        "SELECT fts3_tokenizer('x') FROM t",
        "SELECT name FROM t WHERE",
    ],
)
def test_nothing_but_the_tables_can_be_reached(ask, sql):
    with pytest.raises((RefusedError, SqlError)):
        ask(sql)


def test_letters_that_are_none_do_no_harm(ask):
    with pytest.raises(RefusedError):
        ask("SELECT name FROM t WHERE name = '\udcff'")
