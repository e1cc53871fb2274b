from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import pytest

import ibbmaster
from ibbmaster.errors import EventError
from ibbmaster.logs.log import group_folding
from ibbmaster.logs.log.group_folding import GroupFolding, defined_history
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE
from ibbmaster.replication.event.rows.encoding import written_table
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.tables.arrow import plan
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import find_fields, plan_tasks
from ibbmaster.tables.arrow.reading import read_task
from ibbmaster.testkit.primary import FixturePrimary
from ibbmaster.work import BreakReason, BrokenOffError
from tests.machinery.streamed import StreamReading
from tests.written_log import inserted, updated, write_log

STATUS_SIZE_AT = 11  # in the body of a QUERY

OF_ROWS = written_table("d.rows_only", {"id": "int", "a": "int"}, table_id=1, primary_key=["id"])
ITEMS = (
    "CREATE TABLE t (id INT PRIMARY KEY)",
    [inserted(OF_ROWS, (1, 2))],
    "ALTER TABLE rows_only RENAME COLUMN a TO b",
    "ALTER TABLE t ADD a INT",
    [inserted(written_table("d.rows_only", {"id": "int", "b": "int"}, table_id=2, primary_key=["id"]), (2, 3))],
)
BEGIN = {"id": "int", "a": "int", "b": "int"}


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


def rows(number, columns, *values, table="d.t"):
    """Of a table with these columns; the first of them is the key."""
    return [inserted(written_table(table, columns, table_id=number, primary_key=["id"]), values)]


RENAMED = (
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)",
    rows(1, BEGIN, 1, 10, 11),
    "ALTER TABLE t RENAME COLUMN a TO z",
    rows(2, {"id": "int", "z": "int", "b": "int"}, 2, 20, 21),
    "ALTER TABLE t ADD n INT DEFAULT 7 AFTER id, CHANGE b z2 INT",
    "ALTER TABLE t RENAME COLUMN z TO b, RENAME COLUMN z2 TO z",  # both names had other columns
    rows(3, {"id": "int", "n": "int", "b": "int", "z": "int"}, 3, 8, 30, 31),
    "ALTER TABLE t DROP n, ADD m INT DEFAULT 5",
    rows(4, {"id": "int", "b": "int", "z": "int", "m": "int"}, 4, 40, 41, 6),
    "ALTER TABLE t MODIFY b BIGINT",
    rows(5, {"id": "int", "b": "bigint", "z": "int", "m": "int"}, 5, 50, 51, None),
)
WIDENS = len(RENAMED) - 2  # a stream keeps its types
CUTS = range(1, len(RENAMED) - 1)


def told(found, first=1):
    """Rows of groups from one on, without cells that are empty, and without where they were."""
    return [
        {name: value for name, value in row.items() if value is not None and name not in ("_file_no", "_offset")}
        for row in found
        if int(row["_gtid"].split("-")[2]) >= first
    ]


def batch(**options):
    parsed = parse_options({"table": "d.t", **options})
    fields = find_fields(parsed)
    return [row for task in plan_tasks(parsed, fields) for part in read_task(task) for row in part.to_pylist()]


def api(path):
    with ibbmaster.open(path) as log:
        return log.to_arrow(table="d.t").to_pylist()


def grouped(path):
    with ibbmaster.open(path) as log:
        changes = [(group, change) for group in log.groups(schema_mode="latest") for _, change in group.rows()]
        return [{"_gtid": str(group.gtid), **(change.after or {})} for group, change in changes]


def tables(path):
    with ibbmaster.open(path) as log:
        return log.to_arrow_tables()["d.t"].to_pylist()


def streamed(path):
    stream = StreamReading(path=path, table="d.t", maxGroupsPerTrigger="1")
    stream.catch_up()
    stream.close()
    return stream.rows


WAYS: dict[str, Callable[[str], list[dict[str, Any]]]] = {
    "api": api,
    "groups": grouped,
    "tables": tables,
    "batch": lambda path: batch(path=path),
    "as written": lambda path: batch(path=path, schemaMode="asWritten"),
    "with absent columns": lambda path: batch(path=path, columns="_gtid, id, b, z, m, _absent"),
    "not strict": lambda path: batch(path=path, failOnDataLoss="false"),
    "renumbered": lambda path: batch(path=path, mapServerId="1=7"),
    "stream": streamed,
}


@pytest.fixture(params=["kernels", "reference"])
def _readers(request, monkeypatch):
    monkeypatch.setenv("IBBMASTER_KERNELS", "on" if request.param == "kernels" else "off")


@pytest.mark.usefixtures("_readers")
@pytest.mark.parametrize("way", WAYS)
def test_a_log_without_its_beginning_is_read_as_the_rest_of_the_whole_log(tmp_path, way):
    whole = WAYS[way](str(write_log(tmp_path / "whole", *RENAMED)))
    assert len(whole) == 5
    for cut in CUTS:
        path = write_log(tmp_path / f"from-{cut}", *RENAMED[cut:], first=cut + 1)
        assert told(WAYS[way](str(path))) == told(whole, cut + 1), cut


@pytest.mark.parametrize("cut", CUTS)
def test_a_stream_of_a_primary_that_has_purged_is_the_rest_of_the_whole_log(tmp_path, cut):
    found = []
    for name, items, first in (("whole", RENAMED, 1), ("cut", RENAMED[cut:], cut + 1)):
        with FixturePrimary(write_log(tmp_path / name, *items, first=first)) as primary:
            login = {name: str(getattr(primary, name)) for name in ("host", "port", "user", "password")}
            stream = StreamReading(**login, table="d.t", maxGroupsPerTrigger="1")
            while stream.step():
                stream.begin_anew()  # each batch by another process
            found.append((told(stream.rows, cut + 1), told(batch(**login), cut + 1)))
            stream.close()
    assert found[0] == found[1]


@pytest.mark.usefixtures("_readers")
@pytest.mark.parametrize("cut", CUTS)
def test_a_stream_that_began_before_a_statement_follows_it_without_the_beginning_of_the_log(tmp_path, cut):
    """The DataFrame is made of what is there at some time; what is written later comes under its names."""
    for there in range(cut + 1, WIDENS):
        if not any(isinstance(item, list) for item in RENAMED[cut:there]):
            continue  # nothing tells its columns yet
        found = []
        for name, begin in (("whole", 0), ("cut", cut)):
            path = write_log(tmp_path / f"{name}-{there}", *RENAMED[begin:there], first=begin + 1)
            stream = StreamReading(path=str(path), table="d.t")
            stream.catch_up()
            for number in range(there, WIDENS):
                write_log(path, RENAMED[number], first=number + 1)
                stream.catch_up()
            stream.close()
            found.append(told(stream.rows, cut + 1))
        assert found[0] == found[1], there


@pytest.mark.parametrize("needs_rows", [False, True])
def test_a_history_is_made_with_rows_only_where_the_one_by_statements_needs_them(needs_rows):
    made: dict[bool, SchemaHistory] = {}

    def fold(takes_rows):
        return made.setdefault(takes_rows, SchemaHistory())

    found = defined_history(fold, lambda history: needs_rows and history is made[False])
    assert made == {False: made[False], **({True: found} if needs_rows else {})}
    assert found is made[needs_rows]


def test_a_second_query_of_a_table_that_rows_define_folds_nothing(tmp_path, monkeypatch):
    path = str(write_log(tmp_path / "log", *RENAMED[2:], first=3))
    first = batch(path=path)
    monkeypatch.setattr(GroupFolding, "fold", lambda *given: pytest.fail("a group is folded once more"))
    monkeypatch.setattr(plan, "scan_ddl", lambda *given: pytest.fail("the log is scanned once more"))
    assert batch(path=path) == first


def test_an_update_is_completed_by_its_key_alone_where_nothing_says_what_a_server_computes(tmp_path):
    change = updated(written_table("d.t", BEGIN, table_id=1, primary_key=["id"]), ((1, 10, 5), (1, 11, 5)))
    path = write_log(tmp_path / "log", [change], "ALTER TABLE t RENAME COLUMN a TO z")
    (before, after) = batch(path=str(path), completeKeys="true")
    assert (before["z"], after["z"]) == (10, 11)


def test_a_type_that_hangs_on_what_nobody_knows_is_that_of_the_rows(tmp_path):
    """What statements make of a table of which not all is known need not be what it is."""
    path = write_log(
        tmp_path / "log",
        rows(1, {"id": "int", "b": "int"}, 1, 10),
        "ALTER TABLE t DEFAULT CHARACTER SET latin1, RENAME COLUMN b TO a, ADD c VARCHAR(20) DEFAULT 'q'",
        rows(2, {"id": "int", "a": "int", "c": "varchar(20)"}, 2, 20, "\N{EURO SIGN}"),
    )
    assert [(row["a"], row["c"]) for row in batch(path=str(path))] == [(10, "q"), (20, "\N{EURO SIGN}")]
