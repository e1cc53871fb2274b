"""What stands in FROM, as names find it, and what a planned query gives."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ibbmaster.expr.compiling import Emitter
from ibbmaster.expr.kinds import NOT_NULL, Kind, Type, joint_collation
from ibbmaster.expr.scalars import Slot
from ibbmaster.sqltext.expression import Call, Literal
from ibbmaster.sqltext.query_tree import GivenTable

TABLES_MAX = 61


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of a source by its name."""

    name: str
    slot: Slot
    is_shown: bool = True  # by *


@dataclass(slots=True)
class SourceTable:
    """A table in FROM as names find it."""

    alias: str
    database: str | None
    columns: list[SourceColumn]
    indexed: frozenset[Slot] = frozenset()  # columns of indexes, but of the primary key
    is_clustered: bool = False  # whether its rows lie in the order of their key
    is_listed: bool = False  # whether every server has it
    is_outer: bool = False  # whether a join makes rows of NULL for it

    def change_slots(self, change: Callable[[Slot], Slot]) -> None:
        """Let every column have another slot."""
        self.columns = [dataclasses.replace(column, slot=change(column.slot)) for column in self.columns]
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


class Tables(Protocol):
    """Gives tables of the log to a plan."""

    def source(self, table: GivenTable, sql_alias: str) -> tuple[str, SourceTable]:
        """The name SQLite knows a table by, and its columns."""

    def restrict(self, slot: Slot, text: str) -> None:
        """Only rows in which a column compares equal to a text are wanted of its table."""


@dataclass(slots=True)
class KnownNames:
    """What names mean inside of one SELECT."""

    tables: list[SourceTable]
    parent: KnownNames | None = None
    aliases: dict[str, Any] = field(default_factory=dict)  # resolved items by name


def make_outer(table: SourceTable) -> None:
    """A table whose values may all be NULL."""
    table.is_outer = True

    def change(slot: Slot) -> Slot:
        definition = slot.type.column
        if definition is not None:
            definition = dataclasses.replace(definition, flags=definition.flags & ~NOT_NULL)
        return dataclasses.replace(slot, type=dataclasses.replace(slot.type, is_nullable=True, column=definition))

    table.change_slots(change)


def of_derived(kind: Type) -> Type:
    """A column of a query in FROM."""
    return dataclasses.replace(kind, strength=2 if kind.strength > 2 else kind.strength, hidden=-1)


def is_called(table: SourceTable, name: tuple[str, ...]) -> bool:
    if table.alias != name[-1] and table.alias.lower() != name[-1].lower():
        return False
    return len(name) == 1 or table.database is None or table.database == name[0]


def restrict_tables(pairs: list[tuple[Any, Any]], emitter: Emitter, tables: Tables) -> None:
    """Let tables know which texts their columns are equal to in every row that is wanted."""
    for slot, other in (*pairs, *((right, left) for left, right in pairs)):
        if not isinstance(slot, Slot) or not isinstance(other, Literal | Call):
            continue
        scalar, _ = emitter.scalar(other)
        types = (slot.type, scalar.type)
        is_text = all(kind.kind is Kind.TEXT for kind in types) and scalar.is_constant
        if is_text and scalar.value is not None and joint_collation(types)[0] == slot.type.collation:
            tables.restrict(slot, scalar.value)
