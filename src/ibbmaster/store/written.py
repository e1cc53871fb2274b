"""A directory that another process may be writing, read range by range, each by a process of its own."""

import time
from collections.abc import Iterator

from ibbmaster.disk.interface import SharedDisk
from ibbmaster.event.group import EventGroup
from ibbmaster.log.directory import BinlogDirectory, StrictDirectory
from ibbmaster.log.interface import OnFault
from ibbmaster.log.log_range import LogRange
from ibbmaster.position import LogPosition
from ibbmaster.store.followed import FollowedDirectory

PATIENCE_S = 30.0  # for a range that only another process has seen so far
PERIOD_S = 0.02


class WrittenDirectory(FollowedDirectory):
    """As `FollowedDirectory`, with the ranges of pages of `BinlogDirectory`."""

    def __init__(self, disk: SharedDisk) -> None:
        super().__init__(disk, make=StrictDirectory)

    def ranges(self, start: LogPosition, end: LogPosition, *, size: int) -> list[LogRange]:
        return self._ask(lambda opened: opened.ranges(start, end, size=size)) or []

    def groups_in(self, log_range: LogRange, *, on_fault: OnFault | None = None) -> Iterator[EventGroup]:
        return self.opened_to(log_range).groups_in(log_range, on_fault=on_fault)

    def opened_to(self, log_range: LogRange) -> BinlogDirectory:
        """The log as it is now; waits a while for a range that another process has seen.
        Raises StoreError: there is no log."""
        end = LogPosition(log_range.file_no, log_range.end_offset)
        deadline = time.monotonic() + PATIENCE_S
        while (self._ask(lambda opened: opened.end()) or end) < end and time.monotonic() < deadline:
            time.sleep(PERIOD_S)  # a writer was amid a change
            self.look(is_urgent=True)
        return self._log or StrictDirectory(self._disk)
