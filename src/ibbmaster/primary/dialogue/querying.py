"""Answers to SELECT of what the session, its primary or the clock says, with columns as MariaDB describes them."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.replication.wire.response import (
    COLLATION_BINARY,
    COLLATION_DEFAULT,
    DECIMALS_NOT_FIXED,
    ColumnDefinition,
    FieldType,
)
from ibbmaster.rows.expr.session_facts import BINARY, CALLS, CLOCKS, NOT_NULL, NUMBER, OF_NOW, UNSIGNED, USER_TEXT_MAX
from ibbmaster.sqltext.expression import Call, Item, Literal, SqlQuery, SystemVariable, UserVariable
from ibbmaster.sqltext.literals import Value
from ibbmaster.versions import Difference
from .evaluating import Evaluator
from .relation import Relation, bytes_of, text_of
from .table_columns import LETTER_SIZE
from .variables import FIXED, SESSION_DEFAULTS

ROW_SIZE_MAX = 16 << 20  # bytes of one row of expressions
DECIMALS_OF_DOUBLE = 31
_LONG_DIGITS = 9  # more may not fit into 32 bits
_MOMENTS = (FieldType.DATETIME, FieldType.TIMESTAMP, FieldType.DATE, FieldType.TIME)


def values_answer(select: SqlQuery, evaluator: Evaluator, version: int) -> Relation:
    """The row of a query of items that are all `is_of_session`. Raises RefusedError: an item names what does not exist,
    or the row is too long."""
    values = [evaluator.evaluate(item.node) for item in select.items]
    row = tuple(
        f"{value:.6f}" if isinstance(value, float) and isinstance(item.node, SystemVariable) else value
        for item, value in zip(select.items, values, strict=True)
    )
    if sum(len(bytes_of(value) or b"") for value in row) > ROW_SIZE_MAX:
        raise RefusedError(1153, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes")
    return Relation(value_columns(select.items, values, version), [row]).limited(select.limit)


def value_columns(items: Sequence[Item], values: Sequence[Value], version: int) -> tuple[ColumnDefinition, ...]:
    """The columns of values; None: NULL, or still to come."""
    return tuple(_described(item, value, version) for item, value in zip(items, values, strict=True))


def _described(item: Item, value: Value, version: int) -> ColumnDefinition:
    name, expression = item.name, item.node
    match expression:
        case SystemVariable():
            return _of_system_variable(name, expression, value)
        case UserVariable():
            return _of_user_variable(name, value)
        case Call(name=function) if function in CALLS:
            return _column(name, *CALLS[function], _digits(expression))
        case Call(name=function) if function in OF_NOW:
            kind = FieldType.TIMESTAMP if Difference.NOW_IS_TIMESTAMP.holds(version) else FieldType.DATETIME
            return _column(name, kind, 19, NUMBER, _digits(expression))
        case Literal(charset=None, value=bytes() as data):
            return _column(name, FieldType.VAR_STRING, len(data), NUMBER | UNSIGNED, is_binary=True)
    column = _of_value(name, value)
    is_known = (isinstance(expression, Literal) and value is not None) or (
        isinstance(expression, Call) and expression.name == "version"
    )
    return replace(column, flags=column.flags | (NOT_NULL if is_known else 0))


def _of_value(name: str, value: Value) -> ColumnDefinition:
    match value:
        case None:
            return _column(name, FieldType.NULL, 0, BINARY)
        case int():
            length = len(str(value))
            kind = FieldType.LONG if length <= _LONG_DIGITS + (value < 0) else FieldType.LONGLONG
            return _column(name, kind, length, BINARY | (UNSIGNED if value >= 2**63 else 0))
        case Decimal():
            _, digits, exponent = value.as_tuple()
            scale = max(-exponent, 0) if isinstance(exponent, int) else 0
            length = max(len(digits), scale + 1) + (1 if scale else 0) + 1
            return _column(name, FieldType.NEWDECIMAL, length, BINARY, scale)
        case float():
            return _column(name, FieldType.DOUBLE, len(text_of(value)), BINARY, DECIMALS_OF_DOUBLE)
        case bytes():
            return _column(name, FieldType.VAR_STRING, len(value), BINARY, is_binary=True)
        case _:
            return _column(name, FieldType.VAR_STRING, max(len(value), 1), 0)


def _of_system_variable(name: str, target: SystemVariable, value: Value) -> ColumnDefinition:
    known = FIXED.get(target.name, SESSION_DEFAULTS.get(target.name))
    if isinstance(known, bool):
        return _column(name, FieldType.LONGLONG, 1, BINARY)
    if target.name == "timestamp" or isinstance(value, float):
        return _column(name, FieldType.DOUBLE, 21, BINARY, 6)
    if isinstance(value, int):
        return _column(name, FieldType.LONGLONG, 21, BINARY | UNSIGNED)
    return _column(name, FieldType.VAR_STRING, len(text_of(value or "")), 0)


def _of_user_variable(name: str, value: Value) -> ColumnDefinition:
    match value:
        case int():
            return _column(name, FieldType.LONGLONG, 20, BINARY)
        case Decimal():
            return _column(name, FieldType.NEWDECIMAL, 83, BINARY, 38)
        case float():
            return _column(name, FieldType.DOUBLE, 23, BINARY, DECIMALS_OF_DOUBLE)
        case str():
            return _column(name, FieldType.LONG_BLOB, USER_TEXT_MAX, 0)
    return _column(name, FieldType.LONG_BLOB, USER_TEXT_MAX, BINARY, is_binary=True)


def _column(
    name: str, kind: FieldType, length: int, flags: int, decimals: int = 0, *, is_binary: bool = False
) -> ColumnDefinition:
    is_text = kind in (FieldType.VAR_STRING, FieldType.LONG_BLOB)
    has_letters = is_text and not is_binary
    if kind in _MOMENTS and decimals:
        length += 1 + decimals
    if is_text:
        decimals = DECIMALS_NOT_FIXED if has_letters or kind is FieldType.LONG_BLOB else 0
    return ColumnDefinition(
        name=name,
        column_type=kind,
        length=length * LETTER_SIZE if has_letters else length,
        flags=flags,
        decimals=decimals,
        collation_id=COLLATION_DEFAULT if has_letters else COLLATION_BINARY,
    )


def _digits(call: Call) -> int:
    match call.arguments:
        case (Literal(value=int() as digits),) if call.name in CLOCKS:
            return digits
    return 0
