"""Functions over columns, by name: what they give, and of which type; those of texts are in `text_functions`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ibbmaster.expr import kinds, text_functions, values
from ibbmaster.expr.arithmetic import arithmetic
from ibbmaster.expr.judged import expect_function
from ibbmaster.expr.kinds import REALS, Kind, joint_collation, of_all
from ibbmaster.expr.operators import chosen, first_known, is_null
from ibbmaster.expr.scalars import Scalar, apply, as_integer, as_moment, as_number, cast_to, constant
from ibbmaster.expr.values import SECOND, checked_int, checked_real
from ibbmaster.expr.weights import key_of
from ibbmaster.sqltext.moment import parse_duration
from ibbmaster.wire.refusal import RefusedError, not_supported
from ibbmaster.wire.response import FieldType

Build = Callable[[list[Scalar]], Scalar]
DURATION_MAX = (838 * 3600 + 59 * 60 + 59) * SECOND
#: Other names of functions.
ALIASES = {"lcase": "lower", "nvl": "ifnull", "substr": "substring", "ucase": "upper"}


def call(name: str, written: str, arguments: list[Scalar], collation: str) -> Scalar:
    """A function of columns; `collation` is that of texts made of numbers. Raises RefusedError: there is no such
    function here, or not with these arguments."""
    name = ALIASES.get(name, name)
    found = _FUNCTIONS.get(name)
    if found is None:
        raise not_supported(f"{written}() over columns of a table")
    least, most, build = found
    if not least <= len(arguments) <= most:
        raise RefusedError(1582, "42000", f"Incorrect parameter count in the call to native function '{written}'")
    if any(argument.type.kind is Kind.OPAQUE for argument in arguments) and name not in _OF_ANYTHING:
        raise not_supported(f"{written}() of such values")
    expect_function(name, arguments)
    return build([_named(argument, collation) for argument in arguments])


def is_function(name: str) -> bool:
    return ALIASES.get(name, name) in _FUNCTIONS


def _named(argument: Scalar, collation: str) -> Scalar:
    """Numbers that become texts have the collation of the session."""
    if argument.type.collation is not None or argument.type.kind in kinds.TEXTS:
        return argument
    return replace(argument, type=kinds.changed(argument.type, collation=collation, strength=5))


def _if(arguments: list[Scalar]) -> Scalar:
    condition, first, second = arguments
    if first.type.kind is second.type.kind is Kind.NULL:
        raise not_supported("IF of NULL and NULL")
    return chosen([condition], [_null_as(first, second), _null_as(second, first)])


def _null_as(value: Scalar, other: Scalar) -> Scalar:
    """NULL as a value of another's type, which is all that IF sees of it."""
    return constant(other.type.computed(is_nullable=True), None) if value.type.kind is Kind.NULL else value


def _number(argument: Scalar) -> Scalar:
    """Raises RefusedError: the argument is none."""
    if argument.type.kind not in (Kind.INT, Kind.YEAR, Kind.DECIMAL, Kind.DOUBLE, Kind.FLOAT, Kind.TEXT):
        raise not_supported(f"functions of numbers over {argument.type.kind.value}")
    return as_number(argument)


def _is_real(argument: Scalar) -> bool:
    return argument.type.kind in REALS or argument.type.kind is Kind.TEXT


def _abs(arguments: list[Scalar]) -> Scalar:
    (value,) = arguments
    number = _number(value)
    if _is_real(value):
        decimals = value.type.decimals if value.type.kind in REALS else kinds.FLOATING
        return apply(kinds.real(is_nullable=value.type.is_nullable, decimals=decimals), abs, number)
    if value.type.kind is Kind.DECIMAL:
        return apply(value.type.computed(field=None), lambda one: one.copy_abs(), number)
    field = FieldType.LONG if value.type.length <= 9 else FieldType.LONGLONG
    kind = value.type.computed(field=field, kind=Kind.INT)
    return apply(kind, lambda one: checked_int(abs(one), kind.is_unsigned), number)


def _round(arguments: list[Scalar]) -> Scalar:
    value = arguments[0]
    places = arguments[1] if len(arguments) > 1 else constant(kinds.integer(1), 0)
    if not places.is_constant or places.value is None:
        raise not_supported("ROUND to digits that are no constant")
    wanted = int(as_integer(places).value)
    if not 0 <= wanted <= 300:
        raise not_supported("ROUND to so many digits")
    number, own = _number(value), value.type
    if _is_real(value):
        kind = kinds.real(is_nullable=own.is_nullable, decimals=min(wanted, kinds.FLOATING))
        if kind.decimals < kinds.FLOATING:
            kind = kinds.changed(kind, length=17 + kind.decimals)
        return apply(kind, lambda one: _rounded_real(one, wanted), number)
    if own.kind is Kind.DECIMAL:
        digits = own.digits - own.decimals + wanted + (wanted < own.decimals)
        kind = kinds.decimal(digits, wanted, is_nullable=own.is_nullable, is_unsigned=own.is_unsigned)
        return apply(kind, lambda one: values.rounded(one, wanted), number)
    return Scalar(own.computed(kind=Kind.INT), value.run, value.is_constant)  # in a field as wide as its column's


def _rounded_real(value: float, places: int) -> float:
    """As my_double_round(): by a power of ten, half to even."""
    product = value * 10.0**places
    if places < 300 and product - product != 0:
        return value
    found = math.copysign(float(round(product)), value) if abs(product) < 1e300 else product
    return checked_real(found / 10.0**places)


def _least(arguments: list[Scalar]) -> Scalar:
    kind = of_all([argument.type for argument in arguments])
    found = {argument.type.kind for argument in arguments}
    if Kind.NULL in found:
        raise not_supported("LEAST of NULL")
    if kind.kind is Kind.TEXT and found != {Kind.TEXT}:
        raise not_supported("LEAST of several types")
    key: Callable[[Any], Any] | None = None
    if kind.kind is Kind.TEXT:
        key = key_of(joint_collation([argument.type for argument in arguments])[0])
    return apply(kind, lambda *given: min(given, key=key), *(cast_to(argument, kind) for argument in arguments))


def _date(arguments: list[Scalar]) -> Scalar:
    (value,) = arguments
    if value.type.kind is Kind.TEXT and not value.is_constant:
        raise not_supported("texts of a table as dates")
    return apply(kinds.date(), lambda moment: moment[:10], as_moment(value))


def _timediff(arguments: list[Scalar]) -> Scalar:
    """Between two moments, or two durations; NULL where they are one of each."""
    digits = max(map(_fraction_of, arguments))
    most = DURATION_MAX + (SECOND - 1 if digits else 0)
    if any(one.type.kind is Kind.DATE for one in arguments):
        raise not_supported("TIMEDIFF of a DATE")

    def difference(one: Any, other: Any) -> int | None:
        pair = _microseconds(one), _microseconds(other)
        if pair[0][0] != pair[1][0]:
            return None
        return max(min(pair[0][1] - pair[1][1], most), -most)

    return apply(kinds.duration(digits), difference, *arguments)


def _fraction_of(value: Scalar) -> int:
    """Digits behind the second of a moment or duration. Raises RefusedError: it is none, or a text in another form than
    a server shows."""
    if value.type.kind in kinds.MOMENTS:
        return value.type.decimals
    if value.type.kind is Kind.TEXT and value.is_constant and value.value is not None:
        text = value.value
        found = values.parsed_moment(text)
        if found[:10] == text[:10] if found is not None else parse_duration(text) is not None:
            return min(len(text.partition(".")[2]), 6)
    raise not_supported("such values as moments")


def _microseconds(value: Any) -> tuple[bool, int]:
    """Whether it is a moment, and the microseconds of it."""
    if isinstance(value, int):
        return False, value
    moment = values.parsed_moment(value)
    return (False, parse_duration(value) or 0) if moment is None else (True, values.microseconds_of(moment))


_FUNCTIONS: dict[str, tuple[int, int, Build]] = {
    "if": (3, 3, _if),
    "ifnull": (2, 2, first_known),
    "coalesce": (1, 1000, first_known),
    "isnull": (1, 1, lambda arguments: is_null(arguments[0])),
    "abs": (1, 1, _abs),
    "round": (1, 2, _round),
    "mod": (2, 2, lambda arguments: arithmetic("MOD", arguments[0], arguments[1])),
    "least": (2, 1000, _least),
    "date": (1, 1, _date),
    "timediff": (2, 2, _timediff),
    **text_functions.FUNCTIONS,
}
_OF_ANYTHING = frozenset(("isnull", "coalesce", "ifnull", "if"))
