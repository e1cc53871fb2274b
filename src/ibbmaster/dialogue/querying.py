"""Answers to SELECT of what the session, its primary or the clock says; the rest is for who computes queries."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from ibbmaster.dialogue.conversion import bytes_of
from ibbmaster.dialogue.describing import describe
from ibbmaster.dialogue.evaluating import Evaluator
from ibbmaster.dialogue.relation import Relation
from ibbmaster.expr.session_facts import BINARY
from ibbmaster.sqltext.expression import SystemVariable
from ibbmaster.sqltext.literals import Value
from ibbmaster.sqltext.query_tree import Item, Query, SelectBlock
from ibbmaster.wire.refusal import RefusedError
from ibbmaster.wire.response import COLLATION_BINARY, ColumnDefinition, FieldType

_BINARY = (FieldType.VAR_STRING, FieldType.STRING, FieldType.BLOB, FieldType.BIT)
ROW_SIZE_MAX = 16 << 20  # bytes of one row that is made up of expressions


@dataclass(frozen=True, slots=True)
class Querying:
    """Answers SELECT for one session; `compute` gives the rows of any query, or refuses it."""

    evaluator: Evaluator
    compute: Callable[[Query], Relation]
    version: int  # of the server, as conditional comments count it

    def answer(self, select: SelectBlock) -> Relation:
        """The row of a query whose items are all `is_of_session`.

        Raises:
            RefusedError: it names what does not exist.
        """
        values = [self.evaluator.evaluate(item.node) for item in select.items]
        columns = self.columns(select.items, values)
        row = tuple(_as_shown(item, value) for item, value in zip(select.items, values, strict=True))
        if sum(len(bytes_of(value) or b"") for value in row) > ROW_SIZE_MAX:
            raise RefusedError(1153, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes")
        return Relation(columns, [row]).limited(select.limit)

    def value(self, query: Query) -> Value:
        """The value of a query in brackets: of its first column in its only row.

        Raises:
            RefusedError: it has several columns or rows.
        """
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
