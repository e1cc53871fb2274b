"""Moments as texts of SQL, and the Gregorian calendar; microseconds count from 1970, in UTC."""

import re
from typing import NamedTuple

DAY_S = 86_400
SECOND_US = 1_000_000
TIME_MAX_S = 838 * 3600 + 59 * 60 + 59
_STRICT = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):([0-5]\d):([0-5]\d)(?:\.(\d{1,6}))?)?", re.ASCII)
_LOOSE = re.compile(
    r"\s*(\d{4})[^\w\s](\d\d?)[^\w\s](\d\d?)(?:[ T](\d\d?):(\d\d?)(?::(\d\d?)(?:\.(\d{1,6}))?)?)?\s*", re.ASCII
)
_DURATION = re.compile(r"\s*(-?)(\d{1,3}):(\d\d?)(?::(\d\d?)(?:\.(\d{1,6}))?)?\s*", re.ASCII)
_OFFSET = re.compile(r"([+-])(\d\d?):(\d\d)", re.ASCII)


class Moment(NamedTuple):
    """A date and time of a column, also outside of the calendar, as 0000-00-00 and 24:00:00."""

    year: int
    month: int
    day: int
    hour: int = 0
    minute: int = 0
    second: int = 0
    microsecond: int = 0

    @property
    def text(self) -> str:
        date = f"{self.year:04}-{self.month:02}-{self.day:02}"
        return f"{date} {self.hour:02}:{self.minute:02}:{self.second:02}.{self.microsecond:06}"


def moment_of(value: object) -> Moment:
    """From one of Python's, or a text as MariaDB shows it, in its zone. Raises ValueError: it is none."""
    if hasattr(value, "year"):
        return Moment._make(getattr(value, name, 0) for name in Moment._fields)
    match = _STRICT.fullmatch(str(value))
    if match is None:
        raise ValueError(f"{value!r} is no date and time")
    moment = _moment(match)
    year, month, day = moment[:3]
    if 0 in (month, day) and month <= 12 and day <= 31:
        return moment
    if month > 12 or civil_date(days_of(year, month, day)) != moment[:3]:
        raise ValueError(f"{value!r}: there is no such day")
    return moment


def loose_moment(text: str) -> Moment:
    """In free form, `2026/5/1 3:08`, with unchecked parts. Raises ValueError: it is none."""
    match = _LOOSE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no date and time")
    return _moment(match)


def _moment(match: re.Match[str]) -> Moment:
    return Moment._make((*(int(part or 0) for part in match.groups()[:6]), _microseconds(match[7])))


def civil_date(days: int) -> tuple[int, int, int]:
    """Of a day counted from 1970-01-01. Years begin in March here: leap days are their last ones."""
    days += 719468  # from 0000-03-01
    era, day_of_era = divmod(days, 146097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    month += 3 if month < 10 else -9
    return era * 400 + year_of_era + (month <= 2), month, day


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01; the inverse of `civil_date`."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146097 + day_of_era - 719468


def moment_text(microseconds: int, digits: int = 0) -> str:
    """With this many digits of the fraction, the others cut off."""
    return f"{date_text(microseconds)} {time_of_day_text(microseconds, digits)}"


def date_text(microseconds: int) -> str:
    year, month, day = civil_date(microseconds // 10**6 // DAY_S)
    return f"{year:04}-{month:02}-{day:02}"


def time_of_day_text(microseconds: int, digits: int = 0) -> str:
    seconds, fraction = divmod(microseconds, 10**6)
    return _clock(seconds % DAY_S) + fraction_text(fraction, digits)


def duration_text(microseconds: int, digits: int = 0) -> str:
    """`-838:59:59` to `838:59:59`, the range of TIME."""
    sign = "-" if microseconds < 0 else ""
    seconds, fraction = divmod(abs(microseconds), 10**6)
    if seconds > TIME_MAX_S:
        seconds, fraction = TIME_MAX_S, 999_999
    return sign + _clock(seconds) + fraction_text(fraction, digits)


def fraction_text(microsecond: int, digits: int) -> str:
    return f".{microsecond:06}"[: digits + 1] if digits else ""


def parse_moment(text: str) -> int | None:
    """Microseconds since 1970 of a date, perhaps with a time."""
    try:
        year, month, day, hour, minute, second, microsecond = loose_moment(text)
    except ValueError:
        return None
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 60):
        return None
    days = days_of(year, month, day)
    if civil_date(days) != (year, month, day):
        return None
    return (days * DAY_S + hour * 3600 + minute * 60 + second) * 10**6 + microsecond


def parse_duration(text: str) -> int | None:
    """Microseconds of `[-]HH:MM[:SS]`."""
    match = _DURATION.fullmatch(text)
    if match is None or int(match[3]) > 59 or int(match[4] or 0) > 59:
        return None
    total = (int(match[2]) * 3600 + int(match[3]) * 60 + int(match[4] or 0)) * 10**6 + _microseconds(match[5])
    return -total if match[1] else total


def parse_time_zone(text: str) -> int | None:
    """Seconds of `+05:30` before UTC, 0 for SYSTEM; None: a server without zone tables lacks the zone."""
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


def _microseconds(fraction: str | None) -> int:
    return int(fraction.ljust(6, "0")) if fraction else 0
