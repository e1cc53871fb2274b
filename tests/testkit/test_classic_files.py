import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from pymysqlreplication.event import MariadbGtidEvent

import ibbmaster
from ibbmaster.errors import ConfigurationError
from ibbmaster.replication.event.header import decode_event_header, has_valid_checksum
from ibbmaster.replication.event.types import EventFlag, EventType
from ibbmaster.testkit import FixturePrimary
from ibbmaster.testkit.fault import PlannedFault
from ibbmaster.testkit.fixture_logs import TORN
from tests.machinery.events import split_events


def without_place(data):
    """An event without what its place in a file adds."""
    return decode_event_header(data)._replace(size=0, log_pos=0), data[19:]


def events_of(log):
    return [(group.gtid, [without_place(event.data) for event in group.events()]) for group in log.groups()]


@pytest.mark.parametrize("profile", ["classic-10.11", "classic-11.8"])
def test_they_have_the_groups_of_the_log_and_its_files(tmp_path, profile, read_by_python):
    with FixturePrimary(profile=profile) as primary:
        table = primary.table("shop.t", id="int primary key", a="varchar(20)")
        table.insert(id=1)
        primary.log.flush()
        with primary.transaction(domain=3) as transaction:
            table.insert(id=2)
            transaction.prepare("x")
        primary.xa_commit("x")
        primary.log.flush()
        primary.ddl("DROP TABLE shop.t")
        expected = events_of(primary.log)
        paths = primary.save_classic(tmp_path / "files")
        version = primary.server_version
    assert [path.name for path in paths] == [f"binlog.00000{number}" for number in (1, 2, 3)]
    with ibbmaster.open(tmp_path / "files") as log, ibbmaster.serve(log, tls="off") as served:
        assert events_of(log) == expected
        assert log.stored.server_version == version
        assert list(log.verify()) == []
        assert read_by_python(served, MariadbGtidEvent) == ["0-1-1", "0-1-2", "0-1-3", "3-1-1", "0-1-4", "0-1-5"]


@pytest.mark.parametrize(("profile", "has_all"), [("classic-10.11", True), ("classic-11.8", False)])
def test_events_say_where_they_end_and_have_checksums(tmp_path, profile, has_all):
    with FixturePrimary(profile=profile) as primary:
        primary.table("shop.t", id="int primary key").insert(id=1)
        (path,) = primary.save_classic(tmp_path / "files")
    offset, ends = 4, []
    for event in split_events(path.read_bytes()[4:]):
        assert has_valid_checksum(event)
        offset += len(event)
        ends.append(decode_event_header(event).log_pos)
        assert ends[-1] in (offset, 0)
    head, ddl, end = 3 * [True], 4 * [True], [True, True]
    assert list(map(bool, ends)) == [*head, *ddl, True, *2 * [has_all], *end]  # TABLE_MAP and rows are inside


def test_an_empty_log_is_an_empty_file(tmp_path):
    with FixturePrimary(profile="classic-11.8") as primary:
        assert len(primary.save_classic(tmp_path / "files")) == 1
    with ibbmaster.open(tmp_path / "files") as log:
        assert events_of(log) == []


def test_what_cannot_be_written_is_refused(tmp_path):
    with (
        FixturePrimary() as primary,
        pytest.raises(ConfigurationError, match="a primary as 'engine' has no traditional"),
    ):
        primary.save_classic(tmp_path / "files")
    with FixturePrimary(profile="classic-11.8") as primary, pytest.raises(ConfigurationError, match="is there already"):
        primary.save_classic(tmp_path)


def gtids_in(directory):
    with ibbmaster.open(directory) as log:
        assert list(log.verify()) == []
        return [str(group.gtid) for group in log.groups()]


def test_files_have_each_group_when_its_commit_returns(tmp_path):
    live = tmp_path / "live"
    with FixturePrimary(profile="classic-11.8") as primary:
        assert [path.name for path in primary.save_classic(live, is_live=True)] == ["binlog.000001"]
        assert gtids_in(live) == []
        table = primary.table("shop.t", id="int primary key")
        assert gtids_in(live) == ["0-1-1", "0-1-2"]
        with primary.transaction(domain=3) as transaction:
            table.insert(id=1)
            assert gtids_in(live) == ["0-1-1", "0-1-2"]
            transaction.prepare("x")
        assert gtids_in(live) == ["0-1-1", "0-1-2", "3-1-1"]
        primary.xa_commit("x")
        assert gtids_in(live) == ["0-1-1", "0-1-2", "3-1-1", "0-1-3"]
        with ibbmaster.open(live) as log:
            assert events_of(log) == events_of(primary.log)


def test_a_flush_ends_a_file_and_begins_the_next(tmp_path):
    live, index = tmp_path / "live", tmp_path / "live" / "binlog.index"
    with FixturePrimary(profile="classic-11.8") as primary:
        (first,) = primary.save_classic(live, is_live=True)
        table = primary.table("shop.t", id="int primary key")
        assert index.read_text() == "./binlog.000001\n"
        assert in_use(first)
        primary.log.flush()
        assert index.read_text() == "./binlog.000001\n./binlog.000002\n"
        second = live / "binlog.000002"
        assert (in_use(first), in_use(second)) == (False, True)
        assert types_in(first)[-1] == EventType.ROTATE
        head = [EventType.FORMAT_DESCRIPTION, EventType.GTID_LIST, EventType.BINLOG_CHECKPOINT]
        assert types_in(second) == head
        table.insert(id=1)
        assert types_in(second)[len(head)] == EventType.GTID
    assert types_in(second)[-1] == EventType.STOP
    assert not in_use(second)


def types_in(path):
    return [event[4] for event in split_events(path.read_bytes()[4:])]


def in_use(path):
    return bool(decode_event_header(path.read_bytes(), 4).flags & EventFlag.IN_USE)


@pytest.mark.parametrize("torn", [None, *TORN])
def test_they_are_those_of_one_who_writes_them_at_the_end(tmp_path, torn):
    with FixturePrimary(profile="classic-11.8") as primary:
        primary.save_classic(tmp_path / "live", is_live=True)
        table = primary.table("shop.t", id="int primary key")
        table.insert(id=1)
        if torn is not None:
            primary.faults.act(PlannedFault.of({"at": 0.0, "action": "crash", "torn": torn}))
        table.insert(id=2)
        primary.log.flush()
        with contextlib.ExitStack() as stack:
            writers = [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(4)]
            for number in range(3, 40):
                writers[number % 4].submit(primary.ddl, f"CREATE DATABASE d{number}").add_done_callback(
                    lambda done: done.result()
                )
        primary.save_classic(tmp_path / "saved")
    live, saved = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("live", "saved"))
    assert live == saved
    assert len(gtids_in(tmp_path / "live")) == 4 + 37


def test_they_end_where_another_log_begins(tmp_path):
    live = tmp_path / "live"
    with FixturePrimary(profile="classic-11.8") as primary:
        (path,) = primary.save_classic(live, is_live=True)
        primary.ddl("CREATE DATABASE shop")
        primary.faults.act(PlannedFault.of({"at": 0.0, "action": "failover", "add": 1}))
        assert gtids_in(live) == ["0-1-1"]
        assert types_in(path)[-1] == EventType.STOP


def test_what_cannot_be_written_ends_them_and_fails_no_commit(tmp_path, caplog):
    with FixturePrimary(profile="classic-11.8") as primary:
        primary.save_classic(tmp_path / "live", is_live=True)
        (tmp_path / "live" / "binlog.000002").mkdir()  # in the way
        primary.log.flush()
        primary.ddl("CREATE DATABASE shop")
        assert str(primary.log.position) == "0-1-1"
    assert "binlog.000001 ends here" in caplog.text
