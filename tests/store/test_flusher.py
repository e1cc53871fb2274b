"""The next file is made beside any number of others, and again where an attempt got no further."""

from __future__ import annotations

import pytest

from ibbmaster.gtid import Gtid
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.store.background import Background
from ibbmaster.store.binlog_store import BinlogStore
from ibbmaster.store.flusher import make_file
from ibbmaster.store.store_options import StoreOptions
from ibbmaster.store.writer import BinlogWriter
from ibbmaster.testing.events import make_event, make_gtid_event
from ibbmaster.testing.simulated_disk import SimulatedDisk

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
