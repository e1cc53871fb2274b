"""Where a writer goes on in a directory that holds a log: the place, and the state there."""

from __future__ import annotations

from dataclasses import dataclass

from ibbmaster.errors import StoreError
from ibbmaster.gtid import GtidState
from ibbmaster.ibb.file_header import FileHeader
from ibbmaster.ibb.file_name import format_file_name, parse_file_name
from ibbmaster.ibb.page import DATA_SIZE, PAGE_SIZE
from ibbmaster.store.cursor import ChunkCursor
from ibbmaster.store.disk import Disk
from ibbmaster.store.event_groups import EventGroupReader
from ibbmaster.store.pages import PageReader
from ibbmaster.store.states import read_state_record

EMPTY_FILES_MAX = 2  # one file is allocated ahead; a crash may leave a second


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """The end of a log. `page_no`, `page_offset` are where the next chunk goes.

    `differential` holds what was logged since page 1 of the file, `state` everything.
    """

    header: FileHeader
    size_pages: int  # of the file as it is on disk
    page_no: int
    page_offset: int
    state: GtidState
    differential: GtidState


def find_continuation(disk: Disk) -> Continuation | None:
    """The end of the log in a directory; None if nothing was ever logged there.

    Reads what lies behind the last state record, and a few pages to find it.

    Raises:
        FormatError: a page that must be read is damaged.
        StoreError: the newest files have no data, or the log ends inside a record.

    Source: MariaDB 12.3, innodb_binlog.cc, innodb_binlog_discover() and fsp_binlog.cc, find_pos_in_binlog().
    """
    file_nos = sorted(file_no for name in disk.list() if (file_no := parse_file_name(name)) is not None)
    if not file_nos:
        return None
    pages = PageReader(disk)
    newest = file_nos[-EMPTY_FILES_MAX - 1 :]
    for file_no in reversed(newest):
        header = pages.header(file_no)
        if header is not None:
            return _continue_file(disk, pages, header)
        if file_no - 1 not in file_nos:
            break
    if file_nos == [0]:
        return None  # made, and never written
    raise StoreError(
        f"{', '.join(map(format_file_name, newest))}: no data in the newest files, so the end of the log is not known"
    )


def _continue_file(disk: Disk, pages: PageReader, header: FileHeader) -> Continuation:
    file_no = header.file_no
    name = format_file_name(file_no)
    size_pages = disk.size(name) // PAGE_SIZE
    last_page_no = _last_used_page(pages, file_no, size_pages)
    base = read_state_record(pages, file_no, 1)
    if base is None:
        raise StoreError(f"{name}: no GTID state on page 1")
    differential = GtidState()
    start = 1
    interval = header.state_interval_pages
    if interval:
        for page_no in range(last_page_no - last_page_no % interval, 1, -interval):
            record = read_state_record(pages, file_no, page_no)
            if record is not None:
                differential = GtidState(record.gtids)
                start = page_no
                break
    reader = EventGroupReader(disk, file_no=file_no, page_no=start)
    while (group := reader.next_group()) is not None:
        if group.gtid is not None:
            differential.log(group.gtid)
    state = GtidState(base.gtids)
    for gtid in differential:
        state.log(gtid)
    page_no, page_offset = _write_position(pages, file_no, start)
    return Continuation(
        header=header,
        size_pages=size_pages,
        page_no=page_no,
        page_offset=page_offset,
        state=state,
        differential=differential,
    )


def _last_used_page(pages: PageReader, file_no: int, size_pages: int) -> int:
    """The last page that is not empty: only the first byte of a page decides that."""
    low, high = 1, size_pages
    while low < high:
        middle = (low + high) // 2
        page = pages.page(file_no, middle)
        if page is None or page[0] == 0:
            high = middle
        else:
            low = middle + 1
    return low - 1


def _write_position(pages: PageReader, file_no: int, page_no: int) -> tuple[int, int]:
    """Page and offset behind the last chunk, found by walking the records from page `page_no` on."""
    cursor = ChunkCursor(pages, file_no=file_no, page_no=page_no)
    position = page_no, 0
    is_whole = True
    while (first := cursor.next_chunk()) is not None:
        chunk = first
        for chunk in cursor.chunks_of(first):
            position = cursor.page_no, chunk.end_offset
        is_whole = chunk.is_last
    if not is_whole or cursor.file_no != file_no:
        raise StoreError(f"{format_file_name(file_no)}: the log ends inside a record")
    page_no, page_offset = position
    return (page_no + 1, 0) if page_offset == DATA_SIZE else (page_no, page_offset)
