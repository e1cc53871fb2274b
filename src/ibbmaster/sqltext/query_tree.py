"""Queries as a tree: the clauses of a SELECT, and its sources."""

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
    """An expression of the list of SELECT; `alias` is the name behind AS, `name` that of its column."""

    node: Expression
    name: str
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class GivenTable:
    """A table as a statement names it; without a database it is one of the session's."""

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
    """Two sources; `kind` is INNER, LEFT or RIGHT."""

    kind: str
    left: Source
    right: Source
    on: Expression | None = None


Source: TypeAlias = GivenTable | DerivedTable | Join


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectBlock:
    """One SELECT. `limit` is rows to leave out and rows to give."""

    items: tuple[Item, ...]
    source: Source | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    having: Expression | None = None
    order_by: tuple[OrderKey, ...] = ()
    limit: tuple[int, int | None] | None = None
    is_distinct: bool = False


Query: TypeAlias = SelectBlock
