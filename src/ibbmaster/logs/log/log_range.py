"""Ranges of a log as plain numbers, to be sent to other processes."""

from dataclasses import dataclass

from ibbmaster.gtid import Gtid
from ibbmaster.position import LOG_START, LogPosition

WHOLE_FILE = 1 << 62  # bytes; more than any file has


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRange:
    """A range of one file. A group belongs to the range in which its commit record begins."""

    file_no: int
    start_offset: int
    end_offset: int  # the first byte not included

    @property
    def length(self) -> int:
        """Approximately the bytes to read."""
        return self.end_offset - self.start_offset

    def holds(self, point: LogPosition) -> bool:
        return point.file_no == self.file_no and self.start_offset <= point.offset < self.end_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSelection:
    """The wanted groups of a log; None and empty values limit nothing. `starts` and `ends`: where domains begin and
    end; others begin with the log, and have nothing if there are `ends`. Times: of the GTID event, in seconds since
    1970."""

    starts: tuple[tuple[int, LogPosition], ...] = ()
    ends: tuple[tuple[int, LogPosition], ...] | None = None
    domains: frozenset[int] = frozenset()
    servers: frozenset[int] = frozenset()
    start_time: float | None = None
    end_time: float | None = None  # the first moment not included

    def takes(self, gtid: Gtid, point: LogPosition, timestamp: int) -> bool:
        domain_id = gtid.domain_id
        if self.domains and domain_id not in self.domains:
            return False
        if self.servers and gtid.server_id not in self.servers:
            return False
        if self.start_time is not None and timestamp < self.start_time:
            return False
        if self.end_time is not None and timestamp >= self.end_time:
            return False
        start = dict(self.starts).get(domain_id)
        if start is not None and point < start:
            return False
        return self.ends is None or point < dict(self.ends).get(domain_id, LOG_START)
