"""Rows of children, which foreign keys delete and change: out of logs that are written here.

tests/interop/test_refusals.py has the same beside real servers.
"""

import pytest
from lanes.answers import OurTables
from lanes.described import groups_of

from ibbmaster.replication.event.rows.encoding import WrittenTable, written_table
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.storage.codec import lenenc
from tests.written_log import deleted, inserted, updated

PARENT = "CREATE TABLE p (id INT PRIMARY KEY)"


def table_of(name: str, number: int, *, key: bool = True) -> WrittenTable:
    columns = {"id": "int", "p": "int"} if number else {"id": "int"}
    return written_table(f"d.{name}", columns, table_id=number, primary_key=["id"] if key else [])


def count(ours: OurTables, name: str, place=None) -> int:
    return len(ours.answer(f"SELECT * FROM d.{name}", snapshot=ours.snapshot(place)).rows)


def test_a_chain_of_thousands_of_rows_in_one_table_is_followed_to_its_end(tables_of) -> None:
    table = table_of("t", 1)
    rows = [[number, number - 1 or None] for number in range(1, 3001)]
    create = "CREATE TABLE t (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id) ON DELETE CASCADE)"
    assert count(tables_of(create, [inserted(table, *rows, [5000, 5000])], [deleted(table, [1, None])]), "t") == 1


@pytest.mark.parametrize("key", [True, False])
def test_each_position_has_the_children_of_then_also_where_rows_come_and_go_in_between(tables_of, key) -> None:
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
    ours = tables_of(PARENT, f"CREATE TABLE c (id INT, p INT, {rule})", *steps)
    ends = [group.end for group in groups_of(ours.engine)][2:]  # behind the tables
    snapshots = [ours.snapshot(place) for place in ends]  # all of them frozen

    assert [len(ours.answer("SELECT * FROM d.c", snapshot=one).rows) for one in snapshots] == [0, 3, 2, 3, 1, 0] * 3


def test_a_child_is_refused_whose_rows_nothing_can_tell(tables_of) -> None:
    parent, child = table_of("p", 0), table_of("c", 1)
    rule = "FOREIGN KEY (p) REFERENCES p (id) ON DELETE SET DEFAULT"
    create = f"CREATE TABLE c (id INT PRIMARY KEY, p INT DEFAULT 7, {rule})"
    ours = tables_of(PARENT, create, [inserted(parent, [1]), inserted(child, [1, 1])], [deleted(parent, [1])])

    with pytest.raises(RefusedError, match="without an event, and SET DEFAULT is not followed"):
        count(ours, "c")


@pytest.mark.parametrize("rule", ["CASCADE", "SET NULL"])
@pytest.mark.parametrize(
    ("after", "moves"),
    [
        pytest.param([1, 10, 20, "other"], False, id="no key"),
        pytest.param([9, 10, 20, "x"], False, id="another key"),
        pytest.param([1, 10, 21, "x"], True, id="a part of the key"),
        pytest.param([1, 11, 21, "x"], True, id="the whole key"),
        pytest.param([1, None, 20, "x"], True, id="to NULL"),
    ],
)
@pytest.mark.parametrize("whole", [True, False], ids=["whole images", "minimal ones"])
def test_an_update_of_a_parent_reaches_its_children_only_where_their_key_changes(tables_of, rule, after, moves, whole):
    before = [1, 10, 20, "x"]
    types = {"id": "int", "u": "int", "v": "int", "told": "varchar(9)"}
    parent = written_table("d.p", types, table_id=1, primary_key=["id"])
    child = written_table("d.c", {"id": "int", "a": "int", "b": "int"}, table_id=2, primary_key=["id"])
    changed = [number for number, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    columns = None if whole else ([0], changed)  # as with binlog_row_image=MINIMAL
    ours = tables_of(
        "CREATE TABLE p (id INT PRIMARY KEY, u INT, v INT, told VARCHAR(9), UNIQUE (u, v))",
        f"CREATE TABLE c (id INT PRIMARY KEY, a INT, b INT, FOREIGN KEY (a, b) REFERENCES p (u, v) ON UPDATE {rule})",
        [inserted(parent, before, [2, 10, 30, "y"])],
        [inserted(child, [1, 10, 20], [2, 10, 30], [3, 10, None])],
        [updated(parent, (before, after), columns=columns)],
    )

    new = [10, 20] if not moves else after[1:3] if rule == "CASCADE" else [None, None]
    rows = ours.answer("SELECT * FROM d.c ORDER BY id", snapshot=ours.snapshot()).rows
    assert [bytes(row) for row in rows] == [text_row(1, *new), text_row(2, 10, 30), text_row(3, 10, None)]


def test_a_parent_with_a_null_in_its_key_has_no_children_not_even_those_with_an_empty_text(tables_of) -> None:
    columns = {"id": "int", "a": "varbinary(9)", "b": "varbinary(9)"}
    parent, child = (written_table(f"d.{name}", columns, table_id=1, primary_key=["id"]) for name in "pc")
    told = "(id INT PRIMARY KEY, a VARBINARY(9), b VARBINARY(9)"
    ours = tables_of(
        f"CREATE TABLE p {told}, UNIQUE (a, b))",
        f"CREATE TABLE c {told}, FOREIGN KEY (a, b) REFERENCES p (a, b) ON DELETE CASCADE)",
        [inserted(parent, [1, b"x", b""], [2, b"x", None], [3, None, b""]), inserted(child, [1, b"x", b""])],
        [deleted(parent, [2, b"x", None], [3, None, b""])],
        [deleted(parent, [1, b"x", b""])],
    )
    ends = [group.end for group in groups_of(ours.engine)][2:]  # behind the tables
    assert [count(ours, "c", end) for end in ends] == [1, 1, 0]


def text_row(*values: int | None) -> bytes:
    return b"".join(b"\xfb" if value is None else lenenc.encode_bytes(b"%d" % value) for value in values)
