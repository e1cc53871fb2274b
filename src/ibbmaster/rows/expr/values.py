"""Values of expressions in Python, as numbers, texts and moments, in SQLite and for clients."""

import decimal
import functools
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from ibbmaster.replication.event.column_types.floating import FLOAT_DIGITS, fixed_text, floating_text
from ibbmaster.replication.event.rows.charset import encoded
from ibbmaster.replication.wire.refusal import RefusedError, not_supported
from ibbmaster.sqltext.moment import civil_date, days_of, duration_text
from ibbmaster.versions import Difference
from .kinds import FLOATING, PRECISION_MAX, REALS, Family, ValueType
from .session_facts import QuerySession

Value = Any
Convert = Callable[[Value], Value]

EXACT = decimal.Context(prec=250, rounding=decimal.ROUND_HALF_UP, traps=[], Emin=-999, Emax=999)
WIDE = 1 << 63
EXACT_DIGITS = 15  # that any floating number holds
DECIMAL_BYTES = 28
BIAS = 1 << (8 * DECIMAL_BYTES - 1)
_WORD = 9  # decimal digits that a server keeps together
_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)", re.ASCII)
INTEGER = re.compile(r"\s*([+-]?\d+)", re.ASCII)
_MOMENT = re.compile(
    r"\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T]+(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6})\d*)?)?)?\s*", re.ASCII
)
SECOND = 10**6
FIXED_MAX = 1e17  # of floating numbers with a fixed point
REAL_MAX = 1.7976931348623157e308


def out_of_range(what: str) -> RefusedError:
    return RefusedError(1690, "22003", f"{what} value is out of range")


def checked_int(value: int, is_unsigned: bool) -> int:
    if (0 <= value < 1 << 64) if is_unsigned else (-WIDE <= value < WIDE):
        return value
    raise out_of_range("BIGINT UNSIGNED" if is_unsigned else "BIGINT")


def checked_real(value: float) -> float:
    if value - value != 0:
        raise out_of_range("DOUBLE")
    return value


def scale_of(value: Decimal | int) -> int:
    if isinstance(value, int):
        return 0
    exponent = value.as_tuple().exponent
    return max(-exponent, 0) if isinstance(exponent, int) else 0


@functools.cache
def _unit(decimals: int) -> Decimal:
    return Decimal(1).scaleb(-decimals)


def rounded(value: Decimal | int, decimals: int, rounding: str = decimal.ROUND_HALF_UP) -> Decimal:
    return Decimal(value).quantize(_unit(decimals), rounding=rounding, context=EXACT)


def at_most(value: Decimal | int, decimals: int) -> Decimal:
    return Decimal(value) if scale_of(value) <= decimals else rounded(value, decimals)


def checked_decimal(value: Decimal) -> Decimal:
    if value.adjusted() + 1 > PRECISION_MAX and value:
        raise out_of_range("DECIMAL")
    return value


def scale_of_quotient(first: int, second: int, more: int) -> int:
    """Digits behind the point of a quotient. Source: MariaDB 12.3, decimal.c, do_div_mod()."""
    whole = -(-first // _WORD) * _WORD, -(-second // _WORD) * _WORD
    more = max(more - (whole[0] - first + whole[1] - second), 0)
    return -(-(whole[0] + whole[1] + more) // _WORD) * _WORD


def divided(left: Decimal | int, right: Decimal | int, more: int) -> Decimal | None:
    """With the digits that a server computes; it cuts others off."""
    if not right:
        return None
    digits = scale_of_quotient(scale_of(left), scale_of(right), more)
    numerator = EXACT.scaleb(Decimal(left), digits)
    return EXACT.scaleb(EXACT.divide_int(numerator, Decimal(right)), -digits).quantize(_unit(digits), context=EXACT)


def number_text(value: float, decimals: int) -> str:
    return floating_text(value, digits=None) if decimals >= FLOATING else fixed_text(value, decimals)


def text_function(kind: ValueType) -> Convert:
    """Of BYTES and BIT it makes bytes."""
    decimals = kind.decimals
    width = kind.column.length if kind.sql is not None and kind.sql.is_zerofill and kind.column is not None else 0
    match kind.kind:
        case Family.INT:
            return (lambda value: str(value).rjust(width, "0")) if width else str
        case Family.YEAR:
            return (lambda value: f"{value:04}") if kind.length != 2 else (lambda value: f"{value % 100:02}")
        case Family.DECIMAL:
            return lambda value: format(rounded(value, decimals), "f").rjust(width, "0")
        case Family.DOUBLE:
            return lambda value: number_text(value, decimals).rjust(width, "0")
        case Family.FLOAT:
            if decimals < FLOATING:
                return lambda value: fixed_text(value, decimals).rjust(width, "0")
            return lambda value: floating_text(value, digits=FLOAT_DIGITS).rjust(width, "0")
        case Family.ENUM:
            labels = ("", *kind.labels)
            return lambda value: labels[value]
        case Family.SET:
            return lambda value: ",".join(label for number, label in enumerate(kind.labels) if value >> number & 1)
        case Family.TIME:
            return lambda value: duration_text(value, decimals)
        case Family.BIT:
            size = (kind.length + 7) // 8
            return lambda value: value.to_bytes(size, "big")
    return lambda value: value


def _number_in(text: str | bytes) -> str:
    match = _NUMBER.match(text if isinstance(text, str) else text.decode("latin-1"))
    return "0" if match is None else match[1]


def real_of_text(text: str | bytes) -> float:
    return max(min(float(_number_in(text)), REAL_MAX), -REAL_MAX)


def exact_of_text(text: str | bytes) -> Decimal:
    return Decimal(_number_in(text))


def integer_of_text(text: str | bytes) -> int:
    return int(EXACT.to_integral_value(exact_of_text(text)))


def leading_integer(text: str) -> int:
    """Of the first digits: CAST sees no point and no exponent."""
    match = INTEGER.match(text)
    return 0 if match is None else int(match[1])


def packed_moment(value: str) -> int:
    """20240229, 20240229123456"""
    return int(re.sub(r"[-: ]", "", value.partition(".")[0]))


def exact_moment(value: str) -> Decimal:
    whole, _, fraction = value.partition(".")
    return Decimal(f"{packed_moment(whole)}.{fraction or 0}")


def packed_duration(value: int) -> int:
    sign, seconds = (-1, -value // SECOND) if value < 0 else (1, value // SECOND)
    return sign * (seconds // 3600 * 10000 + seconds // 60 % 60 * 100 + seconds % 60)


def exact_duration(value: int, decimals: int) -> Decimal:
    sign = -1 if value < 0 else 1
    return sign * (Decimal(abs(packed_duration(value))) + Decimal(abs(value) % SECOND).scaleb(-6)).quantize(
        _unit(decimals), context=EXACT
    )


def parsed_moment(text: str) -> str | None:
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    year, month, day = (int(match[number]) for number in (1, 2, 3))
    if month > 12 or day > 31 or (month and day and civil_date(days_of(year, month, day))[1] != month):
        return None
    date = f"{year:04}-{month:02}-{day:02}"
    if match[4] is None:
        return date
    clock = tuple(int(match[number] or 0) for number in (4, 5, 6))
    if clock[0] > 23 or clock[1] > 59 or clock[2] > 59:
        return None
    fraction = "." + match[7].ljust(6, "0") if match[7] else ""
    return f"{date} {clock[0]:02}:{clock[1]:02}:{clock[2]:02}{fraction}"


def whole_moment(value: str) -> str:
    if len(value) == 10:
        return value + " 00:00:00.000000"
    return (value + ("" if "." in value else ".")).ljust(26, "0")


def fitted_moment(value: str, decimals: int) -> str:
    """With this many digits of a second, others cut off."""
    return whole_moment(value)[: 20 + decimals if decimals else 19]


def microseconds_of(value: str) -> int:
    """Since 1970."""
    whole = whole_moment(value)
    year, month, day, hour, minute, second, fraction = map(int, re.split(r"[-: .]", whole))
    return ((days_of(year, month, day) * 24 + hour) * 60 + minute) * 60 * SECOND + second * SECOND + fraction


def store_decimal(value: Decimal | int, decimals: int) -> bytes:
    """Bytes in the order of numbers with this many digits after the point."""
    whole = int(EXACT.scaleb(rounded(value, decimals), decimals))
    return (whole + BIAS).to_bytes(DECIMAL_BYTES, "big")


def storing(kind: ValueType) -> Convert | None:
    if kind.kind is Family.DECIMAL:
        decimals = kind.scale
        return lambda value: store_decimal(value, decimals)
    if kind.is_wide:
        return lambda value: value - WIDE
    return None


def loading(kind: ValueType) -> Convert | None:
    """The inverse of `storing`."""
    if kind.kind is Family.DECIMAL:
        decimals = kind.scale
        return lambda data: Decimal(int.from_bytes(data, "big") - BIAS).scaleb(-decimals, EXACT)
    if kind.is_wide:
        return lambda value: value + WIDE
    return None


def shower(kind: ValueType, session: QuerySession) -> Callable[[Any], bytes] | None:
    """Makes texts of values from SQLite, if needed."""
    load = loading(kind)
    charset = session.charset
    target = charset if charset not in (None, "binary") else kind.charset or "utf8mb4"
    if kind.kind is Family.NULL:
        return None
    if kind.kind is Family.OPAQUE:
        return lambda value: value if isinstance(value, bytes) else value.encode()
    has_negative_zero = Difference.SHOWS_NEGATIVE_ZERO.holds(session.version)
    if kind.kind is Family.DOUBLE and kind.column is None and not has_negative_zero:
        load = lambda value: value + 0.0  # noqa: E731 - as the other ways to load
    elif kind.kind is Family.DOUBLE and kind.column is None:
        load = _without_negative_zero
    if kind.kind is Family.DOUBLE and kind.column is None and kind.decimals < FLOATING and not session.is_binary:
        load = _within_length(load)
    if kind.kind is Family.DATETIME:
        decimals = kind.decimals
        return lambda value: fitted_moment(value, decimals).encode()
    text = text_function(kind)
    if session.is_binary and kind.kind in REALS:
        text = repr

    def show(value: Any) -> bytes:
        shown = text(value if load is None else load(value))
        if isinstance(shown, bytes):
            return shown
        return shown.encode() if target == "utf8mb4" and shown.isascii() else encoded(shown, str(target))

    return show


def _without_negative_zero(value: float) -> float:
    """Raises RefusedError: it is -0, which a server shows as -0 or 0 by how it was computed."""
    if not value and math.copysign(1, value) < 0:
        raise not_supported("the number -0")
    return value


def _within_length(load: Convert | None) -> Convert:
    """Of larger numbers with a fixed point, a server cuts digits off if a temporary table has held them."""

    def check(value: float) -> float:
        if abs(value) >= FIXED_MAX:
            raise not_supported(f"numbers with a fixed point from {FIXED_MAX:g} on")
        return value if load is None else float(load(value))

    return check
