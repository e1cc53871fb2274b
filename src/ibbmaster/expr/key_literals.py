"""Literals as the bytes that a column of a key stores: the comparisons that need no value but what is stored."""

from __future__ import annotations

from decimal import Decimal

from ibbmaster.event.rows.column import Column, ValueKind
from ibbmaster.expr.stored_values import stored_value
from ibbmaster.schema.model import SqlType
from ibbmaster.sqltext.literals import Value
from ibbmaster.sqltext.moment import moment_of

_BYTE_ORDER = ("utf8mb4", "utf8mb3", "ascii", "latin1")  # character sets whose bytes are in the order of their letters


def key_literal(column: Column, kind: SqlType, value: Value, time_zone_s: int) -> bytes:
    """What a column stores where it is equal to a literal; less and greater are those of the bytes of its key.

    Raises:
        ValueError: it is not compared with such a literal by what is stored.
    """
    match column.kind:
        case ValueKind.INTEGER | ValueKind.DECIMAL if not kind.is_zerofill:
            is_alike = _is_number_of(column, kind, value)
        case ValueKind.DATE | ValueKind.DATETIME:
            value, is_alike = _moment(column, kind, value), True
        case ValueKind.TIMESTAMP if not time_zone_s:
            value, is_alike = _moment(column, kind, value), True
        case ValueKind.INET4 | ValueKind.INET6:
            is_alike = isinstance(value, str)
        case ValueKind.BINARY if not column.is_fixed_length and not column.is_compressed:
            is_alike = isinstance(value, bytes)
        case ValueKind.TEXT if (kind.collation or "").endswith("_bin") and kind.charset in _BYTE_ORDER:
            is_alike = isinstance(value, str)
        case _:
            is_alike = False
    found = stored_value(column, kind, value) if is_alike else None
    if found is None:
        raise ValueError(f"{value!r} beside column {column.name}")
    return found


def _is_number_of(column: Column, kind: SqlType, value: Value) -> bool:
    """Whether a number has no more digits behind the point than its column."""
    if not isinstance(value, Decimal) or column.kind is not ValueKind.DECIMAL:
        return isinstance(value, int)
    _, digits, exponent = value.as_tuple()
    scale = kind.scale or 0
    return isinstance(exponent, int) and not any(digits[max(len(digits) + exponent + scale, 0) :])


def _moment(column: Column, kind: SqlType, value: Value) -> str:
    if not isinstance(value, str) or (found := moment_of(value)).hour > 23:
        raise ValueError(f"{value!r} is no date and time")
    digits = kind.scale or kind.length or 0
    if column.kind is not ValueKind.DATE and f"{found.microsecond:06}"[digits:].strip("0"):
        raise ValueError(f"{value!r} has more than {digits} digits of a second")
    return value
