"""Expressions as typed functions of a row, with MariaDB's conversions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ibbmaster.replication.wire.refusal import not_supported
from . import values
from .kinds import INTEGERS, REALS, Family, ValueType
from .values import EXACT

Row = Sequence[Any]
Run = Callable[[Row], Any]


@dataclass(frozen=True, slots=True)
class SqlValue:
    sql: str
    type: ValueType
    table: str = ""  # of a column: the name of its table in SQLite


@dataclass(frozen=True, slots=True)
class Scalar:
    """An expression; `run` takes the values of its slots, of which a constant needs none."""

    type: ValueType
    run: Run
    is_constant: bool = False
    slot: SqlValue | None = None  # of an expression that is nothing else
    literal: str = ""  # the kind of a literal

    @property
    def kind(self) -> Family:
        return self.type.kind

    @property
    def value(self) -> Any:
        return self.run(())


def constant(kind: ValueType, value: Any, literal: str = "") -> Scalar:
    return Scalar(kind, lambda row: value, is_constant=True, literal=literal)


def apply(kind: ValueType, function: Callable[..., Any], *arguments: Scalar) -> Scalar:
    """NULL if an argument is."""
    if all(argument.is_constant for argument in arguments):
        given = [argument.value for argument in arguments]
        return constant(kind, None if any(value is None for value in given) else function(*given))
    runs = [argument.run for argument in arguments]
    if len(runs) == 1:
        (only,) = runs

        def run_one(row: Row) -> Any:
            value = only(row)
            return None if value is None else function(value)

        return Scalar(kind, run_one)
    if len(runs) == 2:
        first, second = runs

        def run_two(row: Row) -> Any:
            left = first(row)
            if left is None:
                return None
            right = second(row)
            return None if right is None else function(left, right)

        return Scalar(kind, run_two)

    def run(row: Row) -> Any:
        found = []
        for one in runs:
            value = one(row)
            if value is None:
                return None
            found.append(value)
        return function(*found)

    return Scalar(kind, run)


def apply_any(kind: ValueType, function: Callable[..., Any], *arguments: Scalar) -> Scalar:
    """As `apply`, but the function sees NULL."""
    runs = [argument.run for argument in arguments]
    if all(argument.is_constant for argument in arguments):
        return constant(kind, function(*(run(()) for run in runs)))
    return Scalar(kind, lambda row: function(*(run(row) for run in runs)))


def converted(scalar: Scalar, convert: Callable[[Any], Any]) -> Scalar:
    return apply(scalar.type, convert, scalar)


def as_number(scalar: Scalar) -> Scalar:
    kind = scalar.type
    match kind.kind:
        case Family.TEXT | Family.BYTES:
            return converted(scalar, values.real_of_text)
        case Family.DATE | Family.DATETIME:
            return converted(scalar, values.packed_moment if not kind.decimals else values.exact_moment)
        case Family.TIME:
            if not kind.decimals:
                return converted(scalar, values.packed_duration)
            return converted(scalar, lambda value: values.exact_duration(value, kind.decimals))
    return scalar


def as_exact(scalar: Scalar) -> Scalar:
    kind = scalar.kind
    if kind in REALS:
        return converted(scalar, lambda value: Decimal(repr(value)))
    if kind in (Family.TEXT, Family.BYTES):
        return converted(scalar, values.exact_of_text)
    return as_number(scalar)


def as_real(scalar: Scalar) -> Scalar:
    number = as_number(scalar)
    return number if scalar.kind in REALS else converted(number, float)


def as_integer(scalar: Scalar) -> Scalar:
    """As int, rounded."""
    kind = scalar.kind
    if kind in INTEGERS or kind in (Family.ENUM, Family.SET):
        return scalar
    if kind in REALS:
        return converted(scalar, round)  # half to even, as rint() does
    if kind in (Family.TEXT, Family.BYTES):
        return converted(scalar, values.integer_of_text)
    number = as_number(scalar)
    return converted(number, lambda value: value if isinstance(value, int) else int(values.rounded(value, 0)))


def as_text(scalar: Scalar) -> Scalar:
    """As str; BYTES and BIT stay bytes."""
    kind = scalar.type
    if kind.kind in (Family.TEXT, Family.BYTES, Family.DATE, Family.OPAQUE, Family.NULL):
        return scalar
    if kind.kind is Family.DATETIME:
        return converted(scalar, lambda value: values.fitted_moment(value, kind.decimals))
    return converted(scalar, values.text_function(kind))


def as_truth(scalar: Scalar) -> Scalar:
    if scalar.kind in (Family.DATE, Family.DATETIME):
        return converted(scalar, lambda value: values.packed_moment(value) != 0)
    return converted(as_number(scalar), bool)


def as_moment(scalar: Scalar) -> Scalar:
    match scalar.kind:
        case Family.DATE | Family.DATETIME | Family.NULL:
            return scalar
        case Family.TEXT:
            return converted(scalar, _moment_or_refusal)
        case Family.INT if scalar.is_constant:
            return converted(scalar, _moment_of_number)
    raise not_supported("such values as dates")


def _moment_or_refusal(text: str) -> str:
    found = values.parsed_moment(text)
    if found is None:
        raise not_supported(f"{text[:40]!r} as a date")
    return found


def _moment_of_number(value: int) -> str:
    text = str(value)
    if not value:
        return "0000-00-00"
    if len(text) == 8:
        return _moment_or_refusal(f"{text[:4]}-{text[4:6]}-{text[6:]}")
    if len(text) == 14:
        return _moment_or_refusal(f"{text[:4]}-{text[4:6]}-{text[6:8]} {text[8:10]}:{text[10:12]}:{text[12:]}")
    raise not_supported(f"the number {value} as a date")


def cast_to(scalar: Scalar, kind: ValueType) -> Scalar:
    found = scalar
    match kind.kind:
        case _ if scalar.kind is Family.NULL:
            pass
        case Family.INT | Family.YEAR:
            found = as_integer(scalar)
        case Family.DECIMAL:
            found = converted(as_exact(scalar), lambda value: values.at_most(value, kind.decimals))
        case Family.DOUBLE | Family.FLOAT:
            found = as_real(scalar)
        case Family.TEXT:
            found = as_text(scalar)
        case Family.DATETIME:
            found = converted(as_moment(scalar), lambda value: values.fitted_moment(value, kind.decimals))
    return Scalar(kind, found.run, scalar.is_constant)


def negated(value: Decimal | float | int) -> Decimal | float | int:
    return EXACT.minus(value) if isinstance(value, Decimal) else -value
