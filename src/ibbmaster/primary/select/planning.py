"""Plans a query: resolves its names, and writes the SQL by which SQLite joins, groups and orders its rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ibbmaster.replication.wire.refusal import RefusedError, not_supported
from ibbmaster.rows.expr.comparing import is_ordered_by_sqlite
from ibbmaster.rows.expr.compiling import Emitter, SqlFunctions
from ibbmaster.rows.expr.kinds import Family, joint_collation
from ibbmaster.rows.expr.scalars import SqlValue
from ibbmaster.rows.expr.session_facts import QuerySession
from ibbmaster.sqltext.expression import (
    Aggregate,
    Call,
    DerivedTable,
    GivenTable,
    Item,
    Join,
    Literal,
    OrderKey,
    Source,
    SqlQuery,
    contains,
    equalities,
)
from .grouping import GroupPlan
from .sources import KnownNames, Plan, PlannedColumn, SourceColumn, SourceTable, Tables

TABLES_MAX = 61
ROWS_MAX = (1 << 63) - 1


class Planner:
    def __init__(self, session: QuerySession, registry: SqlFunctions, tables: Tables) -> None:
        self._tables = tables
        self._emitter = Emitter(session, registry)
        self._count = 0
        self._has_table = self._has_log_table = False

    def _next(self) -> int:
        self._count += 1
        if self._count > 4 * TABLES_MAX:
            raise not_supported("a query of this many parts")
        return self._count

    def plan(self, block: SqlQuery) -> Plan:
        """Raises RefusedError: the query names what does not exist, or is not computed here."""
        scope = KnownNames([])
        from_sql = "" if block.source is None else f" FROM {self._source(block.source, scope)}"
        items = scope.items(block.items)
        conditions = []
        where = None if block.where is None else scope.resolved(block.where, "WHERE")
        if where is not None and contains(where, Aggregate):
            raise RefusedError(1111, "HY000", "Invalid use of group function")
        group_by = [scope.group_key(node, items) for node in block.group_by]
        order_by = [OrderKey(scope.order_key(key.node, items), key.is_descending) for key in block.order_by]
        having = None if block.having is None else scope.resolved(block.having, "HAVING")
        nodes = [item.node for item in items] + [key.node for key in order_by] + ([] if having is None else [having])
        is_grouped = bool(group_by) or any(contains(node, Aggregate) for node in nodes)
        if where is not None:
            conditions.append(self._emitter.condition(where))
            self._restrict_tables(where)
        if is_grouped:
            grouping = GroupPlan(self._emitter, scope, group_by)
            items = [replace(item, node=grouping.of(item.node)) for item in items]
            order_by = [OrderKey(grouping.of(key.node), key.is_descending) for key in order_by]
            having = None if having is None else grouping.of(having)
        elif having is not None:
            conditions.append(self._emitter.condition(having))
        emitted = [self._emitter.shown(item.node) for item in items]
        columns = tuple(PlannedColumn(item.name, kind) for item, (_, kind) in zip(items, emitted, strict=True))
        sql = f"SELECT {', '.join(f'{value} AS o{no}' for no, (value, _) in enumerate(emitted))}{from_sql}"
        if conditions:
            sql += " WHERE " + " AND ".join(f"({one})" for one in conditions)
        if group_by:
            sql += " GROUP BY " + ", ".join(map(self._emitter.key, group_by))
        if is_grouped and having is not None:
            if not group_by:
                raise not_supported("HAVING without GROUP BY")
            sql += " HAVING " + self._emitter.condition(having)
        if block.is_distinct:
            sql = self._distinct(sql, columns)
            return Plan(self._sorted_distinct(block, sql, columns, items, order_by) + _limited(block.limit), columns)
        keys = [self._order_sql(key.node, key) for key in order_by if not isinstance(key.node, Literal)]
        if group_by and not order_by:
            keys = [self._emitter.key(node) for node in group_by]
        if is_grouped and not group_by:
            keys = []
        return Plan(sql + _ordered(keys) + _limited(block.limit), columns)

    def _restrict_tables(self, where: Any) -> None:
        """Let tables know the texts that their columns equal in every row that is wanted."""
        pairs = equalities(where)
        for slot, other in (*pairs, *((right, left) for left, right in pairs)):
            if not isinstance(slot, SqlValue) or not isinstance(other, Literal | Call):
                continue
            scalar, _ = self._emitter.scalar(other)
            types = (slot.type, scalar.type)
            is_text = all(kind.kind is Family.TEXT for kind in types) and scalar.is_constant
            if is_text and scalar.value is not None and joint_collation(types)[0] == slot.type.collation:
                self._tables.restrict(slot, scalar.value)

    def _sorted_distinct(
        self,
        block: SqlQuery,
        sql: str,
        columns: Sequence[PlannedColumn],
        items: Sequence[Item],
        order_by: Sequence[OrderKey],
    ) -> str:
        if not order_by:
            return sql if block.limit is None else f"SELECT * FROM ({sql})"
        alias = f"d{self._next()}"
        keys = []
        for key in order_by:
            place = next((no for no, item in enumerate(items) if item.node == key.node), None)
            if place is None:
                raise not_supported("DISTINCT, and ORDER BY what is not shown")
            keys.append(self._order_sql(SqlValue(f"{alias}.o{place}", columns[place].type), key))
        return f"SELECT * FROM ({sql}) AS {alias}" + _ordered(keys)

    def _distinct(self, sql: str, columns: Sequence[PlannedColumn]) -> str:
        types = [column.type for column in columns]
        if any(kind.kind is Family.BIT for kind in types):
            raise not_supported("DISTINCT of BIT")  # which a server shows as a number then
        if all(map(is_ordered_by_sqlite, types)):
            return f"SELECT DISTINCT * FROM ({sql})"
        alias = f"d{self._next()}"
        shown, keys = [], []
        for no, kind in enumerate(types):
            slot = SqlValue(f"{alias}.o{no}", kind)
            keys.append(self._emitter.key(slot))
            shown.append(f"{slot.sql if is_ordered_by_sqlite(kind) else f'same_row({slot.sql})'} AS o{no}")
        return f"SELECT {', '.join(shown)} FROM ({sql}) AS {alias} GROUP BY {', '.join(keys)}"

    def _order_sql(self, node: Any, key: OrderKey) -> str:
        return self._emitter.key(node) + (" DESC" if key.is_descending else "")

    def _source(self, source: Source, scope: KnownNames) -> str:
        match source:
            case GivenTable():
                return self._named(source, scope)
            case DerivedTable():
                return self._derived(self.plan(source.query), source.alias, scope)
        return self._join(source, scope)

    def _named(self, table: GivenTable, scope: KnownNames) -> str:
        alias = f"a{self._next()}"
        name, found = self._tables.source(table, alias)
        self._has_log_table |= not found.is_listed
        if self._has_table and self._has_log_table:
            raise not_supported("a query of several tables over tables of the log")
        self._has_table = True
        self._add(scope, found)
        return f"{name} AS {alias}"

    def _derived(self, plan: Plan, alias: str, scope: KnownNames) -> str:
        name = f"a{self._next()}"
        kinds = [replace(column.type, strength=min(column.type.strength, 2)) for column in plan.columns]
        columns = [
            SourceColumn(column.name, SqlValue(f"{name}.o{no}", kind))
            for no, (column, kind) in enumerate(zip(plan.columns, kinds, strict=True))
        ]
        names = [column.name.lower() for column in columns]
        for one in names:
            if names.count(one) > 1:
                raise RefusedError(1060, "42S21", f"Duplicate column name '{one}'")
        self._add(scope, SourceTable(alias, None, columns))
        return f"({plan.sql}) AS {name}"

    def _add(self, scope: KnownNames, table: SourceTable) -> None:
        if any(one.alias == table.alias and one.database == table.database for one in scope.tables):
            raise RefusedError(1066, "42000", f"Not unique table/alias: '{table.alias}'")
        scope.tables.append(table)
        if len(scope.tables) > TABLES_MAX:
            raise RefusedError(1116, "HY000", "Too many tables; MariaDB can only use 61 tables in a join")

    def _join(self, join: Join, scope: KnownNames) -> str:
        left = self._source(join.left, scope)
        middle = len(scope.tables)
        if isinstance(join.right, Join) and join.is_left:
            raise not_supported("joins in brackets behind an outer join")
        right = self._source(join.right, scope)
        for table in scope.tables[middle:] if join.is_left else ():
            table.make_outer()
        on = "1" if join.on is None else self._emitter.condition(scope.resolved(join.on, "ON"))
        if isinstance(join.right, Join):
            right = f"({right})"
        return f"{left} {'LEFT JOIN' if join.is_left else 'JOIN'} {right} ON {on}"


def _ordered(keys: Sequence[str]) -> str:
    return f" ORDER BY {', '.join(keys)}" if keys else ""


def _limited(limit: tuple[int, int | None] | None) -> str:
    if limit is None:
        return ""
    skip, count = limit
    return f" LIMIT {-1 if count is None else min(count, ROWS_MAX)} OFFSET {min(skip, ROWS_MAX)}"
