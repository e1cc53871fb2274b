"""Operators: arithmetic, comparison, logic, LIKE, CASE, CAST."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from operator import add, eq, ge, gt, le, lt, mul, ne, sub
from typing import Any

from ibbmaster.replication.wire.refusal import RefusedError, not_supported
from ibbmaster.sqltext.expression import Cast
from . import kinds, values
from .comparing import check_letters, comparable
from .judged import expect_judged
from .kinds import REALS, Family, ValueType, of_all
from .scalars import (
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
    converted,
    negated,
)
from .values import EXACT, checked_decimal, checked_int, checked_real
from .weights import letters_of

DIVISION_DIGITS = 4  # div_precision_increment
_PLAIN = {"+": add, "-": sub, "*": mul}
_EXACT = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply}
ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


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


def compared(operator: str, left: Scalar, right: Scalar) -> Scalar:
    kind = kinds.truth(is_nullable=left.type.is_nullable or right.type.is_nullable)
    one, other = comparable(operator, left, right)
    if operator == "<=>":
        kind = kinds.truth(is_nullable=False)
        return apply_any(kind, lambda a, b: int(a is b if None in (a, b) else a == b), one, other)
    decide = ORDERS[operator]
    return apply(kind, lambda a, b: int(decide(a, b)), one, other)


def junction(operator: str, operands: list[Scalar]) -> Scalar:
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


def inverted(operand: Scalar) -> Scalar:
    return apply(kinds.truth(is_nullable=operand.type.is_nullable), lambda value: int(not value), as_truth(operand))


def is_null(operand: Scalar) -> Scalar:
    return apply_any(kinds.truth(is_nullable=False), lambda value: int(value is None), operand)


def is_truth(operand: Scalar, wanted: bool) -> Scalar:
    return apply_any(kinds.truth(is_nullable=False), lambda value: int(value is wanted), as_truth(operand))


def between(value: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """MariaDB compares all three alike; here each pair must compare in the same way."""
    if value.kind in kinds.TEXTS and not {low.kind, high.kind} <= kinds.TEXTS:
        raise not_supported("BETWEEN of a text and something else")
    if (value.kind in kinds.NUMBERS) and ((low.kind in kinds.TEXTS) != (high.kind in kinds.TEXTS)):
        raise not_supported("BETWEEN a number and a text")
    expect_judged("BETWEEN", value, low, high)
    return junction("AND", [compared(">=", value, low), compared("<=", value, high)])


def member(value: Scalar, candidates: list[Scalar]) -> Scalar:
    found = {_family(candidate.type) for candidate in candidates if candidate.kind is not Family.NULL}
    if len(found) > 1:
        raise not_supported("IN of values of several types")
    kind = kinds.truth(is_nullable=value.type.is_nullable or any(one.type.is_nullable for one in candidates))
    if all(candidate.is_constant for candidate in candidates) and not value.is_constant:
        pairs = [comparable("IN", value, candidate) for candidate in candidates]
        keys = [other.value for _, other in pairs]
        known = frozenset(key for key in keys if key is not None)
        missing = None if None in keys else 0
        run = next((one.run for one, other in pairs if other.kind is not Family.NULL), value.run)

        def find(row: Row) -> int | None:
            wanted = run(row)
            return None if wanted is None else 1 if wanted in known else missing

        return Scalar(kind, find)
    either = junction("OR", [compared("=", value, candidate) for candidate in candidates])
    return Scalar(kind, either.run, either.is_constant)


def _family(kind: ValueType) -> str:
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
    if Family.NULL in (value.kind, pattern.kind):
        return apply(kind, lambda a, b: None, value, pattern)
    expect_judged("LIKE", value, pattern)
    subject, wanted = as_text(value), as_text(pattern)
    if Family.BYTES in (value.kind, pattern.kind):
        collation = "binary"
    else:
        texts = [one.type for one in (value, pattern) if one.kind in kinds.TEXTS]
        collation, _ = kinds.joint_collation(texts or [value.type])
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
    """Greedy, and back to the last % where that fails: work grows with the product of both lengths."""
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
    """CASE: `results` end with that of ELSE."""
    kind = of_all([result.type for result in results])
    runs = [cast_to(result, kind).run for result in results]
    tests = [as_truth(condition).run for condition in conditions]

    def run(row: Row) -> Any:
        for test, result in zip(tests, runs, strict=False):
            if test(row):
                return result(row)
        return runs[-1](row)

    return Scalar(kind, run, all(one.is_constant for one in (*conditions, *results)))


def first_known(*arguments: Scalar) -> Scalar:
    if arguments[0].type.kind is Family.NULL and not all(argument.is_constant for argument in arguments):
        raise not_supported("NULL as what COALESCE begins with")
    kind = of_all([argument.type for argument in arguments])
    if any(not argument.type.is_nullable for argument in arguments):
        kind = replace(kind, is_nullable=False)
    runs = [cast_to(argument, kind).run for argument in arguments]

    def run(row: Row) -> Any:
        for one in runs:
            value = one(row)
            if value is not None:
                return value
        return None

    return Scalar(kind, run, all(argument.is_constant for argument in arguments))


def cast_as(value: Scalar, cast: Cast, collation: str) -> Scalar:
    is_nullable = value.type.is_nullable
    match cast.kind:
        case "integer":
            return _to_integer(value, is_unsigned=cast.is_unsigned)
        case "decimal":
            digits, scale = cast.length or 10, cast.scale or 0
            if digits > 65 or scale > 38 or scale > digits:
                raise not_supported("CAST to such a DECIMAL")
            limit = Decimal(10) ** (digits - scale)

            def fit(number: Decimal | int) -> Decimal:
                if -limit < number < limit and abs(found := values.rounded(number, scale)) < limit:
                    return found
                most = values.EXACT.subtract(limit, Decimal(1).scaleb(-scale))
                return most if number > 0 else values.EXACT.minus(most)

            return apply(kinds.decimal(digits, scale, is_nullable=is_nullable), fit, as_exact(value))
        case "char" | "varchar":
            return _to_text(value, cast, collation)
    raise not_supported(f"CAST AS {cast.kind.upper()}")


def _to_integer(value: Scalar, *, is_unsigned: bool) -> Scalar:
    own = value.type
    if own.kind in kinds.MOMENTS and own.decimals:
        raise not_supported("CAST of a fraction of a second AS SIGNED")
    length = 21 if own.kind in kinds.REALS else own.length
    is_literal = value.is_constant and own.kind is Family.INT and value.value is not None
    if is_unsigned and not own.is_unsigned and length > 1 and (not is_literal or value.value < 0):
        length = 20
    elif not is_unsigned and own.kind is Family.TEXT:
        length = max(length, 2)
    kind = kinds.integer(20 if is_unsigned else 19, length=length, is_unsigned=is_unsigned, is_nullable=own.is_nullable)

    def fit(number: int) -> int:
        if is_unsigned:
            if own.kind in (Family.DECIMAL, *kinds.REALS) and number < 0:
                if own.kind is Family.DECIMAL:
                    return 0
                raise not_supported("a negative number AS UNSIGNED")
            return number % (1 << 64) if number < 1 << 64 else (1 << 64) - 1
        if number >= 1 << 63:
            if own.kind in (Family.INT, Family.TEXT):
                return min(number, (1 << 64) - 1) - (1 << 64)
            return (1 << 63) - 1
        return max(number, -(1 << 63))

    number = converted(value, values.leading_integer) if own.kind is Family.TEXT else as_integer(value)
    return apply(kind, fit, number)


def _to_text(value: Scalar, cast: Cast, collation: str) -> Scalar:
    own, size = value.type, cast.length
    if cast.charset is not None:
        raise not_supported("CAST to texts of such a kind")
    if own.kind in kinds.TEXTS and (own.charset or "utf8mb4") not in (collation.split("_")[0], "utf8mb3"):
        raise not_supported("CAST of texts of another character set")
    kind = kinds.text(own.length if size is None else size, collation, strength=2)
    return apply(kind, lambda text: text[:size], as_text(value))
