"""Plans a query: finds what its names mean, and writes the SQL by which SQLite joins, groups and orders its rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ibbmaster.expr.comparing import is_ordered_by_sqlite
from ibbmaster.expr.compiling import Emitter
from ibbmaster.expr.emitting import SqlFunctions
from ibbmaster.expr.kinds import Kind, Type, changed, data
from ibbmaster.expr.scalars import Slot
from ibbmaster.expr.session_functions import QuerySession
from ibbmaster.expr.walking import contains, equalities
from ibbmaster.select.grouping import GroupPlan, choosing, has_known_order, sorts_groups
from ibbmaster.select.names import Names
from ibbmaster.select.sources import (
    TABLES_MAX,
    KnownNames,
    Plan,
    PlannedColumn,
    SourceColumn,
    SourceTable,
    Tables,
    make_outer,
    of_derived,
    restrict_tables,
)
from ibbmaster.sqltext.expression import Aggregate, Literal, UserVariable
from ibbmaster.sqltext.query_tree import (
    DerivedTable,
    GivenTable,
    Item,
    Join,
    OrderKey,
    Query,
    SelectBlock,
    Source,
)
from ibbmaster.wire.refusal import RefusedError, not_supported

ROWS_MAX = (1 << 63) - 1
BLOB_MAX = 16_777_215  # bytes, of a variable of a user that has no value


class Planner:
    """Plans one statement."""

    def __init__(self, session: QuerySession, registry: SqlFunctions, tables: Tables) -> None:
        self._session = session
        self._tables = tables
        self._emitter = Emitter(session, registry)
        self._registry = registry
        self._count = 0
        self._names = Names(self._inner)
        self._has_table = self._has_log_table = False
        self._found: set[str] = set()  # what only tables of every server are asked with

    def plan(self, query: Query) -> Plan:
        """
        Raises:
            RefusedError: the query names what does not exist, or is not answered here as MariaDB does.
        """
        plan = self._block(query, None)
        if self._has_log_table and self._found:
            raise not_supported(f"{min(self._found)} over tables of the log")
        return plan

    def _inner(self, query: Query, scope: KnownNames, is_value: bool) -> Plan:
        self._found.add("a query in an expression")
        return self._block(query, scope, is_value=is_value)

    def _next(self) -> int:
        self._count += 1
        if self._count > 4 * TABLES_MAX:
            raise not_supported("a query of so many parts")
        return self._count

    def _block(self, block: SelectBlock, parent: KnownNames | None, *, is_value: bool = False) -> Plan:
        """`is_value`: its only row is the value of an expression, which no table has kept in between."""
        scope = KnownNames([], parent)
        from_sql = "" if block.source is None else f" FROM {self._source(block.source, scope)}"
        items = [resolved for item in block.items for resolved in self._names.item(item, scope)]
        for item in items:
            scope.aliases.setdefault(item.name.lower(), item.node)
        where = None if block.where is None else self._names.resolved(block.where, scope, "WHERE")
        if where is not None and contains(where, Aggregate):
            raise RefusedError(1111, "HY000", "Invalid use of group function")
        group_by = [self._names.group_key(node, items, scope) for node in block.group_by]
        order_by = [
            OrderKey(self._names.order_key(key.node, items, scope), key.is_descending) for key in block.order_by
        ]
        having = None if block.having is None else self._names.resolved(block.having, scope, "HAVING")
        nodes = [item.node for item in items] + [key.node for key in order_by] + ([] if having is None else [having])
        is_grouped = bool(group_by) or any(contains(node, Aggregate) for node in nodes)
        where_sql = []
        if where is not None:
            where_sql.append(self._emitter.condition(where))
            restrict_tables(equalities(where), self._emitter, self._tables)
        if is_grouped:
            is_stable = has_known_order(scope, where, block.source) and not any(map(sorts_groups, nodes))
            grouping = GroupPlan(self._emitter, scope, group_by, is_stable=is_stable)
            items = [dataclasses.replace(item, node=grouping.of(item.node)) for item in items]
            order_by = [OrderKey(grouping.of(key.node), key.is_descending) for key in order_by]
            having = None if having is None else grouping.of(having)
        elif having is not None:
            where_sql.append(self._emitter.condition(having))
            having = None
        show = self._emitter.value if is_value and not group_by and not block.is_distinct else self._shown_value
        emitted = [show(item.node) for item in items]
        return self._written(
            block, scope, items, emitted, from_sql, where, where_sql, group_by, having, order_by, is_grouped
        )

    def _written(
        self,
        block: SelectBlock,
        scope: KnownNames,
        items: list[Item],
        emitted: list[tuple[str, Type]],
        from_sql: str,
        where: Any,
        where_sql: list[str],
        group_by: list[Any],
        having: Any,
        order_by: list[OrderKey],
        is_grouped: bool,
    ) -> Plan:
        columns = tuple(PlannedColumn(item.name, kind) for item, (_, kind) in zip(items, emitted, strict=True))
        shown = ", ".join(f"{sql} AS o{no}" for no, (sql, _) in enumerate(emitted))
        sql = f"SELECT {shown}{from_sql}"
        if where_sql:
            sql += " WHERE " + " AND ".join(f"({one})" for one in where_sql)
        is_single = block.limit == (0, 1)
        if is_grouped:
            if group_by:
                sql += " GROUP BY " + ", ".join(self._emitter.key(node) for node in group_by)
            else:
                is_single = True
            if having is not None:
                if not group_by:
                    raise not_supported("HAVING without GROUP BY")
                sql += " HAVING " + self._emitter.condition(having)
        if block.is_distinct:
            is_stable = not is_grouped and has_known_order(scope, where, block.source)
            return self._distinct_block(block, sql, columns, items, order_by, is_stable=is_stable)
        keys = [self._order_sql(key.node, key) for key in order_by if not isinstance(key.node, Literal)]
        if is_grouped and group_by and not order_by:
            keys = [self._emitter.key(node) for node in group_by]
        if is_grouped and not group_by:
            keys = []
        return Plan(sql + ordered(keys) + limited(block.limit), columns, is_single)

    def _shown_value(self, node: Any) -> tuple[str, Type]:
        """A value as a column of a result has it: with no more digits than it shows."""
        sql, kind = self._emitter.value(node)
        if kind.kind is Kind.NULL and isinstance(node, UserVariable):
            return sql, changed(data(BLOB_MAX), is_blob=True)
        if kind.kind is not Kind.DECIMAL or kind.fraction <= kind.decimals:
            return sql, kind
        return self._emitter.value(node, dataclasses.replace(kind, fraction=-1, hidden=kind.fraction))

    def _distinct_block(
        self,
        block: SelectBlock,
        sql: str,
        columns: tuple[PlannedColumn, ...],
        items: list[Item],
        order_by: list[OrderKey],
        *,
        is_stable: bool,
    ) -> Plan:
        sql = self._distinct(sql, [column.type for column in columns], is_stable=is_stable)
        if order_by:
            alias = f"d{self._next()}"
            keys = []
            for key in order_by:
                place = next((no for no, item in enumerate(items) if item.node == key.node), None)
                if place is None:
                    raise not_supported("DISTINCT, and ORDER BY what is not shown")
                keys.append(self._order_sql(Slot(f"{alias}.o{place}", columns[place].type), key))
            sql = f"SELECT * FROM ({sql}) AS {alias}" + ordered(keys)
        elif block.limit is not None:
            sql = f"SELECT * FROM ({sql})"
        return Plan(sql + limited(block.limit), columns, block.limit == (0, 1))

    def _distinct(self, sql: str, types: Sequence[Type], *, is_stable: bool) -> str:
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

    def _order_sql(self, node: Any, key: OrderKey) -> str:
        return self._emitter.key(node) + (" DESC" if key.is_descending else "")

    def _source(self, source: Source, scope: KnownNames) -> str:
        match source:
            case GivenTable():
                return self._named(source, scope)
            case DerivedTable():
                return self._derived(self._block(source.query, None), source.alias, scope)
        return self._join(source, scope)

    def _named(self, table: GivenTable, scope: KnownNames) -> str:
        number = self._next()
        name, found = self._tables.source(table, f"a{number}")
        if self._has_table and not (found.is_listed and not self._has_log_table):
            self._found.add("a query of several tables")
        self._has_table = True
        self._has_log_table |= not found.is_listed
        self._add(scope, found)
        return f"{name} AS a{number}"

    def _derived(self, plan: Plan, alias: str, scope: KnownNames) -> str:
        number = self._next()
        columns = [
            SourceColumn(column.name, Slot(f"a{number}.o{no}", of_derived(column.type)))
            for no, column in enumerate(plan.columns)
        ]
        names = [column.name.lower() for column in columns]
        for name in names:
            if names.count(name) > 1:
                raise RefusedError(1060, "42S21", f"Duplicate column name '{name}'")
        self._add(scope, SourceTable(alias, None, columns))
        return f"({plan.sql}) AS a{number}"

    def _add(self, scope: KnownNames, table: SourceTable) -> None:
        if any(one.alias == table.alias and one.database == table.database for one in scope.tables):
            raise RefusedError(1066, "42000", f"Not unique table/alias: '{table.alias}'")
        scope.tables.append(table)
        if len(scope.tables) > TABLES_MAX:
            raise RefusedError(1116, "HY000", "Too many tables; MariaDB can only use 61 tables in a join")

    def _join(self, join: Join, scope: KnownNames) -> str:
        first = len(scope.tables)
        left = self._source(join.left, scope)
        middle = len(scope.tables)
        if isinstance(join.right, Join) and join.kind != "INNER":
            raise not_supported("joins in brackets behind an outer join")
        right = self._source(join.right, scope)
        for table in {"LEFT": scope.tables[middle:], "RIGHT": scope.tables[first:middle]}.get(join.kind, ()):
            make_outer(table)
        on = "1" if join.on is None else self._emitter.condition(self._names.resolved(join.on, scope, "ON"))
        if isinstance(join.right, Join):
            right = f"({right})"
        word = {"INNER": "JOIN", "LEFT": "LEFT JOIN", "RIGHT": "RIGHT JOIN"}[join.kind]
        return f"{left} {word} {right} ON {on}"


def ordered(keys: Sequence[str]) -> str:
    return f" ORDER BY {', '.join(keys)}" if keys else ""


def limited(limit: tuple[int, int | None] | None) -> str:
    if limit is None:
        return ""
    skip, count = limit
    return f" LIMIT {-1 if count is None else min(count, ROWS_MAX)} OFFSET {min(skip, ROWS_MAX)}"
