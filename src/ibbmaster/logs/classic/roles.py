"""The role of each event type in the group around it."""

import functools

from ibbmaster.kernel.calls import Roles
from ibbmaster.kernel.fields import CONTINUES, ENDS, MAY_END, NOT_INSIDE
from ibbmaster.kernel.plain_memory import kept
from ibbmaster.replication.event.group import GroupBoundary
from ibbmaster.replication.event.gtid_event import GtidFlag
from ibbmaster.replication.event.header import EventHeader
from ibbmaster.replication.event.types import EventType

MYSQL_GTID_TYPES = range(33, 36)
KNOWN_TYPES = frozenset(EventType)
AROUND_GROUPS = frozenset(
    {
        EventType.GTID,
        EventType.FORMAT_DESCRIPTION,
        EventType.GTID_LIST,
        EventType.BINLOG_CHECKPOINT,
        EventType.ROTATE,
        EventType.STOP,
        EventType.START_ENCRYPTION,
        EventType.START_V3,
        EventType.HEARTBEAT,
        *MYSQL_GTID_TYPES,
    }
)


def _roles(flags: int) -> bytes:
    boundary = GroupBoundary(flags)
    roles = bytearray([NOT_INSIDE]) * 256
    for event_type in KNOWN_TYPES - AROUND_GROUPS:
        header = EventHeader(0, event_type, 0, 0, 0, 0)
        roles[event_type] = ENDS if boundary.ends_with(header, b"") else CONTINUES
    if not flags & GtidFlag.STANDALONE:
        roles[EventType.QUERY] = MAY_END  # its text decides
    return bytes(roles)


STANDALONE_ROLES = _roles(GtidFlag.STANDALONE)
TRANSACTION_ROLES = _roles(0)


@functools.cache
def kernel_roles(*, has_fragments: bool = True) -> Roles:
    """The roles as kernels take them; without fragments, which have an order, those of row events are NOT_INSIDE."""
    both = kept(TRANSACTION_ROLES), kept(STANDALONE_ROLES)
    if not has_fragments:
        for roles in both:
            roles[EventType.PARTIAL_ROW_DATA] = NOT_INSIDE
    return Roles(*both)
