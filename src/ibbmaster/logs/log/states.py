"""Reads and compares GTID state records: on page 1 of each file, and on pages at the interval."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

from ibbmaster.errors import RecordError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.position import LogPosition
from ibbmaster.storage.ibb.chunk import Chunk, RecordType, next_chunk
from ibbmaster.storage.ibb.file_header import FileHeader
from ibbmaster.storage.ibb.gtid_state import GtidStateRecord, decode_gtid_state
from .cursor import ChunkCursor
from .pages import PageReader

FULL_STATE_PAGE = 1
KNOWN_MAX = 1024  # of a file of 1 GB, and more than a search meets
Key = TypeVar("Key")
Found = TypeVar("Found")


def read_state_record(pages: PageReader, file_no: int, page_no: int) -> GtidStateRecord | None:
    """The state record that begins page `page_no`, or None without one. Raises FormatError: it is damaged."""
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
    return decode_gtid_state(data, LogPosition.on_page(file_no, page_no))


class StateRecords:
    """Caches state records and headers of one log, which never change, and the results of searches by them."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], GtidStateRecord] = {}
        self._headers: dict[int, FileHeader] = {}
        self.found: dict[Hashable, Any] = {}
        self.found_near: dict[Hashable, Any] = {}

    def read(self, pages: PageReader, file_no: int, page_no: int) -> GtidStateRecord | None:
        return _kept(self._known, (file_no, page_no), lambda: read_state_record(pages, file_no, page_no))

    def header(self, pages: PageReader, file_no: int) -> FileHeader | None:
        return _kept(self._headers, file_no, lambda: pages.header(file_no))

    def __contains__(self, page: tuple[int, int]) -> bool:
        return page in self._known


def _kept(known: dict[Key, Found], key: Key, find: Callable[[], Found | None]) -> Found | None:
    found = known.get(key)
    if found is None and (found := find()) is not None:
        if len(known) >= KNOWN_MAX:
            known.clear()
        known[key] = found
    return found


def check_continuation(
    found: Iterable[Gtid], state: GtidState, location: LogPosition, *, base: GtidState, is_complete: bool = True
) -> None:
    """Compare the state a file begins with and the state after the groups before it; `base` is what the file before
    begins with. protocol/ibb/gtid-state.md says what may be missing; unless `is_complete`, pairs may be missing in the
    state. Raises RecordError: the file begins after other groups."""
    for gtid in found:
        seq_no = state.seq_no(gtid.domain_id, gtid.server_id)
        if gtid.seq_no in (seq_no, base.seq_no(gtid.domain_id, gtid.server_id)):
            continue
        if seq_no is None and (gtid.seq_no == 1 or not is_complete):
            continue
        last = "with none of that server" if seq_no is None else f"with number {seq_no}"
        raise RecordError(location, f"the file begins after {gtid}, the groups before it end {last}")


def state_at(base: GtidState, record: GtidStateRecord) -> GtidState:
    state = base.copy()
    for gtid in record.gtids:
        state.log(gtid)
    return state
