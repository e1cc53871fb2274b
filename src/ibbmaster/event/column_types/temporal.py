"""Dates and times, old and new formats; read as the text MariaDB shows. Layout: protocol/event/rows.md."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.event.column_types.kind import ColumnKind, DeclaredType, Layout, WrittenType
from ibbmaster.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.event.rows.value import Encode, Value
from ibbmaster.sqltext.moment import Moment, civil_date, days_of, moment_of

TIME_LIMIT_S = 838 * 3600 + 59 * 60 + 60  # TIME reaches to one second less
DATETIME2_ZERO = 1 << 39
FRACTION_SIZES = (0, 1, 1, 2, 2, 3, 3)  # bytes, by digits: TIMESTAMP2, DATETIME2, TIME2, TIMESTAMP of MariaDB 5.3
OLD_TIME_SIZES = (3, 4, 4, 5, 5, 5, 6)  # of MariaDB 5.3 to 10.0
OLD_DATETIME_SIZES = (8, 6, 6, 7, 7, 7, 8)
DAY_S = 86400
YEAR_MAX = 9999
DIGITS_MAX = 6  # of a second
_TIME = re.compile(r"(-?)(\d{1,3}):([0-5]\d):([0-5]\d)(?:\.(\d{1,6}))?")

Text = Callable[[bytes], str]
ReadMoment = Callable[[bytes], Moment]


class Date(ColumnKind):
    """DATE, three bytes."""

    values = {ColumnType.DATE: ValueKind.DATE, ColumnType.NEWDATE: ValueKind.DATE}
    words = frozenset(("date",))

    def fixed_size(self, column: Column) -> int:
        return 3

    def keeps_values(self, old: Column, new: Column) -> bool:
        return new.kind in (ValueKind.DATE, ValueKind.DATETIME)

    def convert(self, column: Column) -> Callable[[bytes], Value]:
        return _date_text

    def write(self, declared: DeclaredType) -> WrittenType:
        return WrittenType(ColumnType.DATE, b"", _encode_date)


class _Clock(ColumnKind):
    """What has a clock: a format of before 10.1, whose digits only a declared type has, and the one since."""

    old: ColumnType
    new: ColumnType

    def layout(self, where: str, column_type: ColumnType, metadata: int, raw: bytes) -> Layout:
        if metadata > DIGITS_MAX:
            raise EventError(f"{where} has {metadata} digits of a second")
        return Layout(column_type, scale=metadata)

    def declare(self, column: Column, declared: DeclaredType) -> dict[str, Any]:
        return {"scale": _digits(declared)} if column.type == self.old else {}

    def keeps_values(self, old: Column, new: Column) -> bool:
        return new.kind is old.kind and new.scale >= old.scale

    def write(self, declared: DeclaredType) -> WrittenType:
        digits = _digits(declared)
        return WrittenType(self.new, bytes([digits]), self._encoder(digits))

    @abstractmethod
    def _encoder(self, digits: int) -> Encode:
        """Writes values with `digits` digits of a second."""


class Time(_Clock):
    """TIME: up to 838 hours to either side of zero."""

    old, new = ColumnType.TIME, ColumnType.TIME2
    values = dict.fromkeys((old, new), ValueKind.TIME)
    words = frozenset(("time",))
    metadata_sizes = {new: 1}

    def fixed_size(self, column: Column) -> int:
        return OLD_TIME_SIZES[column.scale] if column.type == self.old else 3 + FRACTION_SIZES[column.scale]

    def convert(self, column: Column) -> Callable[[bytes], Value]:
        return (_old_time if column.type == self.old else _time)(column.scale)

    def _encoder(self, digits: int) -> Encode:
        return _time_encoder(digits)


class DateTime(_Clock):
    """DATETIME: a date and a clock, wherever that is."""

    old, new = ColumnType.DATETIME, ColumnType.DATETIME2
    values = dict.fromkeys((old, new), ValueKind.DATETIME)
    words = frozenset(("datetime",))
    metadata_sizes = {new: 1}

    def fixed_size(self, column: Column) -> int:
        return OLD_DATETIME_SIZES[column.scale] if column.type == self.old else 5 + FRACTION_SIZES[column.scale]

    def convert(self, column: Column) -> Callable[[bytes], Value]:
        return _moment_text(moment_reader(column), column.scale)

    def _encoder(self, digits: int) -> Encode:
        return _datetime_encoder(digits)


class Timestamp(_Clock):
    """TIMESTAMP: seconds since 1970, in UTC."""

    old, new = ColumnType.TIMESTAMP, ColumnType.TIMESTAMP2
    values = dict.fromkeys((old, new), ValueKind.TIMESTAMP)
    words = frozenset(("timestamp",))
    metadata_sizes = {new: 1}

    def fixed_size(self, column: Column) -> int:
        return 4 + FRACTION_SIZES[column.scale]

    def convert(self, column: Column) -> Callable[[bytes], Value]:
        return _moment_text(moment_reader(column), column.scale)

    def _encoder(self, digits: int) -> Encode:
        return _timestamp_encoder(digits)


def _digits(declared: DeclaredType) -> int:
    digits = declared.length or 0
    if digits > DIGITS_MAX:
        raise ConfigurationError(f"{declared.where}: {digits} digits of a second, at most {DIGITS_MAX}")
    return digits


def moment_reader(column: Column) -> ReadMoment:
    """How the bytes of a DATE, DATETIME or TIMESTAMP become a moment; they raise ValueError where they make none."""
    match column.type:
        case ColumnType.DATETIME2:
            return _datetime(column.scale)
        case ColumnType.TIMESTAMP2:
            return _timestamp(column.scale)
        case ColumnType.DATETIME:
            return _old_datetime(column.scale) if column.scale else _old_short_datetime
        case ColumnType.TIMESTAMP:
            return _old_timestamp(column.scale)
    return _date


def _date(data: bytes) -> Moment:
    """A DATE: 5 bits day, 4 bits month, the rest year."""
    value = int.from_bytes(data, "little")
    return Moment(value >> 9, value >> 5 & 15, value & 31)


def _datetime(digits: int) -> ReadMoment:
    """Reads a DATETIME in the format since 10.1."""
    shift = 8 * FRACTION_SIZES[digits]
    zero = DATETIME2_ZERO << shift
    microseconds = _microseconds(digits, 2 * FRACTION_SIZES[digits])
    mask = (1 << shift) - 1

    def read(data: bytes) -> Moment:
        packed = int.from_bytes(data, "big") - zero
        if packed < 0:
            raise ValueError(f"datetime {data.hex()} is negative")
        value = packed >> shift
        year_month, day = value >> 22, value >> 17 & 31
        hour, minute, second = value >> 12 & 31, value >> 6 & 63, value & 63
        return Moment(year_month // 13, year_month % 13, day, hour, minute, second, microseconds(packed & mask))

    return read


def _timestamp(digits: int) -> ReadMoment:
    """Reads a TIMESTAMP in the format since 10.1; seconds since 1970 without sign, as since 11.5."""
    microseconds = _microseconds(digits, 2 * FRACTION_SIZES[digits])

    def read(data: bytes) -> Moment:
        return _since_1970(int.from_bytes(data[:4], "big"), int.from_bytes(data[4:], "big"), microseconds)

    return read


def _old_timestamp(digits: int) -> ReadMoment:
    """Reads a TIMESTAMP of before 10.1: little-endian without a fraction, big-endian with one."""
    microseconds = _microseconds(digits, digits)

    def read(data: bytes) -> Moment:
        seconds = int.from_bytes(data[:4], "big" if digits else "little")
        return _since_1970(seconds, int.from_bytes(data[4:], "big"), microseconds)

    return read


def _old_datetime(digits: int) -> ReadMoment:
    """Reads a DATETIME with a fraction of before 10.1: a packed number."""
    scale = 10**digits
    microseconds = _microseconds(digits, digits)

    def read(data: bytes) -> Moment:
        value, part = divmod(int.from_bytes(data, "big"), scale)
        value, second = divmod(value, 60)
        value, minute = divmod(value, 60)
        value, hour = divmod(value, 24)
        value, day = divmod(value, 32)
        year, month = divmod(value, 13)
        if year > YEAR_MAX:
            raise ValueError(f"datetime {data.hex()} is out of range")
        return Moment(year, month, day, hour, minute, second, microseconds(part))

    return read


def _old_short_datetime(data: bytes) -> Moment:
    """A DATETIME without a fraction of before 10.1: decimal digits YYYYMMDDhhmmss."""
    value = int.from_bytes(data, "little")
    date, clock = divmod(value, 1_000_000)
    moment = Moment(date // 10_000, date // 100 % 100, date % 100, clock // 10_000, clock // 100 % 100, clock % 100)
    if any(found > most for found, most in zip(moment, (YEAR_MAX, 12, 31, 23, 59, 59), strict=False)):
        raise ValueError(f"datetime {value} is out of range")
    return moment


def _since_1970(seconds: int, part: int, microseconds: Callable[[int], int]) -> Moment:
    """Seconds since 1970 as a date and time in UTC; 0 is the zero time where there is no fraction either."""
    if not seconds and not part:
        return Moment(0, 0, 0)
    days, clock = divmod(seconds, DAY_S)
    return Moment(*civil_date(days), clock // 3600, clock // 60 % 60, clock % 60, microseconds(part))


def _date_text(data: bytes) -> str:
    year, month, day, *_ = _date(data)
    return f"{year:04}-{month:02}-{day:02}"


def _moment_text(read: ReadMoment, digits: int) -> Text:
    """Reads a moment as the text that MariaDB shows."""
    shown = 1 + digits

    def text(data: bytes) -> str:
        year, month, day, hour, minute, second, microsecond = read(data)
        fraction = f".{microsecond:06}"[:shown] if digits else ""
        return f"{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{fraction}"

    return text


def _time(digits: int) -> Text:
    """Reads a TIME in the format since 10.1: the whole number counts from the middle of its range."""
    size = FRACTION_SIZES[digits]
    shift = 8 * size
    zero = 0x800000 << shift
    mask = (1 << shift) - 1
    microseconds = _microseconds(digits, 2 * size)

    def text(data: bytes) -> str:
        packed = int.from_bytes(data, "big") - zero
        sign = "-" if packed < 0 else ""
        packed = abs(packed)
        value = packed >> shift
        hms = f"{value >> 12 & 1023:02}:{value >> 6 & 63:02}:{value & 63:02}"
        return f"{sign}{hms}{_fraction_text(microseconds(packed & mask), digits)}"

    return text


def _old_time(digits: int) -> Text:
    """Reads a TIME of before 10.1: decimal digits hhmmss, or with a fraction a number above its lowest value."""
    if not digits:
        return _old_short_time
    scale = 10**digits
    zero = TIME_LIMIT_S * scale
    microseconds = _microseconds(digits, digits)

    def text(data: bytes) -> str:
        value = int.from_bytes(data, "big") - zero
        seconds, part = divmod(abs(value), scale)
        if seconds >= TIME_LIMIT_S:
            raise ValueError(f"time {data.hex()} is out of range")
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return f"{'-' if value < 0 else ''}{clock}{_fraction_text(microseconds(part), digits)}"

    return text


def _old_short_time(data: bytes) -> str:
    value = int.from_bytes(data, "little", signed=True)
    hours, rest = divmod(abs(value), 10000)
    minutes, seconds = divmod(rest, 100)
    if hours > 838 or minutes > 59 or seconds > 59:
        raise ValueError(f"time {value} is out of range")
    return f"{'-' if value < 0 else ''}{hours:02}:{minutes:02}:{seconds:02}"


def _microseconds(digits: int, stored_digits: int) -> Callable[[int], int]:
    """How a fraction that is stored with `stored_digits` decimal digits is read, those that are not shown left out."""
    limit: int = 10**stored_digits
    dropped: int = 10 ** (stored_digits - digits)
    scale: int = 10 ** (DIGITS_MAX - digits)

    def read(value: int) -> int:
        if value >= limit:
            raise ValueError(f"fraction {value} has more than {stored_digits} digits")
        return value // dropped * scale

    return read


def _fraction_text(microsecond: int, digits: int) -> str:
    return f".{microsecond:06}"[: 1 + digits] if digits else ""


def _fraction(microsecond: int, digits: int) -> bytes:
    size = FRACTION_SIZES[digits]
    kept = microsecond // 10 ** (6 - digits) * 10 ** (6 - digits)
    return int(kept // 10 ** (6 - 2 * size)).to_bytes(size, "big")


def _encode_date(value: object) -> bytes:
    day = moment_of(value)
    return (day.year << 9 | day.month << 5 | day.day).to_bytes(3, "little")


def _datetime_encoder(digits: int) -> Encode:
    def encode(value: object) -> bytes:
        moment = moment_of(value)
        packed = (moment.year * 13 + moment.month) << 22 | moment.day << 17
        packed |= moment.hour << 12 | moment.minute << 6 | moment.second
        return (packed + DATETIME2_ZERO).to_bytes(5, "big") + _fraction(moment.microsecond, digits)

    return encode


def _timestamp_encoder(digits: int) -> Encode:
    """Times without a zone are UTC."""

    def encode(value: object) -> bytes:
        moment = moment_of(value)
        if not any(moment):
            return bytes(4 + FRACTION_SIZES[digits])
        days = days_of(moment.year, moment.month, moment.day)
        seconds = ((days * 24 + moment.hour) * 60 + moment.minute) * 60 + moment.second
        zone = getattr(value, "utcoffset", lambda: None)()
        if zone is not None:
            seconds -= int(zone.total_seconds())
        if not 0 < seconds < 1 << 32 or not moment.day * moment.month:
            raise ValueError(f"{value} is no TIMESTAMP")
        return seconds.to_bytes(4, "big") + _fraction(moment.microsecond, digits)

    return encode


def _time_encoder(digits: int) -> Encode:
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
