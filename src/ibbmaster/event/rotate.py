"""ROTATE: the stream goes on in another file. Layout: protocol/event/others.md."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import EventError
from ibbmaster.event.header import decode_body, encode_event
from ibbmaster.event.types import EventType

POSITION = struct.Struct("<Q")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotate:
    """The file that comes next, and where in it."""

    file_name: str
    position: int


def decode_rotate(event: Buffer) -> Rotate:
    """Read a whole event without checksum.

    Raises:
        EventError: another type, or no room for the position.
    """
    _, body = decode_body(event, EventType.ROTATE)
    if len(body) < POSITION.size:
        raise EventError(f"ROTATE with a body of {len(body)} bytes, expected at least {POSITION.size}")
    return Rotate(
        position=POSITION.unpack_from(body)[0],
        file_name=bytes(body[POSITION.size :]).decode("utf-8", "surrogateescape"),
    )


def encode_rotate(
    value: Rotate, *, server_id: int, timestamp: int = 0, log_pos: int = 0, flags: int = 0, with_checksum: bool = False
) -> bytes:
    """The whole event."""
    return encode_event(
        event_type=EventType.ROTATE,
        body=POSITION.pack(value.position) + value.file_name.encode("utf-8", "surrogateescape"),
        server_id=server_id,
        timestamp=timestamp,
        log_pos=log_pos,
        flags=flags,
        with_checksum=with_checksum,
    )
