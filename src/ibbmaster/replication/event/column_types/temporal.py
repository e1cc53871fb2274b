"""Dates and times, old and new formats; read as the text MariaDB shows. Layout: protocol/event/rows.md."""

import re
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Literal

from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.sqltext import literals
from ibbmaster.sqltext import moment as moments
from ibbmaster.sqltext.quoting import quoted_text
from ..rows.column import Column, ColumnType, ValueKind
from ..rows.value import Convert, Encode, Value
from . import kind as kinds
from .kind import ColumnKind, SqlType

TIME_LIMIT_S = moments.TIME_MAX_S + 1
DATETIME2_ZERO = 1 << 39
FRACTION_SIZES = (0, 1, 1, 2, 2, 3, 3)  # bytes, by digits: TIMESTAMP2, DATETIME2, TIME2, TIMESTAMP of MariaDB 5.3
OLD_TIME_SIZES = (3, 4, 4, 5, 5, 5, 6)  # of MariaDB 5.3 to 10.0
OLD_DATETIME_SIZES = (8, 6, 6, 7, 7, 7, 8)
YEAR_MAX = 9999
DIGITS_MAX = 6  # of a second
_TIME = re.compile(r"(-?)(\d{1,3}):([0-5]\d):([0-5]\d)(?:\.(\d{1,6}))?")
_DATE_TEXT = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME_TEXT = re.compile(r"(-?\d{2,3}:[0-5]\d:[0-5]\d)(?:\.(\d{1,6}))?", re.ASCII)
_DATETIME_TEXT = re.compile(r"(\d{4}-\d\d-\d\d [0-2]\d:[0-5]\d:[0-5]\d)(?:\.(\d{1,6}))?", re.ASCII)
_ZERO_TIME = "0000-00-00 00:00:00"

Shown = Callable[[bytes], str]
ReadMoment = Callable[[bytes], moments.Moment]


class _Timed(ColumnKind):
    def shown(self, column: Column, sql: SqlType, settings: kinds.TextSettings) -> kinds.Text:
        return _with_digits(super().shown(column, sql, settings), column.scale, sql.scale or 0)


class _Moment(_Timed):
    has_day = True

    def literal(self, sql: SqlType, value: kinds.Literal, version: int) -> str:
        text = kinds.text_of(value)
        moment = moments.loose_moment(_from_digits(text) if text.isdecimal() else text)
        return quoted_text(self._shown(moment, sql.scale or 0))

    def _shown(self, moment: moments.Moment, digits: int) -> str:
        return moment.text[:19] + moments.fraction_text(moment.microsecond, digits)

    def key_value(self, column: Column, sql: SqlType, value: literals.Value, zone_s: int) -> literals.Value:
        if not isinstance(value, str) or (found := moments.moment_of(value)).hour > 23:
            raise ValueError(f"{value!r} is no date and time")
        if self.is_clock:
            _expect_digits(found, value, sql.scale or sql.length or 0)
        return value

    def frame_type(self, column: Column, *, keeps_zeros: bool) -> str:
        return "string" if keeps_zeros else self.frame


class _Calendar(_Moment):
    """Alike in every time zone."""

    def stored(self, column: Column, sql: SqlType, value: literals.Value) -> bytes:
        """A date, or a date and time: 2020-00-00 is one."""
        moment = moments.loose_moment("0000-00-00" if is_zero(value) else str(value))
        if moment.month > 12 or moment.day > 31 or moment.hour > 23 or moment.minute > 59 or moment.second > 59:
            raise ValueError(f"{value!r} is no date and time")
        return self._stored(moment, value, column.scale)

    @abstractmethod
    def _stored(self, moment: moments.Moment, value: literals.Value, digits: int) -> bytes: ...


class Date(_Calendar):
    values = {ColumnType.DATE: ValueKind.DATE, ColumnType.NEWDATE: ValueKind.DATE}
    zero = "'0000-00-00'"
    family = "DATE"
    in_oracle = "datetime"
    size = key_size = 3
    frame = "date"
    line = ("DATE", 0, 0)
    key = "REVERSED"

    def keeps_values(self, old: Column, new: Column) -> bool:
        return new.kind in (ValueKind.DATE, ValueKind.DATETIME)

    def convert(self, column: Column) -> Convert:
        return _date_text

    def write(self, declared: kinds.DeclaredType) -> kinds.WrittenType:
        return kinds.WrittenType(ColumnType.DATE, b"", _encode_date)

    def _stored(self, moment: moments.Moment, value: literals.Value, digits: int) -> bytes:
        if any(moment[3:]):
            raise ValueError(f"{value!r} is no date")
        return _encode_date(moment)

    def _shown(self, moment: moments.Moment, digits: int) -> str:
        return moment.text[:10]

    def fitted(self, value: Value, column: Column) -> Value:
        return value if isinstance(value, str) and _DATE_TEXT.fullmatch(value) else None

    def result(self, sql: SqlType) -> kinds.ResultType:
        return kinds.ResultType(ColumnType.DATE, 10, flags=("BINARY",))

    def reading(self, column: Column, frame_type: str) -> kinds.RowReading:
        if frame_type == "date":
            return kinds.RowReading("DATE")
        return super().reading(column, frame_type)._replace(what="shown")

    def text_op(self, column: Column) -> tuple[str, int]:
        return "DATE", 0

    def answer(self, column: Column, sql: SqlType, *, is_binary: bool) -> kinds.Step | None:
        return "DATE_PARTS" if is_binary else "DATE", 0, 0, 0, 0


class _Clock(_Timed):
    """Each has a format of before 10.1, whose digits only a declared type has, and a new one."""

    is_clock = True
    has_scale = True
    grammar = kinds.Grammar.CLOCK
    zero = f"'{_ZERO_TIME}'"
    family = "DATETIME"
    whole = 0  # bytes without a fraction, since 10.1
    old_sizes: tuple[int, ...] = ()  # bytes by digits before 10.1, where they differ
    width = 19  # of its text
    own_flags: tuple[str, ...] = ("BINARY",)

    def __init__(
        self, word: str, new: ColumnType, old: ColumnType, kind: ValueKind, encoder: Callable[[int], Encode]
    ) -> None:
        """`encoder` takes the digits of a second."""
        super().__init__(word, new, old)
        self.new, self.old, self.encoder = new, old, encoder
        self.values, self.metadata_sizes = {new: kind, old: kind}, {new: 1}  # type: ignore[misc]

    def layout(self, where: str, column_type: ColumnType, metadata: int, raw: bytes) -> kinds.Layout:
        if metadata > DIGITS_MAX:
            raise EventError(f"{where} has {metadata} digits of a second")
        return kinds.Layout(column_type, scale=metadata)

    def fixed_size(self, column: Column) -> int:
        if self.old_sizes and column.type == self.old:
            return self.old_sizes[column.scale]
        return self.whole + FRACTION_SIZES[column.scale]

    def convert(self, column: Column) -> Convert:
        return _moment_text(moment_reader(column), column.scale)

    def declare(self, column: Column, declared: kinds.DeclaredType) -> dict[str, Any]:
        return {"scale": _digits(declared)} if column.type == self.old else {}

    def keeps_values(self, old: Column, new: Column) -> bool:
        return new.kind is old.kind and new.scale >= old.scale

    def write(self, declared: kinds.DeclaredType) -> kinds.WrittenType:
        digits = _digits(declared)
        return kinds.WrittenType(self.new, bytes([digits]), self.encoder(digits))

    def zero_of(self, sql: SqlType) -> str:
        return f"{self.zero[:-1]}.{'0' * sql.scale}'" if sql.scale else self.zero

    def sizes(self, sql: SqlType) -> kinds.TypeSizes:
        return kinds.TypeSizes(moment=sql.scale or 0)

    def result(self, sql: SqlType) -> kinds.ResultType:
        digits = sql.scale or sql.length or 0
        return kinds.ResultType(self.old, self.width + (digits + 1 if digits else 0), digits, self.own_flags)

    def reading(self, column: Column, frame_type: str) -> kinds.RowReading:
        if column.has_old_format:
            return super().reading(column, frame_type)
        if frame_type == "string":
            return super().reading(column, frame_type)._replace(what="shown")
        return kinds.RowReading(self.old.name, column.scale)

    def text_op(self, column: Column) -> tuple[str, int]:
        return self.old.name, column.scale

    def line_op(self, column: Column) -> tuple[str, int, int]:
        return super().line_op(column) if column.has_old_format else (self.old.name, column.scale, ord(" "))

    def key_op(self, column: Column) -> str:
        return "REVERSED" if column.has_old_format and not column.scale else "FIXED"

    def answer(self, column: Column, sql: SqlType, *, is_binary: bool) -> kinds.Step | None:
        if column.has_old_format:
            return None
        if is_binary:
            return f"{self.old.name}_PARTS", column.scale, 0, 0, 0
        return self.old.name, column.scale, max(sql.scale or 0, column.scale), 0, 0


class Time(_Clock):
    """Up to 838 hours to either side of zero."""

    zero = "'00:00:00'"
    family = "TIME"
    whole, old_sizes, width = 3, OLD_TIME_SIZES, 10

    def convert(self, column: Column) -> Convert:
        return (_old_time if column.type == self.old else _time)(column.scale)

    def stored(self, column: Column, sql: SqlType, value: literals.Value) -> bytes:
        return self.encoder(column.scale)(value)

    def literal(self, sql: SqlType, value: kinds.Literal, version: int) -> str:
        text = kinds.text_of(value)
        if text.isdecimal():
            padded = text.zfill(6)
            text = f"{padded[:-4]}:{padded[-4:-2]}:{padded[-2:]}"
        found = moments.parse_duration(text)
        if found is None:
            raise ValueError(text)
        return quoted_text(moments.duration_text(found, sql.scale or 0))

    def fitted(self, value: Value, column: Column) -> Value:
        return _with_zeros(_TIME_TEXT.fullmatch(value), column.scale) if isinstance(value, str) else None

    def key_op(self, column: Column) -> str:
        return "TIME" if column.has_old_format and not column.scale else "FIXED"


class DateTime(_Clock, _Calendar):
    frame = "timestamp_ntz"
    whole, old_sizes = 5, OLD_DATETIME_SIZES

    def _stored(self, moment: moments.Moment, value: literals.Value, digits: int) -> bytes:
        _expect_digits(moment, value, digits)
        return self.encoder(digits)(moment)

    def fitted(self, value: Value, column: Column) -> Value:
        if not isinstance(value, str):
            return None
        return _with_zeros(_DATETIME_TEXT.fullmatch(value if len(value) > 10 else f"{value} 00:00:00"), column.scale)


class Timestamp(_Clock, _Moment):
    """Seconds since 1970, in UTC."""

    frame = "timestamp"
    whole = 4
    own_flags = ("BINARY", "UNSIGNED")
    is_zoned = True

    def stored(self, column: Column, sql: SqlType, value: literals.Value) -> bytes:
        return bytes(self.fixed_size(column)) if is_zero(value) else self.encoder(column.scale)(value)

    def key_value(self, column: Column, sql: SqlType, value: literals.Value, zone_s: int) -> literals.Value:
        return None if zone_s else super().key_value(column, sql, value, zone_s)

    def shown(self, column: Column, sql: SqlType, settings: kinds.TextSettings) -> kinds.Text:
        read, zone_s, order = self.convert(column), settings.time_zone_s, _byte_order(column)

        def text(data: bytes) -> bytes:
            plain = str(read(data))
            if zone_s and not plain.startswith(_ZERO_TIME):
                seconds = int.from_bytes(data[:4], order) + zone_s
                plain = moments.moment_text(seconds * moments.SECOND_US) + plain[len(_ZERO_TIME) :]
            return plain.encode()

        return _with_digits(text, column.scale, sql.scale or 0)

    def fitted(self, value: Value, column: Column) -> Value:
        """Only zero: other values depend on the session's time zone."""
        is_known = isinstance(value, str) and value.startswith("0000-00-00")
        return _with_zeros(_DATETIME_TEXT.fullmatch(str(value)), column.scale) if is_known else None


def is_zero(value: literals.Value) -> bool:
    return value == 0 or (isinstance(value, str) and not value.strip("0-: ."))


def _expect_digits(moment: moments.Moment, value: literals.Value, digits: int) -> None:
    if f"{moment.microsecond:06}"[digits:].strip("0"):
        raise ValueError(f"{value!r} has more than {digits} digits of a second")


def _with_digits(text: kinds.Text, stored: int, wanted: int) -> kinds.Text:
    if wanted <= stored:
        return text
    more = b"" if stored else b"."
    return lambda data: text(data) + more + b"0" * (wanted - stored)


def _with_zeros(match: re.Match[str] | None, scale: int) -> str | None:
    """With the column's digits of a second; None if some would be lost."""
    if match is None or len(match[2] or "") > scale:
        return None
    return match[1] + (f".{(match[2] or '').ljust(scale, '0')}" if scale else "")


def _from_digits(text: str) -> str:
    if int(text) == 0:
        return "0000-00-00"
    if len(text) in (6, 12):
        text = ("20" if int(text[:2]) < 70 else "19") + text
    clock = f" {text[8:10]}:{text[10:12]}:{text[12:14]}" if len(text) == 14 else ""
    return f"{text[:4]}-{text[4:6]}-{text[6:8]}{clock}"


def _digits(declared: kinds.DeclaredType) -> int:
    digits = declared.length or 0
    if digits > DIGITS_MAX:
        raise ConfigurationError(f"{declared.where}: {digits} digits of a second, at most {DIGITS_MAX}")
    return digits


def moment_reader(column: Column) -> ReadMoment:
    """Of a DATE, DATETIME or TIMESTAMP; it raises ValueError for bytes that make no moment."""
    digits = column.scale
    match column.type:
        case ColumnType.DATETIME2:
            return _datetime(digits)
        case ColumnType.TIMESTAMP2:
            return _timestamp(_microseconds(digits, 2 * FRACTION_SIZES[digits]), "big")
        case ColumnType.DATETIME:
            return _old_datetime(digits) if digits else _old_short_datetime
        case ColumnType.TIMESTAMP:
            return _timestamp(_microseconds(digits, digits), _byte_order(column))
    return _date


def _byte_order(column: Column) -> Literal["big", "little"]:
    """Of a TIMESTAMP's seconds: little-endian before 10.1 without a fraction."""
    return "little" if column.has_old_format and not column.scale else "big"


def _date(data: bytes) -> moments.Moment:
    """5 bits day, 4 bits month, the rest year."""
    value = int.from_bytes(data, "little")
    return moments.Moment(value >> 9, value >> 5 & 15, value & 31)


def _datetime(digits: int) -> ReadMoment:
    """Since 10.1."""
    shift = 8 * FRACTION_SIZES[digits]
    zero = DATETIME2_ZERO << shift
    microseconds = _microseconds(digits, 2 * FRACTION_SIZES[digits])
    mask = (1 << shift) - 1

    def read(data: bytes) -> moments.Moment:
        packed = int.from_bytes(data, "big") - zero
        if packed < 0:
            raise ValueError(f"datetime {data.hex()} is negative")
        value = packed >> shift
        year_month, day = value >> 22, value >> 17 & 31
        hour, minute, second = value >> 12 & 31, value >> 6 & 63, value & 63
        return moments.Moment(year_month // 13, year_month % 13, day, hour, minute, second, microseconds(packed & mask))

    return read


def _timestamp(microseconds: Callable[[int], int], order: Literal["big", "little"]) -> ReadMoment:
    """Seconds since 1970 without sign, as since 11.5, and a fraction; zeros are the zero time."""

    def read(data: bytes) -> moments.Moment:
        seconds, part = int.from_bytes(data[:4], order), int.from_bytes(data[4:], "big")
        if not seconds and not part:
            return moments.Moment(0, 0, 0)
        days, clock = divmod(seconds, moments.DAY_S)
        return moments.Moment(
            *moments.civil_date(days), clock // 3600, clock // 60 % 60, clock % 60, microseconds(part)
        )

    return read


def _old_datetime(digits: int) -> ReadMoment:
    """With a fraction, before 10.1: a packed number."""
    scale = 10**digits
    microseconds = _microseconds(digits, digits)

    def read(data: bytes) -> moments.Moment:
        value, part = divmod(int.from_bytes(data, "big"), scale)
        value, second = divmod(value, 60)
        value, minute = divmod(value, 60)
        value, hour = divmod(value, 24)
        value, day = divmod(value, 32)
        year, month = divmod(value, 13)
        if year > YEAR_MAX:
            raise ValueError(f"datetime {data.hex()} is out of range")
        return moments.Moment(year, month, day, hour, minute, second, microseconds(part))

    return read


def _old_short_datetime(data: bytes) -> moments.Moment:
    """Without a fraction, before 10.1: decimal digits YYYYMMDDhhmmss."""
    value = int.from_bytes(data, "little")
    date, clock = divmod(value, 1_000_000)
    moment = moments.Moment(
        date // 10_000, date // 100 % 100, date % 100, clock // 10_000, clock // 100 % 100, clock % 100
    )
    if any(found > most for found, most in zip(moment, (YEAR_MAX, 12, 31, 23, 59, 59), strict=False)):
        raise ValueError(f"datetime {value} is out of range")
    return moment


def _date_text(data: bytes) -> str:
    year, month, day, *_ = _date(data)
    return f"{year:04}-{month:02}-{day:02}"


def _moment_text(read: ReadMoment, digits: int) -> Shown:
    shown = 1 + digits

    def text(data: bytes) -> str:
        year, month, day, hour, minute, second, microsecond = read(data)
        fraction = f".{microsecond:06}"[:shown] if digits else ""
        return f"{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{fraction}"

    return text


def _time(digits: int) -> Shown:
    """Since 10.1: the whole number counts from the middle of its range."""
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
        return f"{sign}{hms}{moments.fraction_text(microseconds(packed & mask), digits)}"

    return text


def _old_time(digits: int) -> Shown:
    """Before 10.1: decimal digits hhmmss, or with a fraction a number above its lowest value."""
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
        return f"{'-' if value < 0 else ''}{clock}{moments.fraction_text(microseconds(part), digits)}"

    return text


def _old_short_time(data: bytes) -> str:
    value = int.from_bytes(data, "little", signed=True)
    hours, rest = divmod(abs(value), 10000)
    minutes, seconds = divmod(rest, 100)
    if hours > 838 or minutes > 59 or seconds > 59:
        raise ValueError(f"time {value} is out of range")
    return f"{'-' if value < 0 else ''}{hours:02}:{minutes:02}:{seconds:02}"


def _microseconds(digits: int, stored_digits: int) -> Callable[[int], int]:
    """Of a fraction that is stored with `stored_digits` decimal digits, without those that are not shown."""
    limit: int = 10**stored_digits
    dropped: int = 10 ** (stored_digits - digits)
    scale: int = 10 ** (DIGITS_MAX - digits)

    def read(value: int) -> int:
        if value >= limit:
            raise ValueError(f"fraction {value} has more than {stored_digits} digits")
        return value // dropped * scale

    return read


def _fraction(microsecond: int, digits: int) -> bytes:
    size = FRACTION_SIZES[digits]
    kept = microsecond // 10 ** (6 - digits) * 10 ** (6 - digits)
    return int(kept // 10 ** (6 - 2 * size)).to_bytes(size, "big")


def _encode_date(value: object) -> bytes:
    day = moments.moment_of(value)
    return (day.year << 9 | day.month << 5 | day.day).to_bytes(3, "little")


def _datetime_encoder(digits: int) -> Encode:
    def encode(value: object) -> bytes:
        moment = moments.moment_of(value)
        packed = (moment.year * 13 + moment.month) << 22 | moment.day << 17
        packed |= moment.hour << 12 | moment.minute << 6 | moment.second
        return (packed + DATETIME2_ZERO).to_bytes(5, "big") + _fraction(moment.microsecond, digits)

    return encode


def _timestamp_encoder(digits: int) -> Encode:
    """Times without a zone are UTC."""

    def encode(value: object) -> bytes:
        moment = moments.moment_of(value)
        if not any(moment):
            return bytes(4 + FRACTION_SIZES[digits])
        days = moments.days_of(moment.year, moment.month, moment.day)
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


DATETIME = DateTime("datetime", ColumnType.DATETIME2, ColumnType.DATETIME, ValueKind.DATETIME, _datetime_encoder)
TIMESTAMP = Timestamp("timestamp", ColumnType.TIMESTAMP2, ColumnType.TIMESTAMP, ValueKind.TIMESTAMP, _timestamp_encoder)
KINDS = (
    Date("date", ColumnType.DATE, ColumnType.NEWDATE),
    Time("time", ColumnType.TIME2, ColumnType.TIME, ValueKind.TIME, _time_encoder),
    DATETIME,
    TIMESTAMP,
)
