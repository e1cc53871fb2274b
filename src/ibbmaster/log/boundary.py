"""Where one file ends and the next begins, for readers that do not read on from one into the other."""

from __future__ import annotations

from collections.abc import Iterable

from ibbmaster.disk.interface import ReadDisk
from ibbmaster.errors import Location
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.log.log_range import LogRange
from ibbmaster.log.pages import PageReader
from ibbmaster.log.states import FULL_STATE_PAGE, check_continuation, read_state_record


class FileBoundary:
    """Compares the groups of a file's last range with the state that the next file begins with.

    A file that was cut between two pages looks whole by itself. A pair of domain and server that
    the range does not hold is not compared, unless the range is the whole file.
    """

    def __init__(self, disk: ReadDisk, log_range: LogRange, *, checks_header: bool = True) -> None:
        """Raises FormatError: the state of the file is damaged, or its header, if it `checks_header`."""
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
        """These groups were read, in this order."""
        for gtid in gtids:
            self._state.log(gtid)

    def check(self) -> None:
        """All was read, and the last group does not reach into the next file.

        Raises FormatError: the next file begins after other groups, or its beginning is damaged.
        """
        next_no = self._range.file_no + 1
        if self._range.end_offset < self._disk.size(format_file_name(self._range.file_no)):
            return
        pages = self._pages()
        record = read_state_record(pages, next_no, FULL_STATE_PAGE) if pages.header(next_no) is not None else None
        if record is not None:
            location = Location(file_no=next_no, page_no=FULL_STATE_PAGE, page_offset=0)
            check_continuation(record.gtids, self._state, location, base=self._base, is_complete=False)
