"""The columns of a result: those of tables as they are there, others by their expression, or by what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ibbmaster.dialogue.describing import describe
from ibbmaster.dialogue.relation import Relation, RowValues
from ibbmaster.dialogue.statement import Select
from ibbmaster.sql.expression_types import type_of
from ibbmaster.sql.sqlite_text import SelectedItem, selected_items
from ibbmaster.sqltext.expression import Call, ColumnName, Expression, Literal, Operation, Subquery
from ibbmaster.sqltext.literals import Value
from ibbmaster.sqltext.token import SqlTokens
from ibbmaster.wire.response import ColumnDefinition, FieldType

NOT_NULL = 0x01
TEXT_LENGTH_MAX = 65_532  # bytes, of a text of which not all values are known
_TEXTS = (FieldType.VAR_STRING, FieldType.BLOB)
_INTEGERS = (FieldType.LONG, FieldType.LONGLONG)


def result_columns(
    tokens: SqlTokens,
    select: Select | None,
    tables: Sequence[Relation],
    rows: Sequence[RowValues],
    width: int,
    *,
    is_all: bool = True,
) -> tuple[ColumnDefinition, ...]:
    """The columns of a query over these tables that gave these rows; `select` is it, where it is understood.

    Unless `is_all`, more rows follow, whose values may be longer, or NULL.
    """
    return _ResultColumns(tokens, select, tables, is_all=is_all).columns(rows, width)


class _ResultColumns:
    """Describes one result."""

    def __init__(self, tokens: SqlTokens, select: Select | None, tables: Sequence[Relation], *, is_all: bool) -> None:
        self._is_all = is_all
        self._items = selected_items(tokens.tokens, tokens.text_between)
        self._tables = tables
        is_read = select is not None and len(select.items) == len(self._items)
        self._expressions = [item.expression for item in select.items] if select is not None and is_read else []

    def columns(self, rows: Sequence[RowValues], width: int) -> tuple[ColumnDefinition, ...]:
        described = [one for no, item in enumerate(self._items) for one in self._described(no, item)]
        if len(described) != width:  # joins by NATURAL and USING, and queries in FROM
            described = [(SelectedItem(f"column{no}", None), None) for no in range(1, width + 1)]
        return tuple(
            self._column(item, expression, [row[no] for row in rows]) for no, (item, expression) in enumerate(described)
        )

    def _described(self, no: int, item: SelectedItem) -> list[tuple[SelectedItem, Expression | None]]:
        """An item with what it is; * is every column of the tables."""
        if item.is_star:
            names = [column.name for table in self._tables for column in table.columns]
            return [(SelectedItem(name, (name,)), None) for name in names]
        return [(item, self._expressions[no] if no < len(self._expressions) else None)]

    def _column(self, item: SelectedItem, expression: Expression | None, values: Sequence[Value]) -> ColumnDefinition:
        is_column = item.function is None or item.function in ("min", "max")
        found = self._find(item.column) if item.column is not None and is_column else None
        if found is not None:
            return replace(found, name=item.name)
        column = self._told(item, expression, values) or _by_values(item, expression, values)
        if not self._is_all:
            is_text = column.column_type in _TEXTS
            column = replace(column, length=max(column.length, TEXT_LENGTH_MAX) if is_text else column.length)
        may_be_null = None in values or not self._is_all
        return replace(column, flags=column.flags & ~NOT_NULL) if may_be_null else column

    def _told(
        self, item: SelectedItem, expression: Expression | None, values: Sequence[Value]
    ) -> ColumnDefinition | None:
        """By its expression, if that is about columns, and every value is of that type."""
        if expression is None or not _names_column(expression):
            return None
        found = type_of(expression, self._find)
        if found is None or found.kind is FieldType.NULL:
            return None
        if found.kind in _INTEGERS and not all(value is None or isinstance(value, int) for value in values):
            return None
        return found.definition(item.name)

    def _find(self, parts: tuple[str, ...]) -> ColumnDefinition | None:
        wanted = parts[-1].lower()
        columns = (column for table in self._tables for column in table.columns)
        return next((column for column in columns if column.name.lower() == wanted), None)


def _by_values(item: SelectedItem, expression: Expression | None, values: Sequence[Value]) -> ColumnDefinition:
    widest = max((value for value in values if value is not None), key=lambda each: len(str(each)), default=None)
    if isinstance(expression, Literal):
        widest = expression.value
    if expression is None or isinstance(expression, ColumnName | Subquery):
        known = Literal(widest) if item.function is None else Call(item.function, item.function)
        column = describe(item.name, known, widest, version=0)
        if column.column_type == FieldType.LONG:
            column = replace(column, column_type=FieldType.LONGLONG)
    else:
        column = describe(item.name, expression, widest, version=0)
    kinds = {"group_concat": FieldType.BLOB, "sum": FieldType.NEWDECIMAL, "avg": FieldType.NEWDECIMAL}
    return replace(column, column_type=kinds.get(item.function or "", column.column_type))


def _names_column(expression: Expression) -> bool:
    match expression:
        case ColumnName():
            return True
        case Call(arguments=parts) | Operation(operands=parts):
            return any(map(_names_column, parts))
        case _:
            return False
