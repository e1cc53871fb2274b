"""An export goes on only where the rows that are there are still those of their tables; nothing here needs Spark."""

from __future__ import annotations

import pytest

from ibbmaster.errors import StoreError
from ibbmaster.event.rows.encoding import written_table
from ibbmaster.lake.continuing import tables_to_export
from tests.table_versions import inserts, write_log
from tests.written_log import inserted
from tests.written_log import write_log as write_named_log

T = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(9))"
ROW = inserts({"id": "int", "a": "int", "b": "varchar(9)"}, [(1, 2, "x")])
SAME = {
    "nothing": [],
    "a column that is NULL in older rows": ["ALTER TABLE t ADD c INT"],
    "columns move": ["ALTER TABLE t MODIFY b VARCHAR(9) FIRST"],
    "a column goes": ["ALTER TABLE t DROP a"],
    "a longer text": ["ALTER TABLE t MODIFY b VARCHAR(99)"],
    "emptied": ["TRUNCATE TABLE t"],
    "another table": ["CREATE TABLE u (id INT)"],
}
OTHER = {
    "renamed": (["ALTER TABLE t RENAME COLUMN a TO z"], "db.t: column a is called z"),
    "a default": (["ALTER TABLE t ADD c INT DEFAULT 7"], "db.t: column c was added, and has a value in older rows"),
    "no default": (["ALTER TABLE t ADD c INT NOT NULL"], "db.t: column c was added, and has a value in older rows"),
    "another type": (["ALTER TABLE t MODIFY a BIGINT"], "db.t: column a has another type"),
    "another column": (["ALTER TABLE t DROP a", "ALTER TABLE t ADD a INT"], "db.t: another column is called a"),
    "two": (["ALTER TABLE t RENAME COLUMN a TO z, ADD c INT DEFAULT 7"], "column a is called z; db.t: column c was"),
    "made anew": (["DROP TABLE t", T], "db.t: another table is called so"),
    "replaced": ([T.replace("TABLE", "OR REPLACE TABLE")], "db.t: another table is called so"),
    "swapped": (["CREATE TABLE u LIKE t", "RENAME TABLE t TO v, u TO t"], "db.t: another table is called so"),
}


def checked(tmp_path, statements, names=("db.t",)):
    log = write_log(tmp_path / "log", T, ROW) if (tmp_path / "log").mkdir() is None else None
    write_log(log, *statements, first=3) if statements else None
    (tmp_path / "tables" / "db.t").mkdir(parents=True)
    end = f"0-1-{2 + len(statements)}"
    return tables_to_export({"path": str(log)}, names, tmp_path / "tables", "0-1-2", end)


@pytest.mark.parametrize("statements", SAME.values(), ids=SAME)
def test_it_goes_on(tmp_path, statements) -> None:
    assert checked(tmp_path, statements) == ["db.t"]


@pytest.mark.parametrize(("statements", "problem"), OTHER.values(), ids=OTHER)
def test_it_stops_and_says_why(tmp_path, statements, problem) -> None:
    with pytest.raises(StoreError, match=problem) as raised:
        checked(tmp_path, statements)
    assert "since the last run, which ended at 0-1-2" in str(raised.value)
    assert "export into a new directory" in str(raised.value)


def test_a_table_that_is_called_otherwise_now_cannot_go_on_under_its_new_name(tmp_path) -> None:
    with pytest.raises(StoreError, match=r"db\.v: db\.t is called so"):
        checked(tmp_path, ["RENAME TABLE t TO v"], ["db.v"])


def test_a_first_run_exports_a_table_once_under_the_name_that_it_has_at_the_end(tmp_path) -> None:
    (tmp_path / "log").mkdir()
    log = write_log(tmp_path / "log", T, ROW, "RENAME TABLE t TO v")
    assert tables_to_export({"path": str(log)}, ["db.t", "db.v"], tmp_path, "", "0-1-3") == ["db.v"]


WITHOUT_BEGINNING = {
    "renamed": (["ALTER TABLE t RENAME COLUMN a TO z"], "d.t: column a is called z"),
    "a default": (["ALTER TABLE t ADD c INT DEFAULT 7"], "d.t: column c was added, and has a value in older rows"),
    "purged to there": (
        ["ALTER TABLE t ADD c INT"],
        "d.t: its columns were perhaps others: its CREATE",
    ),
}


@pytest.mark.parametrize(("statements", "problem"), WITHOUT_BEGINNING.values(), ids=WITHOUT_BEGINNING)
def test_it_stops_where_the_log_has_lost_its_create_table_too(tmp_path, statements, problem) -> None:
    row = inserted(written_table("d.t", {"id": "int", "a": "int"}, table_id=1), [1, 2])
    before = ["CREATE TABLE other (id INT)"] if "perhaps" in problem else [[row]]
    log = write_named_log(tmp_path / "log", *before, *statements)
    (tmp_path / "tables" / "d.t").mkdir(parents=True)
    with pytest.raises(StoreError, match=problem):
        tables_to_export({"path": str(log)}, ["d.t"], tmp_path / "tables", "0-1-1", "0-1-2")
    assert tables_to_export({"path": str(log)}, ["d.t"], tmp_path / "tables", "0-1-1", "0-1-1") == ["d.t"]
