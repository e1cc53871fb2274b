"""Redo records. Layout: protocol/store/redo-log.md. Pure. A record is applied wholly or not at all; it holds the page
changes of one step, and notes on prepared transactions."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from ibbmaster.errors import StoreError
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec import compressed_int
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.codec.crc32c import crc32c
from ibbmaster.storage.ibb.appender import PageChange
from ibbmaster.storage.ibb.commit import OobStream, decode_ref, encode_ref
from ibbmaster.storage.ibb.file_header import FIELDS, encode_page_of_fields
from ibbmaster.storage.ibb.xa import PART_SIZE_MAX, Xid

SEGMENT_HEADER = struct.Struct("<IIQQI")  # magic, version, size, LSN of its first record, checksum
SEGMENT_MAGIC = 0x52424249  # "IBBR"
SEGMENT_VERSION = 1
DURABLE_END = struct.Struct("<IIQI")  # magic, version, durable LSN, checksum
CHECKED_DURABLE_END = struct.Struct("<IIQ")
DURABLE_END_MAGIC = 0x44424249  # "IBBD"
RECORDS_START = 4096
RECORD_HEADER = struct.Struct("<QIII")  # LSN, bytes of items, life, checksum
CHECKED_HEADER = struct.Struct("<QII")
CHECKSUM = struct.Struct("<I")
XID_FIXED = struct.Struct("<IBB")  # format id, sizes of the two parts


class ItemType(IntEnum):
    PAGE = 1
    HEADER = 2
    CUT = 3
    RESET = 4
    CHECKPOINT = 5
    XA = 6
    PURGE = 7


PAGE_ITEM, HEADER_ITEM = bytes((ItemType.PAGE,)), bytes((ItemType.HEADER,))


class XaState(IntEnum):
    FINISHED = 0
    PREPARED = 1
    COMMITTED = 2  # of an earlier version: finished
    ROLLED_BACK = 3  # likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class XaEntry:
    """A prepared transaction, or the end of one. `first_file_no` is the oldest file it needs, `engine_count` the number
    of engines that prepared it with changes, and `stream` its out-of-band bytes, if any."""

    xid: Xid
    state: XaState
    engine_count: int
    first_file_no: int
    stream: OobStream | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A file ends after `size_pages` pages."""

    file_no: int
    size_pages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """Every file before `first_file_no` is to be removed."""

    first_file_no: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """Every file that was begun before this record is to be removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Every change before `lsn` is durable in the files. `end`: of the log there, if any; `xa`: the table here."""

    lsn: int
    end: LogPosition | None
    xa: tuple[XaEntry, ...]


Item = PageChange | Cut | Purge | Reset | Checkpoint | XaEntry


class RedoRecord(NamedTuple):
    lsn: int
    end_lsn: int
    life: int  # grows with each start that writes
    payload: bytes

    @property
    def is_checkpoint(self) -> bool:
        return self.payload[:1] == bytes((ItemType.CHECKPOINT,))

    @property
    def is_reset(self) -> bool:
        return self.payload[:1] == bytes((ItemType.RESET,))

    def items(self) -> list[Item]:
        """Raises StoreError: it is as it was written, but makes no sense."""
        try:
            return list(_decode_items(self.payload))
        except (ValueError, struct.error, IndexError) as error:
            raise StoreError(f"redo record at LSN {self.lsn}: {error}") from None


def encode_segment_header(size: int, start_lsn: int) -> bytes:
    head = SEGMENT_HEADER.pack(SEGMENT_MAGIC, SEGMENT_VERSION, size, start_lsn, 0)[:-4]
    return (head + CHECKSUM.pack(crc32c(head))).ljust(RECORDS_START, b"\0")


def decode_segment_header(data: Buffer) -> tuple[int, int] | None:
    """Size and first LSN of a segment; None if the bytes are no header."""
    if len(data) < SEGMENT_HEADER.size:
        return None
    magic, version, size, start_lsn, stored = SEGMENT_HEADER.unpack_from(data)
    if magic != SEGMENT_MAGIC or stored != crc32c(bytes(data[: SEGMENT_HEADER.size - 4])):
        return None
    if version != SEGMENT_VERSION:
        raise StoreError(f"redo log of version {version}, this reads version {SEGMENT_VERSION}")
    return size, start_lsn


def encode_durable_end(lsn: int) -> bytes:
    """How a writer tells others that every record before `lsn` is durable."""
    head = CHECKED_DURABLE_END.pack(DURABLE_END_MAGIC, SEGMENT_VERSION, lsn)
    return head + CHECKSUM.pack(crc32c(head))


def decode_durable_end(data: Buffer) -> int | None:
    """The LSN; None if the bytes are not whole, as during a write."""
    if len(data) != DURABLE_END.size:
        return None
    magic, version, lsn, stored = DURABLE_END.unpack(data)
    is_whole = magic == DURABLE_END_MAGIC and stored == crc32c(bytes(data[:-4]))
    return lsn if is_whole and version == SEGMENT_VERSION else None


def encode_record(lsn: int, life: int, items: Iterable[Item]) -> bytes:
    pieces = [piece for item in items for piece in _encode_item(item)]
    head = CHECKED_HEADER.pack(lsn, sum(map(len, pieces)), life)
    checksum = crc32c(head)
    for piece in pieces:
        checksum = crc32c(piece, checksum)
    return b"".join((head, CHECKSUM.pack(checksum), *pieces))


def encode_change(lsn: int, life: int, file_no: int, page_no: int, page_offset: int, data: bytes) -> bytes:
    """As `encode_record` of one `PageChange` not of page 0: the record of nearly every commit, in one call."""
    number = compressed_int.encode
    place = b"".join((PAGE_ITEM, number(file_no), number(page_no), number(page_offset), number(len(data))))
    head = CHECKED_HEADER.pack(lsn, len(place) + len(data), life)
    checksum = crc32c(data, crc32c(head + place))
    return b"".join((head, CHECKSUM.pack(checksum), place, data))


def decode_record(data: Buffer, offset: int, lsn: int, life: int) -> RedoRecord | None:
    """The record of this LSN at `offset`, of this life or a later one; None at the end of the log."""
    start = offset + RECORD_HEADER.size
    if start > len(data):
        return None
    stored_lsn, size, stored_life, stored = RECORD_HEADER.unpack_from(data, offset)
    if stored_lsn != lsn or stored_life < life or size > len(data) - start:
        return None
    payload = bytes(data[start : start + size])
    if stored != crc32c(bytes(data[offset : offset + CHECKED_HEADER.size]) + payload):
        return None
    record = RedoRecord(lsn, lsn + RECORD_HEADER.size + size, stored_life, payload)
    return record if stored_life == life or record.is_checkpoint else None


def _encode_item(item: Item) -> tuple[bytes, ...]:
    """In pieces: those that are large already are not copied."""
    number = compressed_int.encode
    if isinstance(item, PageChange):
        file_no, page_no, page_offset, data = item
        if page_no == 0:  # the rest follows from its fields
            return HEADER_ITEM, number(file_no), data[: FIELDS.size]
        return b"".join((PAGE_ITEM, number(file_no), number(page_no), number(page_offset), number(len(data)))), data
    match item:
        case Cut():
            return bytes((ItemType.CUT,)), number(item.file_no), number(item.size_pages)
        case Purge():
            return bytes((ItemType.PURGE,)), number(item.first_file_no)
        case Reset():
            return (bytes((ItemType.RESET,)),)
        case XaEntry():
            return bytes((ItemType.XA,)), _encode_xa(item)
        case Checkpoint():
            end = b"\0"
            if item.end is not None:
                place = item.end.file_no, item.end.page_no, item.end.page_offset
                end = b"".join((b"\1", *map(number, place)))
            table = number(len(item.xa)) + b"".join(map(_encode_xa, item.xa))
            return bytes((ItemType.CHECKPOINT,)), number(item.lsn), end, table


def _encode_xa(entry: XaEntry) -> bytes:
    xid, stream = entry.xid, entry.stream
    number = compressed_int.encode
    parts = [
        bytes((entry.state,)),
        XID_FIXED.pack(xid.format_id, len(xid.gtrid), len(xid.bqual)) + xid.gtrid + xid.bqual,
        number(entry.engine_count) + number(entry.first_file_no),
        number(0 if stream is None else stream.node_count),
    ]
    if stream is not None:
        parts += [encode_ref(stream.first), encode_ref(stream.last)]
    return b"".join(parts)


def _decode_items(data: bytes) -> Iterable[Item]:
    number = compressed_int.decode
    offset = 0
    while offset < len(data):
        item_type = ItemType(data[offset])
        offset += 1
        match item_type:
            case ItemType.PAGE:
                file_no, offset = number(data, offset)
                page_no, offset = number(data, offset)
                page_offset, offset = number(data, offset)
                size, offset = number(data, offset)
                if size > len(data) - offset:
                    raise ValueError("a page change leaves its record")
                yield PageChange(file_no, page_no, page_offset, data[offset : offset + size])
                offset += size
            case ItemType.HEADER:
                file_no, offset = number(data, offset)
                if FIELDS.size > len(data) - offset:
                    raise ValueError("a header leaves its record")
                yield PageChange(file_no, 0, 0, encode_page_of_fields(data[offset : offset + FIELDS.size]))
                offset += FIELDS.size
            case ItemType.CUT:
                file_no, offset = number(data, offset)
                size_pages, offset = number(data, offset)
                yield Cut(file_no=file_no, size_pages=size_pages)
            case ItemType.PURGE:
                file_no, offset = number(data, offset)
                yield Purge(first_file_no=file_no)
            case ItemType.RESET:
                yield Reset()
            case ItemType.XA:
                entry, offset = _decode_xa(data, offset)
                yield entry
            case ItemType.CHECKPOINT:
                checkpoint, offset = _decode_checkpoint(data, offset)
                yield checkpoint


def _decode_checkpoint(data: bytes, offset: int) -> tuple[Checkpoint, int]:
    number = compressed_int.decode
    lsn, offset = number(data, offset)
    end = None
    has_end = data[offset]
    offset += 1
    if has_end:
        file_no, offset = number(data, offset)
        page_no, offset = number(data, offset)
        page_offset, offset = number(data, offset)
        end = LogPosition.on_page(file_no, page_no, page_offset)
    count, offset = number(data, offset)
    entries = []
    for _ in range(count):
        entry, offset = _decode_xa(data, offset)
        entries.append(entry)
    return Checkpoint(lsn=lsn, end=end, xa=tuple(entries)), offset


def _decode_xa(data: bytes, offset: int) -> tuple[XaEntry, int]:
    number = compressed_int.decode
    state = XaState(data[offset])
    format_id, gtrid_size, bqual_size = XID_FIXED.unpack_from(data, offset + 1)
    start = offset + 1 + XID_FIXED.size
    offset = start + gtrid_size + bqual_size
    if max(gtrid_size, bqual_size) > PART_SIZE_MAX:
        raise ValueError("an XID that is too long")
    xid = Xid(format_id=format_id, gtrid=data[start : start + gtrid_size], bqual=data[start + gtrid_size : offset])
    engine_count, offset = number(data, offset)
    first_file_no, offset = number(data, offset)
    node_count, offset = number(data, offset)
    stream = None
    if node_count:
        first, offset = decode_ref(data, offset)
        last, offset = decode_ref(data, offset)
        stream = OobStream(node_count=node_count, first=first, last=last)
    entry = XaEntry(xid=xid, state=state, engine_count=engine_count, first_file_no=first_file_no, stream=stream)
    return entry, offset
