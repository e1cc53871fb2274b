"""Values of rows, one column after the other. Layout: protocol/event/rows.md."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import TypeAlias

from ibbmaster.event.rows import temporal
from ibbmaster.event.rows.charset import decode_text
from ibbmaster.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.event.rows.fixed_binary import inet4_text, inet6_text, uuid_text
from ibbmaster.event.rows.number import decimal_reader, decimal_size

Value: TypeAlias = object  # None, or what `ValueKind` says
Reader: TypeAlias = Callable[[bytes, int], tuple[Value, int]]
"""Takes the data and an offset; gives the value and the offset behind it. Raises ValueError."""

INTEGER_SIZES = {
    ColumnType.TINY: 1,
    ColumnType.SHORT: 2,
    ColumnType.INT24: 3,
    ColumnType.LONG: 4,
    ColumnType.LONGLONG: 8,
}
YEAR_ZERO = 1900
FLOAT = struct.Struct("<f")
DOUBLE = struct.Struct("<d")
SHORT_LENGTH_MAX = 255  # longer strings have their length in two bytes

COMPRESSED_METHOD_SHIFT = 4  # of the first byte of a compressed value: 0 not, 8 zlib
COMPRESSED_METHOD_ZLIB = 8
COMPRESSED_RAW = 0x08  # without zlib's own head and checksum
COMPRESSED_SIZE_MASK = 0x07
COMPRESSED_VALUE_SIZE_MAX = 1 << 30  # as `max_allowed_packet`


class BadValueError(ValueError):
    """The bytes of a value are known, but make none."""

    def __init__(self, problem: str, data: bytes, end: int) -> None:
        super().__init__(problem)
        self.data = data
        self.end = end  # the offset behind them


def _converted(convert: Callable[[bytes], Value], data: bytes, end: int) -> Value:
    try:
        return convert(data)
    except (ValueError, OverflowError) as error:
        raise BadValueError(str(error), data, end) from None


def value_reader(column: Column) -> Reader:
    """How values of a column are read.

    Raises:
        ValueError: values of this type cannot be read at all.
    """
    match column.type:
        case ColumnType.TINY | ColumnType.SHORT | ColumnType.INT24 | ColumnType.LONG | ColumnType.LONGLONG:
            size = INTEGER_SIZES[ColumnType(column.type)]
            return _integer(size, is_signed=not column.is_unsigned)
        case ColumnType.FLOAT:
            return _fixed(4, lambda data: FLOAT.unpack(data)[0])
        case ColumnType.DOUBLE:
            return _fixed(8, lambda data: DOUBLE.unpack(data)[0])
        case ColumnType.NEWDECIMAL:
            return _fixed(decimal_size(column.size, column.scale), decimal_reader(column.size, column.scale))
        case ColumnType.BIT:
            return _fixed((column.size + 7) // 8, lambda data: int.from_bytes(data, "big"))
        case ColumnType.YEAR:
            return _fixed(1, lambda data: data[0] + YEAR_ZERO if data[0] else 0)
        case ColumnType.ENUM:
            return _fixed(column.size, _enum(column.labels))
        case ColumnType.SET:
            return _fixed(column.size, _set(column.labels))
    return _temporal(column) or _string(column)


def _temporal(column: Column) -> Reader | None:
    digits = column.scale
    match column.type:
        case ColumnType.DATE | ColumnType.NEWDATE:
            return _fixed(3, temporal.date_text)
        case ColumnType.TIME2:
            return _fixed(3 + temporal.FRACTION_SIZES[digits], temporal.time2_text(digits))
        case ColumnType.DATETIME2:
            return _fixed(5 + temporal.FRACTION_SIZES[digits], temporal.datetime2_text(digits))
        case ColumnType.TIMESTAMP2:
            return _fixed(4 + temporal.FRACTION_SIZES[digits], temporal.timestamp2_text(digits))
        case ColumnType.TIME:
            return _fixed(temporal.OLD_TIME_SIZES[digits], temporal.old_time_text(digits))
        case ColumnType.DATETIME:
            return _fixed(temporal.OLD_DATETIME_SIZES[digits], temporal.old_datetime_text(digits))
        case ColumnType.TIMESTAMP:
            return _fixed(4 + temporal.FRACTION_SIZES[digits], temporal.old_timestamp_text(digits))
    return None


def _string(column: Column) -> Reader:
    size = column.size
    match column.type:
        case ColumnType.STRING:
            is_padded = column.charset == "binary" or column.kind in (ValueKind.UUID, ValueKind.INET4, ValueKind.INET6)
            read = _padded(size, _content(column)) if is_padded else _content(column)
            return _prefixed(1 if size <= SHORT_LENGTH_MAX else 2, read)
        case ColumnType.VARCHAR | ColumnType.VAR_STRING:
            return _prefixed(1 if size <= SHORT_LENGTH_MAX else 2, _content(column))
        case ColumnType.VARCHAR_COMPRESSED:
            return _prefixed(1 if size <= SHORT_LENGTH_MAX else 2, _decompressed(_content(column)))
        case ColumnType.BLOB | ColumnType.GEOMETRY:
            return _prefixed(size, _content(column))
        case ColumnType.BLOB_COMPRESSED:
            return _prefixed(size, _decompressed(_content(column)))
    raise ValueError("values of this type cannot be read")


def _content(column: Column) -> Callable[[bytes], Value]:
    """What the bytes of a string mean."""
    match column.kind:
        case ValueKind.TEXT:
            charset = column.charset or "utf8mb4"
            return lambda data: decode_text(data, charset)
        case ValueKind.UUID:
            return uuid_text
        case ValueKind.INET4:
            return inet4_text
        case ValueKind.INET6:
            return inet6_text
        case ValueKind.VECTOR:
            return _vector
    return bytes


def _integer(size: int, *, is_signed: bool) -> Reader:
    from_bytes = int.from_bytes

    def read(data: bytes, offset: int) -> tuple[Value, int]:
        end = offset + size
        if end > len(data):
            raise ValueError(f"an integer of {size} bytes runs over the end of the rows")
        return from_bytes(data[offset:end], "little", signed=is_signed), end

    return read


def _fixed(size: int, convert: Callable[[bytes], Value]) -> Reader:
    def read(data: bytes, offset: int) -> tuple[Value, int]:
        end = offset + size
        if end > len(data):
            raise ValueError(f"a value of {size} bytes runs over the end of the rows")
        return _converted(convert, data[offset:end], end), end

    return read


def _prefixed(length_size: int, convert: Callable[[bytes], Value]) -> Reader:
    def read(data: bytes, offset: int) -> tuple[Value, int]:
        start = offset + length_size
        end = start + int.from_bytes(data[offset:start], "little")
        if end > len(data) or start > len(data):
            raise ValueError(f"a string of {end - start} bytes runs over the end of the rows")
        return _converted(convert, data[start:end], end), end

    return read


def _padded(size: int, convert: Callable[[bytes], Value]) -> Callable[[bytes], Value]:
    """Fixed binary strings travel without the zeros at their end."""
    return lambda data: convert(data.ljust(size, b"\0"))


def _decompressed(convert: Callable[[bytes], Value]) -> Callable[[bytes], Value]:
    """Values of COMPRESSED columns: a byte of method and size of the size, the size (big-endian), the data.

    Source: MariaDB 12.3, field_comp.cc.
    """

    def read(data: bytes) -> Value:
        if not data:
            return convert(data)
        method = data[0] >> COMPRESSED_METHOD_SHIFT
        if not method:
            return convert(data[1:])
        if method != COMPRESSED_METHOD_ZLIB:
            raise ValueError(f"compression method {method} is not known")
        start = 1 + (data[0] & COMPRESSED_SIZE_MASK)
        size = int.from_bytes(data[1:start], "big")
        if size > COMPRESSED_VALUE_SIZE_MAX:
            raise ValueError(f"a compressed value claims {size} bytes")
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS if data[0] & COMPRESSED_RAW else zlib.MAX_WBITS)
        try:
            unpacked = unpacker.decompress(data[start:], size + 1)
        except zlib.error as error:
            raise ValueError(f"a compressed value does not unpack: {error}") from None
        if len(unpacked) != size or not unpacker.eof:
            raise ValueError(f"a compressed value of {len(unpacked)} bytes or more claims {size}")
        return convert(unpacked)

    return read


def _enum(labels: tuple[str, ...] | None) -> Callable[[bytes], Value]:
    if labels is None:
        return lambda data: int.from_bytes(data, "little")
    known = ("", *labels)

    def read(data: bytes) -> Value:
        number = int.from_bytes(data, "little")
        if number >= len(known):
            raise ValueError(f"label {number} of {len(labels)}")
        return known[number]

    return read


def _set(labels: tuple[str, ...] | None) -> Callable[[bytes], Value]:
    if labels is None:
        return lambda data: int.from_bytes(data, "little")

    def read(data: bytes) -> Value:
        bits = int.from_bytes(data, "little")
        if bits >> len(labels):
            raise ValueError(f"set {bits:#x} of {len(labels)} labels")
        return ",".join(label for number, label in enumerate(labels) if bits >> number & 1)

    return read


def _vector(data: bytes) -> tuple[float, ...]:
    if len(data) % FLOAT.size:
        raise ValueError(f"a vector of {len(data)} bytes")
    return tuple(number for (number,) in FLOAT.iter_unpack(data))
