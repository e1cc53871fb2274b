"""Reads CREATE EVENT and ALTER EVENT, and writes an event as SHOW CREATE EVENT does.

What a server computes once, when the statement runs, is computed from the time of the statement:
`NOW() + INTERVAL 1 DAY` is a moment. Of SYSTEM, the time zone of the server's machine, the log says
no more than the name: it is taken for UTC.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ibbmaster.schema.clause import NotUnderstoodError
from ibbmaster.schema.program_text import definer_clause, take_head
from ibbmaster.schema.reading import expect_name, expect_text, fail, written
from ibbmaster.schema.stored_program import StoredProgram
from ibbmaster.sqltext.cursor import Cursor, PlacedCursor
from ibbmaster.sqltext.moment import Moment, civil_date, days_of, moment_of, parse_time_zone
from ibbmaster.sqltext.quoting import quoted_name, quoted_text
from ibbmaster.sqltext.token import Token, TokenKind

ENABLED, DISABLED, DISABLED_ON_REPLICA = "ENABLED", "DISABLED", "SLAVESIDE_DISABLED"
_WRITTEN_STATUS = {ENABLED: "ENABLE", DISABLED: "DISABLE", DISABLED_ON_REPLICA: "DISABLE ON SLAVE"}
_ENDS = ("STARTS", "ENDS", "ON", "ENABLE", "DISABLE", "COMMENT", "RENAME", "DO")
_NOW = ("NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP")
DAY_S = 86_400
YEAR_MAX = 9999
#: Units of seconds, from the largest one on, and what stands between their numbers.
_UNITS = {"DAY": DAY_S, "HOUR": 3600, "MINUTE": 60, "SECOND": 1}
_BETWEEN = {"HOUR": " ", "MINUTE": ":", "SECOND": ":"}
_SIMPLE = {**_UNITS, "WEEK": 7 * DAY_S}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


@dataclass(frozen=True, slots=True, kw_only=True)
class EventParts:
    """An event in the words of information_schema; moments are in its time zone."""

    at: str | None = None
    value: str | None = None
    field: str | None = None
    starts: str | None = None
    ends: str | None = None
    preserves: bool = False
    status: str = ENABLED
    comment: str = ""
    body: str = ""


@dataclass(frozen=True, slots=True)
class EventChange:
    """What a statement makes of an event. `definer` and `to` are None where it names none."""

    parts: EventParts
    definer: str | None
    to: tuple[str, str] | None
    has_schedule: bool
    has_body: bool
    is_over: bool  # it would end at once


def read_event(text: str, sql_mode: int, now_us: int, zone: str, old: EventParts, invoker: str = "") -> EventChange:
    """Read CREATE EVENT or ALTER EVENT. `now_us` is when it ran; a new name has no database where none is written.

    Raises:
        NotUnderstoodError: it is no such statement, or its schedule is computed otherwise than from a moment.
    """
    cursor = PlacedCursor(text, sql_mode)
    definer = take_head(cursor, invoker).definer
    parts, to, has_schedule, has_body = old, None, False, False
    now = _local(now_us, zone)
    while not cursor.is_at_end:
        if cursor.takes_words("ON", "SCHEDULE"):
            parts, has_schedule = _schedule(cursor, parts, now), True
        elif cursor.takes_words("ON", "COMPLETION"):
            parts = replace(parts, preserves=not cursor.takes_words("NOT"))
            cursor.takes_words("PRESERVE")
        elif cursor.takes_words("RENAME", "TO"):
            first = expect_name(cursor)
            to = (first, expect_name(cursor)) if cursor.takes_sign(".") else ("", first)
        elif cursor.takes_words("ENABLE"):
            parts = replace(parts, status=ENABLED)
        elif cursor.takes_words("DISABLE"):
            is_there = cursor.takes_words("ON") and bool(cursor.take())
            parts = replace(parts, status=DISABLED_ON_REPLICA if is_there else DISABLED)
        elif cursor.takes_words("COMMENT"):
            parts = replace(parts, comment=expect_text(cursor))
        elif cursor.takes_words("DO"):
            parts, has_body = replace(parts, body=text[cursor.start :].rstrip(" \t\r\n;")), True
            break
        else:
            raise fail(cursor, "a part of an event")
    last = parts.at or parts.ends
    is_over = has_schedule and last is not None and now is not None and last <= _text(now)
    if is_over and parts.preserves:
        parts = replace(parts, status=DISABLED)
    return EventChange(parts, definer, to, has_schedule, has_body, is_over and not parts.preserves)


def parts_of_event(event: StoredProgram) -> EventParts:
    """What the text of an event says, whose schedule is known."""
    return read_event(event.text, event.sql_mode, 0, event.time_zone, EventParts()).parts


def event_text(name: str, parts: EventParts, definer: str) -> str:
    """The text of SHOW CREATE EVENT: names are in backquotes whatever the event's sql_mode is."""
    when = f"AT '{parts.at}'" if parts.at is not None else f"EVERY {parts.value} {parts.field} STARTS '{parts.starts}'"
    when += f" ENDS '{parts.ends}'" if parts.ends is not None else ""
    comment = f" COMMENT {quoted_text(parts.comment)}" if parts.comment else ""
    return (
        f"CREATE {definer_clause(definer, 0)}EVENT {quoted_name(name)} ON SCHEDULE {when} "
        f"ON COMPLETION {'' if parts.preserves else 'NOT '}PRESERVE {_WRITTEN_STATUS[parts.status]}{comment} "
        f"DO {parts.body}"
    )


def _schedule(cursor: Cursor, parts: EventParts, now: Moment | None) -> EventParts:
    parts = replace(parts, at=None, value=None, field=None, starts=None, ends=None)
    if cursor.takes_words("AT"):
        return replace(parts, at=_moment(cursor, now))
    if not cursor.takes_words("EVERY"):
        raise fail(cursor, "AT or EVERY")
    number = cursor.take()
    field = cursor.take().text.upper()
    parts = replace(parts, value=_interval(number, field), field=field)
    starts = _moment(cursor, now) if cursor.takes_words("STARTS") else None
    ends = _moment(cursor, now) if cursor.takes_words("ENDS") else None
    if starts is None:
        starts = _text(_known(now))
    return replace(parts, starts=starts, ends=ends)


def _interval(number: Token, field: str) -> str:
    """As a server prints it: `'1:30'` of 90 MINUTE_SECOND."""
    numbers = [int(one) for one in re.findall(r"\d{1,18}", number.text)]
    if field in _SIMPLE or field in _MONTHS:
        if not re.fullmatch(r"\s*\d{1,18}\s*", number.text):
            raise NotUnderstoodError(f"an interval of {number.text[:40]!r}")
        return str(numbers[0])
    if field == "YEAR_MONTH":
        years, months = [0, 0, *numbers][-2:]
        return f"'{years + months // 12}-{months % 12}'"
    names = field.split("_")
    if len(names) != 2 or not all(name in _UNITS for name in names) or not re.fullmatch(r"[\d\s:.\-]*", number.text):
        raise NotUnderstoodError(f"an interval of {number.text[:40]!r} {field[:40]}")
    order = list(_UNITS)
    units = order[order.index(names[0]) : order.index(names[1]) + 1]
    if not units or not 0 < len(numbers) <= len(units):
        raise NotUnderstoodError(f"an interval of {number.text[:40]!r} {field[:40]}")
    left = sum(_UNITS[unit] * one for unit, one in zip(units[-len(numbers) :], numbers, strict=True))
    text = ""
    for unit in units:
        count, left = divmod(left, _UNITS[unit])
        text += (_BETWEEN[unit] if text else "") + str(count)
    return f"'{text}'"


def _moment(cursor: Cursor, now: Moment | None) -> str:
    """A moment, and intervals before or after it."""
    part: list[Token] = []
    while not cursor.is_at_end and not cursor.peek().is_word(*_ENDS):
        part.append(cursor.take())
    own = Cursor(part)
    try:
        found = _base(own, now)
        while not own.is_at_end:
            sign = -1 if own.takes_sign("-") else int(own.takes_sign("+"))
            if not sign or not own.takes_words("INTERVAL"):
                raise ValueError("another expression")
            count, unit = sign * int(own.take().text), own.take().text.upper()
            found = _later(found, count, unit)
        if not 0 <= found.year <= YEAR_MAX:
            raise ValueError("beyond what DATETIME has")
    except (ValueError, KeyError, OverflowError):
        raise NotUnderstoodError(f"a moment that is computed: {written(part)[:60]}") from None
    return _text(found)


def _base(cursor: Cursor, now: Moment | None) -> Moment:
    if cursor.peek().is_word(*_NOW):
        cursor.take()
        cursor.bracketed()
        return _known(now)
    cursor.takes_words("TIMESTAMP")
    token = cursor.take()
    if token.kind is not TokenKind.TEXT:
        raise ValueError("no literal")
    return moment_of(token.text.strip())


def _known(now: Moment | None) -> Moment:
    if now is None:
        raise NotUnderstoodError("a moment in a time zone that is not known here")
    return now


def _later(moment: Moment, count: int, unit: str) -> Moment:
    if unit in _MONTHS:
        years, month = divmod(moment.year * 12 + moment.month - 1 + count * _MONTHS[unit], 12)
        following = days_of(years + (month == 11), (month + 1) % 12 + 1, 1)
        days_in_month = following - days_of(years, month + 1, 1)
        return moment._replace(year=years, month=month + 1, day=min(moment.day, days_in_month))
    days = days_of(moment.year, moment.month, moment.day)
    clock = moment.hour * 3600 + moment.minute * 60 + moment.second
    return _from_seconds(days * DAY_S + clock + count * _SIMPLE[unit])


def _from_seconds(seconds: int) -> Moment:
    days, left = divmod(seconds, DAY_S)
    year, month, day = civil_date(days)
    return Moment(year, month, day, left // 3600, left // 60 % 60, left % 60)


def _local(now_us: int, zone: str) -> Moment | None:
    """The time of a zone; None of one that has a name, which takes tables that are not here."""
    offset = parse_time_zone(zone or "SYSTEM")
    return None if offset is None else _from_seconds(now_us // 10**6 + offset)


def _text(moment: Moment) -> str:
    return moment.text[:19]
