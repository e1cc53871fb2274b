"""Dates and times, old and new formats; read as the text MariaDB shows. Layout: protocol/event/rows.md."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.event.rows.kinds.kind import ColumnKind, DeclaredType, Layout, WrittenType
from ibbmaster.event.rows.value import Encode, Value

TIME_LIMIT_S = 838 * 3600 + 59 * 60 + 60  # TIME reaches to one second less
DATETIME2_ZERO = 1 << 39
ZERO_DATE = "0000-00-00"
ZERO_DATETIME = "0000-00-00 00:00:00"
FRACTION_SIZES = (0, 1, 1, 2, 2, 3, 3)  # bytes, by digits: TIMESTAMP2, DATETIME2, TIME2, TIMESTAMP of MariaDB 5.3
OLD_TIME_SIZES = (3, 4, 4, 5, 5, 5, 6)  # of MariaDB 5.3 to 10.0
OLD_DATETIME_SIZES = (8, 6, 6, 7, 7, 7, 8)
DAY_S = 86400
DIGITS_MAX = 6  # of a second
_MOMENT = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):([0-5]\d):([0-5]\d)(?:\.(\d{1,6}))?)?", re.ASCII)
_TIME = re.compile(r"(-?)(\d{1,3}):([0-5]\d):([0-5]\d)(?:\.(\d{1,6}))?")

Text = Callable[[bytes], str]


class Date(ColumnKind):
    """DATE, three bytes."""

    values = {ColumnType.DATE: ValueKind.DATE, ColumnType.NEWDATE: ValueKind.DATE}
    words = frozenset(("date",))

    def fixed_size(self, column: Column) -> int:
        return 3

    def convert(self, column: Column) -> Callable[[bytes], Value]:
        return date_text

    def write(self, declared: DeclaredType) -> WrittenType:
        return WrittenType(ColumnType.DATE, b"", _encode_date)


class _Clock(ColumnKind):
    """What has a clock: a format of before 10.1, whose digits only a declared type tells, and the one since."""

    old: ColumnType
    new: ColumnType

    def layout(self, where: str, column_type: ColumnType, metadata: int, raw: bytes) -> Layout:
        if metadata > DIGITS_MAX:
            raise EventError(f"{where} has {metadata} digits of a second")
        return Layout(column_type, scale=metadata)

    def declare(self, column: Column, declared: DeclaredType) -> dict[str, Any]:
        return {"scale": _digits(declared)} if column.type == self.old else {}

    def write(self, declared: DeclaredType) -> WrittenType:
        digits = _digits(declared)
        return WrittenType(self.new, bytes([digits]), self._encoder(digits))

    @abstractmethod
    def _encoder(self, digits: int) -> Encode:
        """Writes values with so many digits of a second."""


class Time(_Clock):
    """TIME: up to 838 hours to either side of zero."""

    old, new = ColumnType.TIME, ColumnType.TIME2
    values = dict.fromkeys((old, new), ValueKind.TIME)
    words = frozenset(("time",))
    metadata_sizes = {new: 1}

    def fixed_size(self, column: Column) -> int:
        return OLD_TIME_SIZES[column.scale] if column.type == self.old else 3 + FRACTION_SIZES[column.scale]

    def convert(self, column: Column) -> Callable[[bytes], Value]:
        return (old_time_text if column.type == self.old else time2_text)(column.scale)

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
        return (old_datetime_text if column.type == self.old else datetime2_text)(column.scale)

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
        return (old_timestamp_text if column.type == self.old else timestamp2_text)(column.scale)

    def _encoder(self, digits: int) -> Encode:
        return _timestamp_encoder(digits)


def _digits(declared: DeclaredType) -> int:
    digits = declared.length or 0
    if digits > DIGITS_MAX:
        raise ConfigurationError(f"{declared.where}: {digits} digits of a second, at most {DIGITS_MAX}")
    return digits


def date_text(data: bytes) -> str:
    """A DATE: 5 bits day, 4 bits month, the rest year."""
    value = int.from_bytes(data, "little")
    return f"{value >> 9:04}-{value >> 5 & 15:02}-{value & 31:02}"


def datetime2_text(digits: int) -> Text:
    """Reads a DATETIME in the format since 10.1."""
    shift = 8 * FRACTION_SIZES[digits]
    zero = DATETIME2_ZERO << shift
    fraction = _fraction_text(digits, 2 * FRACTION_SIZES[digits])
    mask = (1 << shift) - 1

    def text(data: bytes) -> str:
        packed = int.from_bytes(data, "big") - zero
        if packed < 0:
            raise ValueError(f"datetime {data.hex()} is negative")
        value = packed >> shift
        year_month = value >> 22
        date = f"{year_month // 13:04}-{year_month % 13:02}-{value >> 17 & 31:02}"
        return f"{date} {value >> 12 & 31:02}:{value >> 6 & 63:02}:{value & 63:02}{fraction(packed & mask)}"

    return text


def time2_text(digits: int) -> Text:
    """Reads a TIME in the format since 10.1: the whole number counts from the middle of its range."""
    size = FRACTION_SIZES[digits]
    shift = 8 * size
    zero = 0x800000 << shift
    mask = (1 << shift) - 1
    fraction = _fraction_text(digits, 2 * size)

    def text(data: bytes) -> str:
        packed = int.from_bytes(data, "big") - zero
        sign = "-" if packed < 0 else ""
        packed = abs(packed)
        value = packed >> shift
        hms = f"{value >> 12 & 1023:02}:{value >> 6 & 63:02}:{value & 63:02}"
        return f"{sign}{hms}{fraction(packed & mask)}"

    return text


def timestamp2_text(digits: int) -> Text:
    """Reads a TIMESTAMP in the format since 10.1; seconds since 1970 without sign, as since 11.5."""
    fraction = _fraction_text(digits, 2 * FRACTION_SIZES[digits])

    def text(data: bytes) -> str:
        return _moment(int.from_bytes(data[:4], "big"), int.from_bytes(data[4:], "big"), fraction)

    return text


def old_timestamp_text(digits: int) -> Text:
    """Reads a TIMESTAMP of before 10.1: little-endian without a fraction, big-endian with one."""
    fraction = _fraction_text(digits, digits)

    def text(data: bytes) -> str:
        if not digits:
            return _moment(int.from_bytes(data, "little"), 0, fraction)
        return _moment(int.from_bytes(data[:4], "big"), int.from_bytes(data[4:], "big"), fraction)

    return text


def old_time_text(digits: int) -> Text:
    """Reads a TIME of before 10.1: decimal digits hhmmss, or with a fraction a number above its lowest value."""
    if not digits:
        return _old_short_time
    scale = 10**digits
    zero = TIME_LIMIT_S * scale
    fraction = _fraction_text(digits, digits)

    def text(data: bytes) -> str:
        value = int.from_bytes(data, "big") - zero
        seconds, part = divmod(abs(value), scale)
        if seconds >= TIME_LIMIT_S:
            raise ValueError(f"time {data.hex()} is out of range")
        return f"{'-' if value < 0 else ''}{_clock(seconds)}{fraction(part)}"

    return text


def old_datetime_text(digits: int) -> Text:
    """Reads a DATETIME of before 10.1: decimal digits YYYYMMDDhhmmss, or with a fraction a packed number."""
    if not digits:
        return _old_short_datetime
    scale = 10**digits
    fraction = _fraction_text(digits, digits)

    def text(data: bytes) -> str:
        value, part = divmod(int.from_bytes(data, "big"), scale)
        value, second = divmod(value, 60)
        value, minute = divmod(value, 60)
        value, hour = divmod(value, 24)
        value, day = divmod(value, 32)
        year, month = divmod(value, 13)
        if year > 9999:
            raise ValueError(f"datetime {data.hex()} is out of range")
        return f"{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{fraction(part)}"

    return text


def _old_short_time(data: bytes) -> str:
    value = int.from_bytes(data, "little", signed=True)
    hours, rest = divmod(abs(value), 10000)
    minutes, seconds = divmod(rest, 100)
    if hours > 838 or minutes > 59 or seconds > 59:
        raise ValueError(f"time {value} is out of range")
    return f"{'-' if value < 0 else ''}{hours:02}:{minutes:02}:{seconds:02}"


def _old_short_datetime(data: bytes) -> str:
    value = int.from_bytes(data, "little")
    digits = f"{value:014}"
    date, clock = digits[:8], digits[8:]
    if len(digits) > 14 or date[4:6] > "12" or date[6:] > "31" or clock[:2] > "23" or max(clock[2], clock[4]) > "5":
        raise ValueError(f"datetime {value} is out of range")
    return f"{date[:4]}-{date[4:6]}-{date[6:]} {clock[:2]}:{clock[2:4]}:{clock[4:]}"


def _fraction_text(digits: int, stored_digits: int) -> Callable[[int], str]:
    """How a fraction stored with `stored_digits` decimal digits reads with `digits`."""
    if not digits:
        return lambda value: ""
    limit = 10**stored_digits

    def text(value: int) -> str:
        if value >= limit:
            raise ValueError(f"fraction {value} has more than {stored_digits} digits")
        return f".{value:0{stored_digits}}"[: 1 + digits]

    return text


def _clock(seconds: int) -> str:
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02}:{minute:02}:{second:02}"


def _moment(seconds: int, part: int, fraction: Callable[[int], str]) -> str:
    """Seconds since 1970 as a date and time in UTC; 0 is the zero time where there is no fraction either."""
    if not seconds and not part:
        return ZERO_DATETIME + fraction(0)
    days, clock = divmod(seconds, DAY_S)
    year, month, day = civil_date(days)
    return f"{year:04}-{month:02}-{day:02} {_clock(clock)}{fraction(part)}"


def civil_date(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar.

    Years are taken to begin in March, so that the day that comes and goes is their last one.
    """
    days += 719468  # from 0000-03-01
    era, day_of_era = divmod(days, 146097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    month += 3 if month < 10 else -9
    return era * 400 + year_of_era + (month <= 2), month, day


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a day of the Gregorian calendar: the inverse of `civil_date`."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146097 + day_of_era - 719468


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
        days = days_of(moment.year, moment.month, moment.day)
        seconds = ((days * 24 + moment.hour) * 60 + moment.minute) * 60 + moment.second
        zone = getattr(value, "utcoffset", lambda: None)()
        if zone is not None:
            seconds -= int(zone.total_seconds())
        if not 0 < seconds < 1 << 32:
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
