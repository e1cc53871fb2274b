import threading

import pytest

from ibbmaster.errors import StoreError
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.logs.store.background import Background
from ibbmaster.logs.store.backup import BLOCK_SIZE, back_up
from ibbmaster.logs.store.redo_names import SEGMENT_NAMES
from ibbmaster.logs.store.store_options import StoreOptions
from ibbmaster.storage.disk.local import RealDisk
from tests.machinery.disk import MemoryDisk
from tests.machinery.events import numbers_in
from tests.machinery.stores import faults_at, feed, new_store

OPTIONS = StoreOptions(max_file_bytes=1 << 18, state_interval_bytes=1 << 16, redo_bytes=16 << 20)


def new_disk(directory):
    directory.mkdir()
    return RealDisk(directory)


# As mysql-test/suite/binlog_in_engine/mariabackup_slave_provision_nolock.test
def test_a_copy_taken_under_load_starts_and_has_no_hole(tmp_path):
    source = new_disk(tmp_path / "source")
    stop, fed = threading.Event(), 0
    with new_store(source, OPTIONS) as store, Background(store, period_s=0.05):

        def feed_on():
            nonlocal fed
            while not stop.is_set():
                feed(store, [fed + 1], 700 if fed % 100 else 90_000)
                fed += 1

        thread = threading.Thread(target=feed_on)
        thread.start()
        try:
            while not len(store.state()):  # a busy machine may have fed nothing yet
                store.wait_for_growth(1.0)
            for number in range(6):
                before = store.state()
                target = new_disk(tmp_path / f"copy{number}")
                report = back_up(RealDisk(tmp_path / "source"), target)
                assert report.gtid_state.latest(0).seq_no >= before.latest(0).seq_no
                with new_store(target, OPTIONS) as copy:
                    assert numbers_in(copy) == list(range(1, report.gtid_state.latest(0).seq_no + 1))
                assert faults_at(target) == []
        finally:
            stop.set()
            thread.join()


def test_a_copy_is_taken_while_the_log_is_reset(tmp_path):
    left = [GtidState.parse("0-1-5000")]

    def reset(size):
        if left:
            store.reset(left.pop())
            feed(store, 5001)
            store.sync()

    with new_store(new_disk(tmp_path / "source"), OPTIONS) as store:
        feed(store, range(1, 1000))
        target = new_disk(tmp_path / "copy")
        back_up(RealDisk(tmp_path / "source"), target, progress=reset)
    with new_store(target, OPTIONS) as copy:
        assert (copy.state(), numbers_in(copy)) == (GtidState.parse("0-1-5001"), [5001])


def test_files_whose_pages_were_not_written_yet_are_copied_again():
    """The redo log of the first copy had them, and has come round when it is copied."""
    source, target, changes = MemoryDisk(), MemoryDisk(), []

    def read(name, offset, size):
        if changes and size == BLOCK_SIZE and name in SEGMENT_NAMES:  # all files but the redo log were copied
            changes.pop()()
        return MemoryDisk.read(source, name, offset, size)

    with new_store(source, OPTIONS, max_file_bytes=1 << 17, redo_bytes=1 << 20) as store:
        for seq_no in range(1, 700):
            feed(store, [seq_no])
            store.prepare_next_file()  # else a checkpoint makes the room for it

        def come_round():
            store.checkpoint()
            feed(store, range(700, 3500))

        source.read = read
        changes.append(come_round)
        report = back_up(source, target)
    assert not changes
    with new_store(target, OPTIONS) as copy:
        assert numbers_in(copy) == list(range(1, report.gtid_state.latest(0).seq_no + 1))


def test_a_copy_of_a_log_without_redo_is_a_copy_in_an_empty_directory(long_log):
    target = MemoryDisk()
    report = back_up(long_log.disk, target)
    assert report.lsn == 0
    assert all(target.files[name] == long_log.disk.files[name] for name in report.files[:2])
    with new_store(target) as copy:
        assert copy.seek(GtidPosition()).position.file_no == 0
    with pytest.raises(StoreError, match="not empty"):
        back_up(long_log.disk, MemoryDisk({"anything": b""}))


def test_a_next_file_that_was_copied_while_it_was_made_is_as_large_in_the_copy_as_the_others():
    source, target = MemoryDisk(), MemoryDisk()
    with new_store(source, OPTIONS) as store:
        feed(store, [1])
        store.prepare_next_file()
        source.truncate("binlog-000001.ibb", 0)
        back_up(source, target)
    assert {len(target.files[f"binlog-00000{number}.ibb"]) for number in range(2)} == {OPTIONS.max_file_bytes}
