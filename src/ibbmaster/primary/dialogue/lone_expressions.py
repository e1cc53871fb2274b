"""Expressions outside of queries: the values that SET takes, and the rows that SHOW … WHERE chooses."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from ibbmaster.replication.wire.refusal import unknown_column
from ibbmaster.replication.wire.response import ColumnDefinition, FieldType
from ibbmaster.rows.expr import kinds, values
from ibbmaster.rows.expr.compiling import Compiler
from ibbmaster.rows.expr.kinds import EXACT_NAMES, MOMENTS, Family, ValueType
from ibbmaster.rows.expr.scalars import Scalar, SqlValue, as_text, as_truth
from ibbmaster.rows.expr.session_facts import QuerySession
from ibbmaster.sqltext.expression import ColumnName, Expression, mapped
from ibbmaster.sqltext.literals import Value
from .relation import RowValues, integer_of, text_of
from .table_columns import CHARSET, COLLATION, LETTER_SIZE

#: Columns that a server compares exactly, as the names of files.
_EXACT = frozenset(
    f"{of}_{what}"
    for of in ("TABLE", "CONSTRAINT", "INDEX", "REFERENCED_TABLE", "TRIGGER", "EVENT_OBJECT", "ROUTINE", "EVENT")
    for what in ("SCHEMA", "NAME", "TABLE")
) - {"CONSTRAINT_NAME", "INDEX_NAME", "TRIGGER_NAME", "ROUTINE_NAME", "EVENT_NAME"} | {"SCHEMA_NAME"}
_DIGITS = {FieldType.TINY: 3, FieldType.SHORT: 5, FieldType.LONG: 10, FieldType.LONGLONG: 19}
BLOBS = (FieldType.BLOB, FieldType.LONG_BLOB)


def constant_value(expression: Expression, session: QuerySession) -> Value:
    """Raises RefusedError: the value is not computed here."""
    scalar, _ = _compiled(expression, session, {})
    if scalar.kind in MOMENTS or scalar.kind is Family.TEXT:
        scalar = as_text(scalar)
    value: Value = scalar.value
    return value


def row_condition(
    expression: Expression, columns: Sequence[ColumnDefinition], session: QuerySession
) -> Callable[[RowValues], bool | None]:
    """Whether a row meets a condition on its columns; None is NULL. Raises RefusedError: the condition names what does
    not exist, or is not computed here."""
    types = [listed_type(column, folds=True) for column in columns]
    known = {column.name.lower(): SqlValue(str(no), types[no]) for no, column in enumerate(columns)}
    scalar, slots = _compiled(expression, session, known)
    truth = as_truth(scalar).run
    wanted = [(int(slot.sql), storing(slot.type), values.loading(slot.type)) for slot in slots]

    def holds(row: RowValues) -> bool | None:
        given = []
        for place, store, load in wanted:
            value = None if row[place] is None else store(row[place])
            given.append(value if value is None or load is None else load(value))
        found: bool | None = truth(given)
        return found

    return holds


def _compiled(
    expression: Expression, session: QuerySession, known: dict[str, SqlValue]
) -> tuple[Scalar, list[SqlValue]]:
    def known_part(node: Any) -> SqlValue | None:
        if not isinstance(node, ColumnName):
            return None
        found = known.get(node.parts[-1].lower())
        if found is None:
            raise unknown_column(".".join(node.parts), "WHERE" if known else "SELECT")
        return found

    compiler = Compiler(session)
    return compiler.scalar(mapped(expression, known_part)), compiler.slots


def listed_type(column: ColumnDefinition, *, folds: bool) -> ValueType:
    """The type of a column that every server has; `folds`: capitals do not matter in names, and all texts compare
    alike."""
    field = FieldType(column.column_type)
    is_unsigned = bool(column.flags & kinds.UNSIGNED)
    base: dict[str, Any] = {"is_nullable": not column.flags & kinds.NOT_NULL, "column": column}
    if field in _DIGITS:
        digits = column.length if is_unsigned and field is FieldType.LONGLONG else _DIGITS[field]
        return ValueType(
            kind=Family.INT, length=column.length, digits=digits, is_unsigned=is_unsigned, field=field, **base
        )
    match field:
        case FieldType.NEWDECIMAL:
            digits = column.length - 2
            return ValueType(kind=Family.DECIMAL, length=column.length, digits=digits, decimals=column.decimals, **base)
        case FieldType.DOUBLE | FieldType.FLOAT:
            return replace(kinds.real(decimals=column.decimals), **base)
        case FieldType.DATETIME:
            return replace(kinds.moment(column.decimals), **base)
    is_exact = column.name.upper() in _EXACT and not folds
    return ValueType(
        kind=Family.TEXT, length=column.length // LETTER_SIZE, collation=EXACT_NAMES if is_exact else COLLATION,
        charset=CHARSET, is_blob=field in BLOBS, **base,
    )  # fmt: skip


def storing(kind: ValueType) -> Callable[[Any], Any]:
    match kind.kind:
        case Family.INT:
            bias = values.WIDE if kind.is_wide else 0
            return lambda value: (value if type(value) is int else integer_of(value) or 0) - bias
        case Family.DECIMAL:
            return lambda value: values.store_decimal(Decimal(text_of(value)), kind.decimals)
        case Family.DOUBLE:
            return float
        case Family.DATETIME:
            return text_of
    return _whole_text


def _whole_text(value: Any) -> str:
    """Without halves of letters, which SQLite does not take."""
    text = text_of(value)
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
