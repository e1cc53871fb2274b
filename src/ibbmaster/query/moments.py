"""Functions of dates and times."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ibbmaster.dialogue.refusal import not_supported
from ibbmaster.query import kinds, values
from ibbmaster.query.kinds import Kind, Type
from ibbmaster.query.scalars import Scalar, apply, as_integer, as_moment, as_text
from ibbmaster.query.values import SECOND
from ibbmaster.wire.response import FieldType

Build = Callable[[list[Scalar]], Scalar]
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November"),
    "December",
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
YEAR_ZERO = 719528  # days from year 0 to 1970-01-01
_MICROSECONDS = {
    "MICROSECOND": 1,
    "SECOND": SECOND,
    "MINUTE": 60 * SECOND,
    "HOUR": 3600 * SECOND,
    "DAY": 86400 * SECOND,
    "WEEK": 7 * 86400 * SECOND,
}
_MONTHS_OF = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_FORMAT = re.compile(r"%(.)", re.DOTALL)


def _small(digits: int) -> Type:
    return kinds.changed(kinds.integer(digits, length=digits), field=FieldType.LONG)


def _moment(argument: Scalar) -> Scalar:
    if argument.type.kind is Kind.TEXT and not argument.is_constant:
        raise not_supported("texts of a table as dates")
    return as_moment(argument)


def _part(digits: int, function: Callable[[str], int | None]) -> Build:
    """A number of a date."""
    return lambda arguments: apply(_small(digits), function, _moment(arguments[0]))


def _clock_part(digits: int, of_moment: Callable[[str], int], of_duration: Callable[[int], int]) -> Build:
    def build(arguments: list[Scalar]) -> Scalar:
        (value,) = arguments
        if value.type.kind is Kind.TIME:
            return apply(_small(digits), lambda one: of_duration(abs(one)), value)
        return apply(_small(digits), of_moment, _moment(value))

    return build


def _if_calendar(function: Callable[[str], Any]) -> Callable[[str], Any]:
    """NULL for days that are in no calendar."""
    return lambda value: function(value) if values.is_calendar(value) else None


def _weekday(value: str) -> int:
    return (values.day_number(value) + 3) % 7


def _day_of_year(value: str) -> int:
    return values.day_number(value) - values.day_number(f"{value[:4]}-01-01") + 1


def _date(arguments: list[Scalar]) -> Scalar:
    return apply(kinds.date(), lambda value: value[:10], _moment(arguments[0]))


def _time(arguments: list[Scalar]) -> Scalar:
    (value,) = arguments
    if value.type.kind is Kind.TIME:
        return value
    moment = _moment(value)

    def clock(one: str) -> int:
        _, _, _, hour, minute, second, fraction = values.parts_of(one)
        return (hour * 3600 + minute * 60 + second) * SECOND + fraction

    return apply(kinds.duration(value.type.decimals if value.type.kind is Kind.DATETIME else 0), clock, moment)


def _last_day(arguments: list[Scalar]) -> Scalar:
    def last(value: str) -> str | None:
        if value[5:7] == "00":
            return None
        return f"{value[:8]}{values.last_day(int(value[:4]), int(value[5:7])):02}"

    return apply(kinds.date(), last, _moment(arguments[0]))


def _datediff(arguments: list[Scalar]) -> Scalar:
    kind = kinds.changed(kinds.integer(7, length=8), field=FieldType.LONG)

    def difference(one: str, other: str) -> int | None:
        if not (values.is_calendar(one) and values.is_calendar(other)):
            return None
        return values.day_number(one) - values.day_number(other)

    return apply(kind, difference, *map(_moment, arguments))


def _to_days(arguments: list[Scalar]) -> Scalar:
    return apply(_small(6), _if_calendar(lambda value: values.day_number(value) + YEAR_ZERO), _moment(arguments[0]))


def _timestampdiff(arguments: list[Scalar]) -> Scalar:
    unit = str(arguments[0].value).upper()
    kind = kinds.integer(20, length=21)

    def difference(one: str, other: str) -> int | None:
        if not (values.is_calendar(one) and values.is_calendar(other)):
            return None
        if unit in _MONTHS_OF:
            return _months_between(one, other, _MONTHS_OF[unit])
        span = values.microseconds_of(other) - values.microseconds_of(one)
        whole = abs(span) // _MICROSECONDS[unit]
        return -whole if span < 0 else whole

    if unit not in _MONTHS_OF and unit not in _MICROSECONDS:
        raise not_supported(f"TIMESTAMPDIFF of {unit}")
    return apply(kind, difference, _moment(arguments[1]), _moment(arguments[2]))


def _months_between(one: str, other: str, size: int) -> int:
    first, second = values.parts_of(one), values.parts_of(other)
    sign = 1
    if second < first:
        first, second, sign = second, first, -1
    months = (second[0] - first[0]) * 12 + second[1] - first[1]
    if second[2:] < first[2:]:
        months -= 1
    return sign * (months // size)


def shifted(value: Scalar, amount: Scalar, unit: str, sign: int) -> Scalar:
    """A moment and an interval together.

    Raises:
        RefusedError: what comes out is not told here.
    """
    if value.type.kind not in (Kind.DATE, Kind.DATETIME):
        raise not_supported("an INTERVAL beside what is no date")
    if unit not in _MONTHS_OF and unit not in _MICROSECONDS:
        raise not_supported(f"INTERVAL … {unit}")
    if amount.type.kind not in (Kind.INT, Kind.TEXT) or (amount.type.kind is Kind.TEXT and not amount.is_constant):
        raise not_supported("an INTERVAL of such values")
    is_date = value.type.kind is Kind.DATE and unit in ("DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
    decimals = 6 if unit == "MICROSECOND" else value.type.decimals
    kind = kinds.date() if is_date else kinds.moment(decimals)

    def shift(moment: str, count: int) -> str | None:
        count *= sign
        if abs(count) > 10**12:
            return None
        if unit in _MONTHS_OF:
            return _shifted_months(moment, count * _MONTHS_OF[unit])
        if not values.is_calendar(moment):
            return None
        found = values.microseconds_of(moment) + count * _MICROSECONDS[unit]
        if is_date:
            return values.date_text(found // (86400 * SECOND))
        return values.moment_text(found, decimals)

    return apply(kind, shift, value, as_integer(amount))


def _shifted_months(moment: str, months: int) -> str | None:
    if moment[5:7] == "00":
        return None
    total = int(moment[:4]) * 12 + int(moment[5:7]) - 1 + months
    year, month = divmod(total, 12)
    if not 0 < year <= 9999:
        return None
    day = min(int(moment[8:10]), values.last_day(year, month + 1))
    return f"{year:04}-{month + 1:02}-{day:02}{moment[10:]}"


def _shift(sign: int) -> Build:
    """DATE_ADD and DATE_SUB; the compiler hands over amount and unit behind the date."""

    def build(arguments: list[Scalar]) -> Scalar:
        if len(arguments) == 2:
            return shifted(arguments[0], arguments[1], "DAY", sign)
        return shifted(arguments[0], arguments[1], str(arguments[2].value), sign)

    return build


def _date_format(arguments: list[Scalar]) -> Scalar:
    value, form = arguments
    if not form.is_constant or form.value is None:
        raise not_supported("DATE_FORMAT of a form that is no constant")
    pattern = str(as_text(form).value)
    unknown = {letter for letter in _FORMAT.findall(pattern) if letter in _UNSUPPORTED}
    if unknown:
        raise not_supported(f"DATE_FORMAT with %{min(unknown)}")
    length = len(_FORMAT.sub("", pattern)) + sum(_SIZES.get(letter, 1) for letter in _FORMAT.findall(pattern))
    collation = form.type.collation or "utf8mb4_general_ci"
    kind = kinds.text(length, collation)

    def show(moment: str) -> str | None:
        if any(letter in "WawMbju" for letter in _FORMAT.findall(pattern)) and not values.is_calendar(moment):
            if {"M", "b"} & set(_FORMAT.findall(pattern)) and moment[5:7] != "00":
                raise not_supported("DATE_FORMAT of a day that is in no calendar")
            return None
        parts = values.parts_of(moment)

        def part(match: re.Match[str]) -> str:
            known = _FORMATS.get(match[1])
            return match[1] if known is None else known(parts, moment)

        return _FORMAT.sub(part, pattern)

    return apply(kind, show, _moment(value))


_UNSUPPORTED = "DUuVvXxj"
_SIZES = {
    "Y": 4, "m": 2, "d": 2, "H": 2, "i": 2, "s": 2, "S": 2, "f": 6, "M": 64, "b": 32, "W": 64, "a": 32, "y": 2, "c": 2,
    "e": 2, "k": 7, "h": 2, "I": 2, "l": 2, "p": 2, "T": 8, "r": 11, "w": 1, "j": 3, "%": 1,
}  # fmt: skip
_FORMATS: dict[str, Callable[[tuple[int, ...], str], str]] = {
    "Y": lambda parts, moment: f"{parts[0]:04}",
    "y": lambda parts, moment: f"{parts[0] % 100:02}",
    "m": lambda parts, moment: f"{parts[1]:02}",
    "c": lambda parts, moment: str(parts[1]),
    "d": lambda parts, moment: f"{parts[2]:02}",
    "e": lambda parts, moment: str(parts[2]),
    "H": lambda parts, moment: f"{parts[3]:02}",
    "k": lambda parts, moment: str(parts[3]),
    "h": lambda parts, moment: f"{(parts[3] + 11) % 12 + 1:02}",
    "I": lambda parts, moment: f"{(parts[3] + 11) % 12 + 1:02}",
    "l": lambda parts, moment: str((parts[3] + 11) % 12 + 1),
    "i": lambda parts, moment: f"{parts[4]:02}",
    "s": lambda parts, moment: f"{parts[5]:02}",
    "S": lambda parts, moment: f"{parts[5]:02}",
    "f": lambda parts, moment: f"{parts[6]:06}",
    "p": lambda parts, moment: "AM" if parts[3] < 12 else "PM",
    "T": lambda parts, moment: f"{parts[3]:02}:{parts[4]:02}:{parts[5]:02}",
    "r": lambda parts, moment: (
        f"{(parts[3] + 11) % 12 + 1:02}:{parts[4]:02}:{parts[5]:02} {'AM' if parts[3] < 12 else 'PM'}"
    ),
    "M": lambda parts, moment: MONTHS[parts[1] - 1],
    "b": lambda parts, moment: MONTHS[parts[1] - 1][:3],
    "W": lambda parts, moment: DAYS[_weekday(moment)],
    "a": lambda parts, moment: DAYS[_weekday(moment)][:3],
    "w": lambda parts, moment: str((_weekday(moment) + 1) % 7),
    "%": lambda parts, moment: "%",
}


def _named_part(names: tuple[str, ...], function: Callable[[str], int | None], length: int = 9) -> Build:
    def build(arguments: list[Scalar]) -> Scalar:
        def name(value: str) -> str | None:
            number = function(value)
            return None if number is None else names[number]

        return apply(
            kinds.text(length, arguments[0].type.collation or "utf8mb4_general_ci"), name, _moment(arguments[0])
        )

    return build


def _extract(arguments: list[Scalar]) -> Scalar:
    unit = str(arguments[0].value).upper()
    if unit not in ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "WEEK"):
        raise not_supported(f"EXTRACT({unit} …)")
    name = {"DAY": "dayofmonth"}.get(unit, unit.lower())
    found: Build = FUNCTIONS[name][2]
    return found(arguments[1:])


def _week(arguments: list[Scalar]) -> Scalar:
    if len(arguments) > 1:
        mode = arguments[1]
        if not mode.is_constant or mode.value not in (0, 1, 3):
            raise not_supported("WEEK of such a mode")
        number = int(mode.value)
    else:
        number = 0
    return apply(_small(2), _if_calendar(lambda value: _week_of(value, number)), _moment(arguments[0]))


def _week_of(value: str, mode: int) -> int:
    """The week of its year: 0 counts from the first Sunday, 1 and 3 from the first week of four days; 3 is ISO's."""
    import datetime

    if mode == 3:
        return datetime.date.fromisoformat(value[:10]).isocalendar()[1]
    first = values.day_number(f"{value[:4]}-01-01")
    day = values.day_number(value) - first
    if mode == 0:
        sunday = (6 - (first + 3) % 7) % 7
        return (day - sunday) // 7 + 1 if day >= sunday else 0
    monday = -((first + 3) % 7)
    number = (day - monday) // 7
    return number + (monday >= -3)


FUNCTIONS: dict[str, tuple[int, int, Build]] = {
    "year": (1, 1, _part(4, lambda value: int(value[:4]))),
    "month": (1, 1, _part(2, lambda value: int(value[5:7]))),
    "day": (1, 1, _part(2, lambda value: int(value[8:10]))),
    "dayofmonth": (1, 1, _part(2, lambda value: int(value[8:10]))),
    "quarter": (1, 1, _part(1, lambda value: (int(value[5:7]) + 2) // 3)),
    "week": (1, 2, _week),
    "weekofyear": (1, 1, _part(2, _if_calendar(lambda value: _week_of(value, 3)))),
    "dayofweek": (1, 1, _part(1, _if_calendar(lambda value: (_weekday(value) + 1) % 7 + 1))),
    "weekday": (1, 1, _part(1, _if_calendar(_weekday))),
    "dayofyear": (1, 1, _part(3, _if_calendar(_day_of_year))),
    "hour": (1, 1, _clock_part(2, lambda value: values.parts_of(value)[3], lambda value: value // SECOND // 3600)),
    "minute": (1, 1, _clock_part(2, lambda value: values.parts_of(value)[4], lambda value: value // SECOND // 60 % 60)),
    "second": (1, 1, _clock_part(2, lambda value: values.parts_of(value)[5], lambda value: value // SECOND % 60)),
    "microsecond": (1, 1, _clock_part(6, lambda value: values.parts_of(value)[6], lambda value: value % SECOND)),
    "monthname": (1, 1, _named_part(MONTHS, lambda value: int(value[5:7]) - 1 if value[5:7] != "00" else None)),
    "dayname": (1, 1, _named_part(DAYS, _if_calendar(_weekday))),
    "date": (1, 1, _date),
    "time": (1, 1, _time),
    "last_day": (1, 1, _last_day),
    "datediff": (2, 2, _datediff),
    "to_days": (1, 1, _to_days),
    "timestampdiff": (3, 3, _timestampdiff),
    "date_add": (2, 3, _shift(1)),
    "adddate": (2, 3, _shift(1)),
    "date_sub": (2, 3, _shift(-1)),
    "subdate": (2, 3, _shift(-1)),
    "date_format": (2, 2, _date_format),
    "extract": (2, 2, _extract),
}
