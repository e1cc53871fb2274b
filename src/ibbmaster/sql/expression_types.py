"""The types of expressions over columns, told without a row, as MariaDB tells them to drivers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal

from ibbmaster.sqltext.expression import Call, ColumnName, Expression, Literal, Operation
from ibbmaster.sqltext.token import words
from ibbmaster.wire.response import (
    COLLATION_BINARY,
    COLLATION_DEFAULT,
    DECIMALS_NOT_FIXED,
    ColumnDefinition,
    FieldType,
)

UNSIGNED, BINARY = 0x20, 0x80
LETTER_SIZE = 4
VARIABLE_SIZE_MAX = 65_535  # bytes; longer texts are MEDIUM_BLOB
_LENGTHS = {FieldType.LONG: 11, FieldType.LONGLONG: 21, FieldType.DOUBLE: 23, FieldType.NEWDECIMAL: 22}
_SMALL = (FieldType.TINY, FieldType.SHORT, FieldType.INT24, FieldType.LONG)
_TEXTS = (FieldType.VAR_STRING, FieldType.BLOB, FieldType.MEDIUM_BLOB, FieldType.LONG_BLOB)
_COMPARED = words("= != < <= > >= <=> AND OR NOT IN LIKE BETWEEN EXISTS")
_COUNTING = words("length octet_length char_length character_length locate instr isnull find_in_set")
_JOINING = words("concat concat_ws")
_SAME_TEXT = words("upper lower ucase lcase substring substr mid left right trim ltrim rtrim replace")
_CHOOSING = words("if ifnull coalesce nvl nullif")
_BEST = words("least greatest")

FindColumn = Callable[[tuple[str, ...]], ColumnDefinition | None]


@dataclass(frozen=True, slots=True)
class ExpressionType:
    """What values of an expression are; `size` is bytes of the longest text."""

    kind: FieldType
    is_unsigned: bool = False
    size: int = 0

    def definition(self, name: str) -> ColumnDefinition:
        """The column of a result that holds such values."""
        if self.kind is FieldType.VAR_STRING:
            kind = FieldType.VAR_STRING if self.size <= VARIABLE_SIZE_MAX else FieldType.MEDIUM_BLOB
            return ColumnDefinition(
                name=name,
                column_type=kind,
                length=self.size,
                collation_id=COLLATION_DEFAULT,
                decimals=DECIMALS_NOT_FIXED,
            )
        return ColumnDefinition(
            name=name,
            column_type=self.kind,
            length=_LENGTHS.get(self.kind, 0),
            collation_id=COLLATION_BINARY,
            flags=BINARY | (UNSIGNED if self.is_unsigned else 0),
        )


INTEGER = ExpressionType(FieldType.LONG)
LONG_INTEGER = ExpressionType(FieldType.LONGLONG)
EXACT = ExpressionType(FieldType.NEWDECIMAL)
REAL = ExpressionType(FieldType.DOUBLE)
NOTHING = ExpressionType(FieldType.NULL)


def type_of(expression: Expression, find: FindColumn) -> ExpressionType | None:
    """The type of an expression; None where that is not told here."""
    match expression:
        case ColumnName(parts=parts):
            column = find(parts)
            return None if column is None else _of_column(column)
        case Literal(value=value):
            return _of_literal(value)
        case Operation(operator=operator) if operator in _COMPARED or operator.startswith("IS "):
            return INTEGER
        case Operation(operator=("CASE" | "CASE OF"), operands=(_, *branches, otherwise)):
            return _all((*branches[1::2], otherwise), find)
        case Operation(operator=("+" | "-" | "*" | "DIV" | "MOD" | "NEGATIVE"), operands=operands):
            found = _all(operands, find)
            if found is None or found.kind in (FieldType.NULL, FieldType.NEWDECIMAL, FieldType.LONGLONG):
                return found
            return LONG_INTEGER if found.kind is FieldType.LONG else REAL
        case Operation(operator="/"):
            return EXACT
        case Call(name=name, arguments=arguments):
            return _of_call(name, arguments, find)
        case _:
            return None


def _of_call(name: str, arguments: tuple[Expression, ...], find: FindColumn) -> ExpressionType | None:
    if name in _COUNTING:
        return INTEGER
    if name == "count":
        return LONG_INTEGER
    if name in ("sum", "avg"):
        return EXACT
    if name in ("min", "max"):
        return _all(arguments, find)
    if name in ("cast", "convert") and len(arguments) == 2:
        return _of_cast(arguments[1])
    if name in _CHOOSING:
        return _all(arguments[1:] if name == "if" else arguments[:1] if name == "nullif" else arguments, find)
    if name in _BEST:
        return _all(arguments, find)
    if name in _JOINING or name in _SAME_TEXT:
        types = [type_of(argument, find) for argument in arguments]
        sizes = [0 if found is None else found.size for found in types]
        return ExpressionType(FieldType.VAR_STRING, size=sum(sizes) if name in _JOINING else sizes[0] if sizes else 0)
    return None


def _of_cast(kind: Expression) -> ExpressionType | None:
    match kind:
        case Literal(value=("SIGNED" | "INT" | "INTEGER")):
            return LONG_INTEGER
        case Literal(value="UNSIGNED"):
            return replace(LONG_INTEGER, is_unsigned=True)
        case Literal(value="DECIMAL"):
            return EXACT
        case _:
            return None


def _of_column(column: ColumnDefinition) -> ExpressionType:
    kind = FieldType(column.column_type)
    if kind in _TEXTS:
        return ExpressionType(FieldType.VAR_STRING, size=column.length)
    return ExpressionType(FieldType.LONG if kind in _SMALL else kind, bool(column.flags & UNSIGNED))


def _of_literal(value: object) -> ExpressionType:
    match value:
        case None:
            return NOTHING
        case int():
            return INTEGER if abs(value) < 2**31 else LONG_INTEGER
        case Decimal():
            return EXACT
        case float():
            return REAL
        case _:
            return ExpressionType(FieldType.VAR_STRING, size=len(str(value)) * LETTER_SIZE)


def _all(expressions: Iterable[Expression], find: FindColumn) -> ExpressionType | None:
    """The type that holds the values of each."""
    found = NOTHING
    for expression in expressions:
        one = type_of(expression, find)
        if one is None:
            return None
        found = _both(found, one)
    return found


def _both(one: ExpressionType, other: ExpressionType) -> ExpressionType:
    if one.kind is FieldType.NULL or one == other:
        return other
    if other.kind is FieldType.NULL:
        return one
    kinds = {one.kind, other.kind}
    if FieldType.VAR_STRING in kinds:
        return ExpressionType(FieldType.VAR_STRING, size=max(one.size, other.size))
    if kinds <= {FieldType.LONG, FieldType.LONGLONG}:
        if one.is_unsigned != other.is_unsigned:
            return EXACT  # no integer holds both
        return ExpressionType(FieldType.LONGLONG, one.is_unsigned)
    if FieldType.DOUBLE in kinds or FieldType.FLOAT in kinds:
        return REAL
    return EXACT
