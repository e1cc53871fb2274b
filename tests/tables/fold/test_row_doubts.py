"""Rows after changes in statement format: none is guessed; tests/interop/test_refusals.py asks servers."""

from pathlib import Path

import pytest
from lanes.answers import SESSIONS, OurTables, values_of

from ibbmaster.replication.event.rows.encoding import written_table
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.rows.effects import in_statement_format
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import open_log
from ibbmaster.tables.fold.row_doubts import ROW, RowDoubts, UnknownRows
from tests.case_table import data_beside
from tests.written_log import Item, Said, deleted, inserted, updated, write_log

TABLE = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(9))"
ROWS = written_table("d.t", {"id": "int", "a": "int", "b": "varchar(9)"}, table_id=1, primary_key=["id"])
THREE: Item = [inserted(ROWS, [1, 10, "x"], [2, 20, "Y"], [3, None, None])]
UPDATE = "UPDATE t SET a = 5 WHERE id = 2"
OF_QUERY = "INSERT INTO t SELECT * FROM u"
FIRST = [TABLE, "CREATE TABLE u LIKE t", THREE]

Rows = list[tuple[object, ...]]


def asked(path: Path, sql: str, *items: Item) -> Rows | str:
    tables = OurTables(open_log(parse_options({"path": str(write_log(path, *items))})))
    try:
        found = tables.answer(sql, SESSIONS[3])
    except RefusedError as error:
        return error.err.text.partition(", because ")[2].removesuffix(in_statement_format(""))
    texts = [values_of(row, len(found.columns)) for row in found.rows]
    plain = [tuple(None if one is None else one.decode() for one in row) for row in texts]
    return sorted(
        (tuple(int(one) if (one or "").lstrip("-").isdecimal() else one for one in row) for row in plain), key=repr
    )


@pytest.mark.parametrize("text", data_beside(__file__))
def test_a_change_in_statement_format_leaves_its_table_in_doubt_and_no_other(tmp_path, text: str) -> None:
    items = [*FIRST, "CREATE TABLE w LIKE t", text]
    verb = "LOAD DATA" if text.startswith("LOAD") else text.split()[0]

    assert asked(tmp_path / "t", "SELECT * FROM d.t", *items) == verb
    assert asked(tmp_path / "w", "SELECT * FROM d.w", *items) == []


@pytest.mark.parametrize("text", ["TRUNCATE t", "DELETE FROM t", "CREATE OR REPLACE TABLE t LIKE u"])
def test_what_empties_a_table_makes_its_rows_known(tmp_path, text: str) -> None:
    assert asked(tmp_path / "log", "SELECT * FROM d.t", *FIRST, UPDATE, text) == []


TOLD_LATER: list[tuple[str, list[Item], Rows | str]] = [
    ("id = 2", [UPDATE, [updated(ROWS, ([2, 5, "Y"], [2, 7, "Y"]))]], [(2, 7, "Y")]),
    ("id = 3", [UPDATE, [updated(ROWS, ([2, 5, "Y"], [2, 7, "Y"]))]], "UPDATE"),
    ("id = 2", [UPDATE, [deleted(ROWS, [2, 5, "Y"])]], []),
    ("id < 9", [UPDATE, [deleted(ROWS, [2, 5, "Y"])]], "UPDATE"),
    ("id = 2", [[updated(ROWS, ([2, 20, "Y"], [2, 7, "Y"]))], UPDATE], "UPDATE"),
    ("id = 1", [OF_QUERY], [(1, 10, "x")]),
    ("id = 5", [OF_QUERY], "INSERT"),
    ("id < 9", [OF_QUERY], "INSERT"),
    ("id = 5", [OF_QUERY, [updated(ROWS, ([4, 1, "a"], [5, 2, "b"]))]], [(5, 2, "b")]),
    ("id = 4", [OF_QUERY, [updated(ROWS, ([4, 1, "a"], [5, 2, "b"]))]], []),
    ("id = 1", [f"{OF_QUERY} ON DUPLICATE KEY UPDATE a = 1"], "INSERT"),
    ("id = 4", ["REPLACE INTO t SELECT * FROM u", [deleted(ROWS, [4, 1, "a"])]], []),
    ("id > 0", [UPDATE, "DELETE FROM t", [inserted(ROWS, [8, 8, "n"])]], [(8, 8, "n")]),
]


@pytest.mark.parametrize(("where", "items", "expected"), TOLD_LATER, ids=range(len(TOLD_LATER)))
def test_of_a_row_that_an_event_reports_later_all_is_known(tmp_path, where: str, items, expected: Rows | str) -> None:
    assert asked(tmp_path / "log", f"SELECT * FROM d.t WHERE {where}", *FIRST, *items) == expected


@pytest.mark.parametrize("text", ["UPDATE t SET a = 1", "DELETE FROM t", OF_QUERY])
def test_a_rollback_of_a_statement_leaves_its_table_in_doubt(tmp_path, text: str) -> None:
    group: Item = ["SAVEPOINT s", text, "ROLLBACK TO s"]

    assert isinstance(asked(tmp_path / "log", "SELECT * FROM d.t", *FIRST, group), str)
    assert isinstance(asked(tmp_path / "other", "SELECT * FROM d.t WHERE id = 9", *FIRST, group), str)


def test_a_statement_that_failed_half_way_empties_nothing(tmp_path) -> None:
    assert asked(tmp_path / "log", "SELECT * FROM d.t", *FIRST, Said("DELETE FROM t", error_code=1317)) == "DELETE"


def test_rows_of_children_are_in_doubt_where_a_statement_changes_their_parent(tmp_path) -> None:
    rule = "ON DELETE CASCADE ON UPDATE CASCADE"
    child = written_table("d.c", {"id": "int", "p": "int"}, table_id=2, primary_key=["id"])
    made: list[Item] = [f"CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id) {rule})"]
    made += [[inserted(child, [1, 1])]]
    below = "its foreign key to d.t deletes or changes rows without an event"

    for number, text in enumerate((UPDATE, "DELETE FROM t", "REPLACE INTO t VALUES (1, 1, 'x')")):
        assert asked(tmp_path / str(number), "SELECT * FROM d.c", *FIRST, *made, text) == below
    for number, said in enumerate(("INSERT INTO t VALUES (9, 9, 'x')", Said(UPDATE, flags=1 << 26))):
        assert asked(tmp_path / f"same{number}", "SELECT * FROM d.c", *FIRST, *made, said) == [(1, 1)]


@pytest.mark.parametrize("kind", ["BIGINT", "SMALLINT"])
def test_rows_in_doubt_stay_so_through_a_change_of_their_table(tmp_path, kind: str) -> None:
    items = [*FIRST, UPDATE, f"ALTER TABLE t MODIFY b VARCHAR(20), MODIFY id {kind}"]

    assert isinstance(asked(tmp_path / "log", "SELECT a FROM d.t", *items), str)


def test_what_is_remembered_of_rows_is_theirs_alone() -> None:
    doubts, reason = RowDoubts(), UnknownRows("0-1-1", "why")
    doubts.doubt(b"a", [1, ROW], reason)
    doubts.doubt(b"b", [2, 3], reason)
    doubts.report(b"b", [3])
    other = doubts.copy()
    doubts.report(b"b")
    doubts.gone(b"a")

    assert (doubts.rows, doubts.absent) == ({}, {b"a"})
    assert {key: set(found) for key, found in other.rows.items()} == {b"a": {1, ROW}, b"b": {2}}
    assert [set(one) for one in other.inside((b"b", None))] == [{2}]
