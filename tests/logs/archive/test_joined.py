"""A log and its archive are one log to a reader that begins before the log."""

import threading
from contextlib import closing

import pytest

import ibbmaster
from ibbmaster.errors import PositionPurgedError
from ibbmaster.gtid import GtidPosition
from ibbmaster.logs.archive import manifest
from ibbmaster.logs.archive.archived import ArchivedBinlog, SegmentStore
from ibbmaster.logs.archive.archiver import Archiver
from ibbmaster.logs.archive.joined import JoinedLog
from ibbmaster.logs.archive.keeping import expect_head
from ibbmaster.logs.capture.client import (
    PrimaryAddress,
    begin_dump,
    connected,
    dumped,
    groups_between,
    receive,
    stream_of,
)
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.replication.event.types import EventType
from tests.machinery.objects import MemoryObjects

PURGED, LAST = 60, 100


def gtid_of(number):
    return f"{number % 3}-{1 + number % 2}-{number}"


def append(log, first, end):
    for number in range(first, end):
        log.append(gtid_of(number), f"INSERT INTO shop.t VALUES ({number})", timestamp=1_800_000_000 + number)


@pytest.fixture
def objects(monkeypatch):
    monkeypatch.setattr(manifest, "PAGE_ENTRIES", 4)
    return MemoryObjects()


@pytest.fixture
def log(tmp_path, objects):
    """A log that has purged its first groups, which are archived."""
    with ibbmaster.create(tmp_path / "log", durability="write") as log:
        append(log, 1, PURGED + 1)
        log.flush()
        append(log, PURGED + 1, LAST + 1)
        log.sync()
        Archiver(log.engine, objects, PROFILES["classic-11.8"], segment_bytes=1500).run(until_end=True)
        log.purge(to="binlog-000001.ibb")
        yield log


def joined(log, objects):
    return JoinedLog(log.store, lambda: ArchivedBinlog(SegmentStore(objects, expect_head(objects)[0])))


def read(groups):
    return [str(group.gtid) for group in iter(groups.next_group, None) if group.gtid is not None]


def position_at(number):
    """That of a replica which has the first groups."""
    return GtidPosition.parse(",".join(gtid_of(one) for one in range(max(number - 2, 1), number + 1)))


def test_a_reader_gets_each_group_once_wherever_it_begins(log, objects):
    whole = [gtid_of(number) for number in range(1, LAST + 1)]
    for number in range(LAST + 1):
        one = joined(log, objects)
        plan = one.seek(position_at(number))
        with closing(one.groups(plan)) as groups:
            found = read(groups)
            assert groups.next_group() is None
        assert found == whole[len(whole) - len(found) :]
        assert len(found) >= LAST - number
        assert one.file_name(plan.position.file_no).startswith("archive." if number < PURGED else "binlog-")


def test_a_reader_that_came_from_the_archive_gets_what_comes(log, objects):
    one = joined(log, objects)
    with closing(one.groups(one.seek(GtidPosition()))) as groups:
        read(groups)
        append(log, LAST + 1, LAST + 3)
        log.sync()
        assert read(groups) == [gtid_of(LAST + 1), gtid_of(LAST + 2)]


def test_positions_go_on_from_the_archive_to_the_log(log, objects):
    one = joined(log, objects)
    with closing(one.groups(one.seek(GtidPosition()))) as groups:
        places = [groups.position]
        for group in iter(groups.next_group, None):
            assert group.start >= places[-1] or group.start.file_no != places[-1].file_no
            assert group.end == groups.position
            places.append(groups.position)
    assert places == sorted(places)
    assert places[0].file_no < 0 <= places[-1].file_no


def test_only_segments_before_the_log_are_fetched(log, objects):
    one = joined(log, objects)
    objects.calls.clear()
    with closing(one.groups(one.seek(GtidPosition()))) as groups:
        read(groups)
    fetched = [name for what, name in objects.calls if manifest.segment_number(name)]
    assert len(fetched) < len([name for name in objects.objects if manifest.segment_number(name)])


def test_an_archive_that_ends_before_the_log_begins_is_refused_with_both(log, objects, tmp_path):
    with ibbmaster.create(tmp_path / "other") as other:
        append(other, 1, 20)
        there = MemoryObjects()
        Archiver(other.engine, there, PROFILES["classic-11.8"]).run(until_end=True)
    with pytest.raises(
        PositionPurgedError, match=r"the archive ends at '.*', before that: groups between are in neither"
    ):
        joined(log, there).seek(GtidPosition())


def test_without_an_archive_the_log_says_what_it_lacks(log):
    with pytest.raises(PositionPurgedError, match="the replica has nothing"):
        JoinedLog(log.store, lambda: None).seek(GtidPosition())
    with pytest.raises(BlockingIOError):
        JoinedLog(log.store, lambda: None).seek(GtidPosition(), only_cached=True)


def address_of(primary):
    given = {"user": "repl", "password": "secret", "uses_tls": False, "server_id": 9}
    return PrimaryAddress(host=primary.host, port=primary.port, **given)


def test_heartbeats_go_out_while_a_segment_is_fetched(log, objects):
    log.served = joined(log, objects)
    may_answer, asked = threading.Event(), []

    def wait():
        if manifest.segment_number(objects.name_asked):
            asked.append(objects.name_asked)
            assert may_answer.wait(60)

    objects.wait = wait
    with ibbmaster.serve(log, password="secret", tls="off") as primary, connected(address_of(primary)) as connection:
        begin_dump(connection, 9, GtidPosition(), None, with_checksums=False, heartbeat_s=1)
        found, stream = [], stream_of(connection)
        for header, _, _ in dumped(lambda: receive(stream)):
            found.append(header.event_type)
            if found.count(EventType.HEARTBEAT) == 2:
                assert asked
                may_answer.set()
            if found.count(EventType.GTID) == LAST:
                break
    assert EventType.HEARTBEAT not in found[found.index(EventType.GTID) :]


def test_a_dump_through_the_port_has_every_group_once(log, objects):
    log.served = joined(log, objects)
    with ibbmaster.serve(log, password="secret") as primary:
        for number in (0, 1, 17, PURGED - 1, PURGED, PURGED + 7, LAST):
            found = groups_between(address_of(primary), position_at(number), log.position)
            assert [str(group.gtid) for group in found] == [gtid_of(one) for one in range(number + 1, LAST + 1)]
