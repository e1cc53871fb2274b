"""What operators make of values: comparison, logic, LIKE, CASE."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ibbmaster.expr import kinds
from ibbmaster.expr.comparing import check_letters, comparable
from ibbmaster.expr.judged import expect_judged
from ibbmaster.expr.kinds import Kind, Type, of_all
from ibbmaster.expr.scalars import Row, Scalar, apply, apply_any, as_text, as_truth, cast_to
from ibbmaster.expr.weights import letters_of
from ibbmaster.wire.refusal import RefusedError, not_supported

ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}


def compared(operator: str, left: Scalar, right: Scalar) -> Scalar:
    """A comparison: 1, 0 or NULL."""
    kind = kinds.truth(is_nullable=left.type.is_nullable or right.type.is_nullable)
    one, other = comparable(operator, left, right)
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
    expect_judged("BETWEEN", value, low, high)
    return junction("AND", [compared(">=", value, low), compared("<=", value, high)])


def member(value: Scalar, candidates: list[Scalar]) -> Scalar:
    """IN."""
    found = {_family(candidate.type) for candidate in candidates if candidate.type.kind is not Kind.NULL}
    if len(found) > 1:
        raise not_supported("IN of values of several types")
    kind = kinds.truth(is_nullable=value.type.is_nullable or any(one.type.is_nullable for one in candidates))
    if all(candidate.is_constant for candidate in candidates) and not value.is_constant:
        pairs = [comparable("IN", value, candidate) for candidate in candidates]
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
    expect_judged("LIKE", value, pattern)
    subject, wanted = as_text(value), as_text(pattern)
    if Kind.OPAQUE in (value.type.kind, pattern.type.kind) or Kind.BIT in (value.type.kind, pattern.type.kind):
        raise not_supported("LIKE of such values")
    if Kind.BYTES in (value.type.kind, pattern.type.kind):
        collation = "binary"
    else:
        texts = [one.type for one in (value, pattern) if one.type.kind in kinds.TEXTS]
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
    if arguments[0].type.kind is Kind.NULL and not all(argument.is_constant for argument in arguments):
        raise not_supported("NULL as what COALESCE begins with")
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
