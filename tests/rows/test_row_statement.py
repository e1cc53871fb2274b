"""INSERT, UPDATE and DELETE as trees; tests/interop/test_refusals.py asks servers what became of the rows."""

from __future__ import annotations

import pytest

from ibbmaster.event.statement.logged import LoggedStatement
from ibbmaster.rows.row_statement import (
    UNREAD,
    RowsChanged,
    RowsGone,
    RowsInserted,
    RowStatement,
    row_statement,
)
from ibbmaster.sqltext.expression import Call, ColumnName, Literal


def read(text: str, sql_mode: int = 0) -> RowStatement | None:
    return row_statement(LoggedStatement(text, "d", 1, sql_mode, True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("UPDATE t SET a = 1", ("d.t", ("a",))),
        (
            "UPDATE LOW_PRIORITY IGNORE e.t AS x SET x.A = (SELECT 1 WHERE 2), `b c`=`a`, d := 3 WHERE z = 4",
            ("e.t", ("a", "b c", "d")),
        ),
        ("UPDATE t x SET d.x.a = f(1, 2), b = 'SET c = 1' ORDER BY a LIMIT 3", ("d.t", ("a", "b"))),
        ("UPDATE t, u SET t.a = 1", None),
        ("UPDATE t JOIN u USING (id) SET a = 1", None),
        ("UPDATE t FOR PORTION OF p FROM 1 TO 2 SET a = 1", None),
        ("UPDATE t PARTITION (p) SET a = 1", None),
        ("UPDATE t SET", None),
        ("UPDATE t SET (a) = 1", None),
        ("SET STATEMENT max_statement_time=1 FOR UPDATE t SET a = 1", ("d.t", ("a",))),
    ],
)
def test_an_update_sets_columns_of_one_table(text: str, expected: object) -> None:
    found = read(text)

    assert found is None or isinstance(found, RowsChanged)
    assert (found and (str(found.table), tuple(one.column for one in found.assignments))) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("DELETE t FROM t", "DELETE FROM t USING t, u", "DELETE FROM t, u USING t", "DELETE HISTORY FROM t"),
        *("DELETE FROM t PARTITION (p)", "DELETE FROM t FOR PORTION OF p FROM 1 TO 2", "SELECT 1", "DELETE"),
        *("INSERT INTO t PARTITION (p) VALUES (1)", "INSERT INTO t VALUES (1) nonsense", "INSERT INTO t VALUES"),
        *("INSERT INTO t (a.b(c)) VALUES (1)", "TRUNCATE t", "DELETE FROM t WHERE a = 1 PROCEDURE p"),
    ],
)
def test_what_is_no_plain_change_of_one_table_is_left_to_others(text: str) -> None:
    found = read(text)

    assert found is None or (isinstance(found, RowsInserted) and found.rows is None) or "PROCEDURE" in text


def test_a_delete_says_which_rows_and_whether_all_of_them() -> None:
    found = read("DELETE LOW_PRIORITY IGNORE FROM t WHERE a IN (1, (2)) ORDER BY a DESC, b LIMIT 3 RETURNING a")

    assert isinstance(found, RowsGone)
    assert found.chosen.is_limited
    assert found.chosen.is_ignoring
    assert found.chosen.order == ((ColumnName(("a",)), True), (ColumnName(("b",)), False))
    assert read("DELETE FROM t;") == RowsGone(table=found.table, chosen=type(found.chosen)())


def test_an_insert_has_rows_of_expressions() -> None:
    found = read("INSERT IGNORE INTO e.t (`A`, t.b) VALUES (1, 'x'), (DEFAULT(a), (SELECT 1)) RETURNING a")

    assert isinstance(found, RowsInserted)
    assert found.rows is not None
    assert (found.columns, found.is_ignoring, found.is_replacing) == (("a", "b"), True, False)
    assert found.rows[0] == (Literal(1), Literal("x"))
    assert isinstance(found.rows[1][0], Call)
    assert found.rows[1][1] is UNREAD


def test_an_insert_may_set_columns_or_take_constants_of_a_query_without_a_table() -> None:
    one = read("REPLACE t SET a = 1, b = 'x'")
    other = read("REPLACE INTO t (a, b) SELECT 1, 'x'")

    assert one == other
    assert isinstance(one, RowsInserted)
    assert one.is_replacing


@pytest.mark.parametrize("text", ["SELECT 1 FROM u", "SELECT DISTINCT 1", "SELECT 1 WHERE 0", "SELECT 1 LIMIT 0"])
def test_rows_of_a_query_are_not_told(text: str) -> None:
    found = read(f"INSERT INTO t {text} ON DUPLICATE KEY UPDATE a = 1")

    assert isinstance(found, RowsInserted)
    assert found.rows is None
    assert found.on_duplicate is not None


def test_a_text_is_read_as_its_session_reads_it() -> None:
    found = read(r"INSERT INTO t VALUES ('a\'), ('b')", sql_mode=1 << 20)

    assert isinstance(found, RowsInserted)
    assert found.rows == ((Literal("a\\"),), (Literal("b"),))
