"""Events whose parts contradict each other, with right sizes and checksums: each once crashed replicas of MariaDB.
Source: MariaDB 12.3.3, whose replicas refuse them; numbers are those of reports."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection

from ibbmaster.replication.event.header import (
    CHECKSUM_SIZE,
    EVENT_HEADER_SIZE,
    HEADER,
    append_checksum,
    decode_event_header,
    has_valid_checksum,
)
from ibbmaster.replication.event.query import COMPRESSED_FLAG
from ibbmaster.replication.event.table_map import decode_rows_header, decode_table_map
from ibbmaster.replication.event.types import EventType

ROTATE_POSITION_SIZE = 8
NAME_OFFSET = 8  # of the database in the body of a TABLE_MAP
LONG_FILE = b"x" * 2000
LONG_NAME = b"t" * 255
HUGE = 0xFFFF_FFF0  # bytes that a compressed event claims to have
FORMAT_FIXED = 2 + 50 + 4  # version, server version and time in the body of a FORMAT_DESCRIPTION
ROWS_V1 = range(EventType.WRITE_ROWS_V1, EventType.DELETE_ROWS_V1 + 1)
TO_V2 = EventType.WRITE_ROWS - EventType.WRITE_ROWS_V1
ROWS_HEAD = 8  # table id and flags


def can_be(event: bytes, how: str) -> bool:
    return decode_event_header(event).event_type in _KINDS[how][0]


def malformed(event: bytes, how: str) -> bytes:
    """The event to send instead, with a checksum if the original has one; see `can_be`."""
    if how == "hidden event":  # 40648: the header counts the first
        return event + event
    if how == "cut header":  # 40643
        return event[: EVENT_HEADER_SIZE - 6]
    if how == "almost nothing":  # 40643
        return event[:3]
    has_checksum = has_valid_checksum(event)
    plain = event[:-CHECKSUM_SIZE] if has_checksum else event
    header = decode_event_header(plain)._replace(size=len(plain))
    plain = HEADER.pack(*header) + plain[EVENT_HEADER_SIZE:]
    change = _KINDS[how][1]
    assert change is not None
    event_type, body = change(plain)
    size = EVENT_HEADER_SIZE + len(body) + (CHECKSUM_SIZE if has_checksum else 0)
    changed = HEADER.pack(*header._replace(size=size, event_type=event_type)) + body
    return append_checksum(changed) if has_checksum else changed


def _long_file(event: bytes) -> tuple[int, bytes]:  # 40492
    return EventType.ROTATE, event[EVENT_HEADER_SIZE:][:ROTATE_POSITION_SIZE] + LONG_FILE


def _short_format(event: bytes) -> tuple[int, bytes]:  # 40365, 39485: it ends inside of what it must have
    return EventType.FORMAT_DESCRIPTION, event[EVENT_HEADER_SIZE:][: FORMAT_FIXED - 10]


def _long_table(event: bytes) -> tuple[int, bytes]:  # 40644: no name of a table has more than 64 characters
    body = event[EVENT_HEADER_SIZE:]
    start = NAME_OFFSET + 1 + body[NAME_OFFSET] + 1
    rest = body[start + 1 + body[start] + 1 :]
    return EventType.TABLE_MAP, body[:start] + bytes([len(LONG_NAME)]) + LONG_NAME + b"\0" + rest


def _long_length(event: bytes) -> tuple[int, bytes]:  # 39689: a field after the columns leaves the event
    return EventType.TABLE_MAP, event[EVENT_HEADER_SIZE:] + b"\x04\xfc\xff\xff"


def _little_metadata(event: bytes) -> tuple[int, bytes]:  # 40646: less than the types of the columns need
    head = decode_table_map(event)
    body = event[EVENT_HEADER_SIZE:]
    start = body.index(head.column_types, NAME_OFFSET + len(head.database) + len(head.table)) + len(head.column_types)
    end = start + 1 + body[start]
    kept = body[start + 1 : end][: body[start] // 2]
    return EventType.TABLE_MAP, body[:start] + bytes([len(kept)]) + kept + body[end:]


def _long_extra(event: bytes) -> tuple[int, bytes]:  # 40366: version 2, whose extra data leaves the event
    body = event[EVENT_HEADER_SIZE:]
    event_type = decode_event_header(event).event_type + TO_V2
    return event_type, body[:ROWS_HEAD] + struct.pack("<H", 0xFFFF) + body[ROWS_HEAD:]


def _huge_rows(event: bytes) -> tuple[int, bytes]:  # 39762
    offset = decode_rows_header(event).rows_offset
    size_size = event[offset] & 0x07
    claimed = bytes([COMPRESSED_FLAG | 4]) + HUGE.to_bytes(4, "big")
    return event[4], event[EVENT_HEADER_SIZE:offset] + claimed + event[offset + 1 + size_size :]


#: The types of events that each is made of, and what returns another type and body; None: the result is no event.
_KINDS: dict[str, tuple[Collection[int], Callable[[bytes], tuple[int, bytes]] | None]] = {
    **dict.fromkeys(("hidden event", "cut header", "almost nothing"), (frozenset(EventType), None)),
    "long file": ((EventType.ROTATE,), _long_file),
    "short format": ((EventType.FORMAT_DESCRIPTION,), _short_format),
    "long table": ((EventType.TABLE_MAP,), _long_table),
    "long length": ((EventType.TABLE_MAP,), _long_length),
    "little metadata": ((EventType.TABLE_MAP,), _little_metadata),
    "long extra": (ROWS_V1, _long_extra),
    "huge rows": (range(EventType.WRITE_ROWS_COMPRESSED_V1, EventType.DELETE_ROWS_COMPRESSED_V1 + 1), _huge_rows),
}
MALFORMATIONS = tuple(_KINDS)
