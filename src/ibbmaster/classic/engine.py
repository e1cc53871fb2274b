"""Traditional binlog files as a binlog to read: served as they are, without being imported."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from pathlib import Path

from ibbmaster.classic.binlog import ClassicReader
from ibbmaster.classic.groups import HEAD_BLOCK_SIZE, ClassicFileReader
from ibbmaster.classic.series import ClassicFile, find_series
from ibbmaster.errors import PositionPurgedError
from ibbmaster.event.group import EventGroup
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.log.engine import BinlogEngine, BinlogFile, ReadPlan
from ibbmaster.log.seek import explain_purged
from ibbmaster.position import LogPosition

FIRST_EVENT_OFFSET = 4  # behind the magic number


class ClassicBinlog(BinlogEngine):
    """The read side of traditional files, which must not grow meanwhile. Thread-safe.

    A GTID position is found by what the GTID_LIST at the head of each file says; inside the
    file whoever reads passes over what the replica has.

    Raises:
        ClassicFormatError: a file does not begin as a traditional binlog, or is encrypted.
        StoreError: the files do not belong together, or one is missing.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._files = find_series(paths)
        self.server_version = ""  # of the server that wrote the last file
        self._heads = [self._look_at(file) for file in self._files]
        self._lock = threading.Lock()  # for the state below
        self._state: GtidState | None = None

    def files(self) -> list[BinlogFile]:
        return [BinlogFile(name=file.name, size=file.size_bytes) for file in self._files]

    def file_name(self, file_no: int) -> str:
        return self._files[file_no].name

    def end(self) -> LogPosition:
        return LogPosition(self._files[-1].index, self._files[-1].size_bytes)

    def binlog_state(self) -> GtidState:
        with self._lock:
            if self._state is None:
                reader = ClassicReader(self._files[-1:])
                for _ in reader.groups():
                    pass
                self._state = reader.state
            return self._state.copy()

    def seek(self, position: GtidPosition) -> ReadPlan:
        for head in reversed(self._heads):
            if head.state.is_before(position):
                return head
        raise PositionPurgedError(explain_purged(position, self._files[0].name, self._heads[0].state))

    def plan_of_file(self, name: str) -> ReadPlan:
        for file in self._files:
            if file.name == name:
                return self._heads[file.index]
        raise KeyError(name)

    def event_groups(self, plan: ReadPlan) -> ClassicGroups:
        return ClassicGroups(ClassicReader(self._files[plan.position.file_no :]), plan.position)

    def wait_for_growth(self, timeout_s: float) -> bool:
        time.sleep(timeout_s)
        return False

    def initial_state(self) -> GtidState:
        return self._heads[0].state

    def _look_at(self, file: ClassicFile) -> ReadPlan:
        reader = ClassicFileReader(file, block_size=HEAD_BLOCK_SIZE)
        reader.close()
        self.server_version = reader.server_version
        position = LogPosition(file.index, FIRST_EVENT_OFFSET)
        return ReadPlan(position=position, state=reader.start_state or GtidState())


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
