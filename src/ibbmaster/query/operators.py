"""What operators make of values: arithmetic, comparison, logic, LIKE, CASE."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from ibbmaster.dialogue.refusal import RefusedError, not_supported
from ibbmaster.query import kinds, values
from ibbmaster.query.kinds import REALS, Kind, Type, of_all
from ibbmaster.query.scalars import (
    Row,
    Scalar,
    apply,
    apply_any,
    as_exact,
    as_integer,
    as_number,
    as_real,
    as_text,
    as_truth,
    cast_to,
    check_letters,
    comparable,
    constant,
    negated,
)
from ibbmaster.query.values import EXACT, checked_decimal, checked_int, checked_real
from ibbmaster.query.weights import letters_of
from ibbmaster.wire.response import FieldType

DIVISION_DIGITS = 4  # div_precision_increment

ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}


_PLAIN: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": lambda one, other: one + other,
    "-": lambda one, other: one - other,
    "*": lambda one, other: one * other,
}
_BITS: Mapping[str, Callable[[int, int], int]] = {
    "&": lambda one, other: one & other,
    "|": lambda one, other: one | other,
    "^": lambda one, other: one ^ other,
    "<<": lambda one, other: one << other if other < 64 else 0,
    ">>": lambda one, other: one >> other if other < 64 else 0,
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
    """A binary operator between numbers.

    Raises:
        RefusedError: MariaDB's result is not told here.
    """
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
        kind = kinds.real(is_nullable=is_nullable, decimals=max(_decimals(one), _decimals(other)))
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


def _decimals(kind: Type) -> int:
    return kinds.FLOATING if kind.kind in (Kind.TEXT, Kind.BYTES) else kind.decimals


def _quotient(left: Scalar, right: Scalar, increment: int) -> Scalar:
    one, other = left.type, right.type
    if _result_class(left, right) == "real":
        decimals = max(_decimals(one), _decimals(other)) + increment
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
    """
    Raises:
        RefusedError: it is -0, which a server shows, and takes for less than 0, where no temporary table has held it.
    """
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
        kind = kinds.real(decimals=max(_decimals(one), _decimals(other)))
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
        found = kinds.real(is_nullable=kind.is_nullable, decimals=_decimals(kind))
        return apply(found, lambda value: -value, as_real(operand))
    if what == "exact":
        found = kinds.decimal(kinds.numeric_digits(kind), kind.decimals, is_nullable=kind.is_nullable)
        return apply(kinds.changed(found, length=kind.length + 1, fraction=kind.scale), negated, as_exact(operand))
    length = kind.length + 1
    found = kinds.integer(kind.digits, length=length, is_nullable=kind.is_nullable)
    return apply(found, lambda value: checked_int(-value, False), as_number(operand))


def bits(operator: str, left: Scalar, right: Scalar) -> Scalar:
    """Bits of 64."""
    kind = Type(
        kind=Kind.INT, length=21, digits=20, is_unsigned=True, field=FieldType.LONGLONG,
        is_nullable=left.type.is_nullable or right.type.is_nullable,
    )  # fmt: skip
    mask = (1 << 64) - 1
    function = _BITS[operator]
    return apply(kind, lambda a, b: function(a & mask, b & mask) & mask, as_integer(left), as_integer(right))


def inverted_bits(operand: Scalar) -> Scalar:
    """~x"""
    return bits("^", operand, constant(kinds.integer(20, is_nullable=False), (1 << 64) - 1))


# Conditions -----------------------------------------------------------------------------------


def compared(operator: str, left: Scalar, right: Scalar) -> Scalar:
    """A comparison: 1, 0 or NULL."""
    kind = kinds.truth(is_nullable=left.type.is_nullable or right.type.is_nullable)
    one, other = comparable(left, right)
    if operator == "<=>":
        return apply_any(
            kinds.truth(is_nullable=False),
            lambda a, b: int(a == b if a is not None and b is not None else a is b),
            one,
            other,
        )
    decide = ORDERS[operator]
    return apply(kind, lambda a, b: int(decide(a, b)), one, other)


def junction(operator: str, operands: list[Scalar]) -> Scalar:
    """AND and OR."""
    runs = [as_truth(operand).run for operand in operands]
    decides = operator == "OR"

    def run(row: Row) -> int | None:
        found: int | None = int(not decides)
        for one in runs:
            truth = one(row)
            if truth is None:
                found = None
            elif truth is decides:
                return int(decides)
        return found

    kind = kinds.truth(is_nullable=any(operand.type.is_nullable for operand in operands))
    return Scalar(kind, run, all(operand.is_constant for operand in operands))


def exclusive(left: Scalar, right: Scalar) -> Scalar:
    kind = kinds.truth(is_nullable=left.type.is_nullable or right.type.is_nullable)
    return apply(kind, lambda a, b: int(a is not b), as_truth(left), as_truth(right))


def inverted(operand: Scalar) -> Scalar:
    return apply(kinds.truth(is_nullable=operand.type.is_nullable), lambda value: int(not value), as_truth(operand))


def is_null(operand: Scalar) -> Scalar:
    return apply_any(kinds.truth(is_nullable=False), lambda value: int(value is None), operand)


def is_truth(operand: Scalar, wanted: bool) -> Scalar:
    return apply_any(kinds.truth(is_nullable=False), lambda value: int(value is wanted), as_truth(operand))


def between(value: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """MariaDB compares all three alike; here that is told where each pair compares in the same way."""
    if value.type.kind in kinds.TEXTS and not {low.type.kind, high.type.kind} <= kinds.TEXTS:
        raise not_supported("BETWEEN of a text and something else")
    if (value.type.kind in kinds.NUMBERS) and ((low.type.kind in kinds.TEXTS) != (high.type.kind in kinds.TEXTS)):
        raise not_supported("BETWEEN a number and a text")
    return junction("AND", [compared(">=", value, low), compared("<=", value, high)])


def member(value: Scalar, candidates: list[Scalar]) -> Scalar:
    """IN."""
    found = {_family(candidate.type) for candidate in candidates if candidate.type.kind is not Kind.NULL}
    if len(found) > 1:
        raise not_supported("IN of values of several types")
    kind = kinds.truth(is_nullable=value.type.is_nullable or any(one.type.is_nullable for one in candidates))
    if all(candidate.is_constant for candidate in candidates) and not value.is_constant:
        pairs = [comparable(value, candidate) for candidate in candidates]
        keys = [other.value for _, other in pairs]
        known = frozenset(key for key in keys if key is not None)
        missing = None if None in keys else 0
        run = next((one.run for one, other in pairs if other.type.kind is not Kind.NULL), value.run)

        def find(row: Row) -> int | None:
            wanted = run(row)
            return None if wanted is None else 1 if wanted in known else missing

        return Scalar(kind, find)
    return kinds_of(junction("OR", [compared("=", value, candidate) for candidate in candidates]), kind)


def kinds_of(scalar: Scalar, kind: Type) -> Scalar:
    return Scalar(kind, scalar.run, scalar.is_constant)


def _family(kind: Type) -> str:
    if kind.kind in kinds.NUMBERS:
        return "number"
    if kind.kind in kinds.MOMENTS:
        return "moment"
    return kind.kind.value


def like(value: Scalar, pattern: Scalar, escape: Scalar | None) -> Scalar:
    """LIKE: letter by letter, by the weights of the collation."""
    if escape is not None and not escape.is_constant:
        raise not_supported("ESCAPE of an expression")
    sign = "\\" if escape is None or escape.value is None else str(as_text(escape).value)
    if len(sign) > 1:
        raise RefusedError(1210, "HY000", "Incorrect arguments to ESCAPE")
    kind = kinds.truth(is_nullable=value.type.is_nullable or pattern.type.is_nullable)
    if Kind.NULL in (value.type.kind, pattern.type.kind):
        return apply(kind, lambda a, b: None, value, pattern)
    subject, wanted = as_text(value), as_text(pattern)
    if Kind.OPAQUE in (value.type.kind, pattern.type.kind) or Kind.BIT in (value.type.kind, pattern.type.kind):
        raise not_supported("LIKE of such values")
    if Kind.BYTES in (value.type.kind, pattern.type.kind):
        collation = "binary"
    else:
        texts = [one.type for one in (value, pattern) if one.type.kind in kinds.TEXTS]
        collation, _ = kinds.joint_collation(texts)
        check_letters(value, pattern)
    weigh = letters_of(collation)
    if pattern.is_constant:
        text = wanted.value
        if text is None:
            return apply(kind, lambda a, b: None, value, pattern)
        steps = _steps(_plain_text(text), sign, weigh)
        return apply(kind, lambda subject: int(_matches(weigh(_plain_text(subject)), steps)), subject)
    return apply(
        kind, lambda a, b: int(_matches(weigh(_plain_text(a)), _steps(_plain_text(b), sign, weigh))), subject, wanted
    )


def _plain_text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


ANY, ONE = object(), object()


def _steps(pattern: str, sign: str, weigh: Callable[[str], list[str]]) -> list[object]:
    found: list[object] = []
    index = 0
    while index < len(pattern):
        letter = pattern[index]
        index += 1
        if letter == sign and sign and index < len(pattern):
            found += weigh(pattern[index])
            index += 1
        elif letter == "%":
            if not found or found[-1] is not ANY:
                found.append(ANY)
        elif letter == "_":
            found.append(ONE)
        else:
            found += weigh(letter)
    return found


def _matches(letters: list[str], steps: list[object]) -> bool:
    """Greedy, back to the last % where it fails: so work grows with both lengths only."""
    place = step = 0
    mark = start = -1
    while place < len(letters):
        if step < len(steps) and steps[step] is ANY:
            mark, start = step, place
            step += 1
        elif step < len(steps) and (steps[step] is ONE or steps[step] == letters[place]):
            step += 1
            place += 1
        elif mark >= 0:
            start += 1
            place, step = start, mark + 1
        else:
            return False
    return all(one is ANY for one in steps[step:])


def chosen(conditions: list[Scalar], results: list[Scalar]) -> Scalar:
    """CASE: the result of the first condition that is true; the last result stands for all others."""
    kind = of_all([result.type for result in results])
    runs = [cast_to(result, kind).run for result in results]
    tests = [as_truth(condition).run for condition in conditions]

    def run(row: Row) -> Any:
        for test, result in zip(tests, runs, strict=False):
            if test(row):
                return result(row)
        return runs[-1](row)

    return Scalar(kind, run, all(one.is_constant for one in (*conditions, *results)))


def first_known(arguments: list[Scalar]) -> Scalar:
    """COALESCE."""
    kind = of_all([argument.type for argument in arguments])
    if any(not argument.type.is_nullable for argument in arguments):
        kind = kinds.changed(kind, is_nullable=False)
    runs = [cast_to(argument, kind).run for argument in arguments]

    def run(row: Row) -> Any:
        for one in runs:
            value = one(row)
            if value is not None:
                return value
        return None

    return Scalar(kind, run, all(argument.is_constant for argument in arguments))
