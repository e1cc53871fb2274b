"""Dates and times of rows, old and new formats, as the text MariaDB shows. Layout: protocol/event/rows.md."""

from __future__ import annotations

from collections.abc import Callable

TIME_LIMIT_S = 838 * 3600 + 59 * 60 + 60  # TIME reaches to one second less
DATETIME2_ZERO = 1 << 39
ZERO_DATE = "0000-00-00"
ZERO_DATETIME = "0000-00-00 00:00:00"
FRACTION_SIZES = (0, 1, 1, 2, 2, 3, 3)  # bytes, by digits: TIMESTAMP2, DATETIME2, TIME2, TIMESTAMP of MariaDB 5.3
OLD_TIME_SIZES = (3, 4, 4, 5, 5, 5, 6)  # of MariaDB 5.3 to 10.0
OLD_DATETIME_SIZES = (8, 6, 6, 7, 7, 7, 8)
DAY_S = 86400

Text = Callable[[bytes], str]


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
