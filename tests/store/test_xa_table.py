"""Transactions in two phases that are not finished."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ibbmaster.errors import StoreError
from ibbmaster.ibb.xa import Xid
from ibbmaster.store import xa_table
from ibbmaster.store.redo_record import XaEntry, XaState
from ibbmaster.store.xa_table import XaTable


def entry(name: bytes, file_no: int = 0) -> XaEntry:
    xid = Xid(format_id=1, gtrid=name, bqual=b"")
    return XaEntry(xid=xid, state=XaState.PREPARED, engine_count=1, first_file_no=file_no, stream=None)


def test_an_entry_changes_its_state_until_it_is_gone():
    a, b = entry(b"a", 5), entry(b"b", 3)
    table = XaTable([a])
    table.apply(b)
    assert (len(table), table.oldest_file_no, table.prepared(a.xid)) == (2, 3, a)
    table.apply(replace(b, state=XaState.ROLLED_BACK))
    assert (table.entries(XaState.PREPARED), len(table.snapshot())) == ([a], 2)
    table.apply(replace(b, state=XaState.FINISHED))
    assert (list(table), table.get(b.xid), table.oldest_file_no) == ([a], None, 5)
    assert XaTable().oldest_file_no is None


def test_an_xid_is_in_use_until_it_is_finished():
    table = XaTable([entry(b"a")])
    with pytest.raises(StoreError, match="XID 1,61, is in use"):
        table.check_room(entry(b"a").xid)
    table.check_room(entry(b"b").xid)
    for xid in (entry(b"b").xid,):
        with pytest.raises(StoreError, match="XID 1,62, is not prepared"):
            table.prepared(xid)
    table.apply(replace(entry(b"a"), state=XaState.COMMITTED))
    with pytest.raises(StoreError, match="is not prepared"):
        table.prepared(entry(b"a").xid)


def test_there_are_only_so_many(monkeypatch):
    monkeypatch.setattr(xa_table, "ENTRIES_MAX", 3)
    table = XaTable(entry(bytes([number])) for number in range(3))
    with pytest.raises(StoreError, match="3 transactions are prepared: finish some of them first"):
        table.check_room(entry(b"x").xid)
    assert table.size_max == 4 * xa_table.ENTRY_SIZE_MAX
