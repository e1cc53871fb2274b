"""Plans a query: finds what its names mean, and writes the SQL by which SQLite joins, groups and orders its rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ibbmaster.dialogue.refusal import RefusedError, not_supported, unknown_column
from ibbmaster.query.aggregates import aggregate_slot, window_slot
from ibbmaster.query.compiling import Emitter, PlannedQuery, QuerySession, SqlFunctions
from ibbmaster.query.kinds import FLOATING, NOT_NULL, REALS, Kind, Type, of_all
from ibbmaster.query.scalars import Slot, is_ordered_by_sqlite
from ibbmaster.query.tree import (
    Aggregate,
    Cast,
    Compound,
    Definition,
    DerivedTable,
    Item,
    Join,
    NamedTable,
    Nested,
    OrderKey,
    Query,
    SelectBlock,
    Source,
    Window,
    WithQuery,
    names_table,
)
from ibbmaster.sqltext.expression import Call, ColumnName, Literal, Operation, Star

TABLES_MAX = 61
ITERATIONS_MAX = 1000
OTHER_WIDTH = RefusedError(1222, "21000", "The used SELECT statements have a different number of columns")
ROWS_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of a source by its name."""

    name: str
    slot: Slot
    is_shown: bool = True  # by *


@dataclass(slots=True)
class SourceTable:
    """A table in FROM as names find it. `key` are the slots of its primary key."""

    alias: str
    database: str | None
    columns: list[SourceColumn]
    key: tuple[Slot, ...] = ()
    indexed: frozenset[Slot] = frozenset()  # columns of indexes, but of that key
    is_clustered: bool = False  # whether its rows lie in the order of their key
    is_listed: bool = False  # whether every server has it
    is_outer: bool = False  # whether a join makes rows of NULL for it
    hidden: set[str] = field(default_factory=set)  # columns that a join by USING has put together with others

    def change_slots(self, change: Callable[[Slot], Slot]) -> None:
        """Let every column have another slot."""
        self.columns = [dataclasses.replace(column, slot=change(column.slot)) for column in self.columns]
        self.key = tuple(map(change, self.key))
        self.indexed = frozenset(map(change, self.indexed))


@dataclass(frozen=True, slots=True)
class PlannedColumn:
    """A column of a result."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Plan:
    """SQL whose columns are called o0, o1, …; `is_single`: it gives one row at most."""

    sql: str
    columns: tuple[PlannedColumn, ...]
    is_single: bool = False
    outer: frozenset[Slot] = frozenset()


@dataclass(frozen=True, slots=True)
class KnownRows:
    """The rows that a query of WITH RECURSIVE has given before, in the query itself."""

    table: str
    columns: tuple[PlannedColumn, ...]


class Tables(Protocol):
    """Gives tables of the log to a plan."""

    def source(self, table: NamedTable, sql_alias: str) -> tuple[str, SourceTable]:
        """The name SQLite knows a table by, and its columns."""


@dataclass(slots=True)
class _Scope:
    """What names mean inside of one SELECT."""

    tables: list[SourceTable]
    parent: _Scope | None
    block: int
    definitions: dict[str, tuple[str, ...] | Plan]
    joined: dict[str, Any] = field(default_factory=dict)  # columns of USING
    aliases: dict[str, Any] = field(default_factory=dict)  # resolved items by name
    outer: set[Slot] = field(default_factory=set)  # of queries around it, that were named
    recursive: list[str] = field(default_factory=list)  # what SQL calls the table that WITH RECURSIVE makes of this


class Planner:
    """Plans one statement."""

    def __init__(
        self, session: QuerySession, registry: SqlFunctions, tables: Tables, *, has_full_groups: bool = False
    ) -> None:
        """`has_full_groups`: sql_mode has ONLY_FULL_GROUP_BY."""
        self._session = session
        self.has_full_groups = has_full_groups
        self._tables = tables
        self._emitter = Emitter(session, registry)
        self._registry = registry
        self._count = 0

    def plan(self, query: Query) -> Plan:
        """
        Raises:
            RefusedError: the query names what does not exist, or is not answered here as MariaDB does.
        """
        return self._query(query, None, {})

    def _query(
        self, query: Query, parent: _Scope | None, definitions: dict[str, Any], *, is_value: bool = False
    ) -> Plan:
        """`is_value`: its only row is the value of an expression, which no table has kept in between."""
        match query:
            case WithQuery():
                known = dict(definitions)
                for definition in query.definitions:
                    if query.is_recursive and names_table(definition.query, definition.name):
                        known[definition.name.lower()] = self._recursion(definition, known)
                        continue
                    plan = self._query(definition.query, parent, known)
                    known[definition.name.lower()] = _renamed(plan, definition.columns)
                return self._query(query.query, parent, known)
            case Compound():
                return self._compound(query, parent, definitions)
        return self._block(query, parent, definitions, is_value=is_value)

    def _next(self) -> int:
        self._count += 1
        if self._count > 4 * TABLES_MAX:
            raise not_supported("a query of so many parts")
        return self._count

    # UNION ------------------------------------------------------------------------------------

    def _compound(self, query: Compound, parent: _Scope | None, definitions: dict[str, Any]) -> Plan:
        plans = [self._query(member, parent, definitions) for member in query.members]
        width = len(plans[0].columns)
        if any(len(plan.columns) != width for plan in plans):
            raise OTHER_WIDTH
        outer = frozenset().union(*(plan.outer for plan in plans))
        if len(plans) == 1:
            columns, sql = plans[0].columns, plans[0].sql
        else:
            types = [_joint_type([plan.columns[no].type for plan in plans]) for no in range(width)]
            columns = tuple(
                PlannedColumn(column.name, kind.computed())
                for column, kind in zip(plans[0].columns, types, strict=True)
            )
            sql = self._cast_member(plans[0], types)
            for operator, plan in zip(query.operators, plans[1:], strict=True):
                if operator in ("EXCEPT", "INTERSECT"):
                    sql = self._matched(operator, sql, self._cast_member(plan, types), types)
                    continue
                sql = f"{sql} UNION ALL {self._cast_member(plan, types)}"
                if operator == "UNION":
                    sql = f"SELECT * FROM ({self._distinct(sql, types)})"
        if query.order_by or query.limit is not None:
            inner = f"u{self._next()}"
            slots = [Slot(f"{inner}.o{no}", column.type) for no, column in enumerate(columns)]
            keys = [self._order_sql(self._output_key(key, columns, slots), key.is_descending) for key in query.order_by]
            sql = f"SELECT * FROM ({sql}) AS {inner}" + _ordered(keys) + _limited(query.limit)
        return Plan(sql, columns, query.limit == (0, 1), outer)

    def _matched(self, operator: str, left: str, right: str, types: Sequence[Type]) -> str:
        """The rows of one query that are also, or not, those of another: each once, as the first one has it."""
        alias = f"d{self._next()}"
        slots = [Slot(f"{alias}.o{no}", kind) for no, kind in enumerate(types)]
        shown = ", ".join(f"same_row({slot.sql}) FILTER (WHERE side = 1) AS o{no}" for no, slot in enumerate(slots))
        keys = ", ".join(map(self._emitter.key, slots))
        both = f"SELECT *, 1 AS side FROM ({left}) UNION ALL SELECT *, 2 FROM ({right})"
        sides = "MIN(side) = 1 AND MAX(side) = " + ("1" if operator == "EXCEPT" else "2")
        return f"SELECT {shown} FROM ({both}) AS {alias} GROUP BY {keys} HAVING {sides}"

    # WITH RECURSIVE ---------------------------------------------------------------------------

    def _recursion(self, definition: Definition, definitions: dict[str, Any]) -> Plan:
        """What a query gives, and then of its own rows, until it gives none."""
        query = definition.query
        if not isinstance(query, Compound) or query.operators != ("UNION ALL",) or query.order_by or query.limit:
            raise not_supported("WITH RECURSIVE but of two queries and UNION ALL")
        first, second = query.members
        if names_table(first, definition.name) or not isinstance(second, SelectBlock) or not _is_plain(second):
            raise not_supported("WITH RECURSIVE of this form")
        start = _renamed(self._query(first, None, definitions), definition.columns)
        columns = tuple(PlannedColumn(one.name, one.type.computed(is_nullable=True)) for one in start.columns)
        table = f"r{self._next()}"
        known = {**definitions, definition.name.lower(): KnownRows(table, columns)}
        types = [column.type for column in columns]
        following = self._block(second, None, known, types=types)
        names = ", ".join(f"o{no}" for no in range(len(columns)))
        sql = (
            f"WITH RECURSIVE {table} ({names}, depth) AS (SELECT {names}, 0 FROM ({self._cast_member(start, types)}) "
            f"UNION ALL {following.sql}) SELECT {names} FROM {table}"
        )
        return Plan(sql, columns)

    def _next_depth(self, scope: _Scope) -> tuple[str, str]:
        """What counts how often a query was asked of its own rows, and what ends it behind the last time."""
        (alias,) = scope.recursive
        most = self._session.evaluator.settings.value("max_recursive_iterations")
        limit = most if isinstance(most, int) else ITERATIONS_MAX

        def check(depth: int) -> int:
            if depth >= limit:
                raise not_supported(f"WITH RECURSIVE of more than {limit} steps")
            return 1

        return f"{alias}.depth + 1", f"{self._registry.function(check, 1)}({alias}.depth)"

    def _cast_member(self, plan: Plan, types: Sequence[Type]) -> str:
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

    def _distinct(self, sql: str, types: Sequence[Type], *, is_stable: bool = False) -> str:
        """Each row once, as the first one of those that compare alike where a server is known to take that one."""
        if all(map(is_ordered_by_sqlite, types)):
            return f"SELECT DISTINCT * FROM ({sql})"
        alias = f"d{self._next()}"
        shown, keys = [], []
        for no, kind in enumerate(types):
            slot = Slot(f"{alias}.o{no}", kind)
            keys.append(self._emitter.key(slot))
            shown.append(f"{slot.sql if is_ordered_by_sqlite(kind) else f'{_chosen(is_stable)}({slot.sql})'} AS o{no}")
        return f"SELECT {', '.join(shown)} FROM ({sql}) AS {alias} GROUP BY {', '.join(keys)}"

    def _order_sql(self, node: Any, is_descending: bool) -> str:
        return self._emitter.key(node) + (" DESC" if is_descending else "")

    # SELECT -----------------------------------------------------------------------------------

    def _block(
        self,
        block: SelectBlock,
        parent: _Scope | None,
        definitions: dict[str, Any],
        *,
        is_value: bool = False,
        types: Sequence[Type] | None = None,
    ) -> Plan:
        """`types` are those of the columns of a query that is asked of its own rows."""
        scope = _Scope([], parent, self._next(), definitions)
        equal: list[tuple[Any, Any]] = []
        from_sql = "" if block.source is None else f" FROM {self._source(block.source, scope, equal)}"
        items = [resolved for item in block.items for resolved in self._item(item, scope)]
        for item in items:
            scope.aliases.setdefault(item.name.lower(), item.node)
        where = None if block.where is None else self._resolved(block.where, scope, "WHERE")
        if where is not None and _contains(where, Aggregate | Window):
            raise RefusedError(1111, "HY000", "Invalid use of group function")
        group_by = [self._group_key(node, items, scope) for node in block.group_by]
        order_by = [OrderKey(self._order_key(key.node, items, scope), key.is_descending) for key in block.order_by]
        having = None if block.having is None else self._resolved(block.having, scope, "HAVING")
        nodes = [item.node for item in items] + [key.node for key in order_by] + ([] if having is None else [having])
        is_grouped = bool(group_by) or any(_contains(node, Aggregate) for node in nodes)
        where_sql = []
        if where is not None:
            where_sql.append(self._emitter.condition(where))
            equal += _equalities(where)
        if is_grouped:
            is_stable = _is_stable(scope, where, block.source) and not any(map(_sorts_groups, nodes))
            grouping = _Grouping(self, scope, group_by, equal, is_stable=is_stable)
            items = [dataclasses.replace(item, node=grouping.of(item.node)) for item in items]
            order_by = [OrderKey(grouping.of(key.node), key.is_descending) for key in order_by]
            having = None if having is None else grouping.of(having)
        elif having is not None:
            if _contains(having, Window):
                raise not_supported("HAVING over windows")
            where_sql.append(self._emitter.condition(having))
            having = None
        items = [dataclasses.replace(item, node=self._windows(item.node)) for item in items]
        order_by = [OrderKey(self._windows(key.node), key.is_descending) for key in order_by]
        show = self._emitter.value if is_value and not group_by and not block.is_distinct else self._shown_value
        if types is not None:
            if len(items) != len(types):
                raise OTHER_WIDTH
            if is_grouped or len(scope.recursive) != 1:
                raise not_supported("WITH RECURSIVE of this form")
            emitted = [self._emitter.fitted(item.node, kind) for item, kind in zip(items, types, strict=True)]
            depth, ends = self._next_depth(scope)
            emitted.append((depth, types[0]))
            items.append(Item(Star(), "depth"))
            where_sql.append(ends)
        else:
            emitted = [show(item.node) for item in items]
        return self._written(
            block, scope, items, emitted, from_sql, where, where_sql, group_by, having, order_by, is_grouped
        )

    def _written(
        self,
        block: SelectBlock,
        scope: _Scope,
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
        outer = frozenset(scope.outer)
        if block.is_distinct:
            is_stable = not is_grouped and _is_stable(scope, where, block.source)
            return self._distinct_block(block, sql, columns, items, order_by, outer, is_stable=is_stable)
        keys = [self._order_sql(key.node, key.is_descending) for key in order_by if not isinstance(key.node, Literal)]
        if is_grouped and group_by and not order_by:
            keys = [self._emitter.key(node) for node in group_by]
        if is_grouped and not group_by:
            keys = []
        return Plan(sql + _ordered(keys) + _limited(block.limit), columns, is_single, outer)

    def _shown_value(self, node: Any) -> tuple[str, Type]:
        """A value as a column of a result has it: with no more digits than it shows."""
        sql, kind = self._emitter.value(node)
        if kind.kind is not Kind.DECIMAL or kind.fraction <= kind.decimals:
            return sql, kind
        return self._emitter.value(node, dataclasses.replace(kind, fraction=-1))

    def _distinct_block(
        self,
        block: SelectBlock,
        sql: str,
        columns: tuple[PlannedColumn, ...],
        items: list[Item],
        order_by: list[OrderKey],
        outer: frozenset[Slot],
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
                keys.append(self._order_sql(Slot(f"{alias}.o{place}", columns[place].type), key.is_descending))
            sql = f"SELECT * FROM ({sql}) AS {alias}" + _ordered(keys)
        elif block.limit is not None:
            sql = f"SELECT * FROM ({sql})"
        return Plan(sql + _limited(block.limit), columns, block.limit == (0, 1), outer)

    def _windows(self, node: Any) -> Any:
        """The same with windows as slots."""
        return _mapped(node, lambda one: window_slot(one, self._emitter) if isinstance(one, Window) else None)

    # FROM -------------------------------------------------------------------------------------

    def _source(self, source: Source, scope: _Scope, equal: list[tuple[Any, Any]]) -> str:
        match source:
            case NamedTable():
                return self._named(source, scope)
            case DerivedTable():
                plan = self._query(source.query, None, scope.definitions)
                return self._derived(_renamed(plan, source.columns), source.alias, scope)
        return self._join(source, scope, equal)

    def _named(self, table: NamedTable, scope: _Scope) -> str:
        defined = scope.definitions.get(table.name.lower()) if table.database is None else None
        alias = table.alias or table.name
        if isinstance(defined, Plan):
            return self._derived(defined, alias, scope)
        number = self._next()
        if isinstance(defined, KnownRows):
            scope.recursive.append(f"a{number}")
            self._add_columns(defined.columns, alias, number, scope)
            return f"{defined.table} AS a{number}"
        name, found = self._tables.source(table, f"a{number}")
        found.columns = [
            dataclasses.replace(one, slot=dataclasses.replace(one.slot, block=scope.block)) for one in found.columns
        ]
        found.key = tuple(dataclasses.replace(slot, block=scope.block) for slot in found.key)
        found.indexed = frozenset(dataclasses.replace(slot, block=scope.block) for slot in found.indexed)
        self._add(scope, found)
        return f"{name} AS a{number}"

    def _derived(self, plan: Plan, alias: str, scope: _Scope) -> str:
        if plan.outer:
            raise not_supported("a query in FROM that depends on others")
        number = self._next()
        self._add_columns(plan.columns, alias, number, scope)
        return f"({plan.sql}) AS a{number}"

    def _add_columns(self, planned: Sequence[PlannedColumn], alias: str, number: int, scope: _Scope) -> None:
        columns = [
            SourceColumn(column.name, Slot(f"a{number}.o{no}", _of_derived(column.type), scope.block))
            for no, column in enumerate(planned)
        ]
        names = [column.name.lower() for column in columns]
        for name in names:
            if names.count(name) > 1:
                raise RefusedError(1060, "42S21", f"Duplicate column name '{name}'")
        self._add(scope, SourceTable(alias, None, columns))

    def _add(self, scope: _Scope, table: SourceTable) -> None:
        if any(one.alias == table.alias and one.database == table.database for one in scope.tables):
            raise RefusedError(1066, "42000", f"Not unique table/alias: '{table.alias}'")
        scope.tables.append(table)
        if len(scope.tables) > TABLES_MAX:
            raise RefusedError(1116, "HY000", "Too many tables; MariaDB can only use 61 tables in a join")

    def _join(self, join: Join, scope: _Scope, equal: list[tuple[Any, Any]]) -> str:
        first = len(scope.tables)
        left = self._source(join.left, scope, equal)
        middle = len(scope.tables)
        if isinstance(join.right, Join) and join.kind != "INNER":
            raise not_supported("joins in brackets behind an outer join")
        right = self._source(join.right, scope, equal)
        ours, theirs = scope.tables[first:middle], scope.tables[middle:]
        if join.kind == "LEFT":
            for table in theirs:
                _make_outer(table)
        elif join.kind == "RIGHT":
            for table in ours:
                _make_outer(table)
        conditions = []
        if join.on is not None:
            on = self._resolved(join.on, scope, "ON")
            conditions.append(self._emitter.condition(on))
            pairs = _equalities(on)
            if join.kind == "INNER" or (isinstance(on, Operation) and on.operator == "="):
                equal += pairs
        if join.using is not None:
            names = join.using or _common(ours, theirs)
            conditions += [self._used(name, ours, theirs, join.kind, equal) for name in names]
        if isinstance(join.right, Join):
            right = f"({right})"
        word = {"INNER": "JOIN", "LEFT": "LEFT JOIN", "RIGHT": "RIGHT JOIN"}[join.kind]
        on_sql = " AND ".join(f"({one})" for one in conditions) or "1"
        return f"{left} {word} {right} ON {on_sql}"

    def _used(
        self,
        name: str,
        ours: list[SourceTable],
        theirs: list[SourceTable],
        kind: str,
        equal: list[tuple[Any, Any]],
    ) -> str:
        sides = []
        for tables in (ours, theirs):
            found = [
                (table, column) for table in tables for column in table.columns
                if column.name.lower() == name.lower() and column.name.lower() not in table.hidden
            ]  # fmt: skip
            if not found:
                raise unknown_column(name, "FROM")
            sides.append(found[0])
        (_, one), (table, other) = sides
        table.hidden.add(name.lower())
        if kind == "RIGHT":
            raise not_supported("RIGHT JOIN by USING")
        equal.append((one.slot, other.slot))
        return self._emitter.condition(Operation("=", (one.slot, other.slot)))  # type: ignore[arg-type]

    # Names ------------------------------------------------------------------------------------

    def _item(self, item: Item, scope: _Scope) -> Iterator[Item]:
        if not isinstance(item.node, Star):
            yield dataclasses.replace(item, node=self._resolved(item.node, scope, "SELECT"))
            return
        wanted = item.node.table
        tables = [table for table in scope.tables if not wanted or _is_called(table, wanted)]
        if not tables:
            if not wanted:
                raise RefusedError(1096, "HY000", "No tables used")
            raise RefusedError(1051, "42S02", f"Unknown table '{'.'.join(wanted)}'")
        for table in tables:
            for column in table.columns:
                if column.is_shown and (wanted or column.name.lower() not in table.hidden):
                    yield Item(column.slot, column.name)  # type: ignore[arg-type]

    def _group_key(self, node: Any, items: Sequence[Item], scope: _Scope) -> Any:
        found: Any
        match node:
            case Literal(value=int() as number):
                if not 1 <= number <= len(items):
                    raise unknown_column(str(number), "GROUP BY")
                found = items[number - 1].node
            case ColumnName(parts=(name,)) if self._find((name,), scope) is None and name.lower() in scope.aliases:
                found = scope.aliases[name.lower()]
            case ColumnName(parts=(name,)) if name.lower() in {one.alias.lower() for one in items if one.alias}:
                found = self._resolved(node, scope, "GROUP BY")
                if scope.aliases[name.lower()] != found:
                    raise not_supported(f"GROUP BY {name}, which is a column and another expression")
            case _:
                found = self._resolved(node, scope, "GROUP BY")
        if _contains(found, Aggregate | Window):
            raise RefusedError(1056, "42000", "Can't group on this expression")
        return found

    def _order_key(self, node: Any, items: Sequence[Item], scope: _Scope) -> Any:
        match node:
            case Literal(value=int() as number):
                if not 1 <= number <= len(items):
                    raise unknown_column(str(number), "ORDER BY")
                return items[number - 1].node
            case ColumnName(parts=(name,)) if name.lower() in scope.aliases:
                return scope.aliases[name.lower()]
        return self._resolved(node, scope, "ORDER BY")

    def _resolved(self, node: Any, scope: _Scope, clause: str) -> Any:
        """The same with columns as slots, and queries planned."""
        if clause != "SELECT" and isinstance(node, Operation):
            node = _rows_compared(node)
        match node:
            case ColumnName(parts=parts):
                found = self._find(parts, scope)
                if clause in ("HAVING", "ORDER BY") and len(parts) == 1 and parts[0].lower() in scope.aliases:
                    alias = scope.aliases[parts[0].lower()]
                    if found is None or clause == "HAVING":
                        return alias
                if found is None:
                    raise unknown_column(".".join(parts), clause)
                return found
            case Nested(query=query):
                plan = self._query(query, scope, scope.definitions, is_value=True)
                return self._planned(plan, scope)
            case Operation(operator="EXISTS", operands=(Nested(query=query),)):
                plan = self._query(query, scope, scope.definitions)
                return Operation("EXISTS", (self._planned(plan, scope),))  # type: ignore[arg-type]
            case Star():
                raise not_supported("* in an expression")
        return _mapped_children(_rows_compared(node), lambda child: self._resolved(child, scope, clause))

    def _planned(self, plan: Plan, scope: _Scope) -> PlannedQuery:
        for slot in plan.outer:
            if slot.block != scope.block:
                scope.outer.add(slot)
        return PlannedQuery(plan.sql, tuple(column.type for column in plan.columns), plan.is_single, plan.outer)

    def _find(self, parts: tuple[str, ...], scope: _Scope) -> Any:
        level: _Scope | None = scope
        while level is not None:
            found = self._find_here(parts, level)
            if found is not None:
                if level is not scope:
                    inner: _Scope | None = scope
                    while inner is not level and inner is not None:
                        inner.outer.add(found)
                        inner = inner.parent
                return found
            level = level.parent
        return None

    @staticmethod
    def _find_here(parts: tuple[str, ...], scope: _Scope) -> Slot | None:
        name = parts[-1].lower()
        found = [
            column.slot
            for table in scope.tables
            if len(parts) == 1 or _is_called(table, parts[:-1])
            for column in table.columns
            if column.name.lower() == name and (len(parts) > 1 or name not in table.hidden)
        ]
        if len(found) > 1:
            raise RefusedError(1052, "23000", f"Column '{'.'.join(parts)}' in SELECT is ambiguous")
        return found[0] if found else None


class _Grouping:
    """Expressions over groups: of their keys, of aggregates, and of what the keys decide."""

    def __init__(
        self, planner: Planner, scope: _Scope, keys: list[Any], equal: list[tuple[Any, Any]], *, is_stable: bool
    ) -> None:
        self._is_stable = is_stable
        self._has_full_groups = planner.has_full_groups
        self._emitter = planner._emitter
        self._scope = scope
        self._keys = keys
        self._known = self._determined(keys, equal)

    def _determined(self, keys: list[Any], equal: list[tuple[Any, Any]]) -> set[Slot]:
        known = {key for key in keys if isinstance(key, Slot)}
        while not self._has_full_groups:
            size = len(known)
            for one, other in equal:
                if _is_exact(one) and _is_exact(other) and (one in known or other in known):
                    known |= {one, other}
                for slot, value in ((one, other), (other, one)):
                    if _is_exact(slot) and isinstance(value, Literal):
                        known.add(slot)
            for table in self._scope.tables:
                if table.key and all(slot in known for slot in table.key):
                    known |= {column.slot for column in table.columns}
            if len(known) == size:
                break
        return known

    def of(self, node: Any) -> Any:
        """
        Raises:
            RefusedError: it depends on columns that differ inside of a group.
        """
        return _mapped(node, self._part)

    def _part(self, node: Any) -> Any:
        for key in self._keys:
            if node == key:
                return self._key_slot(key)
        match node:
            case Aggregate():
                return aggregate_slot(
                    node, self._emitter, len(self._scope.tables), is_stable=self._is_stable, is_grouped=bool(self._keys)
                )
            case Window():
                return None
            case Slot(block=block) if block == self._scope.block:
                if node in self._known:
                    return node
                if not all(table.is_listed for table in self._scope.tables):
                    raise not_supported("columns that are not grouped")
                return dataclasses.replace(node, sql=f"first_row({node.sql})")
            case PlannedQuery(outer=outer):
                for slot in outer:
                    if slot.block == self._scope.block and not (
                        slot in self._known and is_ordered_by_sqlite(slot.type)
                    ):
                        raise not_supported("a query over columns that are not grouped")
                return node
        return None

    def _key_slot(self, key: Any) -> Slot:
        sql, kind = self._emitter.value(key)
        if isinstance(key, Slot) and is_ordered_by_sqlite(kind):
            return key
        if is_ordered_by_sqlite(kind):
            return Slot(sql, kind, self._scope.block)
        return Slot(f"{_chosen(self._is_stable)}({sql})", kind, self._scope.block)


# Trees ----------------------------------------------------------------------------------------


def _mapped_children(node: Any, change: Callable[[Any], Any]) -> Any:
    match node:
        case Operation(operator=operator, operands=operands):
            return Operation(operator, tuple(map(change, operands)))
        case Call(arguments=arguments):
            return dataclasses.replace(node, arguments=tuple(map(change, arguments)))
        case Cast(value=value):
            return dataclasses.replace(node, value=change(value))
        case Aggregate(arguments=arguments, order_by=order_by):
            keys = tuple(OrderKey(change(key.node), key.is_descending) for key in order_by)
            return dataclasses.replace(node, arguments=tuple(map(change, arguments)), order_by=keys)
        case Window(function=function, partition_by=partition_by, order_by=order_by):
            keys = tuple(OrderKey(change(key.node), key.is_descending) for key in order_by)
            return dataclasses.replace(
                node, function=change(function) if isinstance(function, Call | Aggregate) else function,
                partition_by=tuple(map(change, partition_by)), order_by=keys,
            )  # fmt: skip
    return node


def _mapped(node: Any, change: Callable[[Any], Any]) -> Any:
    """The tree with what `change` gives instead of a part; None goes on into it."""
    found = change(node)
    if found is not None:
        return found
    if isinstance(node, Window) and isinstance(node.function, Aggregate):
        inside = dataclasses.replace(
            node.function, arguments=tuple(_mapped(one, change) for one in node.function.arguments)
        )
        keys = tuple(OrderKey(_mapped(key.node, change), key.is_descending) for key in node.order_by)
        return Window(inside, tuple(_mapped(one, change) for one in node.partition_by), keys, node.frame)
    return _mapped_children(node, lambda child: _mapped(child, change))


def _contains(node: Any, kind: Any) -> bool:
    """Whether a part is of a kind; the aggregate of a window is none of a group."""
    if isinstance(node, kind):
        return True
    if isinstance(node, Window):
        return any(_contains(one, kind) for one in _window_parts(node))
    return any(_contains(child, kind) for child in _children(node))


def _window_parts(node: Window) -> list[Any]:
    return [*node.function.arguments, *node.partition_by, *(key.node for key in node.order_by)]


def _children(node: Any) -> Sequence[Any]:
    match node:
        case Operation(operands=operands):
            return operands
        case Call(arguments=arguments) | Aggregate(arguments=arguments):
            return arguments
        case Cast(value=value):
            return (value,)
    return ()


def _rows_compared(node: Any) -> Any:
    """Comparisons of rows as comparisons of their values."""
    match node:
        case Operation(
            operator=("=" | "!=" | "<" | "<=" | ">" | ">=") as operator,
            operands=(Operation(operator="ROW", operands=left), Operation(operator="ROW", operands=right)),
        ):
            if len(left) != len(right):
                raise RefusedError(1241, "21000", f"Operand should contain {len(left)} column(s)")
            return _compared_rows(operator, left, right)
        case Operation(operator="IN", operands=(Operation(operator="ROW") as left, *others)):
            if len(others) == 1 and isinstance(others[0], Nested | PlannedQuery):
                return node
            if not all(isinstance(one, Operation) and one.operator == "ROW" for one in others):
                raise not_supported("rows IN such a list")
            return Operation("OR", tuple(_rows_compared(Operation("=", (left, one))) for one in others))
    return node


def _compared_rows(operator: str, left: Sequence[Any], right: Sequence[Any]) -> Operation:
    if operator in ("=", "!="):
        parts = tuple(Operation(operator, pair) for pair in zip(left, right, strict=True))
        return Operation("AND" if operator == "=" else "OR", parts)
    found = Operation(operator, (left[-1], right[-1]))
    for one, other in reversed(list(zip(left[:-1], right[:-1], strict=True))):
        strict = Operation(operator[0], (one, other))
        found = Operation("OR", (strict, Operation("AND", (Operation("=", (one, other)), found))))
    return found


def _equalities(node: Any) -> list[tuple[Any, Any]]:
    match node:
        case Operation(operator="AND", operands=operands):
            return [pair for operand in operands for pair in _equalities(operand)]
        case Operation(operator="=", operands=(left, right)):
            return [(left, right)]
    return []


def _is_exact(node: Any) -> bool:
    """Whether values of a column that compare alike are the same."""
    return isinstance(node, Slot) and is_ordered_by_sqlite(node.type)


def _is_plain(block: SelectBlock) -> bool:
    return not (block.group_by or block.having or block.order_by or block.limit or block.is_distinct)


def _chosen(is_stable: bool) -> str:
    """What takes one of several texts that compare alike: the first one, or none."""
    return "first_row" if is_stable else "same_row"


def _is_stable(scope: _Scope, where: Any, source: Source | None) -> bool:
    """Whether a server reads the rows in the order in which they are here: of one table, by no index but its key."""
    if not isinstance(source, NamedTable) or len(scope.tables) != 1 or not scope.tables[0].is_clustered:
        return False
    return where is None or not any(slot in scope.tables[0].indexed for slot in _slots(where))


def _slots(node: Any) -> Iterator[Slot]:
    if isinstance(node, Slot):
        yield node
    for child in _children(node):
        yield from _slots(child)


def _sorts_groups(node: Any) -> bool:
    """Whether a server sorts the rows for an aggregate before it sees them."""
    if isinstance(node, Aggregate):
        return node.is_distinct or node.name == "group_concat"
    return isinstance(node, PlannedQuery | Window) or any(map(_sorts_groups, _children(node)))


# Types ----------------------------------------------------------------------------------------


def _make_outer(table: SourceTable) -> None:
    """A table whose values may all be NULL."""
    table.is_outer = True

    def change(slot: Slot) -> Slot:
        definition = slot.type.column
        if definition is not None:
            definition = dataclasses.replace(definition, flags=definition.flags & ~NOT_NULL)
        return dataclasses.replace(slot, type=dataclasses.replace(slot.type, is_nullable=True, column=definition))

    table.change_slots(change)


def _of_derived(kind: Type) -> Type:
    """A column of a query in FROM."""
    return dataclasses.replace(kind, strength=2 if kind.strength > 2 else kind.strength)


def _joint_type(members: Sequence[Type]) -> Type:
    """The type of a column of UNION.

    Raises:
        RefusedError: it is not told here.
    """
    found = of_all(members)
    if found.kind in REALS and any(kind.kind is Kind.DECIMAL and kind.column is None for kind in members):
        raise not_supported("UNION of exact numbers that are computed and others")
    if found.kind is Kind.DOUBLE and found.decimals < FLOATING:
        raise not_supported("UNION of floating numbers with a fixed point")
    if found.kind is Kind.DECIMAL and any(kind.decimals < min(kind.fraction, found.decimals) for kind in members):
        raise not_supported("UNION of a quotient and others")
    return found


def _renamed(plan: Plan, names: tuple[str, ...]) -> Plan:
    if not names:
        return plan
    if len(names) != len(plan.columns):
        raise RefusedError(1353, "HY000", "SELECT list and column names list have different column counts")
    columns = tuple(PlannedColumn(name, column.type) for name, column in zip(names, plan.columns, strict=True))
    return dataclasses.replace(plan, columns=columns)


def _common(ours: list[SourceTable], theirs: list[SourceTable]) -> list[str]:
    """What NATURAL joins by."""
    names = {column.name.lower() for table in theirs for column in table.columns if column.is_shown}
    return [
        column.name for table in ours for column in table.columns if column.is_shown and column.name.lower() in names
    ]


def _is_called(table: SourceTable, name: tuple[str, ...]) -> bool:
    if table.alias != name[-1] and table.alias.lower() != name[-1].lower():
        return False
    return len(name) == 1 or table.database is None or table.database == name[0]


def _ordered(keys: Sequence[str]) -> str:
    return f" ORDER BY {', '.join(keys)}" if keys else ""


def _limited(limit: tuple[int, int | None] | None) -> str:
    if limit is None:
        return ""
    skip, count = limit
    return f" LIMIT {-1 if count is None else min(count, ROWS_MAX)} OFFSET {min(skip, ROWS_MAX)}"
