"""Rows and parameters of prepared statements. Layout: protocol/wire/prepared.md."""

import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from ibbmaster.errors import RemoteProtocolError
from ibbmaster.storage.codec import lenenc
from ibbmaster.storage.codec.buffer import Buffer
from .response import ColumnDefinition, FieldType, Row

ROW_MARK = b"\x00"
ROW_BIT = 2  # the first of the bits for NULL in a row
UNSIGNED = 0x8000  # beside the type of a parameter
PARAMETERS_MAX = 0xFFFF

Parameter = int | float | Decimal | str | bytes | None

_MOMENT = re.compile(rb"(\d{1,6})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,6}))?)?")
_DURATION = re.compile(rb"(-?)(\d{1,4}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,6}))?")
_DATE = struct.Struct("<HBB")
_CLOCK = struct.Struct("<BBB")
_DURATION_HEAD = struct.Struct("<BIBBB")
_MICROSECONDS = struct.Struct("<I")
_REALS: Mapping[int, struct.Struct] = {FieldType.FLOAT: struct.Struct("<f"), FieldType.DOUBLE: struct.Struct("<d")}
_INTEGER_SIZES: Mapping[int, int] = {
    FieldType.TINY: 1,
    FieldType.SHORT: 2,
    FieldType.YEAR: 2,
    FieldType.INT24: 4,
    FieldType.LONG: 4,
    FieldType.LONGLONG: 8,
}
#: Types of parameters that are bytes after their length.
_TEXTS = frozenset((0, 15, 16, 245, 246, 247, 248, 249, 250, 251, 252, 253, 254, 255))


def encode_binary_row(columns: Sequence[ColumnDefinition], row: Row) -> bytes:
    """From values in the form of the text protocol."""
    nulls = bytearray((len(columns) + ROW_BIT + 7) // 8)
    parts = [ROW_MARK, b""]
    for no, (column, value) in enumerate(zip(columns, row, strict=True), ROW_BIT):
        if value is None:
            nulls[no // 8] |= 1 << no % 8
        else:
            parts.append(encode_binary_value(column.column_type, value))
    parts[1] = bytes(nulls)
    return b"".join(parts)


def encode_binary_value(column_type: int, text: bytes) -> bytes:
    encode = _ENCODERS.get(column_type)
    return lenenc.encode_bytes(text) if encode is None else encode(text)


def _integer(size: int) -> Callable[[bytes], bytes]:
    limit = 1 << 8 * size
    return lambda text: (int(text) % limit).to_bytes(size, "little")


def _moment(text: bytes) -> bytes:
    """Year, month, day; hour, minute, second; microseconds, without zeros at the end."""
    match = _MOMENT.match(text)
    if match is None:
        return b"\x00"
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    date, clock = _DATE.pack(year % 0x10000, month, day), _CLOCK.pack(hour, minute, second)
    microseconds = _fraction(match[7])
    if microseconds:
        return b"\x0b" + date + clock + _MICROSECONDS.pack(microseconds)
    if any(clock):
        return b"\x07" + date + clock
    return b"\x04" + date if any(date) else b"\x00"


def _duration(text: bytes) -> bytes:
    """Whether negative, days, hours, minutes, seconds; microseconds."""
    match = _DURATION.match(text)
    if match is None:
        return b"\x00"
    days, hours = divmod(int(match[2]), 24)
    head = _DURATION_HEAD.pack(bool(match[1]), days, hours, int(match[3]), int(match[4]))
    microseconds = _fraction(match[5])
    if microseconds:
        return b"\x0c" + head + _MICROSECONDS.pack(microseconds)
    return b"\x08" + head if any(head[1:]) else b"\x00"


def _fraction(digits: bytes | None) -> int:
    return int(digits.ljust(6, b"0")) if digits else 0


_ENCODERS: Mapping[int, Callable[[bytes], bytes]] = {
    **{column_type: _integer(size) for column_type, size in _INTEGER_SIZES.items()},
    FieldType.FLOAT: lambda text: _REALS[FieldType.FLOAT].pack(float(text)),
    FieldType.DOUBLE: lambda text: _REALS[FieldType.DOUBLE].pack(float(text)),
    FieldType.DATE: _moment,
    FieldType.DATETIME: _moment,
    FieldType.TIMESTAMP: _moment,
    FieldType.TIME: _duration,
}


def decode_parameters(
    data: Buffer, types: Sequence[int], count: int, sent_before: Mapping[int, bytes]
) -> tuple[list[Parameter], list[int]]:
    """The parameters of COM_STMT_EXECUTE, and their types. `types` are those of the last time, which a client need not
    repeat; `sent_before` holds parameters that came in pieces, by number. Raises RemoteProtocolError: there are fewer
    bytes than `count` parameters take, or more, or a type is unknown."""
    if count == 0:
        return [], []
    body = bytes(data)
    size = (count + 7) // 8
    if len(body) <= size:
        raise RemoteProtocolError(f"{len(body)} bytes of parameters, expected more than {size}")
    nulls, offset = body[:size], size + 1
    if body[size]:
        end = offset + 2 * count
        if len(body) < end:
            raise RemoteProtocolError(f"{len(body)} bytes of parameters, expected {end} up to the end of their types")
        types = list(struct.unpack_from(f"<{count}H", body, offset))
        offset = end
    if len(types) != count:
        raise RemoteProtocolError(f"types of {len(types)} parameters, expected {count}")
    values: list[Parameter] = []
    for no, kind in enumerate(types):
        if no in sent_before:
            values.append(_text(sent_before[no]))
        elif nulls[no // 8] & 1 << no % 8:
            values.append(None)
        else:
            value, offset = _decode_value(body, offset, kind)
            values.append(value)
    if offset != len(body):
        raise RemoteProtocolError(f"{len(body) - offset} bytes behind {count} parameters")
    return values, list(types)


def _decode_value(data: bytes, offset: int, kind: int) -> tuple[Parameter, int]:
    column_type, is_unsigned = kind & 0xFF, bool(kind & UNSIGNED)
    if column_type == FieldType.NULL:
        return None, offset
    if column_type in _TEXTS:
        try:
            value, offset = lenenc.decode_bytes(data, offset)
        except ValueError as error:
            raise RemoteProtocolError(f"a parameter that cannot be read: {error}") from None
        return _number(value) if column_type in (0, FieldType.NEWDECIMAL) else _text(value), offset
    if (size := _INTEGER_SIZES.get(column_type)) is not None:
        part, offset = _take(data, offset, size)
        return int.from_bytes(part, "little", signed=not is_unsigned), offset
    if (real := _REALS.get(column_type)) is not None:
        part, offset = _take(data, offset, real.size)
        return _finite(real.unpack(part)[0]), offset
    if column_type in (FieldType.DATE, FieldType.DATETIME, FieldType.TIMESTAMP, FieldType.TIME):
        (size,), offset = _take(data, offset, 1)
        part, offset = _take(data, offset, size)
        return (_decode_duration if column_type == FieldType.TIME else _decode_moment)(part), offset
    raise RemoteProtocolError(f"a parameter of type {column_type}, which no client sends")


def _take(data: bytes, offset: int, size: int) -> tuple[bytes, int]:
    end = offset + size
    if end > len(data):
        raise RemoteProtocolError(f"a parameter of {size} bytes, of which {len(data) - offset} are there")
    return data[offset:end], end


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _number(data: bytes) -> Parameter:
    text = _text(data)
    return Decimal(text) if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)", text, re.ASCII) and len(text) < 100 else text


def _decode_moment(data: bytes) -> str:
    if len(data) not in (0, 4, 7, 11):
        raise RemoteProtocolError(f"a date of {len(data)} bytes, expected 0, 4, 7 or 11")
    data = data.ljust(11, b"\x00") if len(data) > 4 else data.ljust(4, b"\x00")
    text = "{:04}-{:02}-{:02}".format(*_DATE.unpack_from(data))
    if len(data) == 4:
        return text
    text += " {:02}:{:02}:{:02}".format(*_CLOCK.unpack_from(data, 4))
    (microseconds,) = _MICROSECONDS.unpack_from(data, 7)
    return text + (f".{microseconds:06}" if microseconds else "")


def _decode_duration(data: bytes) -> str:
    if len(data) not in (0, 8, 12):
        raise RemoteProtocolError(f"a time of {len(data)} bytes, expected 0, 8 or 12")
    is_negative, days, hours, minutes, seconds = _DURATION_HEAD.unpack_from(data.ljust(12, b"\x00"))
    (microseconds,) = _MICROSECONDS.unpack_from(data.ljust(12, b"\x00"), 8)
    text = f"{'-' if is_negative else ''}{days * 24 + hours:02}:{minutes:02}:{seconds:02}"
    return text + (f".{microseconds:06}" if microseconds else "")
