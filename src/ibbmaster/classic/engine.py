"""Traditional binlog files as a binlog to read: served as they are, without being imported."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ibbmaster.classic.binlog import ClassicReader
from ibbmaster.classic.groups import ClassicFileReader
from ibbmaster.classic.head import head_of
from ibbmaster.classic.series import ClassicFile, find_series
from ibbmaster.classic.window import EventWindow
from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import IbbMasterError, PositionPurgedError
from ibbmaster.event.group import EventGroup
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.kernel.loading import kernels
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
    file the reader skips what the replica has.

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

    def server_version_of(self, file_no: int) -> str:
        """Of the server that wrote a file."""
        return self._heads[file_no].server_version

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
                self._state = self._last_state()
            return self._state.copy()

    def _last_state(self) -> GtidState:
        """What is logged at the end of the last file."""
        ready = kernels()
        with contextlib.closing(self.groups(self._heads[-1])) as groups:
            while groups.next_group() is not None:
                if ready is not None:
                    from ibbmaster.classic.framing import skip_groups

                    skip_groups(groups, ready)
            return groups.state

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
        return ClassicGroups(ClassicReader(self._files[plan.position.file_no :], plan.state), plan.position)

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
    head = head_of(file)
    return ClassicHead(
        position=LogPosition(file.index, FIRST_EVENT_OFFSET),
        state=head.state or GtidState(),
        server_version=head.server_version,
        is_restart=head.is_restart,
    )


class ClassicGroups:
    """The groups from the head of a file on, for one reader."""

    def __init__(self, reader: ClassicReader, position: LogPosition) -> None:
        self._reader = reader
        self._groups = reader.groups()
        self.position = position

    def close(self) -> None:
        """Close the file."""
        self._groups.close()

    @property
    def state(self) -> GtidState:
        """What is logged up to the last group that was read."""
        return self._reader.state

    def next_group(self) -> EventGroup | None:
        """The next group, or None at the end of the last file."""
        group = next(self._groups, None)
        if group is not None:
            self.position = group.end
        return group

    # For callers that read groups themselves, from the file of the last group.

    @property
    def is_in_file(self) -> bool:
        """Whether a file is open, and read up to `position`; not behind a group that came in pieces."""
        file = self._reader.current
        return file is not None and file.is_at_group_end and file.window.offset == self.position.offset

    @property
    def is_cut(self) -> bool:
        """Whether the last group was not read as a whole."""
        return not self._file.is_at_group_end

    @property
    def is_in_use(self) -> bool:
        """Whether its server has not closed the file: what it ends with may be no whole group."""
        return self._file.is_in_use

    @property
    def checksum_size(self) -> int:
        """Bytes of the checksum at the end of each event."""
        return self._file.window.checksum_size

    @property
    def descriptor(self) -> int | None:
        """Of the open file, if its bytes are those of the binlog."""
        return self._file.window.source.descriptor

    @property
    def file_size(self) -> int:
        """In bytes; of a packed file more than any has."""
        return self._file.window.source.size_bytes

    def read_into(self, offset: int, target: memoryview) -> int:
        """Fill `target` from the file, to its end at most; returns how many bytes that were.

        Raises:
            ClassicFormatError: a packed file is damaged or cut short.
        """
        return self._file.window.source.read_into(offset, target)

    def check_log(self) -> None:
        """The files are those that were found at first."""

    def pass_over(
        self,
        position: LogPosition,
        gtids: Iterable[Gtid],
        *,
        head: Buffer | None = None,
        is_inside_record: bool = False,
        record_type: int = -1,
    ) -> None:
        """Continue between groups of the same file; `gtids` are the last of each pair on the way."""
        self._file.pass_over(position.offset)
        for gtid in gtids:
            self._reader.state.log(gtid)
        self.position = position

    @contextlib.contextmanager
    def group_at(self, position: LogPosition) -> Iterator[EventGroup]:
        """The group at a position of the same file, by a reader of its own.

        Raises:
            ClassicFormatError: it is damaged.
        """
        with contextlib.closing(ClassicFileReader(self._file.file)) as reader:
            reader.window.go_to(position.offset)
            group = next(reader.groups(), None)
            if group is None:
                raise reader.window.error(position.offset, "the file ends inside what begins here")
            yield group

    @property
    def _file(self) -> ClassicFileReader:
        assert self._reader.current is not None
        return self._reader.current
