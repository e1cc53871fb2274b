"""The prepared transactions of a log."""

from collections.abc import Iterable, Iterator

from ibbmaster.errors import StoreError
from ibbmaster.logs.log.continuation import Continuation
from ibbmaster.logs.log.cursor import ChunkCursor
from ibbmaster.logs.log.pages import PageReader
from ibbmaster.logs.log.states import FULL_STATE_PAGE
from ibbmaster.storage.disk.interface import ReadDisk
from ibbmaster.storage.ibb.chunk import RecordType
from ibbmaster.storage.ibb.xa import XaPrepare, Xid, decode_xa_complete, decode_xa_prepare
from .redo_record import XaEntry, XaState

ENTRY_SIZE_MAX = 256
ENTRIES_MAX = 10_000


class XaTable:
    """XID -> entry. Not thread-safe. `size_max`: its size in the redo log with one more entry, as each commit asks."""

    def __init__(self, entries: Iterable[XaEntry] = ()) -> None:
        self._entries: dict[Xid, XaEntry] = {}
        self._measure()
        for entry in entries:
            self.apply(entry)

    def apply(self, entry: XaEntry) -> None:
        if entry.state is XaState.PREPARED:
            self._entries[entry.xid] = entry
        else:
            self._entries.pop(entry.xid, None)
        self._measure()

    def _measure(self) -> None:
        self.size_max = (len(self._entries) + 1) * ENTRY_SIZE_MAX

    def check_room(self, xid: Xid) -> None:
        """Raises StoreError: the XID is in use, or too many transactions are prepared."""
        if xid in self._entries:
            raise StoreError(f"{xid_text(xid)} is in use")
        if len(self._entries) >= ENTRIES_MAX:
            raise StoreError(f"{ENTRIES_MAX} transactions are prepared: finish some of them first")

    def prepared(self, xid: Xid) -> XaEntry:
        """Raises StoreError: there is no such prepared transaction."""
        entry = self._entries.get(xid)
        if entry is None:
            raise StoreError(f"{xid_text(xid)} is not prepared")
        return entry

    def get(self, xid: Xid) -> XaEntry | None:
        return self._entries.get(xid)

    @property
    def oldest_file_no(self) -> int | None:
        return min((entry.first_file_no for entry in self), default=None)

    def snapshot(self) -> tuple[XaEntry, ...]:
        return tuple(self._entries.values())

    def __iter__(self) -> Iterator[XaEntry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)


def find_pending_xa(disk: ReadDisk, end: Continuation) -> tuple[XaEntry, ...]:
    """The prepared transactions of a log that another program wrote, by the last record of each, from the oldest file
    that the active one's header names. Raises FormatError. Source: MariaDB 12.3, innodb_binlog.cc, ibb_xa_recover."""
    first_no = end.header.file_no if end.header.xa_file_no is None else end.header.xa_file_no
    cursor = ChunkCursor(PageReader(disk), file_no=first_no, page_no=FULL_STATE_PAGE)
    prepared: dict[Xid, XaPrepare] = {}
    while (chunk := cursor.next_chunk()) is not None:
        location = cursor.ref_of(chunk)
        if not chunk.is_first:
            continue  # of a record of the file before
        if chunk.record_type in (RecordType.XA_PREPARE, RecordType.XA_COMPLETE):
            record = b"".join(piece.data for piece in cursor.chunks_of(chunk))
            if chunk.record_type == RecordType.XA_PREPARE:
                prepare = decode_xa_prepare(record, location)
                prepared[prepare.xid] = prepare
            else:
                prepared.pop(decode_xa_complete(record, location).xid, None)
        elif not chunk.is_last and not cursor.skip_record(chunk):
            break
    return tuple(
        XaEntry(
            xid=prepare.xid,
            state=XaState.PREPARED,
            engine_count=prepare.engine_count,
            first_file_no=prepare.stream.first.file_no,
            stream=prepare.stream,
        )
        for prepare in prepared.values()
    )


def xid_text(xid: Xid) -> str:
    return f"XID {xid.format_id},{xid.gtrid.hex()},{xid.bqual.hex()}"
