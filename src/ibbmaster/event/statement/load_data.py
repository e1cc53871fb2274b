"""EXECUTE_LOAD_QUERY: a LOAD DATA after the blocks of its file. Layout: protocol/event/others.md."""

import struct
from dataclasses import dataclass
from typing import Unpack

from ibbmaster.errors import EventError
from ibbmaster.event.header import EVENT_HEADER_SIZE, HeaderFields, encode_event
from ibbmaster.event.query import FIXED, Query, decode_query, encode_query
from ibbmaster.event.types import EventType

FILE_NUMBER = struct.Struct("<I")  # with which the events of a file begin
FILE = struct.Struct("<IIIB")  # behind the fixed part of a QUERY: number, start and end, duplicates


@dataclass(frozen=True, slots=True)
class LoadData:
    """A statement that loads a file. `start` and `end`: the bytes of its text from LOCAL or INFILE up to INTO, which a
    replica replaces with a file of its own. `duplicates`: 1 skips new rows with a known key, 2 replaces the old
    ones."""

    query: Query
    number: int
    start: int
    end: int
    duplicates: int


def decode_load_data(event: bytes) -> LoadData:
    """Read an EXECUTE_LOAD_QUERY event without checksum. Raises EventError: a part runs over the end, or the name of
    the file lies outside the text. Source: MariaDB 12.3, log_event.cc, Execute_load_query_log_event."""
    fixed_end = EVENT_HEADER_SIZE + FIXED.size
    if len(event) < fixed_end + FILE.size:
        raise EventError(f"EXECUTE_LOAD_QUERY of {len(event)} bytes, expected at least {fixed_end + FILE.size}")
    body = event[EVENT_HEADER_SIZE:fixed_end] + event[fixed_end + FILE.size :]
    query = decode_query(encode_event(event_type=EventType.QUERY, body=body, server_id=0))
    number, start, end, duplicates = FILE.unpack_from(event, fixed_end)
    if not start <= end <= len(query.text):
        raise EventError(f"LOAD DATA of {len(query.text)} bytes that names its file in bytes {start} to {end}")
    return LoadData(query, number, start, end, duplicates)


def encode_load_data(value: LoadData, **header: Unpack[HeaderFields]) -> bytes:
    """The whole event."""
    body = encode_query(value.query, server_id=0)[EVENT_HEADER_SIZE:]
    file = FILE.pack(value.number, value.start, value.end, value.duplicates)
    return encode_event(
        event_type=EventType.EXECUTE_LOAD_QUERY, body=body[: FIXED.size] + file + body[FIXED.size :], **header
    )
