"""Expressions as functions of a row: typed once, then computed with MariaDB's conversions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from ibbmaster.dialogue.refusal import not_supported
from ibbmaster.event.rows.charset import encode_text
from ibbmaster.query import values
from ibbmaster.query.kinds import INTEGERS, MOMENTS, REALS, TEXTS, Kind, Type, joint_collation
from ibbmaster.query.values import EXACT
from ibbmaster.query.weights import key_of

Row = Sequence[Any]
Run = Callable[[Row], Any]


@dataclass(frozen=True, slots=True)
class Slot:
    """A value that SQLite gives: a column, an aggregate, a query in brackets. `block` is whose rows it belongs to."""

    sql: str
    type: Type
    block: int = 0
    table: str = ""  # of a column: the alias that SQLite knows its table by


@dataclass(frozen=True, slots=True)
class Scalar:
    """An expression; `run` takes the values of its slots. `value` is that of a constant, which needs none."""

    type: Type
    run: Run
    is_constant: bool = False
    slot: Slot | None = None  # where it is nothing else

    @property
    def value(self) -> Any:
        return self.run(())


def constant(kind: Type, value: Any) -> Scalar:
    return Scalar(kind, lambda row: value, is_constant=True)


def apply(kind: Type, function: Callable[..., Any], *arguments: Scalar) -> Scalar:
    """A function that is NULL where one of its arguments is."""
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


def apply_any(kind: Type, function: Callable[..., Any], *arguments: Scalar) -> Scalar:
    """A function that sees NULL."""
    runs = [argument.run for argument in arguments]
    if all(argument.is_constant for argument in arguments):
        return constant(kind, function(*(run(()) for run in runs)))
    return Scalar(kind, lambda row: function(*(run(row) for run in runs)))


# Conversions ----------------------------------------------------------------------------------


def _converted(scalar: Scalar, convert: Callable[[Any], Any] | None, kind: Type | None = None) -> Scalar:
    if convert is None:
        return scalar
    return apply(kind or scalar.type, convert, scalar)


def as_number(scalar: Scalar) -> Scalar:
    """As int, Decimal or float, as arithmetic takes it."""
    kind = scalar.type
    match kind.kind:
        case Kind.TEXT | Kind.BYTES:
            return _converted(scalar, values.real_of_text)
        case Kind.DATE | Kind.DATETIME:
            return _converted(scalar, values.packed_moment if not kind.decimals else values.exact_moment)
        case Kind.TIME:
            if not kind.decimals:
                return _converted(scalar, values.packed_duration)
            return _converted(scalar, lambda value: values.exact_duration(value, kind.decimals))
        case Kind.OPAQUE:
            raise not_supported("arithmetic with such values")
    return scalar


def as_exact(scalar: Scalar) -> Scalar:
    """As int or Decimal."""
    kind = scalar.type.kind
    if kind in REALS:
        return _converted(scalar, lambda value: Decimal(repr(value)))
    if kind in (Kind.TEXT, Kind.BYTES):
        return _converted(scalar, values.exact_of_text)
    return as_number(scalar)


def as_real(scalar: Scalar) -> Scalar:
    """As float."""
    number = as_number(scalar)
    return number if scalar.type.kind in REALS else _converted(number, float)


def as_integer(scalar: Scalar) -> Scalar:
    """As int, rounded."""
    kind = scalar.type.kind
    if kind in INTEGERS or kind in (Kind.ENUM, Kind.SET):
        return scalar
    if kind in REALS:
        return _converted(scalar, values.integer_of_real)
    if kind in (Kind.TEXT, Kind.BYTES):
        return _converted(scalar, values.integer_of_text)
    number = as_number(scalar)
    return _converted(number, lambda value: value if isinstance(value, int) else int(values.rounded(value, 0)))


def as_text(scalar: Scalar) -> Scalar:
    """As str; BYTES and BIT stay bytes."""
    kind = scalar.type
    if kind.kind in (Kind.TEXT, Kind.BYTES, Kind.DATE, Kind.OPAQUE, Kind.NULL):
        return scalar
    if kind.kind is Kind.DATETIME:
        return _converted(scalar, lambda value: values.fitted_moment(value, kind.decimals))
    return _converted(scalar, values.text_function(kind))


def as_truth(scalar: Scalar) -> Scalar:
    """As bool."""
    match scalar.type.kind:
        case Kind.DATE | Kind.DATETIME:
            return _converted(scalar, lambda value: values.packed_moment(value) != 0)
        case Kind.OPAQUE:
            raise not_supported("such values as conditions")
    return _converted(as_number(scalar), bool)


def as_moment(scalar: Scalar) -> Scalar:
    """As date, or date and time; NULL where a text or number is none.

    Raises:
        RefusedError: a duration, or what else is none at all.
    """
    kind = scalar.type.kind
    if kind in (Kind.DATE, Kind.DATETIME):
        return scalar
    if kind is Kind.TEXT:
        return apply_any(scalar.type, lambda value: None if value is None else _moment_or_refusal(value), scalar)
    if kind is Kind.INT and scalar.is_constant:
        return apply(scalar.type, _moment_of_number, scalar)
    if kind is Kind.NULL:
        return scalar
    raise not_supported("such values as dates")


def _moment_or_refusal(text: str) -> str:
    found = values.parsed_moment(text)
    if found is None:
        raise not_supported(f"{text[:40]!r} as a date")
    return found


def _moment_of_number(value: int) -> str:
    text = str(value)
    if len(text) == 8:
        return _moment_or_refusal(f"{text[:4]}-{text[4:6]}-{text[6:]}")
    if len(text) == 14:
        return _moment_or_refusal(f"{text[:4]}-{text[4:6]}-{text[6:8]} {text[8:10]}:{text[10:12]}:{text[12:]}")
    raise not_supported(f"the number {value} as a date")


def cast_to(scalar: Scalar, kind: Type) -> Scalar:
    """The value in a type that holds those of several expressions, as of CASE and UNION."""
    return Scalar(kind, _cast_run(scalar, kind), scalar.is_constant)


def _cast_run(scalar: Scalar, kind: Type) -> Run:
    own = scalar.type
    if own.kind is Kind.NULL:
        return scalar.run
    match kind.kind:
        case Kind.INT | Kind.YEAR:
            return as_integer(scalar).run
        case Kind.DECIMAL:
            exact = as_exact(scalar)
            return _converted(exact, lambda value: values.rounded(value, kind.decimals)).run
        case Kind.DOUBLE | Kind.FLOAT:
            return as_real(scalar).run
        case Kind.TEXT:
            found = as_text(scalar)
            return found.run
        case Kind.DATE:
            return scalar.run
        case Kind.DATETIME:
            return _converted(as_moment(scalar), lambda value: values.fitted_moment(value, kind.decimals)).run
    return scalar.run


# Comparisons ----------------------------------------------------------------------------------


def comparable(one: Scalar, other: Scalar) -> tuple[Scalar, Scalar]:
    """Two values so that Python compares them as MariaDB does.

    Raises:
        RefusedError: how is not told here.
    """
    if Kind.NULL in (one.type.kind, other.type.kind):
        return one, other
    one, other = as_shown(one), as_shown(other)
    for left, right, is_turned in ((one, other, False), (other, one, True)):
        found = _comparable(left, right)
        if found is not None:
            return (found[1], found[0]) if is_turned else found
    raise not_supported(f"comparing {one.type.kind.value} with {other.type.kind.value}")


def as_shown(scalar: Scalar) -> Scalar:
    """An exact number with no more digits than it shows, as it is compared and sorted."""
    kind = scalar.type
    if kind.kind is not Kind.DECIMAL or kind.fraction <= kind.decimals:
        return scalar
    return cast_to(scalar, replace(kind, fraction=-1))


def _comparable(one: Scalar, other: Scalar) -> tuple[Scalar, Scalar] | None:
    left, right = one.type.kind, other.type.kind
    if Kind.OPAQUE in (left, right):
        return None
    if left in MOMENTS:
        return _comparable_moments(one, other)
    if right in MOMENTS:
        return None
    texts = {Kind.TEXT, Kind.ENUM, Kind.SET}
    if left in texts and right in texts:
        collation, _ = joint_collation([one.type, other.type])
        check_letters(one, other)
        key = cached(key_of(collation))
        return _converted(as_text(one), key), _converted(as_text(other), key)
    if left is Kind.BYTES and right in (Kind.BYTES, Kind.TEXT):
        return _converted(as_text(one), _encode), _converted(as_text(other), _encode)
    if left in (Kind.ENUM, Kind.SET):
        return as_number(one), as_number(other)
    if left is Kind.YEAR and other.is_constant and other.value is not None and right is not Kind.YEAR:
        number = as_number(other)
        if not 1901 <= number.value <= 2155 and number.value != 0:
            raise not_supported("a YEAR beside another number")
        return one, number
    if left in INTEGERS and right is Kind.TEXT and other.is_constant and other.value is not None:
        return one, constant(other.type, _whole_or_real(other.value))
    if left in INTEGERS and right is Kind.BYTES and other.is_constant and other.value is not None:
        return one, constant(other.type, int.from_bytes(other.value[-8:], "big"))
    if right in (Kind.ENUM, Kind.SET):
        return None
    if left in (Kind.TEXT, Kind.BYTES) or right in (Kind.TEXT, Kind.BYTES) or left in REALS or right in REALS:
        if left in INTEGERS and one.type.digits > 15 and not one.is_constant:
            raise not_supported("a BIGINT beside a number that is not exact")
        return as_real(one), as_real(other)
    return one, other


def _comparable_moments(one: Scalar, other: Scalar) -> tuple[Scalar, Scalar] | None:
    left, right = one.type.kind, other.type.kind
    if left is Kind.TIME:
        if right is Kind.TIME:
            return one, other
        if right is Kind.TEXT and other.is_constant:
            text = other.value
            found = None if text is None else values.parsed_duration(text)
            if text is not None and found is None:
                raise not_supported(f"{text[:40]!r} beside a TIME")
            return one, constant(other.type, found)
        return None
    if right is Kind.TIME:
        return None
    if right is Kind.DATE and left is Kind.DATE:
        return one, other
    if right in (Kind.DATE, Kind.DATETIME) or other.is_constant:
        moment = as_moment(other)
        if moment.is_constant and left is Kind.DATE and moment.value is not None and len(moment.value) == 10:
            return one, moment
        if left == right and one.type.decimals == other.type.decimals:
            return one, other
        return _converted(one, values.whole_moment), _converted(moment, values.whole_moment)
    return None


def check_letters(one: Scalar, other: Scalar) -> None:
    """Whether a text can be compared in the character set of the other's column.

    Raises:
        RefusedError: a server would compare both in another one.
    """
    for column, text in ((one, other), (other, one)):
        charset = column.type.charset
        if charset in (None, "utf8mb4") or text.type.charset == charset:
            continue
        if not text.is_constant:
            if text.type.charset is None and text.type.strength <= 2:
                raise not_supported("texts of several character sets together")
            continue
        value = as_text(text).value
        if isinstance(value, str) and not value.isascii():
            try:
                encode_text(value, str(charset))
            except ValueError:
                raise not_supported(f"a letter that {charset} does not have") from None


def _encode(value: str | bytes) -> bytes:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def _whole_or_real(text: str) -> int | float:
    match = values._INTEGER.fullmatch(text.rstrip())
    return int(match[1]) if match is not None else values.real_of_text(text)


KEYS_MAX = 10_000  # texts of which keys are kept


def cached(key: Callable[[str], bytes]) -> Callable[[str], bytes]:
    """The same, which remembers short texts."""
    known: dict[str, bytes] = {}

    def find(text: str) -> bytes:
        found = known.get(text)
        if found is None:
            found = key(text)
            if len(known) < KEYS_MAX and len(text) < 100:
                known[text] = found
        return found

    return find


def sort_key(scalar: Scalar) -> Scalar:
    """What SQLite orders and groups by, and compares: bytes or numbers that compare as the values do.

    Raises:
        RefusedError: how they compare is not told here.
    """
    kind = scalar.type
    match kind.kind:
        case Kind.TEXT:
            key = cached(key_of(kind.collation or ""))
            return Scalar(Type(kind=Kind.BYTES), _converted(scalar, key).run, scalar.is_constant)
        case Kind.OPAQUE:
            raise not_supported("ordering or grouping such values")
        case Kind.DOUBLE | Kind.FLOAT:
            return Scalar(kind, _converted(scalar, lambda value: value + 0.0).run, scalar.is_constant)
        case Kind.DATETIME if not scalar.slot:
            return Scalar(
                kind,
                _converted(scalar, lambda value: values.fitted_moment(value, kind.decimals)).run,
                scalar.is_constant,
            )
    return scalar


def is_ordered_by_sqlite(kind: Type) -> bool:
    """Whether values compare in SQLite as they are."""
    return kind.kind not in (Kind.TEXT, Kind.OPAQUE)


def is_text(kind: Type) -> bool:
    return kind.kind in TEXTS


def negated(value: Decimal | float | int) -> Decimal | float | int:
    return EXACT.minus(value) if isinstance(value, Decimal) else -value
