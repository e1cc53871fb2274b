"""Event groups: a GTID event and all that it commits."""

from collections.abc import Iterator
from dataclasses import dataclass

from ibbmaster.gtid import Gtid
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec.buffer import Buffer
from .gtid_event import GtidFlag
from .header import EVENT_HEADER_SIZE, EventHeader
from .types import EventType

QUERY_FIXED_SIZE = 13
ENDING_QUERIES = (b"COMMIT", b"ROLLBACK")
_ENDING_QUERY_SIZE_MAX = 64 * 1024  # more than status variables and database can take
_STANDALONE = int(GtidFlag.STANDALONE)  # quicker than a flag

#: Events in front of the main one of a stand-alone group.
_PART_TYPES = frozenset(
    {
        EventType.INTVAR,
        EventType.RAND,
        EventType.USER_VAR,
        EventType.BEGIN_LOAD_QUERY,
        EventType.APPEND_BLOCK,
        EventType.TABLE_MAP,
        EventType.ANNOTATE_ROWS,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EventGroup:
    """`body` yields the rest of the group's bytes, cut anywhere and read on demand, until the next group is read. A
    group without `gtid` is the FORMAT_DESCRIPTION of a server start: `gtid_event`, with an empty body."""

    gtid: Gtid | None
    gtid_event: bytes
    body: Iterator[Buffer]
    start: LogPosition  # where its commit record begins
    end: LogPosition  # the first byte after that record


class GroupBoundary:
    """Recognises the end of a group. Source: MariaDB 12.3, Log_event::is_part_of_group(); is_group_ending()."""

    def __init__(self, flags: int) -> None:
        self._is_standalone = bool(flags & _STANDALONE)

    def ends_with(self, header: EventHeader, event: Buffer) -> bool:
        """Of an event after the GTID event; only a QUERY has to be whole."""
        event_type = header.event_type
        if self._is_standalone:
            return event_type not in _PART_TYPES
        if event_type in (EventType.XID, EventType.XA_PREPARE):
            return True
        return event_type == EventType.QUERY and is_ending_query(event)


def is_ending_query(event: Buffer) -> bool:
    """Whether a QUERY is the COMMIT or ROLLBACK of a group."""
    if not EVENT_HEADER_SIZE + QUERY_FIXED_SIZE < len(event) <= _ENDING_QUERY_SIZE_MAX:
        return False
    body = memoryview(event)[EVENT_HEADER_SIZE:]
    database_size = body[8]
    status_size = body[11] | body[12] << 8
    text = bytes(body[QUERY_FIXED_SIZE + status_size + database_size + 1 :])
    return text in ENDING_QUERIES
