"""XA records: a transaction is prepared, or its fate is decided. Layout: protocol/ibb/xa.md."""

import struct
from dataclasses import dataclass

from ibbmaster.errors import RecordError
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec.buffer import Buffer
from .commit import OobStream, decode_stream, encode_stream

FIXED = struct.Struct("<BIBB")  # engine count or flags, format id, sizes of the two parts of the XID
PART_SIZE_MAX = 64
FLAG_ROLLBACK = 0x01


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid:
    """Each part of it has at most 64 bytes."""

    format_id: int
    gtrid: bytes
    bqual: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class XaPrepare:
    """A transaction is prepared in `engine_count` engines; its events are out of band."""

    engine_count: int
    xid: Xid
    stream: OobStream


@dataclass(frozen=True, slots=True, kw_only=True)
class XaComplete:
    """A prepared transaction is committed (the commit record follows) or rolled back."""

    xid: Xid
    is_rollback: bool


def decode_xa_prepare(data: Buffer, location: LogPosition) -> XaPrepare:
    """Raises RecordError: the record is too short, a part of the XID too long, or there is no stream."""
    engine_count, xid, offset = _decode_fixed(data, location)
    try:
        stream, offset = decode_stream(data, offset)
    except ValueError as error:
        raise RecordError(location, f"XA prepare: {error}") from None
    if stream is None:
        raise RecordError(location, "XA prepare: no out-of-band data")
    return XaPrepare(engine_count=engine_count, xid=xid, stream=stream)


def encode_xa_prepare(record: XaPrepare) -> bytes:
    """It has no leading flag byte."""
    return _encode_fixed(record.engine_count, record.xid) + encode_stream(record.stream)


def decode_xa_complete(data: Buffer, location: LogPosition) -> XaComplete:
    """Raises RecordError: the record is too short, a part of the XID too long, or a flag unknown."""
    flags, xid, _ = _decode_fixed(data, location)
    if flags & ~FLAG_ROLLBACK:
        raise RecordError(location, f"XA complete: unknown flags {flags:#04x}")
    return XaComplete(xid=xid, is_rollback=bool(flags & FLAG_ROLLBACK))


def encode_xa_complete(record: XaComplete) -> bytes:
    return _encode_fixed(FLAG_ROLLBACK if record.is_rollback else 0, record.xid)


def _decode_fixed(data: Buffer, location: LogPosition) -> tuple[int, Xid, int]:
    if len(data) < FIXED.size:
        raise RecordError(location, f"XA record of {len(data)} bytes, expected at least {FIXED.size}")
    first, format_id, gtrid_size, bqual_size = FIXED.unpack_from(data)
    middle = FIXED.size + gtrid_size
    end = middle + bqual_size
    if gtrid_size > PART_SIZE_MAX or bqual_size > PART_SIZE_MAX:
        raise RecordError(location, f"XID parts of {gtrid_size} and {bqual_size} bytes, at most {PART_SIZE_MAX} each")
    if end > len(data):
        raise RecordError(location, f"XID runs {end - len(data)} bytes over the end of the record")
    xid = Xid(format_id=format_id, gtrid=bytes(data[FIXED.size : middle]), bqual=bytes(data[middle:end]))
    return first, xid, end


def _encode_fixed(first: int, xid: Xid) -> bytes:
    assert len(xid.gtrid) <= PART_SIZE_MAX
    assert len(xid.bqual) <= PART_SIZE_MAX
    return FIXED.pack(first, xid.format_id, len(xid.gtrid), len(xid.bqual)) + xid.gtrid + xid.bqual
