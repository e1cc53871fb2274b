"""A log is archived whole and once, whatever fails, and its writer is not held up."""

import functools
import itertools
import threading

import pytest

import ibbmaster
from ibbmaster.errors import BusyError, ConfigurationError, PositionError, PositionPurgedError, StoreError
from ibbmaster.gtid import GtidState
from ibbmaster.logs.archive import archiver as archivers
from ibbmaster.logs.archive import manifest
from ibbmaster.logs.archive.archived import ArchivedBinlog, SegmentStore
from ibbmaster.logs.archive.archiver import Archiver
from ibbmaster.logs.archive.keeping import all_segments, expect_head
from ibbmaster.logs.archive.upkeep import faults
from ibbmaster.logs.log.fault import Totals
from ibbmaster.logs.log.interface import groups_from
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.storage.disk.object_store import RefusalError
from ibbmaster.storage.disk.whole_objects import LocalObjects
from tests.machinery.objects import KilledError, MemoryObjects

PROFILE = PROFILES["classic-11.8"]
GROUPS = 200
SEGMENT_BYTES = 7000


@pytest.fixture(autouse=True)
def in_no_time(monkeypatch):
    monkeypatch.setattr(archivers, "RETRY_S", (0.0,))
    monkeypatch.setattr(archivers, "LOOK_S", 0.01)
    monkeypatch.setattr(manifest, "PAGE_ENTRIES", 2)


@pytest.fixture
def objects():
    return MemoryObjects()


def statement(number):
    return f"INSERT INTO shop.t VALUES ({number}, '{'x' * (number % 90)}')"


def append(log, first, end):
    for number in range(first, end):
        log.append(f"{number % 2}-1-{number}", statement(number), timestamp=1_800_000_000 + number)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    with ibbmaster.create(tmp_path_factory.mktemp("logs") / "log", durability="write") as log:
        append(log, 1, GROUPS + 1)
        log.sync()
        yield log


def archiver_of(log, objects, **options):
    return Archiver(log.engine, objects, PROFILE, **({"segment_bytes": SEGMENT_BYTES} | options))


def archive(log, objects, **options):
    archiver = archiver_of(log, objects, **options)
    archiver.run(until_end=True)
    return archiver


def archive_patiently(log, objects):
    """As `serve` does: in a thread, which goes on after errors."""
    archiver = archiver_of(log, objects)
    archiver.start()
    archiver.stop()
    assert archiver.problem is None
    return archiver


def content(engine):
    """GTID and bytes of each group."""
    return [
        (str(group.gtid), bytes(group.gtid_event), b"".join(map(bytes, group.body)))
        for group in groups_from(engine, engine.start_of_file())
        if group.gtid is not None
    ]


def archived(objects):
    """The groups of an archive, read as a log."""
    return content(ArchivedBinlog(SegmentStore(objects, expect_head(objects)[0])))


def expect_sound(objects):
    assert [str(fault) for fault in faults(objects, Totals()) if fault.is_damage] == []


def expect_all_named_to_be_there(objects):
    if manifest.HEAD_NAME in objects.objects:
        head = manifest.decode_head(objects.objects[manifest.HEAD_NAME], "")
        named = [*head.pages, *(one for one in head.entries if one.number >= head.first)]
        for page in head.pages:
            entries = manifest.decode_page(objects.objects[page.name], page, "")
            named += [one for one in entries if one.number >= head.first]
        assert {one.name for one in named} <= objects.objects.keys()


def test_an_archive_has_each_group_of_the_log_once_in_segments_of_the_given_size(log, objects):
    assert archive(log, objects).groups == GROUPS
    segments = list(all_segments(objects, expect_head(objects)[0]))
    assert len(segments) > 2 * manifest.PAGE_ENTRIES
    assert all(SEGMENT_BYTES <= one.size < SEGMENT_BYTES + 1000 for one in segments[:-1])
    assert [one.before for one in segments[1:]] == [one.after for one in segments[:-1]]
    assert archived(objects) == content(log.engine)
    expect_sound(objects)


def test_another_run_adds_nothing_but_that_it_looked(log, objects):
    archive(log, objects)
    before = dict(objects.objects)
    objects.calls.clear()
    assert archive(log, objects).groups == 0
    assert [call for call in objects.calls if call[0] != "get"] == [("exchange", manifest.HEAD_NAME)]
    changed = {name for name, data in objects.objects.items() if before.get(name) != data}
    assert changed <= {manifest.HEAD_NAME}


@pytest.mark.parametrize("is_lost", [False, True], ids=["refused", "answer lost"])
def test_each_request_fails_once_and_nothing_is_lost_or_named_that_is_not_there(log, is_lost):
    whole = content(log.engine)
    count = 0
    for count in itertools.count():
        objects = MemoryObjects()
        objects.fails_at, objects.is_lost = count, is_lost
        objects.on_change = functools.partial(expect_all_named_to_be_there, objects)
        archive_patiently(log, objects)
        objects.fails_at = None
        assert archived(objects) == whole, count
        if len(objects.calls) <= count:
            break
    expect_sound(objects)
    print(f"{count} requests failed, one in each run")
    assert count > 14


@pytest.mark.parametrize("is_lost", [False, True], ids=["before it", "after it"])
def test_a_run_that_is_killed_at_a_request_is_gone_on_with(log, is_lost):
    whole = content(log.engine)
    for count in itertools.count():
        objects = MemoryObjects()
        objects.fails_at, objects.is_lost, objects.kills = count, is_lost, True
        objects.on_change = functools.partial(expect_all_named_to_be_there, objects)
        try:
            archive(log, objects)
        except KilledError:
            objects.fails_at = None
            archive(log, objects, segment_bytes=3 * SEGMENT_BYTES // 2)  # with other ends: what was left is not named
            assert archived(objects) == whole, count
        else:
            break
    print(f"{count} kills")
    assert count > 14


def test_a_dead_store_holds_no_append_up_and_is_named_once(tmp_path, objects, caplog):
    objects.is_dead = True
    with ibbmaster.create(tmp_path / "log") as log:
        archiver = archiver_of(log, objects)
        archiver.start()
        append(log, 1, 50)
        assert len(content(log.engine)) == 49
        assert archiver.groups == 0
        assert len([one for one in caplog.messages if "the archive is late, up to " in one]) == 1
        objects.is_dead = False
        archiver.stop()
        assert archived(objects) == content(log.engine)
    assert len([one for one in caplog.messages if "late" in one]) == 1


def test_a_slow_store_holds_no_append_up(tmp_path, objects):
    """Whose answers all wait until the log has been written."""
    is_written = threading.Event()
    asked = threading.Event()

    def wait():
        if threading.current_thread() is not threading.main_thread():
            asked.set()
            assert is_written.wait(60)

    objects.wait = wait
    with ibbmaster.create(tmp_path / "log", durability="write") as log:
        archiver = archiver_of(log, objects, segment_s=0.0)
        archiver.start()
        append(log, 1, 2)
        log.sync()
        assert asked.wait(60)
        append(log, 2, 200)
        log.sync()
        is_written.set()
        archiver.stop()
        assert archived(objects) == content(log.engine)


def test_a_stop_does_not_wait_for_a_dead_store_and_the_next_start_goes_on(tmp_path, objects, caplog):
    with ibbmaster.create(tmp_path / "log") as log:
        append(log, 1, 50)
        objects.is_dead = True
        archiver = archiver_of(log, objects)
        archiver.start()
        archiver.stop(0.05)
        assert "are not archived yet: the next start does that" in caplog.text
        objects.is_dead = False
        archive(log, objects)
        assert archived(objects) == content(log.engine)


def test_a_store_that_refuses_for_a_while_and_is_well_at_the_end_gets_all(tmp_path, objects, monkeypatch):
    """The end does not wait for the next attempt, which is due in an hour."""
    monkeypatch.setattr(archivers, "RETRY_S", (0.01, 3600.0))
    is_refused = threading.Event()
    refusals = []

    def refuse():
        if threading.current_thread() is not threading.main_thread():
            refusals.append(1)
            if len(refusals) > 1:
                is_refused.set()
            raise RefusalError("the object store refuses access")

    objects.wait = refuse
    with ibbmaster.create(tmp_path / "log") as log:
        append(log, 1, 50)
        archiver = archiver_of(log, objects)
        archiver.start()
        assert is_refused.wait(60)
        objects.wait = lambda: None
        archiver.stop(60)
        assert archiver.problem is None
        assert archived(objects) == content(log.engine)


def test_what_is_not_archived_is_not_purged(tmp_path, objects):
    options = {
        "durability": "write",
        "max_file_bytes": 1 << 16,
        "state_interval_bytes": 1 << 15,
        "max_total_bytes": 1 << 16,
    }
    with ibbmaster.create(tmp_path / "log", replicas_needed_for_purge=0, has_background=False, **options) as log:
        archiver = archiver_of(log, objects)
        objects.is_dead = True
        archiver.start()
        append(log, 1, 3000)
        log.sync()
        log.store.purge_automatically(now=0.0)
        assert log.files[0].name == "binlog-000000.ibb"
        objects.is_dead = False
        archiver.stop()
        log.store.purge_automatically(now=0.0)
        assert log.files[0].name > "binlog-000000.ibb"
    expect_sound(objects)
    assert expect_head(objects)[0].end == "1-1-2999,0-1-2998"


def test_a_second_writer_is_refused(log, tmp_path, objects):
    first = archiver_of(log, objects)
    first._open()
    archive(log, objects)
    with pytest.raises(
        BusyError, match=r"another process writes this archive: it is at '.*', and this one left it at ''"
    ):
        first._keeper.note_checked(1.0)
    expect_sound(objects)


def test_an_object_of_another_writer_is_not_overwritten(log, objects):
    archive(log, objects)
    name = next(all_segments(objects, expect_head(objects)[0])).name
    others = MemoryObjects()
    archiver_of(log, others)._open()
    others.objects[name] = next(data for other, data in objects.objects.items() if other.startswith("00000002_"))
    with pytest.raises(
        BusyError, match="is there already: its content is not that of this log: another writer has put"
    ):
        archive(log, others)
    assert manifest.decode_head(others.objects[manifest.HEAD_NAME], "").last is None


def test_a_place_with_something_else_is_refused_and_left_as_it_is(log, objects):
    objects.objects["binlog-000000.ibb"] = b"of a log"
    with pytest.raises(ConfigurationError, match=r"memory has no archive\.json, and is not empty: it holds binlog-"):
        archive(log, objects)
    assert objects.objects == {"binlog-000000.ibb": b"of a log"}


def test_a_directory_of_another_log_is_refused_with_both_states(log, tmp_path, objects):
    archive(log, objects)
    before = dict(objects.objects)
    with ibbmaster.create(tmp_path / "other") as other:
        append(other, 1, 5)
        with pytest.raises(PositionError) as refused:
            archive(other, objects)
    assert str(refused.value).startswith(
        "memory holds another log, or more of it: the archive ends at '1-1-199,0-1-200', this directory at "
        "'1-1-3,0-1-4' (GTID "
    )
    assert str(refused.value).endswith("give a new URL, or a directory that begins with `--start 0-1-200,1-1-199`")
    assert objects.objects == before


def test_a_hole_where_the_archive_ends_is_another_log(tmp_path, objects):
    with ibbmaster.create(tmp_path / "one") as log:
        append(log, 1, 5)
        archive(log, objects)
    with ibbmaster.create(tmp_path / "other") as other:
        other.append("0-1-2", statement(2))
        other.append("1-1-3", statement(3))
        other.append("0-1-6", statement(6))
        with pytest.raises(PositionError, match="GTID 0-1-4 requested by the slave"):
            archive(other, objects)


def test_what_the_log_has_purged_is_refused_and_nothing_is_written(log, tmp_path, objects):
    with ibbmaster.create(tmp_path / "log", state="0-1-100,1-1-99") as later:
        append(later, 101, 105)
        archive(log, objects)
        before = dict(objects.objects)
        del before[manifest.HEAD_NAME]
    others = MemoryObjects()
    with ibbmaster.create(tmp_path / "first") as first:
        append(first, 1, 9)
        archive(first, others)
    before = dict(others.objects)
    with (
        ibbmaster.open(tmp_path / "log") as later,
        pytest.raises(PositionPurgedError, match="no longer has what follows"),
    ):
        archive(later, others)
    assert others.objects == before


def test_a_log_that_begins_at_the_end_of_the_archive_goes_on_with_it(tmp_path, objects):
    with ibbmaster.create(tmp_path / "one") as log:
        append(log, 1, 51)
        archive(log, objects)
    with ibbmaster.create(tmp_path / "two", state="0-1-50,1-1-49") as log:
        append(log, 51, 101)
        assert archive(log, objects).groups == 50
    assert [gtid for gtid, *_ in archived(objects)] == [f"{number % 2}-1-{number}" for number in range(1, 101)]
    expect_sound(objects)


def test_domains_in_another_order_are_archived_once(tmp_path, objects):
    with ibbmaster.create(tmp_path / "one") as log:
        for gtid in ("0-1-1", "1-1-1", "0-1-2"):
            log.append(gtid, statement(1))
        archive(log, objects)
    with ibbmaster.create(tmp_path / "two") as log:
        for gtid in ("1-1-1", "1-1-2", "0-1-1", "0-1-2", "0-1-3"):
            log.append(gtid, statement(1))
        archive(log, objects)
    assert [gtid for gtid, *_ in archived(objects)] == ["0-1-1", "1-1-1", "0-1-2", "1-1-2", "0-1-3"]


def test_a_group_larger_than_a_segment_is_in_one(tmp_path, objects):
    with ibbmaster.create(tmp_path / "log") as log:
        for number in range(1, 4):
            log.append(f"0-1-{number}", [f"INSERT INTO t VALUES ('{'y' * 30_000}')"] * 3)
        archive(log, objects)
        assert [one.groups for one in all_segments(objects, expect_head(objects)[0])] == [1, 1, 1]
        assert archived(objects) == content(log.engine)


def test_a_segment_is_put_after_its_seconds(tmp_path, objects):
    put = threading.Event()
    objects.on_change = lambda: len(objects.objects) > 1 and put.set()
    with ibbmaster.create(tmp_path / "log") as log:
        archiver = archiver_of(log, objects, segment_s=0.02)
        archiver.start()
        append(log, 1, 2)
        assert put.wait(60)
        archiver.stop()
        assert archiver.groups == 1


def test_a_full_temporary_disk_makes_it_late_and_loses_nothing(log, objects, monkeypatch, caplog):
    fails = iter([True, True])
    pack = archivers.pack

    def full(source, target):
        if next(fails, False):
            raise OSError(28, "No space left on device")
        return pack(source, target)

    monkeypatch.setattr(archivers, "pack", full)
    archive_patiently(log, objects)
    assert archived(objects) == content(log.engine)
    assert "No space left on device (TMPDIR names another directory)" in caplog.text


def test_an_empty_log_gets_an_archive_with_nothing_in_it(tmp_path, objects):
    with ibbmaster.create(tmp_path / "log") as log:
        assert archive(log, objects).groups == 0
    assert expect_head(objects)[0].last is None
    with pytest.raises(StoreError, match="nothing is archived yet"):
        archived(objects)


def test_a_restart_of_the_server_and_a_forgotten_domain_begin_a_segment(tmp_path, objects):
    with ibbmaster.create(tmp_path / "log") as log:
        log.append("7-1-1", statement(1))
        log.append("0-1-1", statement(1))
        log.flush()
        log.append("0-1-2", statement(1))
        log.purge(to="binlog-000001.ibb")
        log.flush(forget_domains=[7])
        log.append("0-1-3", statement(1))
        archive(log, objects)
    assert [(one.before, one.after) for one in expect_head(objects)[0].entries] == [
        ("7-1-1,0-1-1", "7-1-1,0-1-2"),
        ("0-1-2", "0-1-3"),
    ]
    expect_sound(objects)


def test_a_directory_of_traditional_files_is_archived_as_its_server_wrote_them(tmp_path, objects):
    from tests.built_logs import CLASSIC

    with ibbmaster.open(CLASSIC / "10.11" / "domains") as log:
        archiver = Archiver(log.engine, LocalObjects(tmp_path / "to"), PROFILES["classic-10.11"], segment_bytes=5000)
        archiver.run(until_end=True)
        with ibbmaster.open(tmp_path / "to") as there:
            assert content(there.engine) == content(log.engine)
            assert there.state == log.state == GtidState.parse(str(archiver.end))
