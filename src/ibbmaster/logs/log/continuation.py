"""Finds where a writer continues a log: the place, and the state there."""

from collections.abc import Callable
from typing import NamedTuple

from ibbmaster.errors import StoreError
from ibbmaster.gtid import GtidState
from ibbmaster.position import LogPosition
from ibbmaster.storage.disk.interface import Disk, ReadDisk
from ibbmaster.storage.ibb.appender import Appender, FileShape, References
from ibbmaster.storage.ibb.file_header import FileHeader
from ibbmaster.storage.ibb.file_name import format_file_name, parse_file_name
from ibbmaster.storage.ibb.page import DATA_SIZE, PAGE_SIZE
from .cursor import ChunkCursor
from .directory import BinlogDirectory
from .pages import PageReader
from .states import FULL_STATE_PAGE, read_state_record


class Continuation(NamedTuple):
    """Where the next chunk goes, everything that was logged, and what of it since page 1 of the file."""

    header: FileHeader
    size_pages: int
    position: LogPosition
    state: GtidState
    differential: GtidState

    def appender(
        self, disk: Disk, *, next_shape: Callable[[int], FileShape], references: Callable[[], References]
    ) -> Appender:
        """The appender that continues in a file of its full size, which a flush may have cut."""
        header = self.header
        size_pages = max(self.size_pages, header.size_pages)
        if self.size_pages < size_pages:
            disk.allocate(format_file_name(header.file_no), size_pages * PAGE_SIZE)
        return Appender(
            file_no=header.file_no,
            next_shape=next_shape,
            references=references,
            state=self.state,
            page_no=self.position.page_no,
            page_offset=self.position.page_offset,
            shape=FileShape(
                size_pages=size_pages, state_interval_pages=header.state_interval_pages, start_lsn=header.start_lsn
            ),
            differential=self.differential,
        )


def find_continuation(disk: ReadDisk) -> Continuation | None:
    """The end of the log in a directory, if any. Reads what lies after the last state record, and a few pages to find
    it. Raises FormatError: a page is damaged, or data follows the end; StoreError: a file is missing or empty, or the
    log ends inside a record. Source: MariaDB 12.3, innodb_binlog.cc, innodb_binlog_discover()."""
    if not any(parse_file_name(name) is not None for name in disk.list()):
        return None
    directory = BinlogDirectory(disk)
    pages = PageReader(disk)
    file_no = directory.active_file_no(pages)
    header = pages.header(file_no)
    if header is None:
        return None  # made, and never used
    name = format_file_name(file_no)
    base = read_state_record(pages, file_no, FULL_STATE_PAGE)
    if base is None:
        raise StoreError(f"{name}: no GTID state on page {FULL_STATE_PAGE}")
    before, state = GtidState(base.gtids), directory.state()
    directory.check_end()
    size_pages = disk.size(name) // PAGE_SIZE
    return Continuation(
        header=header,
        size_pages=size_pages,
        position=_write_position(pages, file_no, size_pages),
        state=state,
        # the pairs that moved since page 1, in the order in which they did
        differential=GtidState(one for one in state if before.seq_no(one.domain_id, one.server_id) != one.seq_no),
    )


def _write_position(pages: PageReader, file_no: int, size_pages: int) -> LogPosition:
    last_no = pages.last_with_data(file_no, size_pages)
    cursor = ChunkCursor(pages, file_no=file_no, page_no=last_no)
    position = last_no, 0
    is_whole = True
    while (first := cursor.next_chunk()) is not None:
        for chunk in cursor.chunks_of(first):
            position = cursor.page_no, chunk.end_offset
            is_whole = chunk.is_last
    if not is_whole or cursor.file_no != file_no:
        raise StoreError(f"{format_file_name(file_no)} page {position[0]}: the log ends inside a record")
    page_no, page_offset = position
    if page_offset == DATA_SIZE:
        page_no, page_offset = page_no + 1, 0
    return LogPosition.on_page(file_no, page_no, page_offset)
