"""Arithmetic: what it makes of numbers, and of which type."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from ibbmaster.expr import kinds, values
from ibbmaster.expr.kinds import REALS, Kind, Type
from ibbmaster.expr.scalars import Scalar, apply, as_exact, as_number, as_real, negated
from ibbmaster.expr.values import EXACT, checked_decimal, checked_int, checked_real
from ibbmaster.wire.refusal import not_supported
from ibbmaster.wire.response import FieldType

DIVISION_DIGITS = 4  # div_precision_increment
_PLAIN: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": lambda one, other: one + other,
    "-": lambda one, other: one - other,
    "*": lambda one, other: one * other,
}


def _result_class(*scalars: Scalar) -> str:
    found = {_class_of(scalar.type) for scalar in scalars}
    return "real" if "real" in found else "exact" if "exact" in found else "int"


def _class_of(kind: Type) -> str:
    if kind.kind in REALS or kind.kind in (Kind.TEXT, Kind.BYTES):
        return "real"
    if kind.kind is Kind.DECIMAL or (kind.kind in kinds.MOMENTS and kind.decimals):
        return "exact"
    if kind.kind is Kind.OPAQUE:
        raise not_supported("arithmetic with such values")
    return "int"


def arithmetic(operator: str, left: Scalar, right: Scalar, increment: int = DIVISION_DIGITS) -> Scalar:
    """A binary operator between numbers. Raises RefusedError: MariaDB's result is not told here."""
    if Kind.NULL in (left.type.kind, right.type.kind):
        raise not_supported("arithmetic with NULL")
    is_nullable = left.type.is_nullable or right.type.is_nullable
    match operator:
        case "+" | "-" | "*":
            return _plain(operator, left, right, is_nullable)
        case "/":
            return _quotient(left, right, increment)
        case "DIV":
            return _whole_quotient(left, right)
        case "MOD":
            return _remainder(left, right)
    raise not_supported(operator)


def _plain(operator: str, left: Scalar, right: Scalar, is_nullable: bool) -> Scalar:
    one, other = left.type, right.type
    what = _result_class(left, right)
    if what == "real":
        kind = kinds.real(is_nullable=is_nullable, decimals=max(decimals_of(one), decimals_of(other)))
        if kind.decimals < kinds.FLOATING:
            kind = kinds.changed(kind, length=17 + kind.decimals)
        function = _PLAIN[operator]
        return apply(kind, lambda a, b: checked_real(function(a, b)), as_real(left), as_real(right))
    if what == "exact":
        first, second = one.decimals, other.decimals
        whole = kinds.numeric_digits(one) - first, kinds.numeric_digits(other) - second
        is_unsigned = one.is_unsigned and other.is_unsigned
        if operator == "*":
            kind = kinds.decimal(
                min(kinds.numeric_digits(one) + kinds.numeric_digits(other), 65), first + second,
                is_unsigned=is_unsigned, is_nullable=is_nullable,
            )  # fmt: skip
        else:
            scale = max(first, second)
            kind = kinds.decimal(max(whole) + 1 + scale, scale, is_unsigned=is_unsigned, is_nullable=is_nullable)
        scales = one.scale, other.scale
        kind = kinds.changed(kind, fraction=sum(scales) if operator == "*" else max(scales))
        compute = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply}[operator]
        return apply(kind, lambda a, b: checked_decimal(compute(a, b)), as_exact(left), as_exact(right))
    is_unsigned = one.is_unsigned or other.is_unsigned
    digits = one.digits + other.digits if operator == "*" else max(one.digits, other.digits) + 1
    kind = kinds.integer(digits, is_unsigned=is_unsigned, is_nullable=is_nullable)
    whole_of = _PLAIN[operator]
    return apply(kind, lambda a, b: checked_int(whole_of(a, b), is_unsigned), as_number(left), as_number(right))


def decimals_of(kind: Type) -> int:
    return kinds.FLOATING if kind.kind in (Kind.TEXT, Kind.BYTES) else kind.decimals


def _quotient(left: Scalar, right: Scalar, increment: int) -> Scalar:
    one, other = left.type, right.type
    if _result_class(left, right) == "real":
        decimals = max(decimals_of(one), decimals_of(other)) + increment
        kind = kinds.real(decimals=min(decimals, kinds.FLOATING))
        if kind.decimals < kinds.FLOATING:
            kind = kinds.changed(kind, length=17 + kind.decimals)
        return apply(kind, lambda a, b: checked_real(a / b) if b else None, as_real(left), as_real(right))
    digits = kinds.numeric_digits(one) + increment + other.decimals
    kind = kinds.decimal(min(digits, 65), one.decimals + increment, is_unsigned=one.is_unsigned and other.is_unsigned)
    kind = kinds.changed(kind, fraction=values.scale_of_quotient(one.scale, other.scale, increment))
    return apply(kind, lambda a, b: values.divided(a, b, increment), as_exact(left), as_exact(right))


def _whole_quotient(left: Scalar, right: Scalar) -> Scalar:
    is_unsigned = left.type.is_unsigned or right.type.is_unsigned
    digits = kinds.numeric_digits(left.type) - (left.type.decimals if left.type.kind is not Kind.DOUBLE else 0)
    kind = kinds.integer(digits, length=digits, is_unsigned=is_unsigned)
    if _result_class(left, right) == "real":
        raise not_supported("DIV of numbers that are not exact")

    def divide(a: Decimal | int, b: Decimal | int) -> int | None:
        if not b:
            return None
        whole = EXACT.divide_int(Decimal(a), Decimal(b))
        return checked_int(int(whole), is_unsigned)

    return apply(kind, divide, as_exact(left), as_exact(right))


def _exact_remainder(dividend: Decimal | int, divisor: Decimal | int) -> Decimal | None:
    """Raises RefusedError: it is -0, which a server shows, and takes for less than 0, where no temporary table has held
    it."""
    if not divisor:
        return None
    found = EXACT.remainder(Decimal(dividend), Decimal(divisor))
    if not found and found.is_signed():
        raise not_supported("the number -0")
    return found


def _remainder(left: Scalar, right: Scalar) -> Scalar:
    one, other = left.type, right.type
    what = _result_class(left, right)
    if what == "real":
        kind = kinds.real(decimals=max(decimals_of(one), decimals_of(other)))
        return apply(kind, lambda a, b: math.fmod(a, b) if b else None, as_real(left), as_real(right))
    if what == "exact":
        scale = max(one.decimals, other.decimals)
        whole = max(kinds.numeric_digits(one) - one.decimals, kinds.numeric_digits(other) - other.decimals)
        kind = kinds.decimal(whole + scale, scale, is_unsigned=one.is_unsigned)
        length = max(one.length, other.length)
        kind = kinds.changed(kind, length=length)
        return apply(kind, _exact_remainder, as_exact(left), as_exact(right))
    length = max(one.length, other.length)
    field = FieldType.LONG if length <= 9 else FieldType.LONGLONG
    kind = Type(
        kind=Kind.INT, length=length, digits=max(one.digits, other.digits), is_unsigned=one.is_unsigned, field=field
    )

    def remain(a: int, b: int) -> int | None:
        if not b:
            return None
        found = abs(a) % abs(b)
        return -found if a < 0 else found

    return apply(kind, remain, as_number(left), as_number(right))


def negative(operand: Scalar) -> Scalar:
    """-x"""
    kind = operand.type
    if kind.kind in (Kind.ENUM, Kind.SET, Kind.BIT, Kind.NULL):
        raise not_supported(f"the negative of {kind.kind.value}")
    what = _class_of(kind)
    if what == "real":
        found = kinds.real(is_nullable=kind.is_nullable, decimals=decimals_of(kind))
        return apply(found, lambda value: -value, as_real(operand))
    if what == "exact":
        found = kinds.decimal(kinds.numeric_digits(kind), kind.decimals, is_nullable=kind.is_nullable)
        return apply(kinds.changed(found, length=kind.length + 1, fraction=kind.scale), negated, as_exact(operand))
    length = kind.length + 1
    found = kinds.integer(kind.digits, length=length, is_nullable=kind.is_nullable)
    return apply(found, lambda value: checked_int(-value, False), as_number(operand))
