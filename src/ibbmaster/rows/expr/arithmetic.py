"""Arithmetic of numbers, and the types of its results."""

import math
from dataclasses import replace
from decimal import Decimal
from operator import add, mul, sub

from ibbmaster.replication.wire.refusal import not_supported
from . import kinds, values
from .kinds import REALS, Family, ValueType
from .scalars import Scalar, apply, as_exact, as_number, as_real, negated
from .values import EXACT, checked_decimal, checked_int, checked_real

DIVISION_DIGITS = 4  # div_precision_increment
_PLAIN = {"+": add, "-": sub, "*": mul}
_EXACT = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply}


def _result_class(*scalars: Scalar) -> str:
    found = {_class_of(scalar.type) for scalar in scalars}
    return "real" if "real" in found else "exact" if "exact" in found else "int"


def _class_of(kind: ValueType) -> str:
    if kind.kind in REALS or kind.kind in (Family.TEXT, Family.BYTES):
        return "real"
    if kind.kind is Family.DECIMAL or (kind.kind in kinds.MOMENTS and kind.decimals):
        return "exact"
    return "int"


def arithmetic(operator: str, left: Scalar, right: Scalar, increment: int = DIVISION_DIGITS) -> Scalar:
    if Family.NULL in (left.kind, right.kind):
        raise not_supported("arithmetic with NULL")
    match operator:
        case "+" | "-" | "*":
            return _plain(operator, left, right)
        case "/":
            return _quotient(left, right, increment)
        case "DIV":
            return _whole_quotient(left, right)
    return _remainder(left, right)


def _plain(operator: str, left: Scalar, right: Scalar) -> Scalar:
    one, other = left.type, right.type
    is_nullable = one.is_nullable or other.is_nullable
    function = _PLAIN[operator]
    what = _result_class(left, right)
    if what == "real":
        kind = kinds.shown_real(max(decimals_of(one), decimals_of(other)), is_nullable=is_nullable)
        return apply(kind, lambda a, b: checked_real(function(a, b)), as_real(left), as_real(right))
    if what == "exact":
        is_product, is_unsigned = operator == "*", one.is_unsigned and other.is_unsigned
        digits = kinds.numeric_digits(one), kinds.numeric_digits(other)
        scale = one.decimals + other.decimals if is_product else max(one.decimals, other.decimals)
        whole = max(digits[0] - one.decimals, digits[1] - other.decimals) + 1
        kind = kinds.decimal(
            sum(digits) if is_product else whole + scale, scale, is_unsigned=is_unsigned, is_nullable=is_nullable
        )
        fraction = one.scale + other.scale if is_product else max(one.scale, other.scale)
        compute = _EXACT[operator]
        kind = replace(kind, fraction=fraction)
        return apply(kind, lambda a, b: checked_decimal(compute(a, b)), as_exact(left), as_exact(right))
    is_unsigned = one.is_unsigned or other.is_unsigned
    most = one.digits + other.digits if operator == "*" else max(one.digits, other.digits) + 1
    kind = kinds.integer(most, is_unsigned=is_unsigned, is_nullable=is_nullable)
    return apply(kind, lambda a, b: checked_int(function(a, b), is_unsigned), as_number(left), as_number(right))


def decimals_of(kind: ValueType) -> int:
    """Digits behind the point, where a text has as many as it likes."""
    return kinds.FLOATING if kind.kind in (Family.TEXT, Family.BYTES) else kind.decimals


def _quotient(left: Scalar, right: Scalar, increment: int) -> Scalar:
    one, other = left.type, right.type
    if _result_class(left, right) == "real":
        kind = kinds.shown_real(max(decimals_of(one), decimals_of(other)) + increment)
        return apply(kind, lambda a, b: checked_real(a / b) if b else None, as_real(left), as_real(right))
    digits = kinds.numeric_digits(one) + increment + other.decimals
    kind = kinds.decimal(digits, one.decimals + increment, is_unsigned=one.is_unsigned and other.is_unsigned)
    kind = replace(kind, fraction=values.scale_of_quotient(one.scale, other.scale, increment))
    return apply(kind, lambda a, b: values.divided(a, b, increment), as_exact(left), as_exact(right))


def _whole_quotient(left: Scalar, right: Scalar) -> Scalar:
    is_unsigned = left.type.is_unsigned or right.type.is_unsigned
    digits = kinds.numeric_digits(left.type) - (left.type.decimals if left.kind is not Family.DOUBLE else 0)
    kind = kinds.integer(digits, length=digits, is_unsigned=is_unsigned)
    if _result_class(left, right) == "real":
        raise not_supported("DIV of numbers that are not exact")

    def divide(a: Decimal | int, b: Decimal | int) -> int | None:
        return checked_int(int(EXACT.divide_int(Decimal(a), Decimal(b))), is_unsigned) if b else None

    return apply(kind, divide, as_exact(left), as_exact(right))


def _exact_remainder(dividend: Decimal | int, divisor: Decimal | int) -> Decimal | None:
    """Raises RefusedError: it is -0, which a server shows unless a temporary table has held it."""
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
    length = max(one.length, other.length)
    if what == "exact":
        scale = max(one.decimals, other.decimals)
        whole = max(kinds.numeric_digits(one) - one.decimals, kinds.numeric_digits(other) - other.decimals)
        kind = replace(kinds.decimal(whole + scale, scale, is_unsigned=one.is_unsigned), length=length)
        return apply(kind, _exact_remainder, as_exact(left), as_exact(right))
    kind = kinds.integer(max(one.digits, other.digits), length=length, is_unsigned=one.is_unsigned)

    def remain(a: int, b: int) -> int | None:
        return (abs(a) % abs(b)) * (-1 if a < 0 else 1) if b else None

    return apply(kind, remain, as_number(left), as_number(right))


def negative(operand: Scalar) -> Scalar:
    kind = operand.type
    what = _class_of(kind)
    if what == "real":
        found = kinds.real(is_nullable=kind.is_nullable, decimals=decimals_of(kind))
        return apply(found, lambda value: -value, as_real(operand))
    if what == "exact":
        found = kinds.decimal(kinds.numeric_digits(kind), kind.decimals, is_nullable=kind.is_nullable)
        return apply(replace(found, length=kind.length + 1, fraction=kind.scale), negated, as_exact(operand))
    length = kind.length + 1
    found = kinds.integer(kind.digits, length=length, is_nullable=kind.is_nullable)
    return apply(found, lambda value: checked_int(-value, False), as_number(operand))
