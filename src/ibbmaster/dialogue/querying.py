"""Answers to SELECT of what the session, its primary or the clock says, with columns as MariaDB describes them.

The rest is for who computes queries.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from ibbmaster.dialogue.conversion import bytes_of, text_of
from ibbmaster.dialogue.evaluating import Evaluator
from ibbmaster.dialogue.relation import Relation
from ibbmaster.dialogue.variables import FIXED, SESSION_DEFAULTS
from ibbmaster.expr.session_facts import BINARY, CALLS, NOT_NULL, NUMBER, UNSIGNED
from ibbmaster.sqltext.expression import Call, Expression, Literal, SystemVariable, UserVariable
from ibbmaster.sqltext.literals import Value
from ibbmaster.sqltext.query_tree import Item, Query, SelectBlock
from ibbmaster.versions import Difference
from ibbmaster.wire.refusal import RefusedError
from ibbmaster.wire.response import COLLATION_BINARY, COLLATION_DEFAULT, DECIMALS_NOT_FIXED, ColumnDefinition, FieldType

_BINARY = (FieldType.VAR_STRING, FieldType.STRING, FieldType.BLOB, FieldType.BIT)
ROW_SIZE_MAX = 16 << 20  # bytes of one row that is made up of expressions
DECIMALS_OF_DOUBLE = 31
LETTER_SIZE = 4  # bytes of the longest letter of utf8mb4, in which all texts are sent
_LONG_DIGITS = 9  # more may not fit into 32 bits
_CLOCK_LENGTHS = {FieldType.DATETIME: 19, FieldType.TIMESTAMP: 19, FieldType.DATE: 10, FieldType.TIME: 10}

_LOCAL_CLOCKS = frozenset(("now", "current_timestamp", "localtime", "localtimestamp", "sysdate"))


@dataclass(frozen=True, slots=True)
class Querying:
    """Answers SELECT for one session; `compute` gives the rows of any query, or refuses it."""

    evaluator: Evaluator
    compute: Callable[[Query], Relation]
    version: int  # of the server, as conditional comments count it

    def answer(self, select: SelectBlock) -> Relation:
        """The row of a query whose items are all `is_of_session`. Raises RefusedError: it names what does not exist."""
        values = [self.evaluator.evaluate(item.node) for item in select.items]
        columns = self.columns(select.items, values)
        row = tuple(_as_shown(item, value) for item, value in zip(select.items, values, strict=True))
        if sum(len(bytes_of(value) or b"") for value in row) > ROW_SIZE_MAX:
            raise RefusedError(1153, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes")
        return Relation(columns, [row]).limited(select.limit)

    def value(self, query: Query) -> Value:
        """The value of a query in brackets: of its first column in its only row. Raises RefusedError: it has several
        columns or rows."""
        relation = self.compute(query)
        if len(relation.columns) != 1:
            raise RefusedError(1241, "21000", "Operand should contain 1 column(s)")
        rows = list(itertools.islice(relation.rows, 2))
        if len(rows) > 1:
            raise RefusedError(1242, "21000", "Subquery returns more than 1 row")
        return _read(relation.columns[0], rows[0][0]) if rows else None

    def columns(self, items: Sequence[Item], values: Sequence[Value]) -> tuple[ColumnDefinition, ...]:
        """The columns of values; None also stands for one that is still to come."""
        return tuple(
            describe(item.name, item.node, value, version=self.version)
            for item, value in zip(items, values, strict=True)
        )


def _read(column: ColumnDefinition, value: Value) -> Value:
    """The text of a result as a value of its column's type."""
    if not isinstance(value, bytes):
        return value
    match column.column_type:
        case FieldType.TINY | FieldType.SHORT | FieldType.INT24 | FieldType.LONG | FieldType.LONGLONG | FieldType.YEAR:
            return int(value)
        case FieldType.NEWDECIMAL:
            return Decimal(value.decode())
        case FieldType.FLOAT | FieldType.DOUBLE:
            return float(value)
    is_data = column.collation_id == COLLATION_BINARY and column.flags & BINARY and column.column_type in _BINARY
    return value if is_data else value.decode("utf-8", "surrogateescape")


def _as_shown(item: Item, value: Value) -> Value:
    """System variables with a fraction have six digits of it."""
    if isinstance(value, float) and isinstance(item.node, SystemVariable):
        return f"{value:.6f}"
    return value


def describe(name: str, expression: Expression, value: Value, *, version: int) -> ColumnDefinition:
    """The column of one item of a SELECT with this value, for a server of this version."""
    match expression:
        case SystemVariable():
            return _of_system_variable(name, expression, value)
        case UserVariable():
            return _of_user_variable(name, value)
        case Call(name=function) if function in CALLS:
            kind, length, flags = CALLS[function]
            return _column(name, kind, length, flags, _digits(expression))
        case Call(name=function) if function in _LOCAL_CLOCKS:
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
            digits, scale = len(value.as_tuple().digits), _scale(value)
            length = max(digits, scale + 1) + (1 if scale else 0) + 1
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
            return _column(name, FieldType.LONG_BLOB, 16_777_215, 0)
        case _:
            return _column(name, FieldType.LONG_BLOB, 16_777_215, BINARY, is_binary=True)


def _column(
    name: str, kind: FieldType, length: int, flags: int, decimals: int = 0, *, is_binary: bool = False
) -> ColumnDefinition:
    is_text = kind in (FieldType.VAR_STRING, FieldType.LONG_BLOB)
    has_letters = is_text and not is_binary
    if kind in _CLOCK_LENGTHS and decimals:
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
    """Digits of a second's fraction that a clock is asked for."""
    if call.name in ("now", "current_timestamp", "localtime", "localtimestamp", "sysdate", "utc_timestamp", "curtime"):
        argument = call.arguments[0] if call.arguments else None
        if isinstance(argument, Literal) and isinstance(argument.value, int):
            return argument.value
    return 0


def _scale(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return max(-exponent, 0) if isinstance(exponent, int) else 0
