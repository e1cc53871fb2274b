"""GTID_LIST: the state of the primary's binlog at one place. Layout: protocol/event/others.md."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import EventError
from ibbmaster.event.header import decode_body, encode_event
from ibbmaster.event.types import EventType
from ibbmaster.gtid import Gtid

COUNT = struct.Struct("<I")
COUNT_MASK = 0x0FFFFFFF
FLAG_UNTIL_REACHED = 0x10000000
FLAG_IGNORED = 0x20000000  # relay logs only
ENTRY = struct.Struct("<IIQ")
EMPTY_PADDING = 2  # an empty list has two bytes behind its count


@dataclass(frozen=True, slots=True, kw_only=True)
class GtidList:
    """The pairs of a state, the latest of each domain last, and the flag bits of the count."""

    gtids: tuple[Gtid, ...]
    flags: int = 0


def decode_gtid_list(event: Buffer) -> GtidList:
    """Read a whole event without checksum.

    Raises:
        EventError: another type, or fewer entries than announced.

    Source: MariaDB 12.3, log_event.cc, Gtid_list_log_event::Gtid_list_log_event(const uchar *, …).
    """
    _, body = decode_body(event, EventType.GTID_LIST)
    if len(body) < COUNT.size:
        raise EventError(f"GTID_LIST with a body of {len(body)} bytes, expected at least {COUNT.size}")
    (word,) = COUNT.unpack_from(body)
    count = word & COUNT_MASK
    if COUNT.size + count * ENTRY.size > len(body):
        raise EventError(f"GTID_LIST of {count} entries with a body of {len(body)} bytes")
    entries = (ENTRY.unpack_from(body, COUNT.size + index * ENTRY.size) for index in range(count))
    return GtidList(
        gtids=tuple(Gtid(domain_id=domain, server_id=server, seq_no=seq_no) for domain, server, seq_no in entries),
        flags=word & ~COUNT_MASK,
    )


def encode_gtid_list(
    value: GtidList,
    *,
    server_id: int,
    timestamp: int = 0,
    log_pos: int = 0,
    flags: int = 0,
    with_checksum: bool = False,
) -> bytes:
    """The whole event."""
    body = COUNT.pack(len(value.gtids) | value.flags) + b"".join(
        ENTRY.pack(gtid.domain_id, gtid.server_id, gtid.seq_no) for gtid in value.gtids
    )
    if not value.gtids:
        body += bytes(EMPTY_PADDING)
    return encode_event(
        event_type=EventType.GTID_LIST,
        body=body,
        server_id=server_id,
        timestamp=timestamp,
        log_pos=log_pos,
        flags=flags,
        with_checksum=with_checksum,
    )
