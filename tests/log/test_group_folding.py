"""Groups put into a schema history: once, however often that is broken off."""

from contextlib import closing
from dataclasses import dataclass, replace

import pytest

import ibbmaster
from ibbmaster.errors import EventError
from ibbmaster.event.group import EventGroup
from ibbmaster.event.header import EVENT_HEADER_SIZE
from ibbmaster.event.rows.encoding import written_table
from ibbmaster.log import group_folding, undefined_tables
from ibbmaster.log.group_folding import GroupFolding
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.work import BreakReason, BrokenOffError
from tests.written_log import inserted, write_log

STATUS_SIZE_AT = 11  # in the body of a QUERY

OF_ROWS = written_table("d.rows_only", {"id": "int", "a": "int"}, table_id=1, primary_key=["id"])
ITEMS = (
    "CREATE TABLE t (id INT PRIMARY KEY)",
    [inserted(OF_ROWS, (1, 2))],
    "ALTER TABLE rows_only RENAME COLUMN a TO b",
    "ALTER TABLE t ADD a INT",
    [inserted(written_table("d.rows_only", {"id": "int", "b": "int"}, table_id=2, primary_key=["id"]), (2, 3))],
)


@dataclass
class Stored:
    """A group, and all of its body, which a reader gives once."""

    group: EventGroup
    body: bytes

    def read(self):
        return replace(self.group, body=iter([self.body]))


@pytest.fixture
def groups(tmp_path):
    write_log(tmp_path / "log", *ITEMS)
    with ibbmaster.open(tmp_path / "log") as log, closing(log.engine.groups(log.engine.start_of_file())) as reader:
        found = []
        while (group := reader.next_group()) is not None:
            if group.gtid is not None:
                found.append(Stored(group, b"".join(group.body)))
    assert len(found) == len(ITEMS)
    return found


def folded(groups, *, takes_rows):
    folding = GroupFolding(SchemaHistory(), takes_rows=takes_rows)
    for group in groups:
        folding.fold(group.read())
    return folding.history


@pytest.mark.parametrize("takes_rows", [False, True])
def test_rows_define_tables_only_where_they_are_to(groups, takes_rows):
    history = folded(groups, takes_rows=takes_rows)
    assert [column.name for column in history.table_at("d", "t").columns] == ["id", "a"]
    names = [column.name for column in getattr(history.table_at("d", "rows_only"), "columns", ())]
    assert names == (["id", "b"] if takes_rows else [])
    assert (GroupFolding(history, takes_rows=takes_rows).take_map is not None) == takes_rows


@pytest.mark.parametrize("takes_rows", [False, True])
def test_a_group_that_was_broken_off_anywhere_is_folded_as_in_one_go(groups, monkeypatch, takes_rows):
    whole = folded(groups, takes_rows=takes_rows)
    left = [10_000]

    def check():
        left[0] -= 1
        if left[0] == 0:
            raise BrokenOffError(BreakReason.KILLED)

    monkeypatch.setattr(group_folding, "check_wanted", check)
    monkeypatch.setattr(undefined_tables, "check_wanted", check)
    folded(groups, takes_rows=takes_rows)
    checks = 10_000 - left[0]
    assert checks > len(ITEMS)
    for number in range(1, checks + 1):
        folding, breaks = GroupFolding(SchemaHistory(), takes_rows=takes_rows), 0
        left[0] = number
        for group in groups:
            try:
                folding.fold(group.read())
            except BrokenOffError:
                breaks += 1
                assert folding.begun == group.group.start
                folding.fold(group.read())
        assert breaks == 1
        assert (folding.history.lines, folding.history.places) == (whole.lines, whole.places)
        assert folding.history.at() == whole.at()


def test_a_damaged_statement_is_an_error_with_its_group(groups):
    cut = bytearray(groups[0].body)
    cut[EVENT_HEADER_SIZE + STATUS_SIZE_AT : EVENT_HEADER_SIZE + STATUS_SIZE_AT + 2] = b"\xff\xff"
    with pytest.raises(EventError, match="group 0-1-1: "):
        GroupFolding(SchemaHistory()).fold(replace(groups[0].group, body=iter([bytes(cut)])))
