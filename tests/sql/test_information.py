"""Queries carried out by SQLite: rows, columns, codes, and what bounds them."""

from __future__ import annotations

import pytest

from ibbmaster.dialogue.refusal import RefusedError, unknown_table
from ibbmaster.dialogue.relation import Relation
from ibbmaster.dialogue.sql import parse
from ibbmaster.dialogue.statement import Select
from ibbmaster.sql import information
from ibbmaster.sql.information import SqliteEngine
from ibbmaster.wire.response import ColumnDefinition, FieldType
from ibbmaster.work import BreakReason, BrokenOffError, Work, doing

COLUMNS = tuple(
    ColumnDefinition(name=name, column_type=kind, length=64, original_table="TABLES")
    for name, kind in (("TABLE_SCHEMA", FieldType.VAR_STRING), ("Name", FieldType.VAR_STRING), ("Size", FieldType.LONG))
)
ROWS = [("d", "b", 2), ("d", "a", 10), ("D", "c", None), ("d", "B", 2)]


@pytest.fixture
def ask(evaluator):
    """The names of the columns and the rows of a query over `t` in information_schema."""
    engine = SqliteEngine()
    evaluator.who.database = "information_schema"

    def find(table):
        if table.name.lower() not in ("t", "u"):
            raise unknown_table("information_schema", table.name)
        return Relation(COLUMNS, ROWS if table.name.lower() == "t" else ROWS[:1])

    def relation_of(sql):
        (query,) = parse(sql)
        select = query if isinstance(query, Select) else None
        return engine.answer(query.source.tokens, select, query.source.tables, find, evaluator)

    def ask(sql):
        relation = relation_of(sql)
        ask.columns = relation.columns
        return [column.name for column in relation.columns], list(relation.rows)

    ask.evaluator, ask.engine, ask.relation = evaluator, engine, relation_of
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
    "SELECT name FROM t UNION ALL SELECT 'x' LIMIT 1": (["name"], [("b",)]),
    "SELECT GROUP_CONCAT(name ORDER BY size DESC, name SEPARATOR ';') FROM t WHERE size": (
        ["GROUP_CONCAT(name ORDER BY size DESC, name SEPARATOR ';')"],
        [("a;b;B",)],
    ),
    "SELECT GROUP_CONCAT(DISTINCT size) x, GROUP_CONCAT(NULL) y FROM t": (["x", "y"], [("2,10", None)]),
    "SELECT IF(size > 2, 'large', CONCAT(name, DATABASE())) x FROM t WHERE name = 'a'": (["x"], [("large",)]),
    "SELECT name FROM t WHERE name IN (SELECT name FROM u) AND EXISTS (SELECT 1 FROM u)": (["name"], [("b",), ("B",)]),
    "SELECT CASE WHEN size IS NULL THEN 0 ELSE size END FROM t WHERE table_schema = 'D'": (
        ["CASE WHEN size IS NULL THEN 0 ELSE size END"],
        [(0,)],
    ),
    "WITH x AS (SELECT name FROM t) SELECT COUNT(*) FROM x": (["COUNT(*)"], [(4,)]),
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
    "SELECT name FROM t UNION SELECT 1, 2": 1222,
    "SELECT (SELECT name, size FROM t) FROM t": 1241,
    "SELECT name FROM t WHERE": 1235,
    "SELECT MASTER_GTID_WAIT(name, size, 1, 2) FROM t": 1582,
}


@pytest.mark.parametrize(("sql", "expected"), ANSWERS.items(), ids=list(ANSWERS))
def test_a_query_gives_its_rows(ask, sql, expected):
    assert ask(sql) == expected


@pytest.mark.parametrize(("sql", "code"), REFUSED.items(), ids=list(REFUSED))
def test_what_is_missing_or_not_answered_has_its_code(ask, sql, code):
    with pytest.raises(RefusedError) as caught:
        ask(sql)
    assert caught.value.err.code == code
    assert ask("SELECT 1 FROM u")[1] == [(1,)]  # and the session continues


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


def test_a_column_keeps_its_definition_and_others_are_told_by_what_they_hold(ask):
    ask("SELECT name AS n, size, COUNT(*), 'abc', 10 / 4, GROUP_CONCAT(name), SUM(size), MAX(name) FROM t")
    kinds = [(column.column_type, column.original_table) for column in ask.columns]
    assert kinds == [
        (FieldType.VAR_STRING, "TABLES"),
        (FieldType.LONG, "TABLES"),
        (FieldType.LONGLONG, ""),
        (FieldType.VAR_STRING, ""),
        (FieldType.DOUBLE, ""),
        (FieldType.BLOB, ""),
        (FieldType.NEWDECIMAL, ""),
        (FieldType.VAR_STRING, "TABLES"),
    ]


def test_a_query_that_never_ends_is_ended(ask, monkeypatch):
    monkeypatch.setattr(information, "STEPS_MAX", 1_000_000)
    with pytest.raises(RefusedError) as caught:
        ask("WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM x) SELECT COUNT(*) FROM x")
    assert caught.value.err.code == 1104
    assert ask("SELECT 1 FROM u")[1] == [(1,)]


@pytest.mark.parametrize(
    ("sql", "limit"),
    [
        ("SELECT REPLACE(name, 'b', REPEAT('x', 1000)) FROM t", None),
        ("SELECT GROUP_CONCAT(a.name) FROM t a, t b, t c, t d, t e, t f", "TEXT_SIZE_MAX"),
        ("SELECT GROUP_CONCAT(DISTINCT '' SEPARATOR '') FROM t a, t b, t c, t d, t e, t f", "TEXT_SIZE_MAX"),
        ("SELECT CONCAT(a.name, @long) FROM t a, t b, t c ORDER BY 1", "LONG_VALUES_SIZE_MAX"),
        ("SELECT @long, @long, @long, @long, a.name FROM t a ORDER BY a.name", "VALUES_SIZE_MAX"),
    ],
)
def test_a_statement_keeps_little_in_memory_and_on_the_disk(ask, monkeypatch, sql, limit):
    ask.evaluator.variables.assign("long", "x" * 2000)
    if limit is not None:
        monkeypatch.setattr(information, limit, 6000)
    with pytest.raises(RefusedError) as caught:
        ask(sql)
    assert caught.value.err.code == (1305 if limit is None else 1104)
    assert ask("SELECT 1 FROM u")[1] == [(1,)]


JOINED = "SELECT a.name, a.size + b.size, IF(f.name = 'c', 'x', 1) FROM t a, t b, t c, t d, t e, t f"


def test_the_rows_of_a_long_answer_are_computed_while_they_are_read(ask, monkeypatch):
    expected = ask(JOINED)
    monkeypatch.setattr(information, "FIRST_SIZE_MAX", 1000)
    relation = ask.relation(JOINED)
    assert relation.is_open
    kinds = [column.column_type for column in relation.columns]
    assert list(relation.rows) == expected[1]
    assert kinds == [column.column_type for column in ask.columns]
    assert not any(column.flags & 1 for column in relation.columns[1:])  # NULL may come


def test_the_next_statement_ends_the_answer_before_it(ask, monkeypatch):
    monkeypatch.setattr(information, "FIRST_SIZE_MAX", 1000)
    rows = iter(ask.relation(JOINED).rows)
    next(rows)
    ROWS.append(("e", "new", 1))
    try:
        assert ask("SELECT COUNT(*) FROM u")[1] == [(1,)]
    finally:
        ROWS.pop()
    with pytest.raises(RefusedError):
        list(rows)


@pytest.mark.parametrize("limit", ["STEPS_MAX", "SECONDS_MAX"])
def test_what_a_statement_may_do_counts_on_behind_its_first_rows(ask, monkeypatch, limit):
    monkeypatch.setattr(information, "FIRST_SIZE_MAX", 1000)
    monkeypatch.setattr(information, "STEPS_BETWEEN_LOOKS", 1000)
    rows = iter(ask.relation(JOINED).rows)
    next(rows)
    if limit == "STEPS_MAX":
        ask.engine._steps_left = 2000
    else:
        ask.engine._seconds_left = 0.0
    with pytest.raises(RefusedError) as caught:
        list(rows)
    assert caught.value.err.code == 1104


def test_a_statement_that_nobody_waits_for_ends(ask, monkeypatch):
    monkeypatch.setattr(information, "FIRST_SIZE_MAX", 1000)
    work = Work(lambda: 0.0)
    with doing(work):
        rows = iter(ask.relation(JOINED).rows)
        next(rows)
        work.break_off(BreakReason.KILLED)
        with pytest.raises(BrokenOffError):
            list(rows)
        with pytest.raises(BrokenOffError):
            ask("WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM x) SELECT COUNT(*) FROM x")
    assert ask("SELECT 1 FROM u")[1] == [(1,)]


def test_tables_that_are_too_large_are_refused_and_the_session_continues(ask, monkeypatch):
    ask.engine._database.execute("PRAGMA information_schema.max_page_count = 20")
    ROWS.extend([("e", "x" * 5000, 1)] * 40)
    try:
        with pytest.raises(RefusedError) as caught:
            ask("SELECT * FROM t")
    finally:
        del ROWS[-40:]
    assert caught.value.err.code == 1104
    assert ask("SELECT 1 FROM u")[1] == [(1,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM pragma_database_list",
        "SELECT * FROM sqlite_master",
        "SELECT readfile('/etc/passwd') FROM t",
        "SELECT fts3_tokenizer('x') FROM t",
    ],
)
def test_nothing_but_the_tables_can_be_reached(ask, sql):
    with pytest.raises((RefusedError, ValueError)):
        ask(sql)


def test_rows_are_put_in_again_only_where_they_are_others(ask):
    ask("SELECT * FROM t")
    ROWS.append(("d", "new", 1))
    try:
        assert len(ask("SELECT * FROM t")[1]) == 4  # the same list: not looked at again
    finally:
        ROWS.pop()


def test_letters_that_are_none_do_no_harm(ask):
    assert ask("SELECT name FROM t WHERE name = '\udcff'")[1] == []
