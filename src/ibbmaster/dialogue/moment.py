"""Points in time as SQL writes them; seconds count from 1970, in UTC."""

from __future__ import annotations

import re

DAY_S = 86_400
TIME_MAX_S = 838 * 3600 + 59 * 60 + 59
_MOMENT = re.compile(
    r"\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(\.\d{1,6})?)?)?\s*", re.ASCII
)
_DURATION = re.compile(r"\s*(-?)(\d{1,3}):(\d{1,2})(?::(\d{1,2})(\.\d{1,6})?)?\s*", re.ASCII)
_OFFSET = re.compile(r"([+-])(\d{1,2}):(\d{2})", re.ASCII)
_CENTURY_DAYS, _ERA_DAYS = 36_524, 146_097


def date_of(day: int) -> tuple[int, int, int]:
    """Year, month and day of the month of a day counted from 1970-01-01."""
    era, day_of_era = divmod(day + 719_468, _ERA_DAYS)  # from the first of March of the year 0
    year_of_era = (
        day_of_era - day_of_era // 1_460 + day_of_era // _CENTURY_DAYS - day_of_era // (_ERA_DAYS - 1)
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * day_of_year + 2) // 153
    year = year_of_era + era * 400 + (month >= 10)
    return year, month + 3 if month < 10 else month - 9, day_of_year - (153 * month + 2) // 5 + 1


def day_of(year: int, month: int, day: int) -> int:
    """The day counted from 1970-01-01."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * _ERA_DAYS + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def moment_text(microseconds: int, digits: int = 0) -> str:
    """`2026-05-10 03:08:16`, with so many digits of a second's fraction, cut off."""
    return f"{date_text(microseconds)} {time_of_day_text(microseconds, digits)}"


def date_text(microseconds: int) -> str:
    """`2026-05-10`"""
    year, month, day = date_of(microseconds // 10**6 // DAY_S)
    return f"{year:04}-{month:02}-{day:02}"


def time_of_day_text(microseconds: int, digits: int = 0) -> str:
    """`03:08:16`"""
    seconds, fraction = divmod(microseconds, 10**6)
    return _clock(seconds % DAY_S) + _fraction(fraction, digits)


def duration_text(microseconds: int, digits: int = 0) -> str:
    """`-838:59:59` to `838:59:59`, which is as far as TIME reaches."""
    sign = "-" if microseconds < 0 else ""
    seconds, fraction = divmod(abs(microseconds), 10**6)
    if seconds > TIME_MAX_S:
        seconds, fraction = TIME_MAX_S, 999_999
    return sign + _clock(seconds) + _fraction(fraction, digits)


def parse_moment(text: str) -> int | None:
    """Microseconds since 1970 of a date, or of a date and a time; None if it is none."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 60):
        return None
    if date_of(day_of(year, month, day)) != (year, month, day):
        return None
    seconds = day_of(year, month, day) * DAY_S + hour * 3600 + minute * 60 + second
    return seconds * 10**6 + _microseconds(match[7])


def parse_duration(text: str) -> int | None:
    """Microseconds of `[-]HH:MM[:SS]`; None if it is none."""
    match = _DURATION.fullmatch(text)
    if match is None or int(match[3]) > 59 or int(match[4] or 0) > 59:
        return None
    total = (int(match[2]) * 3600 + int(match[3]) * 60 + int(match[4] or 0)) * 10**6 + _microseconds(match[5])
    return -total if match[1] else total


def parse_time_zone(text: str) -> int | None:
    """Seconds that `+05:30` is before UTC, 0 for SYSTEM; None if it is no time zone of a server without zone tables."""
    if text.upper() in ("SYSTEM", "UTC"):
        return 0 if text.upper() == "SYSTEM" else None
    match = _OFFSET.fullmatch(text)
    if match is None or int(match[3]) > 59:
        return None
    seconds = int(match[2]) * 3600 + int(match[3]) * 60
    seconds = -seconds if match[1] == "-" else seconds
    return seconds if -13 * 3600 < seconds <= 14 * 3600 else None


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _fraction(microseconds: int, digits: int) -> str:
    return f".{microseconds:06}"[: digits + 1] if digits else ""


def _microseconds(fraction: str | None) -> int:
    return int(fraction[1:].ljust(6, "0")) if fraction else 0
