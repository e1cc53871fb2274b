"""The next file is made beside any number of others, and again where an attempt got no further."""

from __future__ import annotations

import pytest

from ibbmaster.errors import DiskFullError, FailedError, StoreError
from ibbmaster.gtid import Gtid
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.store.background import Background
from ibbmaster.store.binlog_store import BinlogStore
from ibbmaster.store.flusher import make_file
from ibbmaster.store.store_options import StoreOptions
from ibbmaster.store.writer import BinlogWriter
from tests.machinery.disk_failure import DiskFailure
from tests.machinery.events import make_event, make_gtid_event
from tests.machinery.simulated_disk import SimulatedDisk

SMALL = {"max_file_bytes": 4 * PAGE_SIZE, "state_interval_bytes": PAGE_SIZE}


class CountingDisk(SimulatedDisk):
    """Counts what costs more the more files there are."""

    lists = 0

    def list(self):
        self.lists += 1
        return super().list()


def feed(write, seq_nos):
    for seq_no in seq_nos:
        gtid = Gtid(domain_id=0, server_id=1, seq_no=seq_no)
        write(gtid, make_gtid_event(gtid), [make_event(160, 1, bytes(3000))])


def test_a_store_begins_files_without_a_look_at_those_there_are():
    disk = CountingDisk()
    with BinlogStore(disk, StoreOptions(**SMALL)) as store, Background(store):
        feed(store.write_direct, range(1, 20))
        before, lists = store.status().active_file, disk.lists
        feed(store.write_direct, range(20, 200))
        assert store.status().active_file > before
        assert disk.lists == lists


def test_an_import_begins_files_without_a_look_at_those_there_are():
    disk = CountingDisk()
    with BinlogWriter(disk, **SMALL) as writer:
        feed(writer.write_group, range(1, 20))
        before, lists = writer.end, disk.lists
        feed(writer.write_group, range(20, 200))
        assert writer.end[0] > before[0] + 2
        assert disk.lists == lists


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_file_that_is_there_keeps_a_larger_size_and_grows_from_a_smaller_one(is_sparse):
    disk = SimulatedDisk()
    assert make_file(disk, 7, 4, is_sparse=is_sparse) == (4, True)
    assert make_file(disk, 7, 4, is_sparse=is_sparse) == (4, False)
    assert make_file(disk, 7, 3, is_sparse=is_sparse) == (4, False)
    assert make_file(disk, 7, 6, is_sparse=is_sparse) == (6, True)
    assert disk.size("binlog-000007.ibb") == 6 * PAGE_SIZE


class ThenAnother:
    """A lock behind whose owner another thread waits: it goes on as soon as the lock is given back."""

    def __init__(self, lock, another):
        self._lock, self._another = lock, another

    def __enter__(self):
        return self._lock.__enter__()

    def __exit__(self, *error):
        self._lock.__exit__(*error)
        if any(error):
            another, self._another = self._another, lambda: None
            another()


@pytest.mark.parametrize(
    ("verb", "call"), [("checkpoint", "sync"), ("write_pages", "write"), ("make_file", "create"), ("begin", "sync")]
)
def test_who_waited_while_a_sync_failed_does_not_sync_again(verb, call):
    """The second sync would succeed, and what the first has failed for would still not be on the disk."""
    disk = SimulatedDisk()
    store = BinlogStore(disk, StoreOptions(**SMALL))
    feed(store.write_direct, range(1, 9))
    flusher, outcomes = store._writer.flusher, []

    def fail(called, name):
        if called == call and name.startswith("binlog-"):
            raise StoreError("planted")

    def another():
        with pytest.raises(FailedError, match="planted"):
            flusher.checkpoint()
        outcomes.append(store.status().state)

    disk.fail = fail
    if verb == "begin":
        store._writer.redo.is_begun = False
    flusher.lock = ThenAnother(flusher.lock, another)
    with pytest.raises(StoreError, match="planted"):
        flusher.make_file(9, 4) if verb == "make_file" else getattr(flusher, verb)()
    assert outcomes == ["failed"]


def test_a_file_that_there_was_no_room_for_at_first_is_durable_once_it_is_made():
    disk = SimulatedDisk()
    store = BinlogStore(disk, StoreOptions(**SMALL))
    disk.fail = DiskFailure(("allocate",), 1, 1, DiskFullError)
    with pytest.raises(DiskFullError):
        store._writer.flusher.make_file(9, 4)
    store._writer.flusher.make_file(9, 4)
    assert len(disk.durable_files()["binlog-000009.ibb"]) == 4 * PAGE_SIZE
