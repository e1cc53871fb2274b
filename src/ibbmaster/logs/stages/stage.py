"""A stage: what becomes of one event group, whichever came before."""

from dataclasses import replace
from typing import Protocol, runtime_checkable

from ibbmaster.gtid import Gtid
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, decode_gtid_event, encode_gtid_event
from ibbmaster.replication.event.header import EventHeader, decode_event_header
from ibbmaster.replication.event.query import Query, encode_query

#: Flags that an empty group cannot have.
_OF_CONTENT = GtidFlag.STANDALONE | GtidFlag.DDL | GtidFlag.WAITED | GtidFlag.PREPARED_XA | GtidFlag.COMPLETED_XA


class GroupTransform(Protocol):
    """What every group of a log goes through. It has no memory: threads share it, and readers begin anywhere."""

    def pass_on(self, group: EventGroup) -> EventGroup | None:
        """The group as it continues, valid and with the same GTID; None to leave it out. Its body is read on demand, in
        order, and before the next group. Groups without GTID do not come here. Raises, also from a body, EventError:
        the group is damaged; StageError: a statement that is not understood may concern the stage."""


@runtime_checkable
class GtidTransform(GroupTransform, Protocol):
    """A stage that gives groups other GTIDs, and keeps the order of those of a domain."""

    def renamed(self, gtid: Gtid) -> Gtid: ...

    def original(self, gtid: Gtid) -> Gtid:
        """The GTID of the log that becomes this one, or would."""


def emptied(group: EventGroup) -> EventGroup:
    """The group with nothing but a GTID event and a COMMIT; it may run beside the same others."""
    header, value = decode_event_header(group.gtid_event), decode_gtid_event(group.gtid_event)
    plain = replace(
        value,
        flags=value.flags & ~_OF_CONTENT,
        xid=None,
        extra_flags=None,
        engine_count=None,
        alter_seq_no=None,
        thread_id=None,
        padding=0,
    )
    return replace_head(group, plain, header, (_commit(header, value),))


def replace_head(
    group: EventGroup, value: GtidEvent, header: EventHeader, body: tuple[bytes, ...] | None = None
) -> EventGroup:
    event = encode_gtid_event(value, timestamp=header.timestamp, log_pos=header.log_pos, flags=header.flags)
    return replace(group, gtid=value.gtid, gtid_event=event, body=group.body if body is None else iter(body))


def _commit(header: EventHeader, value: GtidEvent) -> bytes:
    query = Query(thread_id=value.thread_id or 0, seconds=0, error_code=0, status=b"", database=b"", text=b"COMMIT")
    return encode_query(query, server_id=header.server_id, timestamp=header.timestamp)
