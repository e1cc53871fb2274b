"""A directory of `.ibb` files as a binlog to read; it may grow meanwhile."""

from __future__ import annotations

import itertools
import threading
import time

from ibbmaster.disk.interface import ReadDisk
from ibbmaster.errors import FormatError, MissingFileError, StoreError
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.ibb.chunk import CHUNK_SIZE_MIN
from ibbmaster.ibb.file_header import FileHeader
from ibbmaster.ibb.file_name import format_file_name, parse_file_name
from ibbmaster.ibb.page import DATA_SIZE, PAGE_SIZE
from ibbmaster.log.end_check import EndWatch, gap_error, page_behind
from ibbmaster.log.engine import BinlogEngine, BinlogFile, ReadPlan
from ibbmaster.log.event_groups import EventGroupReader
from ibbmaster.log.misplacement import MisplacementCheck
from ibbmaster.log.pages import PageReader
from ibbmaster.log.seek import SeekPlan, seek
from ibbmaster.log.states import FULL_STATE_PAGE, read_state_record, state_at
from ibbmaster.position import LogPosition

POLL_PERIOD_S = 0.002  # how late a group that another process wrote may be noticed
POLLS_PER_LOOK = 10  # one byte is read at each; so often it is looked for a new file, too
END_POLL_PERIOD_S = 0.1
EMPTY_FILES_MAX = 2  # pre-allocated ones at the end of a sound directory


class BinlogDirectory(BinlogEngine):
    """The read side of a directory. Thread-safe.

    Raises on first use, not when made:
        StoreError: there are no binlog files, one in the middle is missing, or only empty ones are left.
        FormatError: a header or state that must be read is damaged.
    """

    def __init__(self, disk: ReadDisk, *, is_end_known: bool = False) -> None:
        """With `is_end_known` the disk shows nothing behind the end of the log."""
        self._disk = disk
        self._lock = threading.Lock()  # for everything below
        self._state: GtidState | None = None  # what `_tail` has seen
        self._tail: EventGroupReader | None = None  # stands at the end
        self._seen_end: LogPosition | None = None
        self._misplacement = MisplacementCheck(disk)
        self._end_watch = None if is_end_known else EndWatch(disk)

    def __str__(self) -> str:
        return str(self._disk)

    def file_numbers(self) -> range:
        """The numbers of the files, without a gap.

        Raises:
            StoreError: there is none, or one in the middle is missing.
        """
        numbers = sorted(number for name in self._disk.list() if (number := parse_file_name(name)) is not None)
        if not numbers:
            raise StoreError(f"{self._disk}: no binlog files (binlog-000000.ibb and so on)")
        for before, after in itertools.pairwise(numbers):
            if after != before + 1:
                raise MissingFileError(
                    f"{self._disk}: {format_file_name(before + 1)} is missing between {format_file_name(before)} and "
                    f"{format_file_name(after)}"
                )
        return range(numbers[0], numbers[-1] + 1)

    def files(self) -> list[BinlogFile]:
        return [
            BinlogFile(name=(name := format_file_name(number)), size=self._disk.size(name))
            for number in self.file_numbers()
        ]

    def header(self, file_no: int) -> FileHeader | None:
        """The header of a file, None if it is pre-allocated and not used yet."""
        return PageReader(self._disk).header(file_no)

    def active_file_no(self, pages: PageReader | None = None) -> int:
        """The newest file with a header; 0 for a log that has only begun to exist."""
        return self._find_active(pages or PageReader(self._disk), self.file_numbers())

    def file_name(self, file_no: int) -> str:
        return format_file_name(file_no)

    def end(self) -> LogPosition:
        with self._lock:
            self._catch_up()
            assert self._tail is not None
            return self._tail.position

    def binlog_state(self) -> GtidState:
        with self._lock:
            self._catch_up()
            assert self._state is not None
            return self._state.copy()

    def check_end(self, *, patience_s: float = 0.0, pages_max: int | None = None) -> None:
        """Look behind the end, in all that follows or in so many pages.

        Where another process may be writing, what was found must stay there for a while.

        Raises:
            FormatError: there is data behind it, so it is not the end.
        """
        deadline = time.monotonic() + patience_s
        while True:
            with self._lock:
                self._catch_up()
                assert self._tail is not None
                end = self._tail.stopped_at
            found = None if end is None else page_behind(self._disk, end, pages_max=pages_max)
            if end is None or found is None:
                return
            if time.monotonic() >= deadline:
                raise gap_error(end, found)
            time.sleep(END_POLL_PERIOD_S)

    def seek(self, position: GtidPosition) -> SeekPlan:
        pages = PageReader(self._disk, readahead_pages_max=1)
        numbers = self.file_numbers()
        active = self._find_active(pages, numbers)
        return seek(
            pages,
            position,
            oldest_file_no=numbers[0],
            active_file_no=active,
            current_state=self.binlog_state(),
        )

    def event_groups(self, plan: ReadPlan) -> EventGroupReader:
        page_no = plan.position.page_no
        # A differential state may lack pairs after a restart of MariaDB, so only full ones are sure.
        state = plan.state if page_no == FULL_STATE_PAGE else None
        at_end = None if self._end_watch is None else self._end_watch.check
        return EventGroupReader(
            self._disk,
            file_no=plan.position.file_no,
            page_no=page_no,
            state=state,
            at_end=at_end,
            at_step_back=self._misplacement.check,
        )

    def plan_of_file(self, name: str) -> SeekPlan:
        file_no = parse_file_name(name)
        if file_no is None or file_no not in self.file_numbers():
            raise KeyError(name)
        pages = PageReader(self._disk, readahead_pages_max=1)
        full = read_state_record(pages, file_no, FULL_STATE_PAGE)
        return SeekPlan(
            wanted=GtidPosition(),
            position=LogPosition.on_page(file_no, FULL_STATE_PAGE),
            state=GtidState(() if full is None else full.gtids),
            steps=(),
            page_reads=pages.page_reads,
        )

    def wait_for_growth(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        polls = 0
        while True:
            if (polls % POLLS_PER_LOOK == 0 or self._has_data_at_end()) and self._has_grown():
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(left, POLL_PERIOD_S))
            polls += 1

    def initial_state(self) -> GtidState:
        return self.plan_of_file(format_file_name(self.file_numbers()[0])).state

    def _has_data_at_end(self) -> bool:
        """Whether there is something where the end was; costs a read of one byte."""
        with self._lock:
            if self._tail is None:
                return True
            file_no, offset = self._tail.position
            if offset % PAGE_SIZE > DATA_SIZE - CHUNK_SIZE_MIN:
                offset += PAGE_SIZE - offset % PAGE_SIZE
            return self._disk.read(format_file_name(file_no), offset, 1) not in (b"", b"\0")

    def _has_grown(self) -> bool:
        with self._lock:
            self._catch_up()
            assert self._tail is not None
            end = self._tail.position
            has_grown = self._seen_end is not None and end != self._seen_end
            self._seen_end = end
            stopped_at = self._tail.stopped_at
        if self._end_watch is not None and stopped_at is not None:
            try:
                self._end_watch.check(stopped_at)
            except FormatError:
                return True  # whoever reads on is told
        return has_grown

    def _find_active(self, pages: PageReader, numbers: range) -> int:
        for empty, number in enumerate(reversed(numbers), start=1):
            if pages.header(number) is not None:
                return number
            if empty > EMPTY_FILES_MAX:
                raise StoreError(
                    f"{self._disk}: {format_file_name(number)} and those after it are empty: at most "
                    f"{EMPTY_FILES_MAX} empty files can be ready for later use"
                )
        if numbers[0] == 0:
            return 0
        raise StoreError(f"{self._disk}: only empty files are left, so the GTID state is unknown")

    def _catch_up(self) -> None:
        """Bring state and tail to the end of what can be seen; the first time from the last state record."""
        if self._tail is None or self._state is None:
            self._state, self._tail = self._open_tail()
        while (group := self._tail.next_group()) is not None:
            if group.gtid is not None:
                self._state.log(group.gtid)

    def _open_tail(self) -> tuple[GtidState, EventGroupReader]:
        """The state at the last state record of the active file, and a reader that stands there."""
        pages = PageReader(self._disk, readahead_pages_max=1)
        file_no = self.active_file_no(pages)
        header = pages.header(file_no)
        full = read_state_record(pages, file_no, FULL_STATE_PAGE)
        state, page_no = GtidState(full.gtids if full is not None else ()), FULL_STATE_PAGE
        interval = 0 if header is None else header.state_interval_pages
        last_no = self._last_page_no(pages, file_no) if interval else 0
        for probe in range(interval, last_no + 1, interval or 1):
            record = read_state_record(pages, file_no, probe) if probe > FULL_STATE_PAGE else None
            if record is not None:
                # One on top of the other: after a restart MariaDB leaves out what was logged before it.
                state, page_no = state_at(state, record), probe
        return state, EventGroupReader(self._disk, file_no=file_no, page_no=page_no)

    def _last_page_no(self, pages: PageReader, file_no: int) -> int:
        """The last page with data: the first byte of a page tells, so a search finds it."""
        low, high = FULL_STATE_PAGE, self._disk.size(format_file_name(file_no)) // PAGE_SIZE
        while low < high:
            middle = (low + high) // 2
            page = pages.page(file_no, middle)
            if page is None or not page[0]:
                high = middle
            else:
                low = middle + 1
        return low - 1
