"""Rows of children, which foreign keys delete and change: out of logs that are written here.

tests/interop/test_refusals.py has the same beside real servers.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from lanes.answers import OurTables
from lanes.described import groups_of

import ibbmaster
from ibbmaster.dialogue.refusal import RefusedError
from ibbmaster.event.rows.encoding import WrittenTable, written_table
from tests.written_log import deleted, inserted, write_log

PARENT = "CREATE TABLE p (id INT PRIMARY KEY)"


def table_of(name: str, number: int, *, key: bool = True) -> WrittenTable:
    columns = {"id": "int", "p": "int"} if number else {"id": "int"}
    return written_table(f"d.{name}", columns, table_id=number, primary_key=["id"] if key else [])


def count(ours: OurTables, name: str, place=None) -> int:
    return len(ours.answer(f"SELECT * FROM d.{name}", snapshot=ours.snapshot(place)).rows)


def test_a_chain_of_thousands_of_rows_in_one_table_is_followed_to_its_end(tmp_path: Path) -> None:
    table = table_of("t", 1)
    rows = [[number, number - 1 or None] for number in range(1, 3001)]
    log = write_log(
        tmp_path,
        "CREATE TABLE t (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id) ON DELETE CASCADE)",
        [inserted(table, *rows, [5000, 5000])],
        [deleted(table, [1, None])],
    )

    assert count(OurTables(ibbmaster.open(log).engine), "t") == 1


@pytest.mark.parametrize("key", [True, False])
def test_each_position_has_the_children_of_then_also_where_rows_come_and_go_in_between(
    tmp_path: Path, key: bool
) -> None:
    parent, child = table_of("p", 0), table_of("c", 1, key=key)
    end = ", PRIMARY KEY (id)" if key else ""
    steps = []
    for number in range(3):
        steps += [
            [inserted(parent, [number])],
            [inserted(child, [1, number], [2, number], [3, None])],
            [deleted(child, [1, number])],
            ["SAVEPOINT a", deleted(parent, [number]), "ROLLBACK TO a", inserted(child, [4, number])],
            [deleted(parent, [number])],
            [deleted(child, [3, None])],
        ]
    rule = f"FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE{end}"
    log = write_log(tmp_path, PARENT, f"CREATE TABLE c (id INT, p INT, {rule})", *steps)
    ours = OurTables(ibbmaster.open(log).engine)
    ends = [group.end for group in groups_of(ours.engine)][2:]  # behind the tables
    snapshots = [ours.snapshot(place) for place in ends]  # all of them frozen

    found = [len(ours.answer("SELECT * FROM d.c", snapshot=one).rows) for one in snapshots]

    assert found == [0, 3, 2, 3, 1, 0] * 3


def test_a_child_is_refused_whose_rows_nothing_can_tell(tmp_path: Path) -> None:
    parent, child = table_of("p", 0), table_of("c", 1)
    rule = "FOREIGN KEY (p) REFERENCES p (id) ON DELETE SET DEFAULT"
    log = write_log(
        tmp_path,
        PARENT,
        f"CREATE TABLE c (id INT PRIMARY KEY, p INT DEFAULT 7, {rule})",
        [inserted(parent, [1]), inserted(child, [1, 1])],
        [deleted(parent, [1])],
    )

    with pytest.raises(RefusedError, match="without an event, and SET DEFAULT is not followed"):
        count(OurTables(ibbmaster.open(log).engine), "c")
