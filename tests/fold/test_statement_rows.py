"""Rows after statements in a log; tests/interop/test_refusals.py asks servers what they make of random ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from lanes.answers import SESSIONS, OurTables, values_of

from ibbmaster.arrow.plan import open_log
from ibbmaster.dialogue.refusal import RefusedError
from ibbmaster.event.rows.encoding import written_table
from ibbmaster.fold.row_doubts import ROW, RowDoubts, UnknownRows
from ibbmaster.fold.row_expressions import now_digits
from ibbmaster.spark.options import parse_options
from tests.written_log import Item, Said, deleted, inserted, updated, write_log

TABLE = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(9) COLLATE utf8mb4_general_ci)"
ROWS = written_table("d.t", {"id": "int", "a": "int", "b": "varchar(9)"}, table_id=1, primary_key=["id"])
THREE = "INSERT INTO t VALUES (1, 10, 'x'), (2, 20, 'Y'), (3, NULL, NULL)"
UNSURE = "UPDATE t SET a = f(id)"  # in every row
SOME = "UPDATE t SET a = f(id) WHERE id IN (2, 3)"
GONE = "DELETE FROM t WHERE id < 3 AND f(id)"

Rows = list[tuple[object, ...]]


def answered(tables: OurTables, sql: str) -> Rows | str:
    """The rows of a SELECT, or why they are not known."""
    try:
        found = tables.answer(sql, SESSIONS[3])
    except RefusedError as error:
        return error.err.text.partition(": ")[2]
    texts = [values_of(row, len(found.columns)) for row in found.rows]
    plain = [tuple(None if one is None else one.decode() for one in row) for row in texts]
    return sorted(
        (tuple(int(one) if (one or "").lstrip("-").isdecimal() else one for one in row) for row in plain), key=repr
    )


def asked(path: Path, sql: str, *items: Item) -> Rows | str:
    return answered(OurTables(open_log(parse_options({"path": str(write_log(path, *items))}))), sql)


CHANGES: list[tuple[str, Rows | str]] = [
    ("UPDATE t SET a = a + 1, b = CONCAT(b, a) WHERE b = 'y'", [(1, 10, "x"), (2, 21, "Y21"), (3, None, None)]),
    ("UPDATE t SET a = 5 WHERE NOT (a > 10 OR a IS NULL)", [(1, 5, "x"), (2, 20, "Y"), (3, None, None)]),
    ("UPDATE t SET id = id + 1 ORDER BY id DESC", [(2, 10, "x"), (3, 20, "Y"), (4, None, None)]),
    ("UPDATE t SET a = NULL, b = '7' WHERE a <=> NULL", [(1, 10, "x"), (2, 20, "Y"), (3, None, 7)]),
    ("UPDATE t SET b = 'z' WHERE a IN (10, NULL)", [(1, 10, "z"), (2, 20, "Y"), (3, None, None)]),
    ("DELETE FROM t WHERE id BETWEEN 2 AND 3 AND id % 2 = 1", [(1, 10, "x"), (2, 20, "Y")]),
    ("DELETE FROM t WHERE b <> 'X'", [(1, 10, "x"), (3, None, None)]),
    ("DELETE FROM t WHERE b LIKE 'X' OR b LIKE '_%a'", [(2, 20, "Y"), (3, None, None)]),
    ("INSERT IGNORE INTO t VALUES (1, 7, 'n'), (4, 4, 'n')", [
        (1, 10, "x"), (2, 20, "Y"), (3, None, None), (4, 4, "n"),
    ]),
    ("DELETE FROM t", []),
    ("INSERT INTO t (a, id) VALUES (DEFAULT, 4), (-5, 5)", [
        (1, 10, "x"), (2, 20, "Y"), (3, None, None), (4, None, None), (5, -5, None),
    ]),
    ("REPLACE INTO t (id, a) VALUES (1, 11)", [(1, 11, None), (2, 20, "Y"), (3, None, None)]),
    ("INSERT INTO t VALUES (2, 7, 'n') ON DUPLICATE KEY UPDATE a = a + VALUES(a), b = VALUES(b)", [
        (1, 10, "x"), (2, 27, "n"), (3, None, None),
    ]),
    ("INSERT INTO t VALUES (4, NAME_CONST('v', 3), 'it''s')", [
        (1, 10, "x"), (2, 20, "Y"), (3, None, None), (4, 3, "it's"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CHANGES, ids=[text for text, _ in CHANGES])
def test_a_statement_that_can_be_followed_changes_rows_as_a_server_does(tmp_path, text: str, expected: Rows) -> None:
    assert asked(tmp_path / "log", "SELECT * FROM d.t", TABLE, THREE, text) == expected


IN_DOUBT = [
    "UPDATE t SET a = f(id)",
    "UPDATE t SET a = a / 3",
    "UPDATE t SET a = 5 LIMIT 2",
    "UPDATE IGNORE t SET a = 5",
    "UPDATE t SET a = 5 WHERE b LIKE '\\\\x'",
    "UPDATE t SET a = 5 WHERE b = 'é'",
    "UPDATE t SET b = 'longer than nine'",
    "UPDATE t SET a = '5x'",
    "DELETE FROM t WHERE f(id)",
    "DELETE FROM t WHERE id = (SELECT 1)",
    "INSERT INTO t SELECT 9, a, b FROM u",
    "INSERT INTO t VALUES (4, 3000000000, 'x')",
    "REPLACE INTO t SELECT * FROM u",
    "UPDATE t, u SET t.a = 1",
    "DELETE t FROM t JOIN u",
]


@pytest.mark.parametrize("text", IN_DOUBT)
def test_a_statement_that_cannot_be_followed_leaves_what_it_may_have_touched_in_doubt(tmp_path, text: str) -> None:
    items = [TABLE, THREE, "CREATE TABLE u LIKE t", text]

    assert isinstance(asked(tmp_path / "log", "SELECT * FROM d.t", *items), str)
    assert asked(tmp_path / "log2", "SELECT * FROM d.t", *items, "TRUNCATE t", THREE) == [
        (1, 10, "x"), (2, 20, "Y"), (3, None, None),
    ]  # fmt: skip


def test_only_rows_and_columns_that_may_be_others_are_refused(tmp_path) -> None:
    reason = "in statement format: UPDATE"
    tables = OurTables(open_log(parse_options({"path": str(write_log(tmp_path / "log", TABLE, THREE, SOME))})))

    assert answered(tables, "SELECT id, b FROM d.t") == [(1, "x"), (2, "Y"), (3, None)]
    assert answered(tables, "SELECT * FROM d.t WHERE id = 1") == [(1, 10, "x")]
    assert answered(tables, "SELECT * FROM d.t WHERE id > 3") == []
    assert answered(tables, "SELECT COUNT(*) FROM d.t") == [(3,)]
    for sql in ("SELECT a FROM d.t", "SELECT * FROM d.t WHERE id = 2", "SELECT MAX(a) FROM d.t"):
        assert answered(tables, sql) == reason


TOLD_LATER: list[tuple[str, list[Item], Rows | str]] = [
    ("id = 2", [SOME, [updated(ROWS, ([2, 20, "Y"], [2, 7, "Y"]))]], [(2, 7, "Y")]),
    ("id = 3", [SOME, [updated(ROWS, ([2, 20, "Y"], [2, 7, "Y"]))]], "in statement format: UPDATE"),
    ("id < 9", [SOME, [deleted(ROWS, [2, 20, "Y"], [3, 5, None])]], [(1, 10, "x")]),
    ("id < 9", [SOME, "UPDATE t SET a = 4"], [(1, 4, "x"), (2, 4, "Y"), (3, 4, None)]),
    ("id = 1", [GONE, [inserted(ROWS, [1, 7, "n"])]], [(1, 7, "n")]),
    ("id = 1", [GONE, "DELETE FROM t WHERE id = 1"], []),
    ("id = 1", [GONE], "in statement format: DELETE"),
    ("id = 3", [GONE], [(3, None, None)]),
    ("id = 1", ["INSERT INTO t SELECT * FROM u"], [(1, 10, "x")]),
    ("id = 5", ["INSERT INTO t SELECT * FROM u"], "in statement format: INSERT"),
    ("id = 5", ["INSERT INTO t SELECT * FROM u", [updated(ROWS, ([4, 1, "a"], [5, 2, "b"]))]], [(5, 2, "b")]),
    ("id = 4", ["INSERT INTO t SELECT * FROM u", [updated(ROWS, ([4, 1, "a"], [5, 2, "b"]))]], []),
    ("id = 4", ["REPLACE INTO t SELECT * FROM u", [deleted(ROWS, [4, 1, "a"])]], []),
    ("id = 1", ["REPLACE INTO t SELECT * FROM u"], "in statement format: REPLACE"),
    ("id = 4", ["REPLACE INTO t SELECT * FROM u", "INSERT INTO t VALUES (4, 4, 'n')"], [(4, 4, "n")]),
    (
        "id = 4",
        ["REPLACE INTO t SELECT * FROM u", "INSERT INTO t VALUES (4, f(1), 'n')"],
        "in statement format: INSERT",
    ),
    ("id > 0", ["REPLACE INTO t SELECT * FROM u", "DELETE FROM t", "INSERT INTO t VALUES (8, 8, '')"], [(8, 8, "")]),
]


@pytest.mark.parametrize(("where", "items", "expected"), TOLD_LATER, ids=range(len(TOLD_LATER)))
def test_what_is_told_later_is_known_again(tmp_path, where: str, items: list[Item], expected: Rows | str) -> None:
    first = [TABLE, "CREATE TABLE u LIKE t", THREE]

    assert asked(tmp_path / "log", f"SELECT * FROM d.t WHERE {where}", *first, *items) == expected


def test_a_column_that_was_in_doubt_is_known_once_each_row_has_told_it(tmp_path) -> None:
    table = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(9)) ENGINE=InnoDB"
    every = [updated(ROWS, ([number, 1, "x"], [number, number, "x"])) for number in (1, 2, 3)]
    join = "UPDATE t JOIN u ON t.id = u.id SET t.a = 1"
    items = [table, "CREATE TABLE u LIKE t", THREE, join]

    assert asked(tmp_path / "a", "SELECT a FROM d.t", *items, [*every[:2]]) == "in statement format: UPDATE"
    assert asked(tmp_path / "b", "SELECT a FROM d.t WHERE id = 2", *items, [*every[:2]]) == [(2,)]
    assert asked(tmp_path / "c", "SELECT a FROM d.t", *items, [*every]) == [(1,), (2,), (3,)]


def test_a_rollback_takes_back_what_was_told(tmp_path) -> None:
    group: Item = ["SAVEPOINT s", inserted(ROWS, [1, 1, "n"]), "ROLLBACK TO s"]

    assert isinstance(asked(tmp_path / "log", "SELECT * FROM d.t WHERE id = 1", TABLE, THREE, GONE, group), str)


def test_a_statement_that_failed_half_way_is_not_followed(tmp_path) -> None:
    assert isinstance(asked(tmp_path / "log", "SELECT * FROM d.t", TABLE, Said(THREE, error_code=1062)), str)


def test_a_change_through_a_view_costs_the_tables_that_it_may_show(tmp_path) -> None:
    views = ["CREATE TABLE u LIKE t", "CREATE VIEW v AS SELECT * FROM t", "CREATE VIEW w AS SELECT * FROM v"]
    items = [TABLE, THREE, *views, "UPDATE w SET a = 1"]

    assert asked(tmp_path / "t", "SELECT * FROM d.t", *items) == "in statement format: UPDATE"
    assert asked(tmp_path / "u", "SELECT * FROM d.u", *items, "INSERT INTO u VALUES (1, 2, 'x')") == [(1, 2, "x")]


def test_a_trigger_costs_the_table_that_it_changes(tmp_path) -> None:
    trigger = "CREATE TRIGGER r AFTER INSERT ON t FOR EACH ROW INSERT INTO u VALUES (NEW.id, 1, 'x')"
    items = [TABLE, "CREATE TABLE u LIKE t", "CREATE TABLE w LIKE t", trigger, THREE]

    assert asked(tmp_path / "t", "SELECT id FROM d.t", *items) == [(1,), (2,), (3,)]
    assert asked(tmp_path / "u", "SELECT * FROM d.u", *items) == "in statement format: INSERT"
    assert asked(tmp_path / "w", "SELECT * FROM d.w", *items) == []


@pytest.mark.parametrize("kind", ["BIGINT", "SMALLINT"])
def test_rows_in_doubt_stay_so_through_a_change_of_their_table(tmp_path, kind: str) -> None:
    items = [TABLE, THREE, SOME, f"ALTER TABLE t MODIFY b VARCHAR(20) COLLATE utf8mb4_general_ci, MODIFY id {kind}"]

    assert isinstance(asked(tmp_path / "log", "SELECT a FROM d.t", *items), str)


def test_what_is_remembered_of_rows_is_theirs_alone() -> None:
    doubts, reason = RowDoubts(), UnknownRows("0-1-1", "why")
    doubts.reported[3] = set()
    doubts.doubt(b"a", [1, ROW], reason)
    doubts.doubt(b"b", [2], reason)
    doubts.report(b"b", [3])
    other = doubts.copy()
    doubts.report(b"b")
    doubts.gone(b"a")

    assert (doubts.rows, doubts.absent, doubts.reported) == ({}, {b"a"}, {3: {b"b"}})
    assert (set(other.rows), other.unknown_of(b"b", [3]), other.unknown_of(b"a", [3])) == (
        {b"a", b"b"},
        {2},
        {1, 3, ROW},
    )
    assert [set(one) for one in other.inside((b"b", None))] == [{2}]


@pytest.mark.parametrize(
    ("text", "digits"), [("current_timestamp()", 0), ("CURRENT_TIMESTAMP(3)", 3), ("current_timestamp", 0), ("1", None)]
)
def test_a_default_may_be_the_present_moment(text: str, digits: int | None) -> None:
    assert now_digits(text) == digits


def test_a_rollback_leaves_what_an_engine_without_transactions_has_done(tmp_path) -> None:
    table = TABLE.replace("general_ci)", "general_ci) ENGINE=MyISAM")
    group: Item = ["INSERT INTO t VALUES (9, 9, 'n')", "ROLLBACK"]

    assert asked(tmp_path / "log", "SELECT * FROM d.t", table, group) == "a ROLLBACK, which its engine does not know"
    assert asked(tmp_path / "other", "SELECT * FROM d.t", TABLE, group) == []
