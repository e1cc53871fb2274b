"""QUERY: a statement, and the session settings it ran under. Layout: protocol/event/others.md."""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Unpack

from ibbmaster.errors import EventError
from ibbmaster.storage.codec.buffer import Buffer
from .header import EVENT_HEADER_SIZE, HeaderFields, decode_event_header, encode_event
from .types import EventType

FIXED = struct.Struct("<IIBHH")  # thread id, seconds, database size, error code, status size
COMPRESSED_FLAG = 0x80  # first byte of a compressed text: flag, algorithm, size of the size
COMPRESSED_SIZE_MASK = 0x07
TEXT_SIZE_MAX = 1 << 30
PIECE_SIZE = 1 << 20

#: Status variables with a fixed size, by code; the sizes of the others follow from their first bytes.
STATUS_SIZES = {0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 128: 3, 129: 8}
STATUS_TIME_ZONE = 5  # length byte, name
STATUS_CATALOG = 6  # length byte, name
STATUS_INVOKER = 11  # user and host, each with a length byte
STATUS_XID = 129  # of DDL that ends whole or not at all: how a server finds it after a crash
STATUS_ALTER_FLAGS = 130  # a byte, and after COMMIT and ROLLBACK ALTER a sequence number
STATUS_COLLATIONS = 131  # a count, and that many pairs of collation ids
ALTER_HAS_SEQ_NO = 0x0C


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """`status`: the status variables as stored; `text`: unpacked."""

    thread_id: int
    seconds: int
    error_code: int
    status: bytes
    database: bytes
    text: bytes
    is_compressed: bool = False


def decode_query(event: Buffer) -> Query:
    """A QUERY or QUERY_COMPRESSED event without checksum. Raises EventError: another type, it ends early, or its text
    does not unpack. Source: MariaDB 12.3, log_event.cc, Query_log_event."""
    header = decode_event_header(event)
    is_compressed = header.event_type == EventType.QUERY_COMPRESSED
    if header.event_type != EventType.QUERY and not is_compressed:
        raise EventError(f"event type {header.event_type}, expected a QUERY")
    body = bytes(event[EVENT_HEADER_SIZE:])
    if header.size != len(event) or len(body) < FIXED.size + 1:
        raise EventError(f"QUERY of {len(event)} bytes says it has {header.size}")
    thread_id, seconds, database_size, error_code, status_size = FIXED.unpack_from(body)
    database_start = FIXED.size + status_size
    text_start = database_start + database_size + 1
    if text_start > len(body):
        raise EventError(f"QUERY ends {text_start - len(body)} bytes before its text")
    text = body[text_start:]
    return Query(
        thread_id=thread_id,
        seconds=seconds,
        error_code=error_code,
        status=body[FIXED.size : database_start],
        database=body[database_start : text_start - 1],
        text=decompress(text) if is_compressed else text,
        is_compressed=is_compressed,
    )


def encode_query(value: Query, **header: Unpack[HeaderFields]) -> bytes:
    """Never compressed."""
    fixed = FIXED.pack(value.thread_id, value.seconds, len(value.database), value.error_code, len(value.status))
    body = fixed + value.status + value.database + b"\0" + value.text
    return encode_event(event_type=EventType.QUERY, body=body, **header)


def status_variables(status: bytes) -> Iterator[tuple[int, bytes]]:
    """Code and value; an unknown code takes all that is left. Raises EventError: a value runs over the end."""
    offset = 0
    while offset < len(status):
        code = status[offset]
        start = offset + 1
        if code in STATUS_SIZES:
            size = STATUS_SIZES[code]
        elif code in (STATUS_TIME_ZONE, STATUS_CATALOG):
            size = 1 + _byte(status, start)
        elif code == STATUS_INVOKER:
            size = 1 + _byte(status, start)
            size += 1 + _byte(status, start + size)
        elif code == STATUS_ALTER_FLAGS:
            size = 9 if _byte(status, start) & ALTER_HAS_SEQ_NO else 1
        elif code == STATUS_COLLATIONS:
            size = 1 + 4 * _byte(status, start)
        else:
            size = len(status) - start
        if start + size > len(status):
            raise EventError(f"status variable {code} runs {start + size - len(status)} bytes over the end")
        yield code, status[start : start + size]
        offset = start + size


def compress(data: bytes) -> bytes:
    """As a server with `log_bin_compress`. Source: MariaDB 12.3, log_event.cc, binlog_buf_compress()."""
    size = len(data).to_bytes(4, "big").lstrip(b"\0") or b"\0"
    return bytes([COMPRESSED_FLAG | len(size)]) + size + zlib.compress(data)


def decompress(data: bytes) -> bytes:
    """Raises EventError: a wrong head, a broken stream, another size, or more than 1 GiB."""
    size, _ = unpacked_size(data)
    if size > TEXT_SIZE_MAX:
        raise EventError(f"compressed data that claims {size} bytes")
    return b"".join(unpack(data))


def unpacked_size(data: Buffer) -> tuple[int, int]:
    """The claimed size of compressed data, and the start of their stream. Raises EventError: a wrong head."""
    if not data or not data[0] & COMPRESSED_FLAG:
        raise EventError("compressed data without its head")
    size_size = data[0] & COMPRESSED_SIZE_MASK
    size = int.from_bytes(data[1 : 1 + size_size], "big")
    if not 1 <= size_size <= 4:
        raise EventError(f"compressed data that claims {size} bytes")
    return size, 1 + size_size


def unpack(data: Buffer) -> Iterator[bytes]:
    """In pieces of at most 1 MiB. Raises EventError: a wrong head, stream or size. Source: MariaDB 12.3,
    binlog_buf_uncompress()."""
    size, start = unpacked_size(data)
    packed = memoryview(data)[start:]
    unpacker = zlib.decompressobj()
    left = size + 1  # bytes to unpack: one more than there may be
    try:
        for offset in range(0, len(packed), PIECE_SIZE):
            rest: Buffer = packed[offset : offset + PIECE_SIZE]
            is_full = True
            while left and not unpacker.eof and (len(rest) or is_full):
                piece = unpacker.decompress(rest, min(left, PIECE_SIZE))
                rest = unpacker.unconsumed_tail
                is_full = len(piece) == min(left, PIECE_SIZE)  # then there may be more without another byte
                left -= len(piece)
                yield piece
    except zlib.error as error:
        raise EventError(f"compressed data that does not unpack: {error}") from None
    if left != 1 or not unpacker.eof:
        raise EventError(f"compressed data of {size + 1 - left} bytes or more, expected {size}")


def _byte(data: bytes, offset: int) -> int:
    if offset >= len(data):
        raise EventError("a status variable ends before its size")
    return data[offset]
