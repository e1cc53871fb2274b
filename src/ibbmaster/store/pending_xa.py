"""Prepared transactions of a log that somebody else wrote: from the records themselves."""

from __future__ import annotations

from ibbmaster.disk.interface import ReadDisk
from ibbmaster.ibb.chunk import RecordType
from ibbmaster.ibb.xa import XaPrepare, Xid, decode_xa_complete, decode_xa_prepare
from ibbmaster.log.continuation import Continuation
from ibbmaster.log.cursor import ChunkCursor
from ibbmaster.log.pages import PageReader
from ibbmaster.log.states import FULL_STATE_PAGE
from ibbmaster.store.redo_record import XaEntry, XaState


def find_pending_xa(disk: ReadDisk, end: Continuation) -> tuple[XaEntry, ...]:
    """The transactions whose last record says that they are prepared.

    Reads from the oldest file that the active one's header names to the end.

    Raises:
        FormatError: a record is damaged.

    Source: MariaDB 12.3, innodb_binlog.cc, ibb_xa_recover and its callers.
    """
    first_no = end.header.file_no if end.header.xa_file_no is None else end.header.xa_file_no
    cursor = ChunkCursor(PageReader(disk), file_no=first_no, page_no=FULL_STATE_PAGE)
    prepared: dict[Xid, XaPrepare] = {}
    while (chunk := cursor.next_chunk()) is not None:
        ref = cursor.ref_of(chunk)
        if not chunk.is_first:
            continue  # the rest of a record of the file before
        if chunk.record_type == RecordType.XA_PREPARE:
            prepare = decode_xa_prepare(b"".join(piece.data for piece in cursor.chunks_of(chunk)), ref.location)
            prepared[prepare.xid] = prepare
        elif chunk.record_type == RecordType.XA_COMPLETE:
            prepared.pop(
                decode_xa_complete(b"".join(piece.data for piece in cursor.chunks_of(chunk)), ref.location).xid, None
            )
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
