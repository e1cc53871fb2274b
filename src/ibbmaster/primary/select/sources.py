"""The sources of one SELECT and the meaning of names over them: columns, aliases, numbers of columns."""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ibbmaster.replication.wire.refusal import RefusedError, not_supported, unknown_column
from ibbmaster.rows.expr.kinds import NOT_NULL, ValueType
from ibbmaster.rows.expr.scalars import SqlValue
from ibbmaster.sqltext.expression import (
    Aggregate,
    ColumnName,
    GivenTable,
    Item,
    Literal,
    Operation,
    Star,
    contains,
    mapped_children,
)


@dataclass(frozen=True, slots=True)
class SourceColumn:
    name: str
    slot: SqlValue
    is_shown: bool = True  # by *


@dataclass(slots=True)
class SourceTable:
    alias: str
    database: str | None
    columns: list[SourceColumn]
    is_listed: bool = False  # every server has it

    def make_outer(self) -> None:
        """Let all values be NULL, as an outer join does."""

        def change(slot: SqlValue) -> SqlValue:
            definition = slot.type.column
            if definition is not None:
                definition = dataclasses.replace(definition, flags=definition.flags & ~NOT_NULL)
            return dataclasses.replace(slot, type=dataclasses.replace(slot.type, is_nullable=True, column=definition))

        self.columns = [dataclasses.replace(column, slot=change(column.slot)) for column in self.columns]

    def is_called(self, name: Sequence[str]) -> bool:
        if self.alias.lower() != name[-1].lower():
            return False
        return len(name) == 1 or self.database is None or self.database == name[0]


class Tables(Protocol):
    """Gives tables to a plan."""

    def source(self, table: GivenTable, sql_alias: str) -> tuple[str, SourceTable]:
        """The name of a table in SQLite, and its columns."""

    def restrict(self, slot: SqlValue, text: str) -> None:
        """Only rows in which a column compares equal to a text are wanted of its table."""


@dataclass(frozen=True, slots=True)
class PlannedColumn:
    name: str
    type: ValueType


@dataclass(frozen=True, slots=True)
class Plan:
    """SQL whose columns are called o0, o1, …"""

    sql: str
    columns: tuple[PlannedColumn, ...]


@dataclass(slots=True)
class KnownNames:
    """The names inside of one SELECT. Methods raise RefusedError: a name is unknown or ambiguous."""

    tables: list[SourceTable]
    aliases: dict[str, Any] = field(default_factory=dict)  # resolved items by name

    def items(self, items: Sequence[Item]) -> list[Item]:
        found = [resolved for item in items for resolved in self._item(item)]
        for item in found:
            self.aliases.setdefault(item.name.lower(), item.node)
        return found

    def _item(self, item: Item) -> Iterator[Item]:
        if not isinstance(item.node, Star):
            yield dataclasses.replace(item, node=self.resolved(item.node, "SELECT"))
            return
        wanted = item.node.table
        tables = [table for table in self.tables if not wanted or table.is_called(wanted)]
        if not tables:
            if not wanted:
                raise RefusedError(1096, "HY000", "No tables used")
            raise RefusedError(1051, "42S02", f"Unknown table '{'.'.join(wanted)}'")
        for table in tables:
            for column in table.columns:
                if column.is_shown:
                    yield Item(column.slot, column.name)  # type: ignore[arg-type]

    def group_key(self, node: Any, items: Sequence[Item]) -> Any:
        found: Any
        match node:
            case Literal(value=int() as number):
                found = _numbered(items, number, "GROUP BY")
            case ColumnName(parts=(name,)) if name.lower() in self.aliases and self._find((name,)) is None:
                found = self.aliases[name.lower()]
            case ColumnName(parts=(name,)) if name.lower() in {one.alias.lower() for one in items if one.alias}:
                found = self.resolved(node, "GROUP BY")
                if self.aliases[name.lower()] != found:
                    raise not_supported(f"GROUP BY {name}, which is a column and another expression")
            case _:
                found = self.resolved(node, "GROUP BY")
        if contains(found, Aggregate):
            raise RefusedError(1056, "42000", "Can't group on this expression")
        return found

    def order_key(self, node: Any, items: Sequence[Item]) -> Any:
        match node:
            case Literal(value=int() as number):
                return _numbered(items, number, "ORDER BY")
            case ColumnName(parts=(name,)) if name.lower() in self.aliases:
                return self.aliases[name.lower()]
        return self.resolved(node, "ORDER BY")

    def resolved(self, node: Any, clause: str) -> Any:
        """The same with columns as slots."""
        if clause != "SELECT" and isinstance(node, Operation):
            node = _rows_compared(node)
        match node:
            case ColumnName(parts=parts):
                found = self._find(parts)
                if clause in ("HAVING", "ORDER BY") and len(parts) == 1 and parts[0].lower() in self.aliases:
                    alias = self.aliases[parts[0].lower()]
                    if found is None or clause == "HAVING":
                        return alias
                if found is None:
                    raise unknown_column(".".join(parts), clause)
                return found
            case Star():
                raise not_supported("* in an expression")
        return mapped_children(_rows_compared(node), lambda child: self.resolved(child, clause))

    def _find(self, parts: tuple[str, ...]) -> SqlValue | None:
        name = parts[-1].lower()
        found = [
            column.slot
            for table in self.tables
            if len(parts) == 1 or table.is_called(parts[:-1])
            for column in table.columns
            if column.name.lower() == name
        ]
        if len(found) > 1:
            raise RefusedError(1052, "23000", f"Column '{'.'.join(parts)}' in SELECT is ambiguous")
        return found[0] if found else None


def _numbered(items: Sequence[Item], number: int, clause: str) -> Any:
    if not 1 <= number <= len(items):
        raise unknown_column(str(number), clause)
    return items[number - 1].node


def _rows_compared(node: Any) -> Any:
    """A comparison of rows as comparisons of their values."""
    match node:
        case Operation(
            operator=("=" | "!=" | "<" | "<=" | ">" | ">=") as operator,
            operands=(Operation(operator="ROW", operands=left), Operation(operator="ROW", operands=right)),
        ):
            if len(left) != len(right):
                raise RefusedError(1241, "21000", f"Operand should contain {len(left)} column(s)")
            return _compared_parts(operator, left, right)
        case Operation(operator="IN", operands=(Operation(operator="ROW") as left, *others)):
            if not all(isinstance(one, Operation) and one.operator == "ROW" for one in others):
                raise not_supported("rows IN such a list")
            return Operation("OR", tuple(_rows_compared(Operation("=", (left, one))) for one in others))
    return node


def _compared_parts(operator: str, left: Sequence[Any], right: Sequence[Any]) -> Operation:
    if operator in ("=", "!="):
        parts = tuple(Operation(operator, pair) for pair in zip(left, right, strict=True))
        return Operation("AND" if operator == "=" else "OR", parts)
    found = Operation(operator, (left[-1], right[-1]))
    for one, other in reversed(list(zip(left[:-1], right[:-1], strict=True))):
        strict = Operation(operator[0], (one, other))
        found = Operation("OR", (strict, Operation("AND", (Operation("=", (one, other)), found))))
    return found
