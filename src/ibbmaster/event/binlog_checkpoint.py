"""BINLOG_CHECKPOINT: the oldest file that crash recovery needs. Layout: protocol/event/others.md."""

from __future__ import annotations

import struct

from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import EventError
from ibbmaster.event.header import decode_body, encode_event
from ibbmaster.event.types import EventType

SIZE = struct.Struct("<I")


def decode_binlog_checkpoint(event: Buffer) -> str:
    """The file name in a whole event without checksum.

    Raises:
        EventError: another type, or the name runs over the end.
    """
    _, body = decode_body(event, EventType.BINLOG_CHECKPOINT)
    if len(body) < SIZE.size or SIZE.size + SIZE.unpack_from(body)[0] > len(body):
        raise EventError(f"BINLOG_CHECKPOINT whose name does not fit into {len(body)} bytes")
    (size,) = SIZE.unpack_from(body)
    return bytes(body[SIZE.size : SIZE.size + size]).decode("utf-8", "surrogateescape")


def encode_binlog_checkpoint(
    file_name: str, *, server_id: int, timestamp: int = 0, log_pos: int = 0, flags: int = 0, with_checksum: bool = False
) -> bytes:
    """The whole event."""
    name = file_name.encode("utf-8", "surrogateescape")
    return encode_event(
        event_type=EventType.BINLOG_CHECKPOINT,
        body=SIZE.pack(len(name)) + name,
        server_id=server_id,
        timestamp=timestamp,
        log_pos=log_pos,
        flags=flags,
        with_checksum=with_checksum,
    )
