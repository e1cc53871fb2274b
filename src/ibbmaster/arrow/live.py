"""A running primary as a source of groups: ranges of its log are GTID positions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from ibbmaster.arrow.read_options import ReadOptions
from ibbmaster.capture.client import PrimaryAddress, groups_between, logged_position
from ibbmaster.event.group import EventGroup
from ibbmaster.gtid import GtidPosition
from ibbmaster.log.interface import GroupSource, OnFault
from ibbmaster.log.log_range import LogRange
from ibbmaster.position import NOWHERE

PASSWORD_VARIABLE = "IBBMASTER_PASSWORD"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRange(LogRange):
    """The groups behind one position, up to another."""

    start: str
    end: str


def live_range(start: str, end: str) -> LiveRange:
    """A range of a primary's log."""
    return LiveRange(file_no=NOWHERE.file_no, start_offset=0, end_offset=0, start=start, end=end)


def whole_range(options: ReadOptions) -> LiveRange:
    """All that options select, up to what is logged now, as one range: a primary sends in order."""
    end = str(logged_position(address(options))) if options.ending_gtid is None else options.ending_gtid
    return live_range(options.starting_gtid or "", end)


def address(options: ReadOptions) -> PrimaryAddress:
    """The primary that options name."""
    assert options.host is not None
    return PrimaryAddress(
        host=options.host,
        port=options.port,
        user=options.user,
        password=options.password or os.environ.get(PASSWORD_VARIABLE, ""),
        uses_tls=options.uses_tls,
        server_id=options.server_id,
    )


class LiveSource(GroupSource):
    """The groups of a running primary; each range opens a connection of its own."""

    def __init__(self, options: ReadOptions) -> None:
        self._primary = address(options)

    def close(self) -> None:
        """Nothing is kept open."""

    def file_name(self, file_no: int) -> str:
        return ""

    def groups_in(self, log_range: LogRange, *, on_fault: OnFault | None = None) -> Iterator[EventGroup]:
        assert isinstance(log_range, LiveRange)
        return groups_between(self._primary, GtidPosition.parse(log_range.start), GtidPosition.parse(log_range.end))
