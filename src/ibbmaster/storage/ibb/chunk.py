"""Chunks: the pieces of records on one data page. Layout: protocol/ibb/chunk.md."""

import enum
import struct
from typing import NamedTuple

from ibbmaster.errors import ChunkError
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec.buffer import Buffer
from .page import DATA_SIZE


class RecordType(enum.IntEnum):
    """The low six bits of a chunk's type byte."""

    COMMIT = 1
    GTID_STATE = 2
    OOB_DATA = 3
    DUMMY = 4
    XA_PREPARE = 5
    XA_COMPLETE = 6


HEADER = struct.Struct("<BH")  # type byte, number of data bytes
CHUNK_HEADER_SIZE = HEADER.size
CHUNK_SIZE_MIN = CHUNK_HEADER_SIZE + 1  # a header and one byte of data
CHUNK_DATA_MAX = DATA_SIZE - CHUNK_HEADER_SIZE
CONT = 0x80  # an earlier chunk began this record
LAST = 0x40  # no later chunk continues it
TYPE_MASK = 0x3F
NO_DATA_BYTE = 0x00
FILLER = 0xFF  # the rest of the page holds nothing

_KNOWN_TYPES = frozenset(RecordType)


class Chunk(NamedTuple):
    """`data` is a view into the page, copy it to keep it."""

    record_type: int
    is_first: bool
    is_last: bool
    data: memoryview
    page_offset: int
    end_offset: int


class ChunkEnd(enum.Enum):
    PAGE_FULL = "the next chunk is on the next page"
    NO_DATA = "nothing was written here yet"


def next_chunk(page: memoryview, page_offset: int, *, file_no: int, page_no: int) -> Chunk | ChunkEnd:
    """Raises ChunkError: the chunk at `page_offset` is empty or reaches past the data area, or its type is unknown.
    Source: MariaDB 12.3, fsp_binlog.cc, binlog_chunk_reader::read_data()."""
    if page_offset > DATA_SIZE - CHUNK_SIZE_MIN:
        return ChunkEnd.PAGE_FULL
    type_byte, size = HEADER.unpack_from(page, page_offset)
    if type_byte == NO_DATA_BYTE:
        return ChunkEnd.NO_DATA
    if type_byte == FILLER:
        return ChunkEnd.PAGE_FULL
    start = page_offset + CHUNK_HEADER_SIZE
    end = start + size
    if not size or end > DATA_SIZE or (type_byte & TYPE_MASK) not in _KNOWN_TYPES:
        raise _chunk_error(type_byte, size, LogPosition.on_page(file_no, page_no, page_offset))
    return Chunk(type_byte & TYPE_MASK, not type_byte & CONT, bool(type_byte & LAST), page[start:end], page_offset, end)


def _chunk_error(type_byte: int, size: int, location: LogPosition) -> ChunkError:
    if type_byte & TYPE_MASK not in _KNOWN_TYPES:
        return ChunkError(location, f"record type {type_byte & TYPE_MASK} is unknown")
    if not size:
        return ChunkError(location, "a chunk without data bytes")
    room = DATA_SIZE - location.page_offset - CHUNK_HEADER_SIZE
    return ChunkError(location, f"{size} data bytes leave the page, which has room for {room}")


def encode_chunk(record_type: int, data: Buffer, *, is_first: bool, is_last: bool) -> bytes:
    assert 0 < len(data) <= CHUNK_DATA_MAX, len(data)
    type_byte = record_type | (0 if is_first else CONT) | (LAST if is_last else 0)
    return HEADER.pack(type_byte, len(data)) + data
