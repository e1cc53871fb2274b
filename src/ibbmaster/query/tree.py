"""Queries as they are written: joins, subqueries and aggregates around the dialogue's expressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ibbmaster.sqltext.expression import (
    Call,
    ColumnName,
    Default,
    Literal,
    Operation,
    Star,
    Subquery,
    SystemVariable,
    UserVariable,
)


@dataclass(frozen=True, slots=True)
class Nested:
    """A query in brackets as a value."""

    query: Query


@dataclass(frozen=True, slots=True)
class Cast:
    """CAST, CONVERT; `kind` is the type's first word in lower case."""

    value: Node
    kind: str
    length: int | None = None
    scale: int | None = None
    is_unsigned: bool = False
    charset: str | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """COUNT(*) has no arguments."""

    name: str
    arguments: tuple[Node, ...]
    is_distinct: bool = False


Node: TypeAlias = (
    Literal
    | ColumnName
    | Call
    | Operation
    | Star
    | UserVariable
    | SystemVariable
    | Nested
    | Cast
    | Aggregate
    | Default
    | Subquery
)


@dataclass(frozen=True, slots=True)
class OrderKey:
    """One key of ORDER BY."""

    node: Node
    is_descending: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """An expression of the list of SELECT; `alias` is the name behind AS, `name` that of its column."""

    node: Node
    name: str
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table by its name."""

    name: str
    database: str | None
    alias: str | None


@dataclass(frozen=True, slots=True)
class DerivedTable:
    """A query in FROM."""

    query: Query
    alias: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Join:
    """Two sources; `kind` is INNER, LEFT or RIGHT. `using` None: by ON, empty: NATURAL."""

    kind: str
    left: Source
    right: Source
    on: Node | None = None
    using: tuple[str, ...] | None = None


Source: TypeAlias = NamedTable | DerivedTable | Join


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectBlock:
    """One SELECT. `limit` is rows to leave out and rows to give."""

    items: tuple[Item, ...]
    source: Source | None = None
    where: Node | None = None
    group_by: tuple[Node, ...] = ()
    having: Node | None = None
    order_by: tuple[OrderKey, ...] = ()
    limit: tuple[int, int | None] | None = None
    is_distinct: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Compound:
    """SELECTs put together: between each two of `members` stands UNION or UNION ALL."""

    members: tuple[Query, ...]
    operators: tuple[str, ...]
    order_by: tuple[OrderKey, ...] = ()
    limit: tuple[int, int | None] | None = None


Query: TypeAlias = SelectBlock | Compound
