"""Events that a primary makes up for the wire, and replacements for those that an old replica cannot read."""

from __future__ import annotations

import functools
import struct

from ibbmaster.event.control import (
    POSITION_MIN,
    Heartbeat,
    Rotate,
    encode_heartbeat,
    encode_rotate,
)
from ibbmaster.event.format_description import (
    CREATED_OFFSET,
    CREATED_SIZE,
    ChecksumAlgorithm,
    describe_format,
    encode_format_description,
    has_checksums,
)
from ibbmaster.event.header import (
    CHECKSUM_SIZE,
    EVENT_HEADER_SIZE,
    HEADER,
    LOG_POS_OFFSET,
    LOG_POS_SIZE,
    EventHeader,
    append_checksum,
)
from ibbmaster.event.types import EventFlag, EventType

QUERY_FIXED = struct.Struct("<IIBHH")  # thread id, seconds, database size, error code, status size
QUERY_SIZE_MIN = EVENT_HEADER_SIZE + QUERY_FIXED.size + 2  # end of the empty database, one byte of text
PADDING_VARIABLE = b"\xff"  # a status variable that means nothing, and takes the rest of the status
BEGIN = b"BEGIN"
BEGIN_SIZE_MIN = QUERY_SIZE_MIN - 1 + len(BEGIN)
DUMMY_TEXT = "# Dummy event replacing event type {} that slave cannot handle."
DUMMY_VARIABLE = b"!dummyvar"
USER_VAR_SIZE_MIN = EVENT_HEADER_SIZE + 6  # size of the name, one byte of name, "is NULL"


@functools.lru_cache(64)  # each dump begins with one
def opening_format_description(
    server_version: str,
    *,
    server_id: int,
    type_count: int,
    algorithm: ChecksumAlgorithm,
    timestamp: int = 0,
    log_pos: int = 0,
    flags: int = 0,
) -> bytes:
    """The event that opens a stream or a file. `created` is 0, so a replica keeps its temporary tables.
    Source: MariaDB 12.3, sql_repl.cc, fake_format_description_event() and send_format_descriptor_event()."""
    return encode_format_description(
        describe_format(server_version, type_count=type_count, algorithm=algorithm),
        server_id=server_id,
        timestamp=timestamp,
        log_pos=log_pos,
        flags=flags,
    )


def reopening_format_description(event: bytes, *, is_inside_file: bool) -> bytes:
    """The first event of a file for a replica that has read part of it: `created` is 0, so it keeps temporary
    tables.

    Where the replica begins inside the file, the event does not count for its position. In a file without checksums
    the event keeps its old checksum, as at a primary, without readers.
    Source: MariaDB 10.11, sql_repl.cc, send_format_descriptor_event().
    """
    changed = bytearray(event)
    changed[CREATED_OFFSET : CREATED_OFFSET + CREATED_SIZE] = bytes(CREATED_SIZE)
    if is_inside_file:
        changed[LOG_POS_OFFSET : LOG_POS_OFFSET + LOG_POS_SIZE] = bytes(LOG_POS_SIZE)
    if not has_checksums(event):
        return bytes(changed)
    return append_checksum(bytes(changed[:-CHECKSUM_SIZE]))


def artificial_rotate(file_name: str, position: int, *, server_id: int, with_checksum: bool) -> bytes:
    """The file that a replica reads. Source: MariaDB 12.3, sql_repl.cc, fake_rotate_event()."""
    return encode_rotate(
        Rotate(file_name=file_name, position=position),
        server_id=server_id,
        flags=EventFlag.ARTIFICIAL,
        with_checksum=with_checksum,
    )


def heartbeat(file_name: str, position: int, *, server_id: int, with_checksum: bool) -> bytes:
    """The news that nothing has happened. Source: MariaDB 12.3, sql_repl.cc, send_heartbeat_event()."""
    return encode_heartbeat(
        Heartbeat(file_name=file_name, position=max(position, POSITION_MIN)),
        server_id=server_id,
        with_checksum=with_checksum,
    )


def begin_for(header: EventHeader) -> bytes | None:
    """A QUERY `BEGIN` in the place and of the size of a GTID event; None if the event is too small for it.
    Source: MariaDB 12.3, log_event_server.cc, Query_log_event::begin_event()."""
    room = header.size - BEGIN_SIZE_MIN
    if room < 0:
        return None
    body = QUERY_FIXED.pack(0, 0, 0, 0, room) + PADDING_VARIABLE * room + b"\0" + BEGIN
    return _head_like(header, EventType.QUERY) + body


def dummy_for(header: EventHeader) -> bytes | None:
    """The beginning of an event without effect, in the place and of the size of any other; None if that is too small.
    The caller adds the blanks up to `header.size`, which may be many.
    Source: MariaDB 12.3, log_event_server.cc, Query_log_event::dummy_event()."""
    if header.size < USER_VAR_SIZE_MIN:
        return None
    if header.size < QUERY_SIZE_MIN:  # no room for a QUERY: set a user variable to NULL
        name = DUMMY_VARIABLE[: header.size - USER_VAR_SIZE_MIN + 1]
        return _head_like(header, EventType.USER_VAR) + len(name).to_bytes(4, "little") + name + b"\x01"
    text = DUMMY_TEXT.format(header.event_type).encode()[: header.size - QUERY_SIZE_MIN + 1]
    return _head_like(header, EventType.QUERY) + bytes(QUERY_FIXED.size + 1) + text


def _head_like(header: EventHeader, event_type: EventType) -> bytes:
    flags = header.flags & ~EventFlag.THREAD_SPECIFIC | EventFlag.SUPPRESS_USE
    return HEADER.pack(header.timestamp, event_type, header.server_id, header.size, header.log_pos, flags)
