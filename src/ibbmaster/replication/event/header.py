"""The 19 bytes every event begins with, and its optional checksum. Layout: protocol/event/header.md."""

import struct
import zlib
from typing import NamedTuple, Required, TypedDict

from ibbmaster.errors import EventError
from ibbmaster.storage.codec.buffer import Buffer

HEADER = struct.Struct("<IBIIIH")
EVENT_HEADER_SIZE = HEADER.size
TYPE_OFFSET, SERVER_ID_OFFSET = 4, 5  # the timestamp comes first
SERVER_ID = SIZE = struct.Struct("<I")
SIZE_OFFSET = 9  # of the field that holds the event's whole size
LOG_POS_OFFSET, FLAGS_OFFSET = 13, 17
LOG_POS_SIZE = 4
CHECKSUM = struct.Struct("<I")
CHECKSUM_SIZE = CHECKSUM.size


class EventHeader(NamedTuple):
    """`size` includes header and checksum; `log_pos` is the end position, or 0."""

    timestamp: int
    event_type: int
    server_id: int
    size: int
    log_pos: int
    flags: int


def decode_event_header(data: Buffer, offset: int = 0) -> EventHeader:
    """Raises EventError: fewer than 19 bytes, or such a size. Source: MariaDB 12.3, Log_event::Log_event(const uchar *,
    …)."""
    if len(data) - offset < EVENT_HEADER_SIZE:
        raise EventError(f"event header of {len(data) - offset} bytes, expected {EVENT_HEADER_SIZE}")
    header = EventHeader._make(HEADER.unpack_from(data, offset))
    if header.size < EVENT_HEADER_SIZE:
        raise EventError(f"event size {header.size} does not even hold the event header")
    return header


class HeaderFields(TypedDict, total=False):
    server_id: Required[int]
    timestamp: int
    log_pos: int
    flags: int
    with_checksum: bool


def encode_event(
    *,
    event_type: int,
    body: Buffer,
    server_id: int,
    timestamp: int = 0,
    log_pos: int = 0,
    flags: int = 0,
    with_checksum: bool = False,
) -> bytes:
    """Its size includes the 4 bytes of a checksum."""
    size = EVENT_HEADER_SIZE + len(body) + (CHECKSUM_SIZE if with_checksum else 0)
    event = HEADER.pack(timestamp, event_type, server_id, size, log_pos, flags) + body
    return append_checksum(event) if with_checksum else event


def append_checksum(event: bytes) -> bytes:
    """CRC-32; the size field includes it already."""
    return event + CHECKSUM.pack(zlib.crc32(event))


def without_checksum(event: bytes, checksum_size: int = CHECKSUM_SIZE) -> bytes:
    """As decoders take it."""
    return resized(event[: len(event) - checksum_size]) if checksum_size else event


def resized(event: bytes) -> bytes:
    """With its new size, after it was cut or extended."""
    return event[:SIZE_OFFSET] + SIZE.pack(len(event)) + event[SIZE_OFFSET + SIZE.size :]


def has_valid_checksum(event: Buffer) -> bool:
    if len(event) < EVENT_HEADER_SIZE + CHECKSUM_SIZE:
        return False
    (stored,) = CHECKSUM.unpack_from(event, len(event) - CHECKSUM_SIZE)
    return bool(stored == zlib.crc32(memoryview(event)[:-CHECKSUM_SIZE]))


def decode_body(event: Buffer, event_type: int) -> tuple[EventHeader, memoryview]:
    """Of a whole event. Raises EventError: another type, or a size that is not that of the bytes."""
    header = decode_event_header(event)
    if header.event_type != event_type:
        raise EventError(f"event type {header.event_type}, expected {event_type}")
    if header.size != len(event):
        raise EventError(f"event of {len(event)} bytes says it has {header.size}")
    return header, memoryview(event)[EVENT_HEADER_SIZE:]
