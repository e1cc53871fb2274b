"""Times as people give them: ISO 8601 with a zone, or the local time of this machine, which the answer says."""

import datetime
import re
from typing import NamedTuple

from ibbmaster.errors import ConfigurationError

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


class GivenTime(NamedTuple):
    """A moment that someone has given."""

    seconds: float  # since 1970
    moment: datetime.datetime  # with its zone
    is_local: bool  # no zone was given

    def __str__(self) -> str:
        return f"{self.moment.isoformat(' ')}{' (local time)' if self.is_local else ''}"


def parse_time(where: str, text: str) -> GivenTime:
    """Read a time; `where` is for the error. Raises ConfigurationError: the text is none, or a date alone."""
    try:
        moment = datetime.datetime.fromisoformat(text.strip())
        is_local = moment.tzinfo is None
        moment = moment.astimezone() if is_local else moment
        return GivenTime(moment.timestamp(), moment, is_local)
    except (ValueError, OverflowError, OSError):
        raise ConfigurationError(f"{where} {text[:60]!r}: expected a time, as '2026-01-31 12:00:00+01:00'") from None


def is_time(text: str) -> bool:
    """Whether a text that is a GTID position or a time is one: times have colons."""
    return ":" in text


def is_date(text: str) -> bool:
    """Whether a text that reads as a GTID was perhaps meant as a day."""
    return _DATE.fullmatch(text.strip()) is not None


def shown_time(seconds: float, like: GivenTime) -> str:
    """A moment in the zone of one that was given."""
    try:
        return datetime.datetime.fromtimestamp(seconds, like.moment.tzinfo).isoformat(" ")
    except (OverflowError, OSError, ValueError):
        return f"{seconds:g} s since 1970"
