"""HEARTBEAT: nothing has happened, but the primary is there. Layout: protocol/event/others.md."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import EventError
from ibbmaster.event.header import decode_body, encode_event
from ibbmaster.event.types import EventType

LONG_POSITION = struct.Struct("<Q")
LOG_POS_MAX = 2**32 - 1
POSITION_MIN = 4  # replicas refuse 1 to 3, and take 0 for the long form


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """File and position the primary has come to."""

    file_name: str
    position: int


def decode_heartbeat(event: Buffer) -> Heartbeat:
    """Read a whole event without checksum; a `log_pos` of 0 means that the body begins with the position.

    Raises:
        EventError: another type, or the long position is missing.
    """
    header, body = decode_body(event, EventType.HEARTBEAT)
    position = header.log_pos
    if position == 0:
        if len(body) < LONG_POSITION.size:
            raise EventError(f"HEARTBEAT without log_pos has a body of {len(body)} bytes, expected at least 8")
        (position,) = LONG_POSITION.unpack_from(body)
        body = body[LONG_POSITION.size :]
    return Heartbeat(file_name=bytes(body).decode("utf-8", "surrogateescape"), position=position)


def encode_heartbeat(value: Heartbeat, *, server_id: int, with_checksum: bool = False) -> bytes:
    """The whole event; positions from 4 GiB up take the long form."""
    assert value.position >= POSITION_MIN
    body = value.file_name.encode("utf-8", "surrogateescape")
    log_pos = value.position
    if value.position > LOG_POS_MAX:
        log_pos = 0
        body = LONG_POSITION.pack(value.position) + body
    return encode_event(
        event_type=EventType.HEARTBEAT, body=body, server_id=server_id, log_pos=log_pos, with_checksum=with_checksum
    )
