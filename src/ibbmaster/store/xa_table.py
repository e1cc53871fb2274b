"""Transactions in two phases that are not finished: prepared ones, and what recovery still has to forget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ibbmaster.errors import StoreError
from ibbmaster.ibb.xa import Xid
from ibbmaster.store.redo_record import XaEntry, XaState

ENTRY_SIZE_MAX = 256  # bytes of an entry in the redo log
ENTRIES_MAX = 10_000


class XaTable:
    """XID -> entry. Not thread-safe."""

    def __init__(self, entries: Iterable[XaEntry] = ()) -> None:
        self._entries = {entry.xid: entry for entry in entries}

    def apply(self, entry: XaEntry) -> None:
        """Take an entry, or what became of it; a finished one is forgotten."""
        if entry.state is XaState.GONE:
            self._entries.pop(entry.xid, None)
        else:
            self._entries[entry.xid] = entry

    def check_room(self, xid: Xid) -> None:
        """Whether another transaction can be prepared.

        Raises:
            StoreError: the XID is in use, or there are too many.
        """
        if xid in self._entries:
            raise StoreError(f"{_text(xid)} is in use")
        if len(self._entries) >= ENTRIES_MAX:
            raise StoreError(f"{ENTRIES_MAX} transactions are prepared: finish some of them first")

    def prepared(self, xid: Xid) -> XaEntry:
        """The entry of a prepared transaction.

        Raises:
            StoreError: there is none.
        """
        entry = self._entries.get(xid)
        if entry is None or entry.state is not XaState.PREPARED:
            raise StoreError(f"{_text(xid)} is not prepared")
        return entry

    def entries(self, state: XaState) -> list[XaEntry]:
        return [entry for entry in self._entries.values() if entry.state is state]

    def get(self, xid: Xid) -> XaEntry | None:
        return self._entries.get(xid)

    @property
    def oldest_file_no(self) -> int | None:
        """The oldest file that one of them needs."""
        return min((entry.first_file_no for entry in self), default=None)

    def snapshot(self) -> tuple[XaEntry, ...]:
        return tuple(self._entries.values())

    @property
    def size_max(self) -> int:
        """Bytes that the table takes in the redo log, one more entry included."""
        return (len(self) + 1) * ENTRY_SIZE_MAX

    def __iter__(self) -> Iterator[XaEntry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)


def _text(xid: Xid) -> str:
    return f"XID {xid.format_id},{xid.gtrid.hex()},{xid.bqual.hex()}"
