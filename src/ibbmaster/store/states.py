"""GTID state records where they are kept: page 1 of each file, and pages at the interval."""

from __future__ import annotations

from ibbmaster.gtid import GtidState
from ibbmaster.ibb.chunk import Chunk, RecordType, next_chunk
from ibbmaster.ibb.gtid_state import GtidStateRecord, decode_gtid_state
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.ibb.record import RecordRef
from ibbmaster.store.cursor import ChunkCursor
from ibbmaster.store.pages import PageReader

FULL_STATE_PAGE = 1


def read_state_record(pages: PageReader, file_no: int, page_no: int) -> GtidStateRecord | None:
    """The state record that begins page `page_no`, or None if that page has none, or is not there yet.

    Raises:
        FormatError: the page or the record is damaged.
    """
    page = pages.page(file_no, page_no)
    if page is None:
        return None
    first = next_chunk(page, 0, file_no=file_no, page_no=page_no)
    if not isinstance(first, Chunk) or first.record_type != RecordType.GTID_STATE or not first.is_first:
        return None
    cursor = ChunkCursor(pages, file_no=file_no, page_no=page_no, page_offset=first.end_offset)
    data, last = bytearray(), first
    for last in cursor.chunks_of(first):
        data += last.data
    if not last.is_last:
        return None
    return decode_gtid_state(data, RecordRef(file_no, page_no * PAGE_SIZE).location)


def state_at(base: GtidState, record: GtidStateRecord) -> GtidState:
    """The full state at a differential record: that of page 1 with this one record on top."""
    state = base.copy()
    for gtid in record.gtids:
        state.log(gtid)
    return state
