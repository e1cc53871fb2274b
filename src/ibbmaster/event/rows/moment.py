"""Dates and times as numbers, and the Gregorian calendar."""

from __future__ import annotations

import re
from typing import NamedTuple

_MOMENT = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):([0-5]\d):([0-5]\d)(?:\.(\d{1,6}))?)?", re.ASCII)


class Moment(NamedTuple):
    """A date and time as a column holds it, not always of the calendar: 0000-00-00 and 24:00:00 are some, too."""

    year: int
    month: int
    day: int
    hour: int = 0
    minute: int = 0
    second: int = 0
    microsecond: int = 0


def moment_of(value: object) -> Moment:
    """A moment from one of Python's, or from text as MariaDB shows it, with zeros for parts; a zone is for the caller.

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
    year, month, day = moment[:3]
    if 0 in (month, day) and month <= 12 and day <= 31:
        return moment
    if month > 12 or civil_date(days_of(year, month, day)) != moment[:3]:
        raise ValueError(f"{value!r}: there is no such day")
    return moment


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
