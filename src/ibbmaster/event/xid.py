"""XID: a transaction of InnoDB ends here. Layout: protocol/event/others.md."""

from __future__ import annotations

import struct

from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import EventError
from ibbmaster.event.header import decode_body, encode_event
from ibbmaster.event.types import EventType

NUMBER = struct.Struct("<Q")


def decode_xid(event: Buffer) -> int:
    """The transaction number of a whole event without checksum.

    Raises:
        EventError: another type or size.
    """
    _, body = decode_body(event, EventType.XID)
    if len(body) != NUMBER.size:
        raise EventError(f"XID with a body of {len(body)} bytes, expected {NUMBER.size}")
    number: int = NUMBER.unpack(body)[0]
    return number


def encode_xid(number: int, *, server_id: int, timestamp: int = 0, log_pos: int = 0, flags: int = 0) -> bytes:
    """The whole event."""
    return encode_event(
        event_type=EventType.XID,
        body=NUMBER.pack(number),
        server_id=server_id,
        timestamp=timestamp,
        log_pos=log_pos,
        flags=flags,
    )
