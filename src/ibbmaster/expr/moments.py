"""Functions of dates and times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ibbmaster.expr import kinds, values
from ibbmaster.expr.kinds import Kind, Type
from ibbmaster.expr.scalars import Scalar, apply, as_integer, as_moment
from ibbmaster.expr.values import SECOND
from ibbmaster.wire.refusal import not_supported
from ibbmaster.wire.response import FieldType

Build = Callable[[list[Scalar]], Scalar]
_MICROSECONDS = {
    "MICROSECOND": 1,
    "SECOND": SECOND,
    "MINUTE": 60 * SECOND,
    "HOUR": 3600 * SECOND,
    "DAY": 86400 * SECOND,
    "WEEK": 7 * 86400 * SECOND,
}
_MONTHS_OF = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
DURATION_MAX = (838 * 3600 + 59 * 60 + 59) * SECOND


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


def _date(arguments: list[Scalar]) -> Scalar:
    return apply(kinds.date(), lambda value: value[:10], _moment(arguments[0]))


def _timediff(arguments: list[Scalar]) -> Scalar:
    """Between two moments, or two durations; NULL where they are one of each."""
    digits = max(map(fraction_of, arguments))
    most = DURATION_MAX + (SECOND - 1 if digits else 0)
    if any(one.type.kind is Kind.DATE for one in arguments):
        raise not_supported("TIMEDIFF of a DATE")

    def difference(one: Any, other: Any) -> int | None:
        pair = _microseconds(one), _microseconds(other)
        if pair[0][0] != pair[1][0]:
            return None
        return max(min(pair[0][1] - pair[1][1], most), -most)

    return apply(kinds.duration(digits), difference, *arguments)


def fraction_of(value: Scalar) -> int:
    """Digits behind the second of a moment or duration.

    Raises:
        RefusedError: it is none, or a text in another form than a server shows.
    """
    if value.type.kind in kinds.MOMENTS:
        return value.type.decimals
    if value.type.kind is Kind.TEXT and value.is_constant and value.value is not None:
        text = value.value
        found = values.parsed_moment(text)
        if found[:10] == text[:10] if found is not None else values.parsed_duration(text) is not None:
            return min(len(text.partition(".")[2]), 6)
    raise not_supported("such values as moments")


def _microseconds(value: Any) -> tuple[bool, int]:
    """Whether it is a moment, and the microseconds of it."""
    if isinstance(value, int):
        return False, value
    moment = values.parsed_moment(value)
    return (False, values.parsed_duration(value) or 0) if moment is None else (True, values.microseconds_of(moment))


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
    if not values.is_calendar(moment):
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


FUNCTIONS: dict[str, tuple[int, int, Build]] = {
    "year": (1, 1, _part(4, lambda value: int(value[:4]))),
    "month": (1, 1, _part(2, lambda value: int(value[5:7]))),
    "day": (1, 1, _part(2, lambda value: int(value[8:10]))),
    "hour": (1, 1, _clock_part(2, lambda value: values.parts_of(value)[3], lambda value: value // SECOND // 3600)),
    "minute": (1, 1, _clock_part(2, lambda value: values.parts_of(value)[4], lambda value: value // SECOND // 60 % 60)),
    "second": (1, 1, _clock_part(2, lambda value: values.parts_of(value)[5], lambda value: value // SECOND % 60)),
    "date": (1, 1, _date),
    "timediff": (2, 2, _timediff),
    "date_add": (2, 3, _shift(1)),
    "date_sub": (2, 3, _shift(-1)),
}
