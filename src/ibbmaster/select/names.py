"""What names mean: columns, aliases, numbers of columns, and queries in expressions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ibbmaster.expr.emitting import PlannedQuery
from ibbmaster.expr.scalars import Slot
from ibbmaster.expr.walking import contains, mapped_children, rows_compared
from ibbmaster.select.sources import KnownNames, Plan, is_called
from ibbmaster.sqltext.expression import Aggregate, ColumnName, Literal, Nested, Operation, Star
from ibbmaster.sqltext.query_tree import Item, Query
from ibbmaster.wire.refusal import RefusedError, not_supported, unknown_column

#: Plans a query that stands in an expression, and says whether its only row is the value of that.
PlanQuery = Callable[[Query, KnownNames, bool], Plan]


class Names:
    """Finds what the names of one statement mean."""

    def __init__(self, plan: PlanQuery) -> None:
        self._plan = plan

    def item(self, item: Item, scope: KnownNames) -> Iterator[Item]:
        if not isinstance(item.node, Star):
            yield dataclasses.replace(item, node=self.resolved(item.node, scope, "SELECT"))
            return
        wanted = item.node.table
        tables = [table for table in scope.tables if not wanted or is_called(table, wanted)]
        if not tables:
            if not wanted:
                raise RefusedError(1096, "HY000", "No tables used")
            raise RefusedError(1051, "42S02", f"Unknown table '{'.'.join(wanted)}'")
        for table in tables:
            for column in table.columns:
                if column.is_shown:
                    yield Item(column.slot, column.name)  # type: ignore[arg-type]

    def group_key(self, node: Any, items: Sequence[Item], scope: KnownNames) -> Any:
        found: Any
        match node:
            case Literal(value=int() as number):
                if not 1 <= number <= len(items):
                    raise unknown_column(str(number), "GROUP BY")
                found = items[number - 1].node
            case ColumnName(parts=(name,)) if self._find((name,), scope) is None and name.lower() in scope.aliases:
                found = scope.aliases[name.lower()]
            case ColumnName(parts=(name,)) if name.lower() in {one.alias.lower() for one in items if one.alias}:
                found = self.resolved(node, scope, "GROUP BY")
                if scope.aliases[name.lower()] != found:
                    raise not_supported(f"GROUP BY {name}, which is a column and another expression")
            case _:
                found = self.resolved(node, scope, "GROUP BY")
        if contains(found, Aggregate):
            raise RefusedError(1056, "42000", "Can't group on this expression")
        return found

    def order_key(self, node: Any, items: Sequence[Item], scope: KnownNames) -> Any:
        match node:
            case Literal(value=int() as number):
                if not 1 <= number <= len(items):
                    raise unknown_column(str(number), "ORDER BY")
                return items[number - 1].node
            case ColumnName(parts=(name,)) if name.lower() in scope.aliases:
                return scope.aliases[name.lower()]
        return self.resolved(node, scope, "ORDER BY")

    def resolved(self, node: Any, scope: KnownNames, clause: str) -> Any:
        """The same with columns as slots, and queries planned."""
        if clause != "SELECT" and isinstance(node, Operation):
            node = rows_compared(node)
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
                return _planned(self._plan(query, scope, True))
            case Operation(operator="EXISTS", operands=(Nested(query=query),)):
                return Operation("EXISTS", (_planned(self._plan(query, scope, False)),))  # type: ignore[arg-type]
            case Star():
                raise not_supported("* in an expression")
        return mapped_children(rows_compared(node), lambda child: self.resolved(child, scope, clause))

    def _find(self, parts: tuple[str, ...], scope: KnownNames) -> Slot | None:
        found = self._find_here(parts, scope)
        if found is None and scope.parent is not None and self._find(parts, scope.parent) is not None:
            raise not_supported("a query in an expression that names columns of the one around it")
        return found

    @staticmethod
    def _find_here(parts: tuple[str, ...], scope: KnownNames) -> Slot | None:
        name = parts[-1].lower()
        found = [
            column.slot
            for table in scope.tables
            if len(parts) == 1 or is_called(table, parts[:-1])
            for column in table.columns
            if column.name.lower() == name
        ]
        if len(found) > 1:
            raise RefusedError(1052, "23000", f"Column '{'.'.join(parts)}' in SELECT is ambiguous")
        return found[0] if found else None


def _planned(plan: Plan) -> PlannedQuery:
    return PlannedQuery(plan.sql, tuple(column.type for column in plan.columns), plan.is_single)
