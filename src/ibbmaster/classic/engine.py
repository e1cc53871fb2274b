"""Traditional binlog files as a binlog to read: served as they are, without being imported."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ibbmaster.classic.binlog import ClassicReader
from ibbmaster.classic.groups import HEAD_BLOCK_SIZE, ClassicFileReader
from ibbmaster.classic.series import ClassicFile, find_series
from ibbmaster.errors import PositionPurgedError
from ibbmaster.event.group import EventGroup
from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.log.engine import BinlogEngine, BinlogFile, Place
from ibbmaster.log.seek import explain_purged

FIRST_EVENT_OFFSET = 4  # behind the magic number


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicPlace:
    """The head of a file, and what was logged before it."""

    file_name: str
    state: GtidState
    file_offset: int = FIRST_EVENT_OFFSET


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
        self._places = [self._look_at(file) for file in self._files]
        self._lock = threading.Lock()  # for the state below
        self._state: GtidState | None = None

    def files(self) -> list[BinlogFile]:
        return [BinlogFile(name=file.name, size=file.size_bytes) for file in self._files]

    def end(self) -> tuple[str, int]:
        return self._files[-1].name, self._files[-1].size_bytes

    def binlog_state(self) -> GtidState:
        with self._lock:
            if self._state is None:
                reader = ClassicReader([self._files[-1].path])
                for _ in reader.groups():
                    pass
                self._state = reader.state
            return self._state.copy()

    def seek(self, position: GtidPosition) -> ClassicPlace:
        for place in reversed(self._places):
            if place.state.is_before(position):
                return place
        oldest = self._places[0]
        raise PositionPurgedError(explain_purged(position, oldest.file_name, oldest.state))

    def plan_of_file(self, name: str) -> ClassicPlace:
        for place in self._places:
            if place.file_name == name:
                return place
        raise KeyError(name)

    def event_groups(self, place: Place) -> ClassicGroups:
        names = [file.name for file in self._files]
        reader = ClassicReader([file.path for file in self._files[names.index(place.file_name) :]])
        return ClassicGroups(reader, place)

    def wait_for_growth(self, timeout_s: float) -> bool:
        time.sleep(timeout_s)
        return False

    def initial_state(self) -> GtidState:
        return self._places[0].state

    def _look_at(self, file: ClassicFile) -> ClassicPlace:
        reader = ClassicFileReader(file, block_size=HEAD_BLOCK_SIZE)
        reader.close()
        self.server_version = reader.server_version
        return ClassicPlace(file_name=file.name, state=reader.start_state or GtidState())


class ClassicGroups:
    """The groups from the head of a file on, for one reader."""

    def __init__(self, reader: ClassicReader, place: Place) -> None:
        self._groups = reader.groups()
        self.reads_from = (place.file_name, place.file_offset)

    def close(self) -> None:
        """Close the file."""
        self._groups.close()

    def next_group(self) -> EventGroup | None:
        """The next group, or None at the end of the last file."""
        group = next(self._groups, None)
        if group is not None:
            self.reads_from = (group.end_file_name, group.end_offset)
        return group
