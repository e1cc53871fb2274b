"""Values of SQL as the bytes that a column stores: what a default gives to a row, what a condition compares with."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from ibbmaster.errors import ConfigurationError
from ibbmaster.event.column_types.kind import DeclaredType
from ibbmaster.event.column_types.net import INET4_SIZE, UUID_SIZE
from ibbmaster.event.column_types.registry import BY_WORD
from ibbmaster.event.column_types.temporal import FRACTION_SIZES
from ibbmaster.event.rows.charset import decode_text
from ibbmaster.event.rows.column import Column, ValueKind
from ibbmaster.expr.value_texts import encoded
from ibbmaster.schema.model import SqlType
from ibbmaster.sqltext.literals import Value
from ibbmaster.sqltext.moment import loose_moment


def stored_value(column: Column, kind: SqlType, value: Value) -> bytes | None:
    """The bytes of a constant in a column, without what tells their length.

    Raises:
        ValueError: the column cannot hold it as it is.
    """
    if value is None:
        return None
    if column.is_compressed:
        data = _text(column, value) if column.kind is ValueKind.TEXT else _bytes(value)
        return b"\0" + data if data else b""  # not compressed, which takes a byte to say
    if column.has_old_format:
        raise ValueError("columns in the format of before 10.1 take no constants here")
    match column.kind:
        case ValueKind.ENUM:
            return _enum_number(kind, value).to_bytes(column.size, "little")
        case ValueKind.SET:
            return _set_bits(kind, value).to_bytes(column.size, "little")
        case ValueKind.BIT:
            number = int(value) if isinstance(value, int | float | Decimal) else int.from_bytes(_bytes(value), "big")
            return _bounded(number, column.size).to_bytes((column.size + 7) // 8, "big")
        case ValueKind.GEOMETRY:
            return _bytes(value)
        case ValueKind.UUID:
            return uuid_bytes(value)
        case ValueKind.INET4 | ValueKind.INET6:
            return address_bytes(value, 4 if column.kind is ValueKind.INET4 else 6)
        case ValueKind.TEXT:
            return _text(column, value)
        case ValueKind.BINARY | ValueKind.VECTOR:
            data = _bytes(value)
            return data.rstrip(b"\0") if column.is_fixed_length else data
        case ValueKind.DATE | ValueKind.DATETIME:
            return _moment(column, value)
        case ValueKind.TIMESTAMP if _is_zero(value):
            return bytes(4 + FRACTION_SIZES[column.scale])
    return _encoded(column, kind, value)


def _encoded(column: Column, kind: SqlType, value: Value) -> bytes:
    """Numbers and dates, by what writes them elsewhere."""
    inside = ",".join(str(number) for number in (kind.length, kind.scale) if number is not None)
    if kind.word in ("time", "datetime", "timestamp"):
        inside = str(column.scale)
    if kind.word == "decimal":
        inside = f"{column.size},{column.scale}"
    sign = " unsigned" if column.is_unsigned else ""
    declared = DeclaredType(f"column {column.name}", f"{kind.word}{sign}", kind.word, inside or None)
    try:
        written = BY_WORD[kind.word].write(declared)
    except (ConfigurationError, KeyError) as error:
        raise ValueError(str(error)) from None
    if written is None:
        raise ValueError(f"constants of type {kind.word} are not known")
    if isinstance(value, bytes):
        value = int.from_bytes(value, "big")
    if isinstance(value, str) and kind.word in ("tinyint", "smallint", "mediumint", "int", "bigint", "year"):
        is_short = kind.word == "year" and len(value) < 3
        value = _whole(value)
        value += (2000 if value < 70 else 1900) if is_short else 0
    elif isinstance(value, float | Decimal) and kind.word.endswith("int"):
        value = _whole(str(value))
    return written.encode(value)


def _whole(text: str) -> int:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        raise ValueError(f"{text!r} is no number") from None
    if number != number.to_integral_value():
        raise ValueError(f"{text} is no whole number")
    return int(number)


def _is_zero(value: Value) -> bool:
    return value == 0 or (isinstance(value, str) and not value.strip("0-: ."))


def _moment(column: Column, value: Value) -> bytes:
    """A date, or a date and time, of the calendar or not: 2020-00-00 is one."""
    moment = loose_moment("0000-00-00" if _is_zero(value) else str(value))
    year, month, day, hour, minute, second, microsecond = moment
    if month > 12 or day > 31 or hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"{value!r} is no date and time")
    if column.kind is ValueKind.DATE:
        if hour or minute or second or microsecond:
            raise ValueError(f"{value!r} is no date")
        return (year << 9 | month << 5 | day).to_bytes(3, "little")
    fraction = f"{microsecond:06}"
    if fraction[column.scale :].strip("0"):
        raise ValueError(f"{value!r} has more than {column.scale} digits of a second")
    packed = (year * 13 + month) << 22 | day << 17 | hour << 12 | minute << 6 | second
    size = FRACTION_SIZES[column.scale]
    return (packed + (1 << 39)).to_bytes(5, "big") + int(fraction[: 2 * size] or 0).to_bytes(size, "big")


def _bounded(number: int, bits: int) -> int:
    if not 0 <= number < 1 << bits:
        raise ValueError(f"{number} does not fit into {bits} bits")
    return number


def _enum_number(kind: SqlType, value: Value) -> int:
    if isinstance(value, str):
        if value == "":
            return kind.labels.index("") + 1 if "" in kind.labels else 0
        folded = [label.rstrip().casefold() for label in kind.labels]
        if value.rstrip().casefold() in folded:
            return folded.index(value.rstrip().casefold()) + 1
        raise ValueError(f"{value!r} is no label")
    return _bounded(_whole(str(value)), 16)


def _set_bits(kind: SqlType, value: Value) -> int:
    if not isinstance(value, str):
        return _bounded(_whole(str(value)), len(kind.labels))
    folded = [label.rstrip().casefold() for label in kind.labels]
    bits = 0
    for part in value.split(",") if value else ():
        if part.rstrip().casefold() not in folded:
            raise ValueError(f"{part!r} is no label")
        bits |= 1 << folded.index(part.rstrip().casefold())
    return bits


def _bytes(value: Value) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")


def _text(column: Column, value: Value) -> bytes:
    charset = column.charset or "utf8mb4"
    if isinstance(value, bytes):
        data = value
    else:
        data = encoded(str(value), charset)
        if decode_text(data, charset) != str(value):
            raise ValueError(f"{value!r} cannot be said in {charset}")
    return data.rstrip(b" ") if column.is_fixed_length else data


def uuid_bytes(value: Value) -> bytes:
    """A UUID as a server stores it, and compares it: those of time in its order."""
    data = value if isinstance(value, bytes) else bytes.fromhex(str(value).replace("-", ""))
    if len(data) != UUID_SIZE:
        raise ValueError(f"{value!r} is no UUID")
    if data[8] & 0x80 and 0 < data[6] < 0x60:  # versions 1 to 5 are stored in the order of time
        return data[10:16] + data[8:10] + data[6:8] + data[4:6] + data[0:4]
    return data


def address_bytes(value: Value, version: int) -> bytes:
    """An address of IPv4 or IPv6."""
    if isinstance(value, bytes):
        return value
    text = str(value)
    if version == INET4_SIZE:
        parts = [int(part) for part in text.split(".")]
        if len(parts) != 4:
            raise ValueError(f"{text!r} is no address")
        return bytes(parts)
    import ipaddress

    return ipaddress.IPv6Address(text).packed
