import itertools
import json
import shutil
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.api import group as group_module
from ibbmaster.api.group import UndecodableValue
from ibbmaster.errors import EventError, PositionPurgedError, UndecodableError
from ibbmaster.replication.event.rows.encoding import written_table
from tests.table_versions import without_statements
from tests.written_log import inserted, write_log

ROOT = Path(__file__).parents[2]
IBB = ROOT / "fixtures" / "ibb"
CLASSIC = ROOT / "fixtures" / "classic" / "10.11"
LOGS = {
    "ibb files": IBB / "domains",
    "groups out of band": IBB / "large-groups",
    "traditional files": CLASSIC / "domains",
}


def contents(group):
    return [event.data for event in group.events()]


@pytest.fixture(params=[1 << 20, 0], ids=["kept", "read again"])
def keeping(request, monkeypatch):
    monkeypatch.setattr(group_module, "KEPT_BYTES_MAX", request.param)


@pytest.mark.parametrize("path", LOGS.values(), ids=LOGS)
def test_a_group_may_be_asked_again_and_after_the_log_was_read_on(path, keeping):
    with ibbmaster.open(path) as log:
        at_once = [contents(group) for group in log.groups()]
        later = list(log.groups())
        assert [contents(group) for group in reversed(later)] == at_once[::-1]
        assert [contents(group) for group in later] == at_once
        assert [len(group) for group in later] == list(map(len, at_once))
        assert [len(group) for group in log.groups()] == list(map(len, at_once))


@pytest.mark.parametrize("path", LOGS.values(), ids=LOGS)
def test_events_begin_with_the_gtid_and_places_go_on(path):
    with ibbmaster.open(path) as log:
        end = ibbmaster.LogPosition(0, 0)
        for group in log:
            events = list(group.events())
            assert events[0].type == "GTID"
            assert str(group.gtid) in events[0].describe()
            assert [event.header.size for event in events] == [len(event.data) for event in events]
            assert [bytes(event.body) for event in events] == [event.data[19:] for event in events]
            assert group.timestamp == events[0].header.timestamp
            assert f"{group.gtid} at {log.files[group.start.file_no].name} " in repr(group)
            assert str(group.start) in repr(group)
            assert str(group.end).startswith(log.files[group.end.file_no].name)
            assert end <= group.start < group.end
            end = group.end


def test_events_that_are_half_read_when_the_log_goes_on_say_so(keeping):
    with ibbmaster.open(IBB / "domains") as log:
        groups = log.groups()
        first = next(groups)
        events = first.events()
        head = next(events)
        next(groups)
        with pytest.raises(ibbmaster.StoreError, match="the log was read on meanwhile"):
            list(events)
        assert next(first.events()) == head


def test_a_group_whose_file_is_gone_says_so(tmp_path, keeping):
    shutil.copytree(IBB / "types", tmp_path / "log")
    with ibbmaster.open(tmp_path / "log") as log:
        groups = list(log.groups())
        (tmp_path / "log" / "binlog-000000.ibb").unlink()
        with pytest.raises(PositionPurgedError, match=f"group {groups[0].gtid} at .* is no longer in the log"):
            len(groups[0])
        assert len(groups[-1]) > 1


def test_rows_come_by_the_names_of_their_columns():
    with ibbmaster.open(IBB / "xa-and-ddl") as log:
        changes = [(table.name, change) for group in log for table, change in group.rows()]
    parents = [change for table, change in changes if table == "shop.parent"]
    assert parents[0].kind == "insert"
    assert parents[0].before is None
    assert list(parents[0].after or ())[:2] == ["id", "name"]
    assert {change.kind for change in parents} <= {"insert", "update", "delete"}
    for change in parents:
        assert (change.before is None, change.after is None) == (change.kind == "insert", change.kind == "delete")


def test_a_column_that_an_image_leaves_out_is_not_there():
    with ibbmaster.open(CLASSIC.with_name("11.8") / "types-full_nodup") as log:
        found = [(table, change) for group in log.groups(until="0-1-60") for table, change in group.rows()]
    updates = [(table, change) for table, change in found if change.kind == "update"]
    assert any(len(change.before or ()) > len(change.after or ()) > 0 for _, change in updates)


@pytest.fixture
def half_readable(tmp_path):
    """A log whose table has a text that is none in the middle of one of its rows."""
    table = written_table("d.t", {"id": "int", "c": "varchar(9)", "n": "int"}, table_id=1, primary_key=["id"])
    rows = [event.replace(b"zz", b"\xff\xfe") for event in inserted(table, [1, "ok", 10], [2, "zz", 20])]
    create = "CREATE TABLE t (id INT PRIMARY KEY, c VARCHAR(9) CHARACTER SET utf8mb4, n INT)"
    return write_log(tmp_path / "log", create, [rows])


def test_a_value_that_cannot_be_read_refuses_itself_and_neither_its_row_nor_its_group(half_readable):
    with ibbmaster.open(half_readable) as log:
        first, second = [change.after for group in log.groups() for _, change in group.rows()]
    assert first == {"id": 1, "c": "ok", "n": 10}
    refused = second.pop("c")

    assert second == {"id": 2, "n": 20}
    assert (type(refused), refused.data) == (UndecodableValue, b"\xff\xfe")
    assert repr(refused).startswith("<undecodable: d.t column c of type VARCHAR(36): 'utf-8' codec can't decode")
    for take in (str, bytes, "{}".format):
        with pytest.raises(UndecodableError, match=r"d\.t column c .*\(in group 0-1-2\)"):
            take(refused)
    with pytest.raises(TypeError):
        json.dumps(refused)


@pytest.mark.parametrize("has_kernels", [True, False])
def test_columns_beside_one_that_cannot_be_read_are_given_as_arrow(half_readable, monkeypatch, has_kernels):
    if not has_kernels:
        monkeypatch.setattr("ibbmaster.tables.arrow.reading.load_kernels", lambda options: None)
    with ibbmaster.open(half_readable) as log:
        assert log.to_arrow(table="d.t", columns=["id", "n"]).to_pydict() == {"id": [1, 2], "n": [10, 20]}
        with pytest.raises(EventError, match=r"column c of type VARCHAR"):
            log.to_arrow(table="d.t")


def test_values_of_which_nobody_knows_how_long_they_are_refuse_the_group():
    groups = ibbmaster.open(IBB / "types").groups()
    with pytest.raises(UndecodableError, match=r"t6 .*runs over the end of the rows \(in group 0-1-\d+\)"):
        list(itertools.chain.from_iterable(group.rows() for group in groups))


def test_columns_without_names_have_those_of_the_statements_in_front_of_them():
    with ibbmaster.open(CLASSIC / "domains-none") as log:
        _, change = next(found for group in log for found in group.rows())
        assert list(change.after) == ["id", "v"]


def test_columns_that_nothing_names_are_numbered_unless_a_schema_names_them(tmp_path):
    path = without_statements(CLASSIC / "domains-none", tmp_path / "log")
    with ibbmaster.open(path) as log:
        table, change = next(found for group in log for found in group.rows())
        assert list(change.after or ()) == [f"@{number}" for number in range(1, len(table.columns) + 1)]
    columns = ", ".join(f"c{number} INT" for number in range(len(table.columns)))
    with ibbmaster.open(path, schema=f"CREATE TABLE {table.name} ({columns});") as log:
        try:
            _, named = next(found for group in log for found in group.rows())
        except ibbmaster.ConfigurationError:
            return  # the table has other types: then that is said
        assert list(named.after or ()) == [f"c{number}" for number in range(len(table.columns))]


@pytest.mark.parametrize("path", LOGS.values(), ids=LOGS)
def test_an_event_in_a_list_is_one_short_line(path):
    with ibbmaster.open(path) as log:
        events = [event for group in log for event in group.events()]
    for event in events:
        assert repr(event).startswith(f"<Event {event.type}, {len(event.data)} bytes")
        assert len(repr(event)) < 130
        assert "\\x" not in repr(event)
    assert any(": GTID" in repr(event) or "GTID" in repr(event) for event in events)


def test_a_damaged_event_can_be_shown_too():
    with ibbmaster.open(IBB / "domains") as log:
        data = next(event.data for group in log for event in group.events() if event.type == "TABLE_MAP")
    for size in range(19, len(data)):
        assert repr(ibbmaster.Event(data[:size])).startswith(f"<Event TABLE_MAP, {size} bytes")
