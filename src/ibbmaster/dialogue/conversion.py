"""Values of one type taken as another, as MariaDB does it; NULL is None."""

from __future__ import annotations

import re
from decimal import Decimal

from ibbmaster.sqltext.literals import Value
from ibbmaster.wire.refusal import RefusedError

_NUMBER = re.compile(r"\s*([+-]?(?:\d{1,400}\.?\d{0,400}|\.\d{1,400})(?:[eE][+-]?\d{1,3})?)", re.ASCII)


def text_of(value: Value) -> str:
    """A value that is not NULL as the text a client gets; bytes that are no UTF-8 keep their places."""
    match value:
        case str():
            return value
        case bytes():
            return value.decode("utf-8", "surrogateescape")
        case float():
            text = repr(value).removesuffix(".0")
            return text.replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")
        case Decimal():
            return f"{value:f}"
        case _:
            return str(value)


def bytes_of(value: Value, codec: str = "utf-8") -> bytes | None:
    """A value as it goes into a row; `?` stands for what a character set does not have."""
    if value is None or isinstance(value, bytes):
        return value
    try:
        return text_of(value).encode(codec, "surrogateescape")
    except UnicodeEncodeError:
        return text_of(value).encode(codec, "replace")


def number_of(value: Value) -> int | float | Decimal | None:
    """A value as a number: a text counts up to its first other character."""
    match value:
        case None | int() | float() | Decimal():
            return value
        case _:
            match = _NUMBER.match(text_of(value))
            return float(match[1]) if match else 0.0


def integer_of(value: Value) -> int | None:
    """A value as an integer, rounded. Raises RefusedError: it is too large."""
    number = number_of(value)
    if number is None or isinstance(number, int):
        return number
    if isinstance(number, float) and not abs(number) < 2.0**64:
        raise out_of_range("BIGINT", value)
    if isinstance(number, Decimal) and abs(number) >= 2**64:
        raise out_of_range("BIGINT", value)
    return int(number + Decimal("0.5").copy_sign(number) if isinstance(number, Decimal) else round(number))


def out_of_range(kind: str, value: object) -> RefusedError:
    return RefusedError(1690, "22003", f"{kind} value is out of range in '{str(value)[:64]}'")
