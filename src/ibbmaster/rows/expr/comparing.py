"""Values in forms that Python and SQLite compare as MariaDB compares the values."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from ibbmaster.replication.event.column_types.content import FixedContent
from ibbmaster.replication.event.column_types.registry import BY_NAME
from ibbmaster.replication.event.rows.charset import encode_text
from ibbmaster.replication.wire.refusal import not_supported
from ibbmaster.sqltext.moment import parse_duration
from . import values
from .judged import expect_judged
from .kinds import INTEGERS, MOMENTS, REALS, TEXTS, Family, ValueType, joint_collation
from .scalars import Scalar, as_moment, as_number, as_real, as_text, cast_to, constant, converted
from .weights import key_of


def comparable(operator: str, one: Scalar, other: Scalar) -> tuple[Scalar, Scalar]:
    expect_judged(operator, one, other)
    if Family.NULL in (one.kind, other.kind):
        return one, other
    one, other = as_shown(one), as_shown(other)
    for left, right, is_turned in ((one, other, False), (other, one, True)):
        found = _comparable(left, right)
        if found is not None:
            return (found[1], found[0]) if is_turned else found
    raise not_supported(f"comparing {one.kind.value} with {other.kind.value}")


def as_shown(scalar: Scalar) -> Scalar:
    """An exact number without digits that it does not show, as it is compared and sorted."""
    kind = scalar.type
    if kind.kind is not Family.DECIMAL or kind.fraction <= kind.decimals:
        return scalar
    return cast_to(scalar, replace(kind, fraction=-1))


def _comparable(one: Scalar, other: Scalar) -> tuple[Scalar, Scalar] | None:
    left, right = one.kind, other.kind
    if Family.OPAQUE in (left, right):
        return _comparable_words(one, other)
    if left in MOMENTS:
        return _comparable_moments(one, other)
    if right in MOMENTS:
        return None
    if left in TEXTS and right in TEXTS:
        collation, _ = joint_collation([one.type, other.type])
        check_letters(one, other)
        key = cached(key_of(collation))
        return converted(as_text(one), key), converted(as_text(other), key)
    if left is Family.BYTES and right in (Family.BYTES, Family.TEXT):
        return converted(as_text(one), _encode), converted(as_text(other), _encode)
    if left in (Family.ENUM, Family.SET):
        return as_number(one), as_number(other)
    if left is Family.YEAR and other.is_constant and other.value is not None and right is not Family.YEAR:
        number = as_number(other)
        if not 1901 <= number.value <= 2155 and number.value != 0:
            raise not_supported("a YEAR beside another number")
        return one, number
    if left in (*INTEGERS, Family.DECIMAL) and right in (Family.DECIMAL, *REALS) and other.is_constant:
        check_digits(one.type.decimals, other.value)
    if left in INTEGERS and right is Family.TEXT and other.is_constant and other.value is not None:
        return one, constant(other.type, _whole_or_real(other.value))
    if left in INTEGERS and right is Family.BYTES and other.is_constant and other.value is not None:
        return one, constant(other.type, int.from_bytes(other.value[-8:], "big"))
    if right in (Family.ENUM, Family.SET):
        return None
    if left in (Family.TEXT, Family.BYTES) or right in (Family.TEXT, Family.BYTES) or left in REALS or right in REALS:
        if left in INTEGERS and one.type.digits > 15 and not one.is_constant:
            raise not_supported("a BIGINT beside a number that is not exact")
        return as_real(one), as_real(other)
    return one, other


def _comparable_words(one: Scalar, other: Scalar) -> tuple[Scalar, Scalar] | None:
    kind = None if one.type.sql is None else BY_NAME[one.type.sql.word]
    if not isinstance(kind, FixedContent) or other.kind is not Family.TEXT or not other.is_constant:
        return None
    try:
        return converted(one, kind.kept), converted(other, kind.kept)
    except ValueError:
        raise not_supported(f"{other.value[:60]!r} beside {kind.word}") from None


def _comparable_moments(one: Scalar, other: Scalar) -> tuple[Scalar, Scalar] | None:
    left, right = one.kind, other.kind
    if left is Family.TIME:
        if right is Family.TIME:
            return one, other
        if right is Family.TEXT and other.is_constant:
            text = other.value
            found = None if text is None else parse_duration(text)
            if text is not None and found is None:
                raise not_supported(f"{text[:40]!r} beside a TIME")
            check_digits(one.type.decimals, None if found is None else Decimal(found) / values.SECOND)
            return one, constant(other.type, found)
        return None
    if right is Family.TIME:
        return None
    if right is Family.DATE and left is Family.DATE:
        return one, other
    if right in (Family.DATE, Family.DATETIME) or other.is_constant:
        moment = as_moment(other)
        if moment.is_constant and moment.value is not None and left is Family.DATETIME:
            check_digits(one.type.decimals, values.exact_moment(moment.value))
        if moment.is_constant and left is Family.DATE and moment.value is not None and len(moment.value) == 10:
            return one, moment
        if left == right and one.type.decimals == other.type.decimals:
            return one, other
        return converted(one, values.whole_moment), converted(moment, values.whole_moment)
    return None


def check_digits(decimals: int, value: Decimal | float | None) -> None:
    """Raises RefusedError: an index takes a constant with more digits than its column for another one."""
    exact = None if value is None else Decimal(repr(value) if isinstance(value, float) else value)
    if exact is not None and exact != values.rounded(exact, decimals):
        raise not_supported(f"{value} beside a column of {decimals} digits after the point")


def check_letters(one: Scalar, other: Scalar) -> None:
    """Raises RefusedError: a server compares in another character set than that of a column."""
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
    match = values.INTEGER.fullmatch(text.rstrip())
    return int(match[1]) if match is not None else values.real_of_text(text)


KEYS_MAX = 10_000  # kept for short texts


def cached(key: Callable[[str], bytes]) -> Callable[[str], bytes]:
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
    """Bytes or numbers that compare as the values do, for SQLite."""
    kind = scalar.type
    match kind.kind:
        case Family.TEXT:
            key = cached(key_of(kind.collation or ""))
            return Scalar(ValueType(kind=Family.BYTES), converted(scalar, key).run, scalar.is_constant)
        case Family.OPAQUE:
            raise not_supported("ordering or grouping such values")
        case Family.DOUBLE | Family.FLOAT:
            return Scalar(kind, converted(scalar, lambda value: value + 0.0).run, scalar.is_constant)
        case Family.DATETIME if not scalar.slot:
            fitted = converted(scalar, lambda value: values.fitted_moment(value, kind.decimals))
            return Scalar(kind, fitted.run, scalar.is_constant)
    return scalar


def is_ordered_by_sqlite(kind: ValueType) -> bool:
    return kind.kind not in (Family.TEXT, Family.OPAQUE)
