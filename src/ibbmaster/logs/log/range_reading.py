"""Ranges of `.ibb` files: their borders, and the groups in one."""

from collections.abc import Iterable, Iterator

from ibbmaster.errors import FormatError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.storage.disk.interface import ReadDisk
from ibbmaster.storage.ibb.file_header import FileHeader
from ibbmaster.storage.ibb.file_name import format_file_name
from ibbmaster.storage.ibb.page import PAGE_SIZE
from .end_check import gap_error, page_behind_in_file
from .event_groups import EventGroupReader
from .interface import OnFault
from .log_range import LogRange
from .pages import PageReader
from .states import FULL_STATE_PAGE, check_continuation, read_state_record


class FileBoundary:
    """Compares the groups of a file's last range with the state that the next file begins with, since a file cut
    between two pages looks whole by itself. Compares only pairs in the range, unless that is the whole file. Raises
    FormatError: the state of the file is damaged, or its header, if it `checks_header`."""

    def __init__(self, disk: ReadDisk, log_range: LogRange, *, checks_header: bool = True) -> None:
        self._disk = disk
        self._range = log_range
        pages = self._pages()
        if checks_header:
            pages.header(log_range.file_no)
        first = read_state_record(pages, log_range.file_no, FULL_STATE_PAGE)
        self._base = GtidState(() if first is None else first.gtids)
        is_whole = log_range.start_offset <= FULL_STATE_PAGE * PAGE_SIZE
        self._state = self._base.copy() if is_whole else GtidState()

    def _pages(self) -> PageReader:
        return PageReader(self._disk, readahead_pages_max=1)

    def log(self, gtids: Iterable[Gtid]) -> None:
        for gtid in gtids:
            self._state.log(gtid)

    def check(self) -> None:
        """All was read, and the last group ends here. Raises FormatError: the next file does not continue it."""
        next_no = self._range.file_no + 1
        if self._range.end_offset < self._disk.size(format_file_name(self._range.file_no)):
            return
        pages = self._pages()
        record = read_state_record(pages, next_no, FULL_STATE_PAGE) if pages.header(next_no) is not None else None
        if record is not None:
            location = LogPosition.on_page(next_no, FULL_STATE_PAGE)
            check_continuation(record.gtids, self._state, location, base=self._base, is_complete=False)


def ranges_of_file(file_no: int, header: FileHeader | None, first: int, end: int, *, size: int) -> list[LogRange]:
    """The pages from one offset of a file to another, in ranges that begin where a state record is due."""
    interval = PAGE_SIZE * (header.state_interval_pages if header is not None else 1) or PAGE_SIZE
    step = max(1, -(-size // interval)) * interval
    ranges = []
    first = max(PAGE_SIZE, first)
    while first < end:
        last = min((first // step + 1) * step, end)
        ranges.append(LogRange(file_no=file_no, start_offset=first, end_offset=last))
        first = last
    return ranges


def groups_in_range(disk: ReadDisk, log_range: LogRange, on_fault: OnFault | None) -> Iterator[EventGroup]:
    """See `LogEngine.groups_in`. Continues on the page after a damaged one."""
    page_no = log_range.start_offset // PAGE_SIZE
    end = LogPosition(log_range.file_no, log_range.end_offset)
    boundary: FileBoundary | None = None
    try:
        boundary = FileBoundary(disk, log_range, checks_header=on_fault is None)
    except FormatError:
        if on_fault is None:
            raise  # else the reader of the page reports it
    while page_no * PAGE_SIZE < log_range.end_offset:
        reader = EventGroupReader(disk, file_no=log_range.file_no, page_no=page_no, end=end)
        try:
            while (group := reader.next_group()) is not None:
                if log_range.holds(group.start):
                    yield group
                    if boundary is not None and group.gtid is not None:
                        boundary.log([group.gtid])
            if on_fault is None:
                reader.check_reached(end)
            elif (found := _behind_gap(disk, reader.stopped_at, end)) is not None:
                assert reader.stopped_at is not None
                boundary = None
                on_fault(reader.stopped_at, gap_error(reader.stopped_at, found).problem)
                page_no = found.page_no + (found == reader.stopped_at)
                continue
            if reader.position.file_no == log_range.file_no and boundary is not None:
                try:
                    boundary.check()
                except FormatError as error:
                    if on_fault is None:
                        raise
                    on_fault(error.location, error.problem)
            return
        except FormatError as error:
            position = reader.position
            if on_fault is None:
                raise
            boundary = None  # what is missing is known
            if position >= end:
                return  # what is damaged belongs to the next range
            location = error.location
            on_fault(location, error.problem)
            page_no = max(position.page_no, page_no)
            if location.file_no == log_range.file_no:
                page_no = max(page_no, location.page_no)
            page_no += 1


def check_range_reached(reader: EventGroupReader, end: LogPosition, *, is_strict: bool) -> None:
    """Check that a reader without more groups was to stop there. Unless `is_strict`, the end of a range is only where
    its file ends, and the log may end before. Raises ChunkError, MissingFileError: it was not."""
    if is_strict:
        reader.check_reached(end)
    elif (found := _behind_gap(reader.disk, reader.stopped_at, end)) is not None:
        assert reader.stopped_at is not None
        raise gap_error(reader.stopped_at, found)


def _behind_gap(disk: ReadDisk, stopped_at: LogPosition | None, end: LogPosition) -> LogPosition | None:
    if stopped_at is None or stopped_at >= end:
        return None
    found = page_behind_in_file(disk, stopped_at)
    return None if found is None or found >= end else found
