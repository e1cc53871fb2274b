"""Which log a run has read: the last GTID of each domain, and when it was written; another log may have that number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing

from ibbmaster.errors import PositionError
from ibbmaster.event.header import decode_event_header
from ibbmaster.gtid import GtidPosition
from ibbmaster.log.interface import LogEngine
from ibbmaster.position import LogPosition

Marks = Mapping[str, tuple[str, int]]  # by domain its last GTID, and when that was written, in seconds since 1970


def marks_at(log: LogEngine, position: str, end: LogPosition) -> dict[str, tuple[str, int]]:
    """Those of a GTID position, which is at `end`, as far as its groups are near."""
    wanted = {str(gtid): str(gtid.domain_id) for gtid in GtidPosition.parse(position).values()}
    return {wanted[gtid]: (gtid, seconds) for gtid, seconds in _near(log, position, end) if gtid in wanted}


def expect_same(log: LogEngine, marks: Marks, position: str, end: LogPosition) -> None:
    """
    Raises:
        PositionError: this is another log than that with these marks, which were made at `position`, here at `end`.
    """
    wanted = dict(marks.values())
    for gtid, seconds in _near(log, position, end):
        if wanted.get(gtid, seconds) != seconds:
            raise PositionError(f"GTID {gtid} is another group in this log than in that of the last run")


def _near(log: LogEngine, position: str, end: LogPosition) -> Iterator[tuple[str, int]]:
    """The last groups in front of a position."""
    with closing(log.groups(log.seek(GtidPosition.parse(position)))) as groups:
        while (group := groups.next_group()) is not None and group.start < end:
            yield str(group.gtid), decode_event_header(group.gtid_event).timestamp
