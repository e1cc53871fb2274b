"""Functions of numbers: what they give, and of which type."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from ibbmaster.expr import kinds, values
from ibbmaster.expr.arithmetic import arithmetic
from ibbmaster.expr.kinds import REALS, Kind, joint_collation, of_all
from ibbmaster.expr.scalars import (
    Scalar,
    apply,
    as_integer,
    as_number,
    cast_to,
    constant,
)
from ibbmaster.expr.values import EXACT, checked_int, checked_real
from ibbmaster.expr.weights import key_of
from ibbmaster.wire.refusal import not_supported
from ibbmaster.wire.response import FieldType

Build = Callable[[list[Scalar]], Scalar]


DECIMAL_FROM = 20  # characters of a number whose whole part is shown as DECIMAL, and not as BIGINT


def _number(argument: Scalar) -> Scalar:
    """
    Raises:
        RefusedError: the argument is none.
    """
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


def _whole(rounding: str) -> Build:
    def build(arguments: list[Scalar]) -> Scalar:
        (value,) = arguments
        number = _number(value)
        if _is_real(value):
            function = math.floor if rounding == ROUND_FLOOR else math.ceil
            kind = kinds.changed(kinds.real(is_nullable=value.type.is_nullable, decimals=0), length=17)
            return apply(kind, lambda one: math.copysign(float(function(one)), one), number)
        if value.type.kind is Kind.DECIMAL:
            digits = value.type.digits - value.type.decimals
            if value.type.length - value.type.decimals >= DECIMAL_FROM:
                kind = kinds.decimal(digits + 1, 0, is_nullable=value.type.is_nullable)
                return apply(kind, lambda one: values.rounded(one, 0, rounding), number)
            length = digits + 2
            field = FieldType.LONG if length <= 10 else FieldType.LONGLONG
            kind = kinds.integer(digits + 1, length=length, is_nullable=value.type.is_nullable)
            return apply(kinds.changed(kind, field=field), lambda one: int(values.rounded(one, 0, rounding)), number)
        return _same_whole(value)

    return build


def _round(arguments: list[Scalar]) -> Scalar:
    value = arguments[0]
    places = arguments[1] if len(arguments) > 1 else constant(kinds.integer(1), 0)
    if not places.is_constant or places.value is None:
        raise not_supported("ROUND to digits that are no constant")
    wanted = int(as_integer(places).value)
    number = _number(value)
    is_nullable = value.type.is_nullable
    if _is_real(value):
        if not -300 <= wanted <= 300:
            raise not_supported("ROUND to so many digits")
        kind = kinds.real(is_nullable=is_nullable, decimals=min(max(wanted, 0), kinds.FLOATING))
        if kind.decimals < kinds.FLOATING:
            kind = kinds.changed(kind, length=17 + kind.decimals)
        return apply(kind, lambda one: _rounded_real(one, wanted), number)
    if value.type.kind is Kind.DECIMAL:
        scale = max(wanted, 0)
        whole = value.type.digits - value.type.decimals
        grows = wanted < value.type.decimals
        kind = kinds.decimal(whole + scale + grows, scale, is_nullable=is_nullable, is_unsigned=value.type.is_unsigned)
        return apply(kind, lambda one: _rounded(one, wanted, scale), number)
    if wanted < 0:
        raise not_supported("ROUND of whole numbers to tens")
    return _same_whole(value)


def _same_whole(value: Scalar) -> Scalar:
    """A whole number, in a field as wide as its column's."""
    return Scalar(value.type.computed(kind=Kind.INT), value.run, value.is_constant)


def _rounded(value: Decimal, places: int, scale: int) -> Decimal:
    if places >= scale:
        return values.rounded(value, scale)
    shifted = EXACT.scaleb(value, places)
    return values.rounded(EXACT.scaleb(values.rounded(shifted, 0), -places), 0)


def _rounded_real(value: float, places: int) -> float:
    """As my_double_round(): by a power of ten, half to even."""
    power = 10.0 ** abs(places)
    product = value * power if places >= 0 else value / power
    if abs(places) < 300 and product - product != 0:
        return value
    found = math.copysign(float(round(product)), value) if abs(product) < 1e300 else product
    return checked_real(found / power if places >= 0 else found * power)


def _mod(arguments: list[Scalar]) -> Scalar:
    return arithmetic("MOD", arguments[0], arguments[1])


def _extreme(is_greatest: bool) -> Build:
    def build(arguments: list[Scalar]) -> Scalar:
        kind = of_all([argument.type for argument in arguments])
        if any(argument.type.kind is Kind.NULL for argument in arguments):
            raise not_supported("GREATEST and LEAST of NULL")
        found = [argument.type.kind for argument in arguments]
        if kind.kind is Kind.TEXT and not set(found) <= {Kind.TEXT}:
            raise not_supported("GREATEST and LEAST of several types")
        cast = [cast_to(argument, kind) for argument in arguments]
        if kind.kind is Kind.TEXT:
            collation, _ = joint_collation([argument.type for argument in arguments])
            key: Callable[[Any], Any] = key_of(collation)
        else:
            key = lambda value: value  # noqa: E731 - one of two ways
        pick = _last_max if is_greatest else min

        def choose(*given: Any) -> Any:
            return pick(given, key=key)

        return apply(kind, choose, *cast)

    return build


def _last_max(given: tuple[Any, ...], key: Callable[[Any], Any]) -> Any:
    return max(given, key=key)


FUNCTIONS: dict[str, tuple[int, int, Build]] = {
    "abs": (1, 1, _abs),
    "floor": (1, 1, _whole(ROUND_FLOOR)),
    "ceil": (1, 1, _whole(ROUND_CEILING)),
    "round": (1, 2, _round),
    "mod": (2, 2, _mod),
    "greatest": (2, 1000, _extreme(True)),
    "least": (2, 1000, _extreme(False)),
}
