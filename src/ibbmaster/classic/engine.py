"""Traditional binlog files as a binlog to read: served as they are, without being imported."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ibbmaster.classic.binlog import ClassicReader
from ibbmaster.classic.groups import HEAD_BLOCK_SIZE, ClassicFileReader
from ibbmaster.classic.series import ClassicFile, find_series
from ibbmaster.classic.window import EventWindow
from ibbmaster.errors import IbbMasterError, PositionPurgedError
from ibbmaster.event.group import EventGroup
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.log.interface import LogEngine, LogFile, OnFault, ReadPlan
from ibbmaster.log.log_range import LogRange
from ibbmaster.log.seek import explain_purged
from ibbmaster.position import LogPosition

FIRST_EVENT_OFFSET = 4  # behind the magic number


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicHead(ReadPlan):
    """What the head of a file says."""

    server_version: str


class ClassicBinlog(LogEngine):
    """The read side of traditional files, which must not grow meanwhile. Thread-safe.

    A GTID position is found by what the GTID_LIST at the head of each file says; inside the
    file whoever reads passes over what the replica has.

    Raises:
        ClassicFormatError: when heads are needed: a file does not begin as a traditional binlog, or is encrypted.
        StoreError: the files do not belong together, or one is missing.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._files = find_series(paths)
        self._lock = threading.Lock()  # for the state below
        self._state: GtidState | None = None

    def close(self) -> None:
        """Nothing is kept open."""

    @property
    def server_version(self) -> str:
        """Of the server that wrote the last file."""
        return self._heads[-1].server_version

    def files(self) -> list[LogFile]:
        return [LogFile(file_no=file.index, name=file.name, size=file.size_bytes) for file in self._files]

    def file_name(self, file_no: int) -> str:
        return self._files[file_no].name

    def end(self, *, only_cached: bool = False) -> LogPosition:
        return LogPosition(self._files[-1].index, self._files[-1].size_bytes)

    def state(self, *, only_cached: bool = False) -> GtidState:
        if only_cached and self._state is None:
            raise BlockingIOError("the last file has to be read")
        with self._lock:
            if self._state is None:
                reader = ClassicReader(self._files[-1:])
                for _ in reader.groups():
                    pass
                self._state = reader.state
            return self._state.copy()

    def seek(self, position: GtidPosition, *, only_cached: bool = False) -> ReadPlan:
        for head in reversed(self._heads):
            if head.state.is_before(position):
                return head
        raise PositionPurgedError(explain_purged(position, self._files[0].name, self._heads[0].state))

    def start_of_file(self, file_no: int | None = None) -> ReadPlan:
        if not 0 <= (file_no or 0) < len(self._files):
            raise KeyError(file_no)
        return self._heads[file_no or 0]

    def groups(self, plan: ReadPlan) -> ClassicGroups:
        return ClassicGroups(ClassicReader(self._files[plan.position.file_no :]), plan.position)

    def wait_for_growth(self, timeout_s: float) -> bool:
        time.sleep(timeout_s)
        return False

    def ranges(self, start: LogPosition, end: LogPosition, *, size: int) -> list[LogRange]:
        if end >= self.end():
            end = LogPosition(len(self._files), 0)  # the size of a packed file is no offset in it
        return super().ranges(start, end, size=size)

    def groups_in(
        self,
        log_range: LogRange,
        *,
        on_fault: OnFault | None = None,
        take: Callable[[EventWindow], bool] | None = None,
    ) -> Iterator[EventGroup]:
        """As `LogEngine` has it; `take` is that of `ClassicFileReader.groups`."""
        reader = None
        try:
            reader = ClassicFileReader(self._files[log_range.file_no])
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

    @cached_property
    def _heads(self) -> list[ClassicHead]:
        return [_read_head(file) for file in self._files]


def _read_head(file: ClassicFile) -> ClassicHead:
    reader = ClassicFileReader(file, block_size=HEAD_BLOCK_SIZE)
    reader.close()
    return ClassicHead(
        position=LogPosition(file.index, FIRST_EVENT_OFFSET),
        state=reader.start_state or GtidState(),
        server_version=reader.server_version,
    )


class ClassicGroups:
    """The groups from the head of a file on, for one reader."""

    def __init__(self, reader: ClassicReader, position: LogPosition) -> None:
        self._groups = reader.groups()
        self.position = position

    def close(self) -> None:
        """Close the file."""
        self._groups.close()

    def next_group(self) -> EventGroup | None:
        """The next group, or None at the end of the last file."""
        group = next(self._groups, None)
        if group is not None:
            self.position = group.end
        return group
