"""Values of a column in another type, as ALTER TABLE converts them; none but digits that every server rounds alike may
change. There is no cast where a time zone, the day or the printed form of a number matters."""

import decimal
import math
import re
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal

from ibbmaster.replication.event.column_types.decimals import DIGITS_MAX
from ibbmaster.replication.event.column_types.integer import YEAR_ZERO, integer_range
from ibbmaster.replication.event.column_types.registry import kind_of
from ibbmaster.replication.event.column_types.strings import bytes_max, characters_max
from ibbmaster.replication.event.rows.changes import ABSENT, RawValue
from ibbmaster.replication.event.rows.charset import encode_text
from ibbmaster.replication.event.rows.column import Column, ValueKind
from ibbmaster.replication.event.rows.value import Value

Convert = Callable[[Value], Value]
"""Takes a value that is not NULL. Raises ValueError: the other type lacks it."""

ZERO_CLOCK = " 00:00:00"
_EXACT = decimal.Context(prec=4 * DIGITS_MAX, rounding=decimal.ROUND_HALF_UP)
_SINGLE = struct.Struct("<f")
_WHOLE_DOUBLE_MAX = 1 << 53
_Kind = ValueKind
_COUNTS = (_Kind.INTEGER, _Kind.YEAR, _Kind.BIT)
_CLOCKS = (_Kind.TIME, _Kind.DATETIME, _Kind.TIMESTAMP)
_SHOWN = (_Kind.TEXT, _Kind.ENUM, _Kind.SET, _Kind.DATE, _Kind.TIME, _Kind.DATETIME)
_PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?", re.ASCII)


def unchanged(value: Value) -> Value:
    return value


def converted(convert: Convert, value: Value) -> Value:
    return value if value is None or value is ABSENT or isinstance(value, RawValue) else convert(value)


def cast_of(old: Column, new: Column) -> Convert | None:
    """None: it is not known."""
    match old.kind, new.kind:
        case kind, _Kind.INTEGER | _Kind.YEAR | _Kind.BIT if kind in _COUNTS:
            return _bounded(new)
        case _Kind.DECIMAL | _Kind.FLOAT, _Kind.INTEGER | _Kind.YEAR | _Kind.BIT:
            whole, bounded = _rounded if old.kind is _Kind.DECIMAL else _whole, _bounded(new)
            return lambda value: bounded(whole(value))
        case kind, _Kind.DECIMAL if kind in (*_COUNTS, _Kind.DECIMAL):
            return _with_scale(new)
        case _Kind.FLOAT, _Kind.DECIMAL:
            exact = _with_scale(new)
            return lambda value: exact(_whole(value))
        case _Kind.INTEGER | _Kind.YEAR | _Kind.DECIMAL | _Kind.FLOAT, _Kind.FLOAT:
            return _floating(old, new)
        case kind, same if kind is same and kind in _CLOCKS:
            return _with_digits(old.scale, new.scale)
        case _Kind.DATE, _Kind.DATETIME:
            fraction = "." + "0" * new.scale if new.scale else ""
            return lambda value: f"{value}{ZERO_CLOCK}{fraction}"
        case _Kind.DATETIME, _Kind.DATE:
            return lambda value: str(value).partition(" ")[0]
        case _Kind.ENUM, _Kind.ENUM:
            return _labelled(new.labels or (), also="")
        case _Kind.SET, _Kind.SET:
            return _in_order(new.labels or ())
        case _Kind.TEXT, _Kind.ENUM:
            return _labelled(new.labels or ())
        case kind, _Kind.TEXT if kind in _SHOWN or kind_of(old).is_shown_as_text:
            return as_text(new)
        case _Kind.TEXT, _Kind.INTEGER | _Kind.DECIMAL:
            exact = _bounded(new) if new.kind is _Kind.INTEGER else _with_scale(new)
            return lambda value: exact(_number(value, new.scale))
        case _Kind.TEXT, _Kind.BINARY:
            charset, as_binary = old.charset or "utf8mb4", _binary(new)
            return lambda value: as_binary(encode_text(str(value), charset))
        case _Kind.BINARY, _Kind.BINARY:
            return _binary(new)
        case kind, same if kind is same and (old.type, old.size) == (new.type, new.size):
            return unchanged
    return None


def _bounded(new: Column) -> Convert:
    match new.kind:
        case _Kind.INTEGER:
            low, high = integer_range(new)
        case _Kind.YEAR:
            low, high = YEAR_ZERO + 1, YEAR_ZERO + 255
        case _:
            low, high = 0, (1 << new.size) - 1

    def convert(value: Value) -> Value:
        assert isinstance(value, int)
        if not low <= value <= high and (value or new.kind is not _Kind.YEAR):
            raise ValueError(f"{value} is none of {low} to {high}")
        return value

    return convert


def _rounded(value: Value) -> int:
    assert isinstance(value, Decimal)
    return int(value.to_integral_value(context=_EXACT))


def _whole(value: Value) -> int:
    assert isinstance(value, float)
    if not value.is_integer() or abs(value) > _WHOLE_DOUBLE_MAX:
        raise ValueError(f"{value} is no whole number of 53 bits")
    return int(value)


def _number(value: Value, scale: int) -> Decimal | int:
    text = str(value)
    if _PLAIN_NUMBER.fullmatch(text) is None or len(text.partition(".")[2]) > scale:
        raise ValueError(f"{text[:60]!r} is no plain number of {scale} digits behind the point")
    return Decimal(text) if scale else int(text)


def _with_scale(new: Column) -> Convert:
    unit, limit = Decimal(1).scaleb(-new.scale), Decimal(10) ** (new.size - new.scale)

    def convert(value: Value) -> Value:
        number = Decimal(value).quantize(unit, context=_EXACT)  # type: ignore[arg-type]
        if number.copy_abs() >= limit or (number < 0 and new.is_unsigned):
            raise ValueError(f"{value} does not fit into DECIMAL({new.size},{new.scale})")
        return number if number else number.copy_abs()

    return convert


def _floating(old: Column, new: Column) -> Convert | None:
    """Numbers as FLOAT or DOUBLE; those with fixed digits take whole numbers alone, which need no rounding."""
    is_short = new.is_single_precision
    loses_sign = new.is_unsigned and not old.is_unsigned
    if (old.type, old.size, old.scale) == (new.type, new.size, new.scale) and not loses_sign:
        return unchanged
    limit = 10.0 ** (new.size - new.scale) if new.size else math.inf

    def convert(value: Value) -> Value:
        number = float(value)  # type: ignore[arg-type]
        if new.is_unsigned and number < 0:
            raise ValueError(f"{value} is negative")
        if abs(number) >= limit or (new.size and not number.is_integer()):
            raise ValueError(f"{value} is rounded")
        try:
            return float(_SINGLE.unpack(_SINGLE.pack(number))[0]) if is_short else number
        except OverflowError:
            raise ValueError(f"{value} does not fit into FLOAT") from None

    return convert


def _with_digits(old: int, new: int) -> Convert:
    """With other digits of a second; sql_mode decides whether lost ones are cut off or rounded."""
    if new == old:
        return unchanged
    if new > old:
        zeros = ("" if old else ".") + "0" * (new - old)
        return lambda value: f"{value}{zeros}"
    kept = new - old - (not new)

    def convert(value: Value) -> Value:
        text = str(value)
        if text[kept:].strip("0."):
            raise ValueError(f"{text} has more than {new} digits of a second")
        return text[:kept]

    return convert


def _labelled(labels: Sequence[str], also: str | None = None) -> Convert:
    known = frozenset(labels) | ({also} if also is not None else set())

    def convert(value: Value) -> Value:
        if value not in known:
            raise ValueError(f"{value!r} is no label")
        return value

    return convert


def _in_order(labels: Sequence[str]) -> Convert:
    def convert(value: Value) -> Value:
        held = str(value).split(",") if value else []
        unknown = [one for one in held if one not in labels]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no label")
        return ",".join(label for label in labels if label in held)

    return convert


def as_text(new: Column) -> Convert:
    charset, most, characters = new.charset or "utf8mb4", bytes_max(new), characters_max(new)
    is_trimmed = new.is_fixed_length  # CHAR has no spaces at its end

    def convert(value: Value) -> Value:
        text = str(value).rstrip(" ") if is_trimmed else str(value)
        size = len(encode_text(text, charset))
        if size > most or (characters is not None and len(text) > characters):
            raise ValueError(f"{text[:60]!r} is too long")
        return text

    return convert


def _binary(new: Column) -> Convert:
    most = bytes_max(new)
    size = new.size if new.is_fixed_length else 0

    def convert(value: Value) -> Value:
        assert isinstance(value, bytes)
        if len(value) > most:
            raise ValueError(f"{len(value)} bytes are too long")
        return value.ljust(size, b"\0")

    return convert
