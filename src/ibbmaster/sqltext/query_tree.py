"""Queries as a tree: the clauses and sources of a SELECT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ibbmaster.sqltext.expression import Expression


@dataclass(frozen=True, slots=True)
class OrderKey:
    """One key of ORDER BY."""

    node: Expression
    is_descending: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """An item of SELECT with the name of its column, and its alias."""

    node: Expression
    name: str
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class GivenTable:
    """A table by its name in a statement; without a database it is in the default one."""

    name: str
    database: str | None = None
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class DerivedTable:
    """A query in FROM."""

    query: Query
    alias: str


@dataclass(frozen=True, slots=True)
class Join:
    """INNER JOIN or LEFT JOIN of two sources."""

    left: Source
    right: Source
    is_left: bool = False
    on: Expression | None = None


Source: TypeAlias = GivenTable | DerivedTable | Join


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectBlock:
    """One SELECT. `limit`: how many rows to leave out, and how many to give."""

    items: tuple[Item, ...]
    source: Source | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    having: Expression | None = None
    order_by: tuple[OrderKey, ...] = ()
    limit: tuple[int, int | None] | None = None
    is_distinct: bool = False


Query: TypeAlias = SelectBlock
