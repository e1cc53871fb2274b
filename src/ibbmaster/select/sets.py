"""Rows of several queries together, and each row once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ibbmaster.expr.comparing import is_ordered_by_sqlite
from ibbmaster.expr.compiling import Emitter
from ibbmaster.expr.kinds import FLOATING, REALS, Kind, Type, of_all
from ibbmaster.expr.scalars import Slot
from ibbmaster.select.grouping import choosing
from ibbmaster.select.sources import Plan, PlannedColumn
from ibbmaster.sqltext.expression import ColumnName, Literal
from ibbmaster.sqltext.query_tree import Compound, OrderKey
from ibbmaster.wire.refusal import RefusedError, not_supported, unknown_column

OTHER_WIDTH = RefusedError(1222, "21000", "The used SELECT statements have a different number of columns")


ROWS_MAX = (1 << 63) - 1


class Sets:
    """Writes what SQLite makes of whole queries."""

    def __init__(self, emitter: Emitter, number: Callable[[], int]) -> None:
        """`number` gives one that no other part of the statement has."""
        self._emitter = emitter
        self._next = number

    def compound(self, query: Compound, plans: Sequence[Plan]) -> Plan:
        """The rows of several queries together."""
        width = len(plans[0].columns)
        if any(len(plan.columns) != width for plan in plans):
            raise OTHER_WIDTH
        outer = frozenset().union(*(plan.outer for plan in plans))
        if len(plans) == 1:
            columns, sql = plans[0].columns, plans[0].sql
        else:
            types = [joint_type([plan.columns[no].type for plan in plans]) for no in range(width)]
            columns = tuple(
                PlannedColumn(column.name, kind.computed())
                for column, kind in zip(plans[0].columns, types, strict=True)
            )
            sql = self.cast_member(plans[0], types)
            for operator, plan in zip(query.operators, plans[1:], strict=True):
                sql = f"{sql} UNION ALL {self.cast_member(plan, types)}"
                if operator == "UNION":
                    sql = f"SELECT * FROM ({self.distinct(sql, types)})"
        if query.order_by or query.limit is not None:
            inner = f"u{self._next()}"
            slots = [Slot(f"{inner}.o{no}", column.type) for no, column in enumerate(columns)]
            keys = [self.order_sql(self._output_key(key, columns, slots), key.is_descending) for key in query.order_by]
            sql = f"SELECT * FROM ({sql}) AS {inner}" + ordered(keys) + limited(query.limit)
        return Plan(sql, columns, query.limit == (0, 1), outer)

    def cast_member(self, plan: Plan, types: Sequence[Type]) -> str:
        alias = f"m{self._next()}"
        parts = []
        for no, (column, kind) in enumerate(zip(plan.columns, types, strict=True)):
            sql, _ = self._emitter.value(Slot(f"{alias}.o{no}", column.type), kind)
            parts.append(f"{sql} AS o{no}")
        return f"SELECT {', '.join(parts)} FROM ({plan.sql}) AS {alias}"

    def _output_key(self, key: OrderKey, columns: Sequence[PlannedColumn], slots: Sequence[Slot]) -> Any:
        match key.node:
            case Literal(value=int() as number):
                if not 1 <= number <= len(slots):
                    raise unknown_column(str(number), "ORDER BY")
                return slots[number - 1]
            case ColumnName(parts=(name,)):
                for column, slot in zip(columns, slots, strict=True):
                    if column.name.lower() == name.lower():
                        return slot
                raise unknown_column(name, "ORDER BY")
        raise not_supported("ORDER BY an expression behind UNION")

    def distinct(self, sql: str, types: Sequence[Type], *, is_stable: bool = False) -> str:
        """Each row once, as the first one of those that compare alike where a server is known to take that one."""
        if any(kind.kind is Kind.BIT for kind in types):
            raise not_supported("DISTINCT of BIT")  # which a server shows as a number then
        if all(map(is_ordered_by_sqlite, types)):
            return f"SELECT DISTINCT * FROM ({sql})"
        alias = f"d{self._next()}"
        shown, keys = [], []
        for no, kind in enumerate(types):
            slot = Slot(f"{alias}.o{no}", kind)
            keys.append(self._emitter.key(slot))
            shown.append(f"{slot.sql if is_ordered_by_sqlite(kind) else f'{choosing(is_stable)}({slot.sql})'} AS o{no}")
        return f"SELECT {', '.join(shown)} FROM ({sql}) AS {alias} GROUP BY {', '.join(keys)}"

    def order_sql(self, node: Any, is_descending: bool) -> str:
        return self._emitter.key(node) + (" DESC" if is_descending else "")


def joint_type(members: Sequence[Type]) -> Type:
    """The type of a column of UNION.

    Raises:
        RefusedError: it is not told here.
    """
    found = of_all(members)
    if found.kind in REALS and any(kind.kind is Kind.DECIMAL and kind.column is None for kind in members):
        raise not_supported("UNION of exact numbers that are computed and others")
    if found.kind is Kind.DOUBLE and found.decimals < FLOATING:
        raise not_supported("UNION of floating numbers with a fixed point")
    if found.kind is Kind.DECIMAL and any(kind.decimals < min(kind.hidden, found.decimals) for kind in members):
        raise not_supported("UNION of a quotient and others")
    return found


def ordered(keys: Sequence[str]) -> str:
    return f" ORDER BY {', '.join(keys)}" if keys else ""


def limited(limit: tuple[int, int | None] | None) -> str:
    if limit is None:
        return ""
    skip, count = limit
    return f" LIMIT {-1 if count is None else min(count, ROWS_MAX)} OFFSET {min(skip, ROWS_MAX)}"
