from dataclasses import replace

import pytest

from ibbmaster.errors import StoreError
from ibbmaster.logs.log.purge import PurgeRequest
from ibbmaster.logs.store import xa_table
from ibbmaster.logs.store.redo_record import XaEntry, XaState
from ibbmaster.logs.store.salvage import salvage
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.logs.store.xa_table import XaTable
from ibbmaster.storage.ibb.xa import Xid
from tests.built_logs import FIXTURES
from tests.machinery.disk import MemoryDisk
from tests.machinery.events import gtid_of, make_gtid_event
from tests.machinery.log_checker import check_log
from tests.machinery.stores import bytes_at, feed, new_store
from tests.machinery.workload import xid_bytes

SIZES = {"max_file_bytes": 1 << 16, "state_interval_bytes": 1 << 14}


def entry(name, file_no=0):
    xid = Xid(format_id=1, gtrid=name, bqual=b"")
    return XaEntry(xid=xid, state=XaState.PREPARED, engine_count=1, first_file_no=file_no, stream=None)


@pytest.mark.parametrize("end", [XaState.FINISHED, XaState.COMMITTED, XaState.ROLLED_BACK])
def test_an_xid_is_in_use_until_it_is_prepared_no_longer(end):
    a, b = entry(b"a", 5), entry(b"b", 3)
    table = XaTable([a, replace(entry(b"c"), state=end)])
    table.apply(b)
    assert (len(table), table.oldest_file_no, table.prepared(a.xid)) == (2, 3, a)
    with pytest.raises(StoreError, match="XID 1,62, is in use"):
        table.check_room(b.xid)
    table.apply(replace(b, state=end))
    assert (list(table), table.get(b.xid), table.oldest_file_no) == ([a], None, 5)
    table.check_room(b.xid)
    with pytest.raises(StoreError, match="XID 1,62, is not prepared"):
        table.prepared(b.xid)
    assert XaTable().oldest_file_no is None


def test_there_are_only_so_many(monkeypatch):
    monkeypatch.setattr(xa_table, "ENTRIES_MAX", 3)
    table = XaTable(entry(bytes([number])) for number in range(3))
    with pytest.raises(StoreError, match="3 transactions are prepared: finish some of them first"):
        table.check_room(entry(b"x").xid)
    assert table.size_max == 4 * xa_table.ENTRY_SIZE_MAX


def in_bulk(disk):
    with BinlogWriter(disk, **SIZES) as writer:
        feed(writer, range(1001, 1021), 9000)
    return disk


def salvaged(disk):
    target = MemoryDisk()
    assert salvage(disk, target, MemoryDisk).prepared_count == 5
    return target


@pytest.mark.parametrize("brought", [lambda disk: disk, in_bulk, salvaged], ids=["as it is", "in bulk", "salvaged"])
def test_what_mariadb_s_own_engine_has_prepared_in_files_before_the_active_one_waits_for_its_end(brought):
    """It writes no redo log of ours: the files alone tell of the five, the oldest of them first."""
    files = bytes_at(FIXTURES / "ibb-mariadb" / "mixed")
    prepared = check_log(files).prepared
    assert len(prepared) == 5
    disk = brought(MemoryDisk(files))
    with new_store(disk, **SIZES) as store:
        xids = store.xa_recover()
        assert set(map(xid_bytes, xids)) == prepared
        store.flush()
        assert store.purge(PurgeRequest(to_file_no=store.files()[-1].file_no)).file_nos == ()  # file 0 is needed
        before = len(check_log(disk.files).groups)
        for seq_no, xid in enumerate(xids[:3], start=2001):
            store.xa_commit(xid, gtid_of(seq_no), make_gtid_event(gtid_of(seq_no)))
        for xid in xids[3:]:
            store.xa_rollback(xid)
    found = check_log(disk.files)
    assert (len(found.groups) - before, found.prepared) == (3, frozenset())
