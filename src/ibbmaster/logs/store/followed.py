"""A directory that another process may write, read and followed without writing to it.

It may be empty at first, and its file system read-only. What is durable and not in the files yet comes from the redo
log."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from ibbmaster import errors
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.logs.log.directory import BinlogDirectory, StrictDirectory
from ibbmaster.logs.log.event_groups import EventGroupReader
from ibbmaster.logs.log.interface import LogEngine, LogFile, OnFault, ReadPlan
from ibbmaster.logs.log.log_range import LogRange
from ibbmaster.logs.log.observer import Picture
from ibbmaster.logs.log.seek import SeekPlan
from ibbmaster.logs.log.states import FULL_STATE_PAGE
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.storage.disk.interface import DiskLayer, ExpectingDisk, ReadDisk, SharedDisk, Watch
from ibbmaster.storage.ibb.chunk import CHUNK_SIZE_MIN
from ibbmaster.storage.ibb.file_name import format_file_name, parse_file_name
from ibbmaster.storage.ibb.page import DATA_SIZE, PAGE_SIZE
from .followed_files import COMPLETE_FILES, FollowedIbbFiles, IbbFile
from .redo_log import read_durable_end, scan_redo
from .redo_names import SEGMENT_NAMES
from .redo_tail import RedoTail
from .store_reader import StoreReader

log = logging.getLogger(__name__)

LOOK_PERIOD_S = 0.1
PATIENCE_S = 30.0  # for a range that only another process has seen so far
PERIOD_S = 0.02
REDO_PERIOD_S = 1.0  # about as often a writer brings its redo log to its files

_BEGIN = LogPosition.on_page(0, FULL_STATE_PAGE)  # of a log that does not exist yet

Answer = TypeVar("Answer")
Stamp = tuple[tuple[float, int], ...]


class FollowedDirectory(LogEngine):
    """A binlog in a directory, as it grows, is purged or reset. Thread-safe. `make` makes the reader of a directory
    whose redo log adds nothing to its files. Raises StoreError, FormatError, on first use and not when made: the
    directory holds no binlog that can be read; an empty one is no error."""

    def __init__(self, disk: SharedDisk, *, make: Callable[[ReadDisk], BinlogDirectory] = BinlogDirectory) -> None:
        self._disk = disk
        self._make = make
        self._view = _View(disk)
        self._watch: Watch | None = None
        self._lock = threading.RLock()  # for everything below
        self._log: BinlogDirectory | None = None
        self._files: FollowedIbbFiles | None = None
        self._picture: Picture[IbbFile] | None = None  # of the last look
        self._sizes: dict[int, int] = {}  # of present and past files
        self._oldest = 0
        self._reset_count = 0
        self._seen: tuple[LogPosition, int] | None = None
        self._looked_at = self._redo_looked_at = float("-inf")
        self._redo_stamp: Stamp | None = None  # of the examined redo log without a writer
        self._durable_lsn: int | None = None  # that was followed to

    def __str__(self) -> str:
        return str(self._disk)

    def close(self) -> None:
        files, self._files, self._picture = self._files, None, None
        if files is not None:
            files.close()
        self._disk.close()

    def files(self) -> list[LogFile]:
        found = self._ask(lambda opened: opened.files())
        return [LogFile(file_no=0, name=format_file_name(0), size=0)] if found is None else found

    def file_name(self, file_no: int) -> str:
        return format_file_name(file_no)

    def end(self, *, only_cached: bool = False) -> LogPosition:
        return self._ask(lambda opened: opened.end(only_cached=only_cached), only_cached=only_cached) or _BEGIN

    def state(self, *, only_cached: bool = False) -> GtidState:
        found = self._ask(lambda opened: opened.state(only_cached=only_cached), only_cached=only_cached)
        return found or GtidState()

    def seek(self, position: GtidPosition, *, only_cached: bool = False) -> SeekPlan:
        resets = self._reset_count
        plan = self._ask(lambda opened: opened.seek(position, only_cached=only_cached), only_cached=only_cached)
        plan = plan or _empty_plan(position)
        return replace(plan, resets=resets) if resets else plan

    def start_of_file(self, file_no: int | None = None) -> SeekPlan:
        resets = self._reset_count
        found = self._ask(lambda opened: opened.start_of_file(file_no))
        if found is None and file_no:
            raise KeyError(file_no)
        return replace(found or _empty_plan(GtidPosition()), resets=resets)

    def groups(self, plan: ReadPlan) -> FollowedReader:
        with self._lock:
            return FollowedReader(self._directory().groups(plan), self, plan.resets)

    def wait_for_growth(self, timeout_s: float) -> bool:
        deadline, watch = time.monotonic() + timeout_s, self._disk.watch()
        while True:
            self.look()
            has_moved = self._has_moved()
            opened = self._log
            if not has_moved and opened is not None:
                with contextlib.suppress(errors.MissingFileError):  # the next look shows what happened
                    has_moved = opened.meets_damage()
            left = deadline - time.monotonic()
            if has_moved or left <= 0:
                return has_moved
            if watch.wait(min(left, LOOK_PERIOD_S)):
                with self._lock:
                    self._follow_redo()
                if self._log is not None and self._has_moved():
                    return True  # the next call looks at the files first
            elif time.monotonic() >= deadline:
                return False  # nothing was written since the look above

    def _has_moved(self) -> bool:
        end = self._ask(lambda opened: opened.end(), looks=False) or _BEGIN
        with self._lock:
            seen = end, self._reset_count
            has_moved, self._seen = self._seen not in (None, seen), seen
        return has_moved

    def _ask(
        self, question: Callable[[BinlogDirectory], Answer], *, only_cached: bool = False, looks: bool = True
    ) -> Answer | None:
        if only_cached:
            return self._ask_at_once(question)
        if looks:
            self.look()
        for attempt in range(2):
            opened = self._log
            reached = None if opened is None else opened.reached
            try:
                if self._seen is None:  # growth counts from the first answer on
                    self._seen = _BEGIN if opened is None else opened.end(), self._reset_count
                answer = None if opened is None else question(opened)
                if opened is not None and opened.reached != reached:
                    self._glance(is_urgent=True)  # to know what was read
                return answer
            except errors.StoreError:  # purged, or reset, between two steps
                if attempt:
                    raise
                self.look(is_urgent=True)
        return None

    def _directory(self) -> BinlogDirectory:
        view = self._view
        if view.tail is None:
            return self._make(view)
        return BinlogDirectory(view, known_end=lambda: None if view.tail is None else view.tail.mark)

    def _ask_at_once(self, question: Callable[[BinlogDirectory], Answer]) -> Answer:
        self._glance()
        opened = self._log
        if opened is not None and self._seen is not None:
            try:
                return question(opened)
            except errors.StoreError:  # purged, or reset
                pass
        raise BlockingIOError(f"{self}: the log has to be looked for")

    def look(self, *, is_urgent: bool = False) -> None:
        """See what is durable and which files there are, if the last look was some time ago. At first it reads a redo
        log from its last checkpoint on, which may take long: for a worker thread."""
        with self._lock:
            now = time.monotonic()
            is_urgent |= self._follow_redo()
            if is_urgent or now - self._redo_looked_at >= REDO_PERIOD_S:
                self._redo_looked_at = now
                is_urgent |= self._take_over_redo()
            self._look_at_files(is_urgent=is_urgent)

    def _glance(self, *, is_urgent: bool = False) -> None:
        """As `look`, without the redo log, and not while another thread looks."""
        if self._lock.acquire(blocking=False):
            try:
                self._look_at_files(is_urgent=is_urgent)
            finally:
                self._lock.release()

    def _look_at_files(self, *, is_urgent: bool) -> None:
        if not is_urgent and time.monotonic() - self._looked_at < LOOK_PERIOD_S:
            return
        self._looked_at = time.monotonic()
        names = self._view.list()
        if self._files is None:
            if not any(parse_file_name(name) is not None for name in names):
                return
            self._files = FollowedIbbFiles(
                self._disk, self._view, lambda: None if self._log is None else self._log.reached
            )
        files, before = self._files, self._picture
        picture = self._picture = files.look()
        if before is not None and picture.resets != before.resets:
            self._begin_anew()
        if before is None or picture.life != before.life:
            self._log = None
            if before is not None:
                self._sizes.pop(before.last.number, None)
        numbers = files.numbers()
        if not numbers:
            self._log, self._oldest = None, 0
            return
        if self._log is None:
            self._log = self._directory()
        self._oldest = picture.first.number
        for file_no in reversed(numbers):
            if file_no in self._sizes and file_no < numbers[-1] - COMPLETE_FILES:
                break
            with contextlib.suppress(errors.MissingFileError):
                self._sizes[file_no] = self._view.size(format_file_name(file_no))

    @property
    def unfinished(self) -> str | None:
        return None if self._files is None else self._files.awaited

    @property
    def life(self) -> int:
        """Changes when something of the log was taken away."""
        return 0 if self._picture is None else self._picture.life

    def is_begun(self, file_no: int) -> bool:
        """Whether a file belongs to the log: a file after it may lack its header."""
        return self._picture is not None and file_no <= self._picture.last.number

    def waits(self, file_no: int, life: int) -> bool:
        return self._files is not None and self._files.waits(file_no, life)

    def check(self, position: LogPosition, resets: int) -> None:
        """Whether a reader of the log after this number of resets may continue at a position. Raises
        PositionPurgedError: the log was begun anew, or the next groups are gone."""
        with contextlib.suppress(errors.MissingFileError):  # perhaps it will come
            self._glance()
        file_no, offset = position
        if resets != self._reset_count:
            raise errors.LogResetError("the log was reset while it was read")
        if file_no < self._oldest:
            size = self._sizes.get(file_no)
            if size is None:  # perhaps it was not complete when it was removed
                raise errors.LogResetError(f"{format_file_name(file_no)} was removed before its end was seen")
            is_done = offset + PAGE_SIZE - DATA_SIZE + CHUNK_SIZE_MIN > size
            if not is_done or file_no + 1 < self._oldest:
                raise errors.PositionPurgedError(f"{format_file_name(file_no)} was removed while it was read")

    @property
    def reset_count(self) -> int:
        return self._reset_count

    def _follow_redo(self) -> bool:
        durable_lsn = read_durable_end(self._disk)
        if durable_lsn is None or durable_lsn == self._durable_lsn:
            return False
        tail = self._view.tail
        if tail is None and not self._disk.is_locked():
            self._durable_lsn = durable_lsn
            return False
        try:
            reset_count = 0 if tail is None else tail.reset_count
            if tail is None or not tail.follow(durable_lsn):
                scan = scan_redo(self._disk, end_lsn=durable_lsn)
                if scan is None or scan.end_lsn < durable_lsn:
                    return False  # segments were begun anew amid the scan: the next look repeats it
                self._show(RedoTail(self._disk, scan))
            elif tail.reset_count != reset_count:
                self._files = self._picture = None
                self._begin_anew()
        except (errors.DamageError, errors.MissingFileError):
            return False  # read amid a change: the next look finds the rest
        self._durable_lsn = durable_lsn
        return self._log is None

    def _take_over_redo(self) -> bool:
        stamp = self._stamp()
        if stamp == self._redo_stamp:
            return False
        if not stamp:
            self._redo_stamp = stamp
            self._show(None)
            return True
        if self._disk.is_locked():
            return False
        for name in SEGMENT_NAMES:
            with contextlib.suppress(errors.MissingFileError):
                self._disk.make_durable(name)
        from .redo_check import check_redo  # seldom needed

        report = check_redo(self._disk)
        scan = None if report is None or report.problem is not None else scan_redo(self._disk)
        tail = None if scan is None else RedoTail(self._disk, scan)
        if self._stamp() != stamp or self._disk.is_locked():
            return False  # a writer came meanwhile, and its records need not be durable
        self._redo_stamp = stamp
        self._show(tail)
        if report is not None and report.problem is not None:
            log.warning("%s: its redo log is left out: %s", self, report.problem)
        elif report is not None and report.group_count:
            log.warning(
                "%s: %d groups are in the redo log of a writer that is gone, and are served from there; "
                "`ibbmaster recover` or `serve --own` brings them into the files",
                self,
                report.group_count,
            )
        return True

    def _show(self, tail: RedoTail | None) -> None:
        self._view.tail = tail
        self._log = None

    def _begin_anew(self) -> None:
        self._reset_count += 1
        self._sizes.clear()
        self._log = None
        log.info("%s: the log was begun anew", self)

    def _stamp(self) -> Stamp:
        """Changes whenever a writer writes to the redo log; empty without one."""
        names = set(self._disk.list())
        try:
            return tuple(
                (self._disk.modified_at(name), self._disk.size(name)) for name in SEGMENT_NAMES if name in names
            )
        except errors.MissingFileError:
            return ()


class WrittenDirectory(FollowedDirectory):
    def __init__(self, disk: SharedDisk) -> None:
        super().__init__(disk, make=StrictDirectory)

    def ranges(self, start: LogPosition, end: LogPosition, *, size: int) -> list[LogRange]:
        return self._ask(lambda opened: opened.ranges(start, end, size=size)) or []

    def groups_in(self, log_range: LogRange, *, on_fault: OnFault | None = None) -> Iterator[EventGroup]:
        return self.opened_to(log_range).groups_in(log_range, on_fault=on_fault)

    def opened_to(self, log_range: LogRange) -> BinlogDirectory:
        """Waits a while for a range that another process has seen. Raises StoreError: there is no log."""
        end = LogPosition(log_range.file_no, log_range.end_offset)
        deadline = time.monotonic() + PATIENCE_S
        while (self._ask(lambda opened: opened.end()) or end) < end and time.monotonic() < deadline:
            time.sleep(PERIOD_S)  # a writer was amid a change
            self.look(is_urgent=True)
        return self._log or StrictDirectory(self._disk)


class FollowedReader(StoreReader):
    """Groups for one reader of a directory with another owner, who may remove files under it."""

    def __init__(self, reader: EventGroupReader, directory: FollowedDirectory, began_at: int) -> None:
        super().__init__(reader, resets=lambda: directory.reset_count, began_at=began_at, closed=lambda reader: None)
        self._directory = directory
        self._life = directory.life

    def check_log(self) -> None:
        self._directory.check(self.position, self._began_at)

    def next_group(self, *, only_cached: bool = False) -> EventGroup | None:
        before = self.position
        if self._has_to_wait():
            self.check_log()
            if only_cached:
                raise BlockingIOError("another process begins the file again")
            if self._has_to_wait():
                return None
        try:
            group = super().next_group(only_cached=only_cached)
        except errors.IbbMasterError as error:
            with contextlib.suppress(errors.MissingFileError):
                self._directory.look(is_urgent=True)
            self.check_log()  # a purge or reset under a reader is no damage
            is_to_come = isinstance(error, errors.FormatError) and not self._directory.is_begun(error.location.file_no)
            if not (is_to_come or self._has_to_wait()):
                raise
            if only_cached:
                raise BlockingIOError(str(error)) from None  # a reader with time finds nothing
            return None
        if self.position.file_no != before.file_no:  # the rest of the file may have been gone
            self._directory.look(is_urgent=True)
            self._directory.check(before, self._began_at)
        return group

    def _has_to_wait(self) -> bool:
        """Whether another process was beginning the file again."""
        return self._directory.waits(self.position.file_no, self._life)

    @property
    def log_identity(self) -> Hashable:
        return None if self._has_to_wait() else (self._began_at, self._life)


class _View(DiskLayer):
    tail: RedoTail | None = None

    def _below(self) -> ReadDisk:
        tail = self.tail
        return self._disk if tail is None else tail.pages

    def list(self) -> Sequence[str]:
        names, tail = self._disk.list(), self.tail
        if tail is None:
            return names
        last_file_no = tail.mark.file_no + 1  # later ones are of a log that was reset
        return [name for name in names if (parse_file_name(name) or 0) <= last_file_no]

    def expect_reads(self, name: str, offsets: Sequence[int]) -> None:
        if isinstance(shown := self._below(), ExpectingDisk):
            shown.expect_reads(name, offsets)


def _empty_plan(position: GtidPosition) -> SeekPlan:
    return SeekPlan(wanted=position, position=_BEGIN, state=GtidState(), steps=(), page_reads=0)
