import pytest

from ibbmaster.errors import DamageError, DiskFullError, FailedError, StoreError
from ibbmaster.logs.store.redo_log import FIRST_LSN, SEGMENT_BYTES_MIN, RedoLog, scan_redo
from ibbmaster.logs.store.redo_names import SEGMENT_NAMES, has_redo_log, holds_log
from ibbmaster.logs.store.redo_record import RECORDS_START, Checkpoint
from ibbmaster.position import LogPosition
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.disk.object_directory import ObjectDirectory
from ibbmaster.storage.ibb.appender import PageChange
from tests.machinery.disk_failure import DiskFailure
from tests.machinery.simulated_disk import SimulatedDisk

EMPTY = Checkpoint(lsn=FIRST_LSN, end=None, xa=())


def change(size=1000, fill=1):
    return PageChange(0, 1, 0, bytes([fill]) * size)


@pytest.fixture
def log(disk):
    log = RedoLog(disk, segment_bytes=SEGMENT_BYTES_MIN)
    log.begin(EMPTY)
    return log


def room(log, size=1000):
    return log.make_room(size + 100, reserve=200, xa=tuple)


def checkpoint(log):
    log.append_checkpoint(Checkpoint(lsn=log.end_lsn, end=LogPosition.on_page(0, 2), xa=()))
    log.sync(log.end_lsn)


def fill(log):
    count = 0
    while room(log):
        log.append([change(fill=count % 251)])
        count += 1
        assert count < 1000, "a segment is used again"
    return count


def test_nothing_is_written_before_it_begins(disk):
    RedoLog(disk, segment_bytes=SEGMENT_BYTES_MIN)
    assert disk.list() == []
    assert scan_redo(disk) is None


def test_what_was_synced_survives_and_what_was_not_may_not(disk, log):
    durable = log.append([change(fill=1)])
    log.sync(durable)
    log.append([change(fill=2)])
    found = scan_redo(SimulatedDisk(disk.files()))
    assert [record.items()[0].data[0] for record in found.notes] == [1]
    assert found.end_lsn == durable


# As mysql-test/suite/binlog_in_engine/innodb_log_check.test
def test_a_segment_is_not_used_again_before_a_checkpoint_covers_it(log):
    assert fill(log) > 2 * 50  # both segments
    assert log.make_room(1000, reserve=200, xa=tuple) is False
    log.append_checkpoint(Checkpoint(lsn=log.end_lsn, end=LogPosition.on_page(0, 2), xa=()))
    assert not room(log), "a checkpoint counts once it is durable"
    log.sync(log.end_lsn)
    assert room(log)


def test_a_scan_gives_what_is_behind_the_checkpoint(disk, log):
    log.append([change(fill=1)])
    middle = log.end_lsn
    log.append([change(fill=2)])
    log.append_checkpoint(Checkpoint(lsn=middle, end=LogPosition.on_page(0, 1, 1000), xa=()))
    log.append([change(fill=3)])
    log.sync(log.end_lsn)
    found = scan_redo(disk)
    assert [record.items()[0].data[0] for record in found.records if not record.is_checkpoint] == [2, 3]
    assert [record.items()[0].data[0] for record in found.notes] == [3]
    assert found.checkpoint == Checkpoint(lsn=middle, end=LogPosition.on_page(0, 1, 1000), xa=())


def test_an_earlier_place_to_replay_from_gives_more(disk, log):
    log.append([change(fill=1)])
    checkpoint(log)
    found = scan_redo(disk, replay_from=FIRST_LSN)
    assert [record.items()[0] for record in found.records if not record.is_checkpoint] == [change(fill=1)]
    assert [record for record in scan_redo(disk).records if not record.is_checkpoint] == []


def test_a_place_to_replay_from_that_was_written_over_is_refused(disk, log):
    fill(log)
    checkpoint(log)
    fill(log)
    log.sync(log.end_lsn)
    with pytest.raises(DamageError, match=f"changes from LSN {FIRST_LSN} on are needed"):
        scan_redo(disk, replay_from=FIRST_LSN)


def test_another_life_goes_on_where_the_last_ended_and_is_told_from_what_it_left(disk, log):
    kept = log.append([change(fill=1)])
    log.sync(kept)
    files = disk.files()
    log.append([change(fill=2)])
    log.sync(log.end_lsn)
    left_over = disk.files()  # the same place holds a record of the first life, if the second writes less
    name = SEGMENT_NAMES[0]
    start = RECORDS_START + kept - FIRST_LSN
    again = SimulatedDisk(files)
    later = RedoLog(again, segment_bytes=SEGMENT_BYTES_MIN, scan=scan_redo(again))
    later.begin(Checkpoint(lsn=later.end_lsn, end=LogPosition.on_page(0, 1, 1000), xa=()))
    data = bytearray(again.files()[name])
    end = RECORDS_START + later.end_lsn - FIRST_LSN
    data[end : end + 2000] = left_over[name][start : start + 2000]
    again.write(name, 0, data)
    assert scan_redo(again).end_lsn == later.end_lsn
    assert scan_redo(again).life == 2


def test_a_segment_that_is_needed_and_damaged_is_refused_by_name(disk, log):
    fill(log)
    log.sync(log.end_lsn)
    data = bytearray(disk.files()[SEGMENT_NAMES[0]])
    data[RECORDS_START + 60] ^= 1
    disk.write(SEGMENT_NAMES[0], 0, data)
    with pytest.raises(DamageError, match=SEGMENT_NAMES[0]):
        scan_redo(disk)


def test_no_redo_log_and_not_empty_either_is_refused(disk, log):
    for name in SEGMENT_NAMES:
        disk.write(name, 0, b"\xff" * 100)
    with pytest.raises(DamageError, match="no redo log, and not empty either"):
        scan_redo(disk)


def test_an_error_of_the_disk_is_final(disk, log):
    log.append([change()])
    disk.fail = DiskFailure(("write",), 1, 1, StoreError)
    with pytest.raises(StoreError, match="planted"):
        log.sync(log.end_lsn)
    with pytest.raises(FailedError, match="planted"):
        log.sync(log.end_lsn)
    assert log.durable_lsn < log.end_lsn


def test_a_full_disk_is_no_error_and_the_same_bytes_are_written_later(disk, log):
    log.append([change(fill=9)])
    disk.fail = DiskFailure(("write",), 1, 1, DiskFullError)
    with pytest.raises(DiskFullError):
        log.sync(log.end_lsn)
    log.sync(log.end_lsn)
    assert scan_redo(disk).notes[-1].items() == [change(fill=9)]


def test_a_record_larger_than_a_segment_makes_the_next_segment_larger(disk, log):
    size = 3 * SEGMENT_BYTES_MIN
    while not room(log, size):
        checkpoint(log)
    log.append([change(size)])
    log.sync(log.end_lsn)
    assert scan_redo(disk).notes[-1].items() == [change(size)]


@pytest.mark.parametrize("name", SEGMENT_NAMES)
def test_one_file_of_a_redo_log_is_one_and_a_log_is_there_if_a_file_or_a_redo_log_is(tmp_path, name):
    for stray in ("ibbmaster-durable-end", "notes.txt"):
        (tmp_path / stray).touch()
    assert not holds_log(RealDisk(tmp_path))
    (tmp_path / "binlog-000000.ibb").touch()
    assert (holds_log(RealDisk(tmp_path)), has_redo_log(RealDisk(tmp_path))) == (True, False)
    (tmp_path / name).touch()
    (tmp_path / "binlog-000000.ibb").unlink()
    assert (holds_log(RealDisk(tmp_path)), has_redo_log(RealDisk(tmp_path))) == (True, True)


@pytest.mark.parametrize("name", SEGMENT_NAMES)
def test_an_object_store_is_asked_for_the_two_names_unless_they_are_known(object_store, name):
    url = object_store.new_place()
    object_store.put(f"{url}/binlog-000000.ibb", b"")
    object_store.requests.clear()
    assert not has_redo_log(ObjectDirectory(url))
    assert [one.method for one in object_store.requests] == ["HEAD", "HEAD"]
    object_store.put(f"{url}/{name}", b"")
    directory = ObjectDirectory(url)
    directory.list()
    object_store.requests.clear()
    assert has_redo_log(directory)
    assert holds_log(directory)
    assert not object_store.requests
