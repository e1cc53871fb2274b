"""Columns of tables that are written: what a TABLE_MAP says of them, and how their values become bytes.

The inverse of `value`; layout: protocol/event/rows.md.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from ibbmaster.errors import ConfigurationError
from ibbmaster.event.rows.charset import BINARY_COLLATION
from ibbmaster.event.rows.column import ColumnType
from ibbmaster.event.rows.ddl import is_nullable, is_unsigned, named_charset
from ibbmaster.event.rows.number import DIGITS_MAX, PART_SIZES, SCALE_MAX, WORD_DIGITS, decimal_size
from ibbmaster.event.rows.temporal import DATETIME2_ZERO, FRACTION_SIZES, civil_date, days_of
from ibbmaster.event.rows.value import SHORT_LENGTH_MAX, YEAR_ZERO

UTF8 = "utf8mb4"
UTF8_COLLATION = 45  # utf8mb4_general_ci
UTF8_BYTES_MAX = 4  # of a character
Encode = Callable[[object], bytes]

_TYPE = re.compile(r"\s*([a-z0-9]+)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?.*", re.IGNORECASE | re.DOTALL)
_INTEGERS = {
    "tinyint": (ColumnType.TINY, 1),
    "int1": (ColumnType.TINY, 1),
    "boolean": (ColumnType.TINY, 1),
    "bool": (ColumnType.TINY, 1),
    "smallint": (ColumnType.SHORT, 2),
    "int2": (ColumnType.SHORT, 2),
    "mediumint": (ColumnType.INT24, 3),
    "middleint": (ColumnType.INT24, 3),
    "int3": (ColumnType.INT24, 3),
    "int": (ColumnType.LONG, 4),
    "int4": (ColumnType.LONG, 4),
    "integer": (ColumnType.LONG, 4),
    "bigint": (ColumnType.LONGLONG, 8),
    "int8": (ColumnType.LONGLONG, 8),
}
_BLOBS = {
    "tinytext": (1, True),
    "text": (2, True),
    "mediumtext": (3, True),
    "longtext": (4, True),
    "json": (4, True),
    "tinyblob": (1, False),
    "blob": (2, False),
    "mediumblob": (3, False),
    "longblob": (4, False),
}
_MOMENT = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):([0-5]\d):([0-5]\d)(?:\.(\d{1,6}))?)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenColumn:
    """One column. `metadata` are its bytes in the metadata block, `encode` takes a value that is not NULL."""

    name: str
    declared: str  # the type as CREATE TABLE has it
    type: ColumnType
    metadata: bytes
    encode: Encode
    is_nullable: bool = True
    is_unsigned: bool | None = None  # None for what is no number
    collation: int | None = None  # None for what is no string


def written_column(name: str, declared: str) -> WrittenColumn:
    """A column from its type as CREATE TABLE writes it. Text is utf8mb4.

    Raises:
        ConfigurationError: the type is unknown, or cannot be written.
    """
    match = _TYPE.fullmatch(declared)
    if match is None:
        raise ConfigurationError(f"column {name}: {declared!r} is no column type")
    word, first, second = match[1].lower(), match[2], match[3]
    length = None if first is None else int(first)

    def column(
        kind: ColumnType, metadata: bytes, encode: Encode, *, sign: bool | None = None, collation: int | None = None
    ) -> WrittenColumn:
        return WrittenColumn(
            name=name,
            declared=declared.strip(),
            type=kind,
            metadata=metadata,
            encode=encode,
            is_nullable=is_nullable(declared),
            is_unsigned=sign,
            collation=collation,
        )

    charset = named_charset(declared)
    if charset not in (None, UTF8):  # also utf8mb3: a replica's column would have other lengths
        raise ConfigurationError(f"column {name}: {declared!r} is text in {charset}, only {UTF8} can be written")
    has_no_sign = is_unsigned(declared)
    if word in _INTEGERS:
        kind, size = _INTEGERS[word]
        return column(kind, b"", _integer(size, is_signed=not has_no_sign), sign=has_no_sign)
    if word in _BLOBS:
        size, is_text = _BLOBS[word]
        collation = UTF8_COLLATION if is_text else BINARY_COLLATION
        return column(ColumnType.BLOB, bytes([size]), _string(size, is_text=is_text), collation=collation)
    match word:
        case "float":
            return column(ColumnType.FLOAT, b"\4", _float("<f"), sign=has_no_sign)
        case "double" | "real":
            return column(ColumnType.DOUBLE, b"\x08", _float("<d"), sign=has_no_sign)
        case "decimal" | "numeric" | "dec":
            digits, scale = length or 10, int(second or 0)
            if not 0 < digits <= DIGITS_MAX or scale > min(digits, SCALE_MAX):
                raise ConfigurationError(f"column {name}: DECIMAL({digits},{scale}) does not exist")
            return column(ColumnType.NEWDECIMAL, bytes([digits, scale]), _decimal(digits, scale), sign=has_no_sign)
        case "varchar" | "varbinary":
            is_text = word == "varchar"
            size = (length or 0) * (UTF8_BYTES_MAX if is_text else 1)
            if length is None or size > 0xFFFF:
                raise ConfigurationError(f"column {name}: {declared!r} needs a length of at most 65535 bytes")
            encode = _string(1 if size <= SHORT_LENGTH_MAX else 2, is_text=is_text, size_max=size)
            collation = UTF8_COLLATION if is_text else BINARY_COLLATION
            return column(ColumnType.VARCHAR, size.to_bytes(2, "little"), encode, collation=collation)
        case "char" | "binary":
            is_text = word == "char"
            size = (1 if length is None else length) * (UTF8_BYTES_MAX if is_text else 1)
            if size > 255 * UTF8_BYTES_MAX or (not is_text and size > 255):
                raise ConfigurationError(f"column {name}: {declared!r} is too long")
            metadata = bytes([ColumnType.STRING ^ ((size & 0x300) >> 4), size & 0xFF])
            trimmed = _trimmed(is_text=is_text, prefix=1 if size <= SHORT_LENGTH_MAX else 2, size_max=size)
            collation = UTF8_COLLATION if is_text else BINARY_COLLATION
            return column(ColumnType.STRING, metadata, trimmed, collation=collation)
        case "date":
            return column(ColumnType.DATE, b"", _date)
        case "year":
            return column(ColumnType.YEAR, b"", _year, sign=True)
        case "datetime" | "timestamp" | "time":
            digits = length or 0
            if digits > 6:
                raise ConfigurationError(f"column {name}: {digits} digits of a second, at most 6")
            kinds = {
                "datetime": (ColumnType.DATETIME2, _datetime(digits)),
                "timestamp": (ColumnType.TIMESTAMP2, _timestamp(digits)),
                "time": (ColumnType.TIME2, _time(digits)),
            }
            kind, encode = kinds[word]
            return column(kind, bytes([digits]), encode)
    raise ConfigurationError(f"column {name}: columns of type {declared!r} cannot be written")


def _integer(size: int, *, is_signed: bool) -> Encode:
    def encode(value: object) -> bytes:
        try:
            number = int(value)  # type: ignore[call-overload]
            return int(number).to_bytes(size, "little", signed=is_signed)
        except OverflowError:
            raise ValueError(f"{value!r} does not fit into {size} bytes") from None
        except TypeError:
            raise ValueError(f"{value!r} is no number") from None

    return encode


def _float(layout: str) -> Encode:
    pack = struct.Struct(layout).pack

    def encode(value: object) -> bytes:
        try:
            return bytes(pack(float(value)))  # type: ignore[arg-type]
        except (OverflowError, TypeError, struct.error):
            raise ValueError(f"{value!r} does not fit") from None

    return encode


def _decimal(digits: int, scale: int) -> Encode:
    """Source: MariaDB 12.3, decimal.c, decimal2bin()."""
    whole = digits - scale
    counts = [whole % WORD_DIGITS] if whole % WORD_DIGITS else []
    counts += [WORD_DIGITS] * (whole // WORD_DIGITS + scale // WORD_DIGITS)
    counts += [scale % WORD_DIGITS] if scale % WORD_DIGITS else []
    size = decimal_size(digits, scale)
    limit = 10**digits

    def encode(value: object) -> bytes:
        try:
            number = Decimal(str(value))
        except InvalidOperation:
            raise ValueError(f"{value!r} is no number") from None
        scaled = number.scaleb(scale)
        if not number.is_finite() or scaled != scaled.to_integral_value() or abs(scaled) >= limit:
            raise ValueError(f"{value} does not fit into DECIMAL({digits},{scale})")
        text = str(abs(int(scaled))).zfill(digits)
        packed, start = b"", 0
        for count in counts:
            packed += int(text[start : start + count]).to_bytes(PART_SIZES[count], "big")
            start += count
        plain = int.from_bytes(packed, "big") ^ (1 << (8 * size - 1))
        if scaled < 0:
            plain ^= (1 << 8 * size) - 1
        return plain.to_bytes(size, "big")

    return encode


def _bytes_of(value: object, *, is_text: bool) -> bytes:
    """The bytes of a string: text in UTF-8, and for binary columns also hexadecimal digits behind 0x."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    text = str(value)
    if not is_text and text.startswith("0x"):
        return bytes.fromhex(text[2:])
    return text.encode()


def _string(prefix: int, *, is_text: bool, size_max: int | None = None) -> Encode:
    limit = (1 << 8 * prefix) - 1 if size_max is None else size_max

    def encode(value: object) -> bytes:
        data = _bytes_of(value, is_text=is_text)
        if len(data) > limit:
            raise ValueError(f"a string of {len(data)} bytes, at most {limit}")
        return len(data).to_bytes(prefix, "little") + data

    return encode


def _trimmed(*, is_text: bool, prefix: int, size_max: int) -> Encode:
    """Strings of a fixed length travel without what fills them up."""

    def encode(value: object) -> bytes:
        data = _bytes_of(value, is_text=is_text)
        if len(data) > size_max:
            raise ValueError(f"a string of {len(data)} bytes, at most {size_max}")
        data = data.rstrip(b" " if is_text else b"\0")
        return len(data).to_bytes(prefix, "little") + data

    return encode


def _fraction(microsecond: int, digits: int) -> bytes:
    size = FRACTION_SIZES[digits]
    kept = microsecond // 10 ** (6 - digits) * 10 ** (6 - digits)
    return int(kept // 10 ** (6 - 2 * size)).to_bytes(size, "big")


class Moment(NamedTuple):
    """A date and time."""

    year: int
    month: int
    day: int
    hour: int = 0
    minute: int = 0
    second: int = 0
    microsecond: int = 0


def moment_of(value: object) -> Moment:
    """A moment from one of Python's, or from text as MariaDB shows it; a zone is for the caller.

    Raises:
        ValueError: it is none, or there is no such day.
    """
    if hasattr(value, "year"):
        return Moment._make(getattr(value, name, 0) for name in Moment._fields)
    match = _MOMENT.fullmatch(str(value))
    if match is None:
        raise ValueError(f"{value!r} is no date and time")
    numbers = [int(match[number] or 0) for number in range(1, 7)]
    moment = Moment._make((*numbers, int((match[7] or "").ljust(6, "0"))))
    if not 1 <= moment.month <= 12 or civil_date(days_of(moment.year, moment.month, moment.day)) != moment[:3]:
        raise ValueError(f"{value!r}: there is no such day")
    return moment


def _date(value: object) -> bytes:
    day = moment_of(value)
    return (day.year << 9 | day.month << 5 | day.day).to_bytes(3, "little")


def _year(value: object) -> bytes:
    year = _as_int(value)
    if year and not 1901 <= year <= 2155:
        raise ValueError(f"{year} is no YEAR")
    return bytes([year - YEAR_ZERO if year else 0])


def _as_int(value: object) -> int:
    return int(value)  # type: ignore[call-overload,no-any-return]


def _datetime(digits: int) -> Encode:
    def encode(value: object) -> bytes:
        moment = moment_of(value)
        packed = (moment.year * 13 + moment.month) << 22 | moment.day << 17
        packed |= moment.hour << 12 | moment.minute << 6 | moment.second
        return (packed + DATETIME2_ZERO).to_bytes(5, "big") + _fraction(moment.microsecond, digits)

    return encode


def _timestamp(digits: int) -> Encode:
    """Times without a zone are UTC."""

    def encode(value: object) -> bytes:
        moment = moment_of(value)
        days = days_of(moment.year, moment.month, moment.day)
        seconds = ((days * 24 + moment.hour) * 60 + moment.minute) * 60 + moment.second
        zone = getattr(value, "utcoffset", lambda: None)()
        if zone is not None:
            seconds -= int(zone.total_seconds())
        if not 0 < seconds < 1 << 32:
            raise ValueError(f"{value} is no TIMESTAMP")
        return seconds.to_bytes(4, "big") + _fraction(moment.microsecond, digits)

    return encode


_TIME = re.compile(r"(-?)(\d{1,3}):([0-5]\d):([0-5]\d)(?:\.(\d{1,6}))?")


def _time(digits: int) -> Encode:
    size = FRACTION_SIZES[digits]
    zero = 0x800000 << (8 * size)

    def encode(value: object) -> bytes:
        match = _TIME.fullmatch(str(value))
        if match is None or int(match[2]) > 838:
            raise ValueError(f"{value!r} is no TIME")
        whole = int(match[2]) << 12 | int(match[3]) << 6 | int(match[4])
        fraction = int.from_bytes(_fraction(int((match[5] or "").ljust(6, "0")), digits), "big")
        packed = whole << (8 * size) | fraction
        return (zero + (-packed if match[1] else packed)).to_bytes(3 + size, "big")

    return encode
