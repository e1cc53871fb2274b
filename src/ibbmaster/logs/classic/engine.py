"""Traditional binlog files as a log to read: served as they are, without an import."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ibbmaster.errors import GapError, IbbMasterError, MissingFileError, PositionPurgedError
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.logs.log.fault import Fault, Totals
from ibbmaster.logs.log.interface import FileEngine, LogFile, OnFault, ReadPlan
from ibbmaster.logs.log.log_range import WHOLE_FILE, LogRange
from ibbmaster.logs.log.observer import Picture
from ibbmaster.logs.log.seek import explain_purged
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.format_description import ChecksumAlgorithm
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.storage.disk.place import place
from ibbmaster.storage.disk.watch import DirectoryWatch
from .binlog import ClassicGroups, ClassicReader
from .following import FollowedFiles, told_if_purged
from .groups import ClassicFileReader
from .head import is_gap, missing_between
from .series import FIRST_EVENT_OFFSET, ClassicFile, read_whole
from .stored_file import StoredFileState, file_state
from .stored_groups import StoredGroups
from .window import BlockWindow, EventWindow

LOOKS_MAX = 5  # while files change under the reader of their end


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicRange(LogRange):
    """A range of a traditional file for another process, which finds the file by its name."""

    file_name: str  # which a reader of the range numbers as `file_no`
    path: str
    size_bytes: int  # when it was planned
    group_offset: int = 0  # from which the range can be read; 0: only from the head

    @property
    def length(self) -> int:
        return max(0, min(self.end_offset, self.size_bytes) - self.start_offset)


class _Tail(NamedTuple):
    picture: Picture[ClassicFile]
    position: LogPosition
    state: GtidState


class ClassicBinlog(FileEngine):
    """The read side of traditional files, which others may extend. Thread-safe. It finds a GTID position by the
    GTID_LISTs at the heads of files; inside one the reader skips. Paths and errors as in `FollowedFiles`."""

    def __init__(
        self, paths: Iterable[Path], *, reads_heads_at_once: bool = True, series: FollowedFiles | None = None
    ) -> None:
        """`series` takes the place of files that `paths` name."""
        self._series = series or FollowedFiles(paths, reads_heads_at_once=reads_heads_at_once)
        self._lock = threading.Lock()
        self._tail: _Tail | None = None
        self._watch: DirectoryWatch | None = None
        self._seen: Picture[ClassicFile] | None = None

    def close(self) -> None:
        self._series.close()
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()

    @property
    def server_version(self) -> str:
        return self._series.head(self._series.last).server_version

    @property
    def checksum_algorithm(self) -> ChecksumAlgorithm:
        has_checksums = self._series.head(self._series.last).has_checksums
        return ChecksumAlgorithm.CRC32 if has_checksums else ChecksumAlgorithm.NONE

    def server_version_of(self, file_no: int) -> str:
        return self._series.head(self._series.file(file_no)).server_version

    def files(self) -> list[LogFile]:
        return self._series.listed()

    def file_name(self, file_no: int) -> str:
        return self._series.name(file_no)

    def end(self, *, only_cached: bool = False) -> LogPosition:
        """After the last whole group once the state was asked for; before that the end of the last file."""
        if self._tail is None:
            last = self._series.look().last
            return LogPosition(last.index, last.size_bytes)
        return self._read_tail(only_cached=only_cached).position

    def state(self, *, only_cached: bool = False) -> GtidState:
        return self._read_tail(only_cached=only_cached).state.copy()

    def _read_tail(self, *, only_cached: bool) -> _Tail:
        if not self._lock.acquire(blocking=not only_cached):
            raise BlockingIOError("the end of the log is being read")
        try:
            for tries_left in reversed(range(LOOKS_MAX)):
                picture = self._series.look(only_cached=only_cached)
                if self._tail is not None and picture is self._tail.picture:
                    return self._tail
                if only_cached:
                    raise BlockingIOError("the last file has to be read")
                try:
                    from .framing import read_all

                    with contextlib.closing(self._behind_tail(picture)) as groups:
                        read_all(groups)
                        self._tail = _Tail(picture, groups.position, groups.state)
                    return self._tail
                except PositionPurgedError:
                    self._tail = None
                    if not tries_left:
                        raise
            raise AssertionError("each look was answered")
        finally:
            self._lock.release()

    def _behind_tail(self, picture: Picture[ClassicFile]) -> StoredGroups:
        series, tail = self._series, self._tail
        if tail is None or tail.picture.life != picture.life or picture.file(tail.position.file_no) is None:
            plan = self._head(picture.last)
            return StoredGroups(series, plan.position, plan.state)
        return StoredGroups(series, tail.position, tail.state, tail.position.offset, knows_state=True)

    def seek(self, position: GtidPosition, *, only_cached: bool = False) -> ReadPlan:
        series = self._series

        def is_before(file: ClassicFile) -> bool:
            state = series.head(file).state
            return state is None or state.is_before(position)

        def may_be_before(file: ClassicFile) -> bool:
            try:
                return is_before(file)
            except IbbMasterError:
                return True  # an error only for a replica that begins up to there

        series.look(only_cached=only_cached)
        growing = series.growing()
        while True:
            count = bisect_left(growing, True, key=lambda file: not may_be_before(file))
            known, growing = growing, series.growing()
            if len(growing) >= len(known):  # so do the states that were read
                break
        if count:
            return self._head(known[count - 1])
        for file in reversed(series.from_file(0)):
            if is_before(file):
                return self._head(file)
        first = series.first
        raise PositionPurgedError(explain_purged(position, first.name, self._head(first).state))

    def start_of_file(self, file_no: int | None = None) -> ReadPlan:
        return self._head(self._series.first if file_no is None else self._series.file(file_no))

    def groups(self, plan: ReadPlan) -> ClassicGroups:
        self._series.check(plan.resets)
        first = self._series.file(plan.position.file_no)
        return ClassicGroups(ClassicReader(self._series.from_file(first.index), plan.state), plan.position)

    def stored_groups(self, plan: ReadPlan, offset: int = FIRST_EVENT_OFFSET) -> StoredGroups:
        self._series.check(plan.resets)
        return StoredGroups(self._series, plan.position, plan.state, offset)

    @property
    def reset_count(self) -> int:
        return self._series.picture.resets

    @property
    def unfinished(self) -> str | None:
        return self._series.unfinished

    def wait_for_growth(self, timeout_s: float) -> bool:
        if self._watch is None:
            self._watch = DirectoryWatch(self._series.last.path.parent)
        deadline = time.monotonic() + timeout_s
        while True:
            picture, seen = self._series.look(), self._seen
            if picture is not seen:
                self._seen = picture
                return seen is not None
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._watch.wait(left)

    def check_numbers(self) -> None:
        """Raises GapError: a file is missing between the first and the last."""
        for before, file in itertools.pairwise(self._series.from_file(0)):
            if is_gap(before, file):
                gap = missing_between(before, file)
                raise GapError(file.name, FIRST_EVENT_OFFSET, gap, gap)

    def ranges(self, start: LogPosition, end: LogPosition, *, size: int) -> list[LogRange]:
        if end >= self.end():
            end = LogPosition(self._series.last.index + 1, 0)
        ranges: list[LogRange] = []
        for file in self._series.from_file(start.file_no):
            first = start.offset if file.index == start.file_no else 0
            last = end.offset if file.index == end.file_no else WHOLE_FILE
            if file.index <= end.file_no and first < last:
                ranges.append(
                    ClassicRange(
                        file_no=file.index,
                        start_offset=first,
                        end_offset=last,
                        file_name=file.name,
                        path=str(file.path),
                        size_bytes=file.size_bytes,
                    )
                )
        return ranges

    @classmethod
    def of_range(cls, log_range: ClassicRange) -> ClassicBinlog:
        """Does not list the directory, which may be long. Raises PositionPurgedError: the file is gone."""
        path = place(log_range.path)
        try:
            return cls([path])
        except MissingFileError:
            if not path.parent.exists():
                raise
            raise PositionPurgedError(f"{log_range.file_name} was purged") from None

    def groups_in(
        self, log_range: LogRange, *, on_fault: OnFault | None = None, take: Callable[[EventWindow], bool] | None = None
    ) -> Iterator[EventGroup]:
        """`take` is that of `ClassicFileReader.groups`."""
        reader = None
        try:
            file = self._file_of(log_range)
            with told_if_purged(file):
                reader = ClassicFileReader(file, reads_on=log_range.start_offset <= FIRST_EVENT_OFFSET)
            if isinstance(log_range, ClassicRange) and log_range.group_offset:
                reader.window.go_to(log_range.group_offset)
            for group in reader.groups(take):
                if group.start.offset >= log_range.end_offset:
                    return
                if log_range.holds(group.start):
                    yield group
        except IbbMasterError as error:
            if on_fault is None:
                raise
            on_fault(LogPosition(log_range.file_no, getattr(error, "file_offset", 0)), str(error))
        finally:
            if reader is not None:
                reader.close()

    def whole_window(self, log_range: LogRange, memory: memoryview) -> BlockWindow | None:
        """The file of a range in memory; None unless the range is all of it, and small. Raises StoreError."""
        file = self._file_of(log_range)
        if log_range.start_offset > FIRST_EVENT_OFFSET or log_range.end_offset < file.size_bytes:
            return None
        size = read_whole(file, memory)
        return None if size is None else BlockWindow(file, memory[:size])

    def _file_of(self, log_range: LogRange) -> ClassicFile:
        if isinstance(log_range, ClassicRange):
            self._series.number_as(log_range.file_name, log_range.path, log_range.file_no)
        return self._series.file(log_range.file_no)

    def paths(self) -> list[Path]:
        self._series.look()
        return [file.path for file in self._series.from_file(0)]

    def file_states(self) -> list[StoredFileState]:
        """Raises ClassicFormatError: a head cannot be read."""
        self._series.look()
        return [file_state(file) for file in self._series.from_file(0)]

    def verify(self, totals: Totals, on_bytes: Callable[[int], object], *, jobs: int = 1) -> Iterator[Fault]:
        self._series.look()
        from .verifying import verify_files  # here: planning a query starts quickly

        return verify_files(self._series, totals, on_bytes, jobs=jobs)

    def _head(self, file: ClassicFile) -> ReadPlan:
        head = self._series.head(file)
        return ReadPlan(
            position=LogPosition(file.index, FIRST_EVENT_OFFSET),
            state=head.state or GtidState(),
            resets=self._series.picture.resets,
            is_restart=head.is_restart,
        )
