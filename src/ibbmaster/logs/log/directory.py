"""A directory of `.ibb` files as a binlog to read; it may grow meanwhile."""

import contextlib
import functools
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ibbmaster.errors import FormatError, IbbMasterError, MissingFileError, RecordError, StoreError
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.position import LOG_START, LogPosition
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.storage.disk.interface import ExpectingDisk, ReadDisk
from ibbmaster.storage.disk.place import open_disk
from ibbmaster.storage.ibb.chunk import CHUNK_SIZE_MIN
from ibbmaster.storage.ibb.file_header import FileHeader
from ibbmaster.storage.ibb.file_name import format_file_name, parse_file_name
from ibbmaster.storage.ibb.page import DATA_SIZE, PAGE_SIZE
from .end_check import PATIENCE_S, STEP_PAGES, EndWatch, check_not_cut, cut_error, gap_error, page_behind
from .event_groups import EventGroupReader
from .fault import Fault
from .interface import LogEngine, LogFile, OnFault, PagedEventGroups, ReadPlan
from .locating import readable_groups
from .log_range import WHOLE_FILE, LogRange
from .pages import PageReader, read_cached
from .range_reading import groups_in_range, ranges_of_file
from .seek import SeekPlan, seek
from .states import FULL_STATE_PAGE, StateRecords, read_state_record, state_at

POLL_PERIOD_S = 0.002  # how late growth may be noticed
END_POLL_PERIOD_S = 0.1
NOTHING = (b"", b"\0")
EMPTY_FILES_MAX = 2  # pre-allocated at the end of a sound directory
CHECKED_PAGES = 64  # of a growing file, between two looks for a page in the wrong place


class BinlogDirectory(LogEngine):
    """The read side of a directory. Thread-safe. `known_end` comes from the owner of the log, who shows nothing after
    it. Raises on first use, not when made: StoreError: there are no binlog files, one in the middle is missing, or only
    empty ones are left; FormatError: a header or state is damaged."""

    def __init__(self, disk: ReadDisk, *, known_end: Callable[[], LogPosition | None] | None = None) -> None:
        self.disk = disk
        self._records = StateRecords()
        self._listed: tuple[Sequence[str], range] | None = None
        self._lock = threading.Lock()  # for everything below
        self._state: GtidState | None = None  # what `_tail` has seen
        self._tail: EventGroupReader | None = None
        self._last_look: tuple[GtidState, LogPosition] | None = None  # a copy of both
        self._seen_end: LogPosition | None = None
        self._misplacement = MisplacementCheck(disk)
        self.reached: LogPosition | None = None  # the end that `_tail` saw last, if it was asked for
        self._is_end_known = known_end is not None
        self._end_watch = EndWatch(disk, known_end=known_end or (lambda: self.reached), is_certain=self._is_end_known)

    def __str__(self) -> str:
        return str(self.disk)

    def close(self) -> None:
        self.disk.close()

    def file_numbers(self) -> Sequence[int]:
        """Without a gap. Raises StoreError: there is no file, or one is missing."""
        names, listed = self.disk.list(), self._listed
        if listed is not None and names is listed[0]:
            return listed[1]
        numbers = self._numbers_in(names)
        for before, after in itertools.pairwise(numbers):
            if after != before + 1:
                raise MissingFileError(
                    f"{self.disk}: {format_file_name(before + 1)} is missing between {format_file_name(before)} and "
                    f"{format_file_name(after)}"
                )
        found = range(numbers[0], numbers[-1] + 1)
        self._listed = names, found
        return found

    def _numbers_in(self, names: Iterable[str]) -> list[int]:
        numbers = sorted(number for name in names if (number := parse_file_name(name)) is not None)
        if not numbers:
            raise StoreError(f"{self}: no binlog files (binlog-000000.ibb and so on)")
        return numbers

    def files(self) -> list[LogFile]:
        return [
            LogFile(file_no=number, name=(name := format_file_name(number)), size=self.disk.size(name))
            for number in self.file_numbers()
        ]

    def header(self, file_no: int) -> FileHeader | None:
        return PageReader(self.disk, readahead_pages_max=1).header(file_no)

    def active_file_no(self, pages: PageReader | None = None) -> int:
        """The newest file with a header; 0 for a log without any."""
        pages, numbers = pages or PageReader(self.disk), self.file_numbers()
        for empty, number in enumerate(reversed(numbers), start=1):
            if pages.header(number) is not None:
                return number
            if empty > EMPTY_FILES_MAX:
                raise StoreError(
                    f"{self.disk}: {format_file_name(number)} and those after it are empty: at most "
                    f"{EMPTY_FILES_MAX} empty files can be ready for later use"
                )
        if numbers[0] == 0:
            return 0
        raise StoreError(f"{self.disk}: only empty files are left, so the GTID state is unknown")

    def file_name(self, file_no: int) -> str:
        return format_file_name(file_no)

    def end(self, *, only_cached: bool = False) -> LogPosition:
        with self._at_end(only_cached=only_cached) as (_, tail):
            return tail.position

    def state(self, *, only_cached: bool = False) -> GtidState:
        if only_cached:
            return self._seen_last()[0].copy()
        with self._at_end() as (state, _):
            return state.copy()

    def check_end(self, *, patience_s: float = 0.0, pages_max: int | None = None) -> None:
        """Look for data after the end, everywhere or in `pages_max` pages; where another process may be writing, it
        must stay there for `patience_s`. Raises FormatError: there is data, or the file was cut there."""
        deadline = time.monotonic() + patience_s
        while True:
            with self._at_end() as (_, tail):
                end = tail.stopped_at
            if end is None:
                return
            found = page_behind(self.disk, end, pages_max=pages_max)
            problem = cut_error(self.disk, end.file_no) if found is None else gap_error(end, found)
            if problem is None:
                return
            if time.monotonic() >= deadline:
                raise problem
            time.sleep(END_POLL_PERIOD_S)

    def seek(self, position: GtidPosition, *, only_cached: bool = False) -> SeekPlan:
        if only_cached:  # the last seen end will do: more lies after any place that is found
            current_state, end = self._seen_last()
        else:
            with self._at_end() as (state, tail):
                current_state, end = state.copy(), tail.position
        return seek(
            PageReader(self.disk, readahead_pages_max=1, only_cached=only_cached),
            position,
            oldest_file_no=self.file_numbers()[0],
            end=end,
            current_state=current_state,
            records=self._records,
        )

    def groups(self, plan: ReadPlan) -> EventGroupReader:
        page_no = plan.position.page_no
        # A differential state may lack pairs after a restart of MariaDB, so only full ones are sure.
        state = plan.state if page_no == FULL_STATE_PAGE and plan.is_begun else None
        return EventGroupReader(
            self.disk,
            file_no=plan.position.file_no,
            page_no=page_no,
            state=state,
            end_watch=self._end_watch,
            at_step_back=self._misplacement.check,
        )

    def start_of_file(self, file_no: int | None = None) -> SeekPlan:
        return self.plan_of_file(file_no, self.state)

    def plan_of_file(self, file_no: int | None, current_state: Callable[[], GtidState]) -> SeekPlan:
        """As `start_of_file`."""
        numbers = self.file_numbers()
        if file_no is None:
            file_no = numbers[0]
        if file_no not in numbers:
            raise KeyError(file_no)
        pages = PageReader(self.disk, readahead_pages_max=1)
        full = read_state_record(pages, file_no, FULL_STATE_PAGE)
        state = GtidState()
        if full is None:
            state = current_state()
            full = read_state_record(pages, file_no, FULL_STATE_PAGE)  # if it began meanwhile, that was too late
        return SeekPlan(
            wanted=GtidPosition(),
            position=LogPosition.on_page(file_no, FULL_STATE_PAGE),
            state=state if full is None else GtidState(full.gtids),
            steps=(),
            page_reads=pages.page_reads,
            is_begun=full is not None,
        )

    def ranges(self, start: LogPosition, end: LogPosition, *, size: int) -> list[LogRange]:
        ranges: list[LogRange] = []
        for file_no in self.file_numbers():
            if start.file_no <= file_no <= end.file_no:
                first = start.offset if file_no == start.file_no else 0
                last = end.offset if file_no == end.file_no else WHOLE_FILE
                last = min(last, self.disk.size(format_file_name(file_no)))
                if last <= PAGE_SIZE:
                    self._check_without_pages(file_no)
                header = self.header(file_no) if last > size else None  # of one range its reader checks the header
                ranges += ranges_of_file(file_no, header, first, last, size=size)
        return ranges

    def _check_without_pages(self, file_no: int) -> None:
        check_not_cut(self.disk, file_no)

    def groups_in(self, log_range: LogRange, *, on_fault: OnFault | None = None) -> Iterator[EventGroup]:
        return groups_in_range(self.disk, log_range, on_fault)

    def wait_for_growth(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while not (has_grown := self._has_grown()) and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, POLL_PERIOD_S))
        return has_grown

    def _has_grown(self) -> bool:
        """Whether the end has moved since the last call, False at first; damage wakes readers, too."""
        with self._at_end() as (_, tail):
            end, stopped_at = tail.position, tail.stopped_at
            has_grown = self._seen_end is not None and end != self._seen_end
            self._seen_end = end
        return self._is_behind(stopped_at) or has_grown

    def meets_damage(self) -> bool:
        with self._at_end() as (_, tail):
            stopped_at = tail.stopped_at
        return self._is_behind(stopped_at)

    def _is_behind(self, stopped_at: LogPosition | None) -> bool:
        if stopped_at is not None and not self._is_end_known:
            try:
                self._end_watch.check(stopped_at)
            except FormatError:
                return True  # waiting readers are notified
        return self._end_watch.is_due()

    def _seen_last(self) -> tuple[GtidState, LogPosition]:
        """Not to be changed. Raises BlockingIOError: the end was not seen yet, or another thread looks."""
        seen = self._last_look
        if seen is None:
            if not self._lock.acquire(blocking=False):
                raise BlockingIOError(f"{self}: another thread is looking where the log ends")
            try:
                if self._state is None or self._tail is None:
                    raise BlockingIOError(f"{self}: the end of the log was not looked for yet")
                seen = self._last_look = self._state.copy(), self._tail.position
            finally:
                self._lock.release()
        return seen

    @contextlib.contextmanager
    def _at_end(self, *, only_cached: bool = False) -> Iterator[tuple[GtidState, EventGroupReader]]:
        """State and tail, exclusively. Raises BlockingIOError: with `only_cached`, it would have to look, or wait."""
        if not self._lock.acquire(blocking=not only_cached):
            raise BlockingIOError(f"{self}: somebody else is looking where the log ends")
        try:
            tail = None if self._state is None else self._tail
            if tail is None or not self._stands_still(tail, only_cached=only_cached):
                if only_cached:
                    raise BlockingIOError(f"{self}: the log has grown")
                self._catch_up()
            assert self._state is not None
            assert self._tail is not None
            yield self._state, self._tail
        finally:
            self._lock.release()

    def _stands_still(self, tail: EventGroupReader, *, only_cached: bool) -> bool:
        file_no, offset = tail.position
        if offset % PAGE_SIZE > DATA_SIZE - CHUNK_SIZE_MIN:
            offset += PAGE_SIZE - offset % PAGE_SIZE
        read = functools.partial(read_cached, self.disk) if only_cached else self.disk.read
        try:
            if read(format_file_name(file_no), offset, 1) not in NOTHING:
                return False
            numbers = self.file_numbers()
            if file_no < numbers[0]:
                return False
            return file_no + 1 not in numbers or read(format_file_name(file_no + 1), 0, 1) in NOTHING
        except MissingFileError:
            return False

    def _catch_up(self) -> None:
        self._last_look = None
        if self._tail is None or self._state is None or self._tail.position.file_no < self.file_numbers()[0]:
            self._state, self._tail = self._open_tail()
        while (group := self._tail.next_group()) is not None:
            if group.gtid is not None:
                self._state.log(group.gtid)
        self.reached = self._tail.position

    def _open_tail(self) -> tuple[GtidState, EventGroupReader]:
        pages = PageReader(self.disk, readahead_pages_max=1)
        file_no = self.active_file_no(pages)
        full = read_state_record(pages, file_no, FULL_STATE_PAGE)
        if full is None and file_no > self.file_numbers()[0]:  # it is about to be said what was before
            file_no -= 1
            full = read_state_record(pages, file_no, FULL_STATE_PAGE)
        if full is None and file_no > 0:
            raise StoreError(f"{self.disk}: {format_file_name(file_no)} does not say yet what was logged before it")
        header = pages.header(file_no)
        state, page_no = GtidState(full.gtids if full is not None else ()), FULL_STATE_PAGE
        interval = 0 if header is None else header.state_interval_pages
        size_pages = self.disk.size(format_file_name(file_no)) // PAGE_SIZE
        last_no = pages.last_with_data(file_no, size_pages) if interval else 0
        probes = range(interval, last_no + 1, interval or 1)
        if isinstance(self.disk, ExpectingDisk):
            self.disk.expect_reads(format_file_name(file_no), [probe * PAGE_SIZE for probe in probes])
        for probe in probes:
            record = read_state_record(pages, file_no, probe) if probe > FULL_STATE_PAGE else None
            if record is not None:
                # One on top of the other: after a restart MariaDB leaves out what was logged before it.
                state, page_no = state_at(state, record), probe
        watch = self._end_watch if self._is_end_known else None
        return state, EventGroupReader(self.disk, file_no=file_no, page_no=page_no, end_watch=watch)


class StrictDirectory(BinlogDirectory):
    def end(self, *, only_cached: bool = False) -> LogPosition:
        end = super().end(only_cached=only_cached)
        self.check_end(patience_s=PATIENCE_S, pages_max=STEP_PAGES)
        return end


class LenientDirectory(BinlogDirectory):
    """Takes what is there: files may be missing, and damaged groups are left out."""

    def file_numbers(self) -> list[int]:
        return self._numbers_in(self.disk.list())

    def _check_without_pages(self, file_no: int) -> None: ...

    def header(self, file_no: int) -> FileHeader | None:
        try:
            return super().header(file_no)
        except FormatError:
            return None

    def end(self, *, only_cached: bool = False) -> LogPosition:
        try:
            return super().end(only_cached=only_cached)
        except IbbMasterError:
            last = self.file_numbers()[-1]
            return LogPosition(last, self.disk.size(format_file_name(last)))

    def state(self, *, only_cached: bool = False) -> GtidState:
        try:
            return super().state(only_cached=only_cached)
        except IbbMasterError:
            groups = readable_groups(self, LOG_START, _leave_out)
            return GtidState(group.gtid for group in groups if group.gtid is not None)


def open_directory(path: Path | str, *, is_strict: bool) -> BinlogDirectory:
    return (StrictDirectory if is_strict else LenientDirectory)(open_disk(path))


def damage_handler(*, is_strict: bool) -> OnFault | None:
    """None makes damage an error."""
    return None if is_strict else _leave_out


def _leave_out(position: LogPosition, problem: str) -> None: ...


@contextlib.contextmanager
def kernel_source(log: LogEngine) -> Iterator[LogEngine]:
    """The log as kernels read it: its files, where they can."""
    with contextlib.closing(log.groups(log.start_of_file())) as groups:
        yield BinlogDirectory(groups.disk) if isinstance(groups, PagedEventGroups) else log


class MisplacementCheck:
    """Verifies a file once when its numbers go back, as without gtid_strict_mode they may. Thread-safe."""

    def __init__(self, disk: ReadDisk) -> None:
        self._disk = disk
        self._lock = threading.Lock()
        self._faults: dict[tuple[int, int], Fault | None] = {}

    def check(self, location: LogPosition) -> None:
        """A number goes back at or after this place. Raises RecordError: a page is in the wrong place."""
        is_closed = PageReader(self._disk).header(location.file_no + 1) is not None
        key = location.file_no, -1 if is_closed else location.page_no // CHECKED_PAGES
        with self._lock:
            if key not in self._faults:
                self._faults[key] = self._find(location.file_no, is_closed=is_closed)
            fault = self._faults[key]
        if fault is not None:
            raise RecordError(fault.location or location, fault.problem)

    def _find(self, file_no: int, *, is_closed: bool) -> Fault | None:
        numbers = [file_no, file_no + 1] if is_closed else [file_no]
        names = self._disk.list()
        if any(format_file_name(number) not in names for number in numbers):
            return None
        from .verify import Part, verify_part  # here: who plans a query starts soon

        faults, _ = verify_part(self._disk, Part(numbers, is_last=not is_closed))
        return next((fault for fault in faults if fault.is_damage and fault.is_misplaced), None)
