"""Expressions and queries as trees, and walks over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from .literals import Value

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a text, bytes (as 0x41 is written) or NULL."""

    value: Value
    charset: str | None = None  # of _utf8mb4'…'
    written: str = field(default="", compare=False)  # the text of numbers and bytes


@dataclass(frozen=True, slots=True)
class Default:
    """As a variable's value."""


@dataclass(frozen=True, slots=True)
class UserVariable:
    """The name is in lower case."""

    name: str


@dataclass(frozen=True, slots=True)
class SystemVariable:
    """@@name or @@scope.name, or a bare name in SET; `scope` is 'global', 'session' or ''."""

    name: str
    scope: str
    written: str  # by the client


@dataclass(frozen=True, slots=True)
class ColumnName:
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Star:
    """* or table.*"""

    table: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """The name is in lower case. With `is_read` False the parser does not know the arguments."""

    name: str
    written: str
    arguments: tuple[Expression, ...] = ()
    database: str | None = None
    is_read: bool = True


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator, in upper case, and its operands; CASE has value, WHEN, THEN, …, ELSE."""

    operator: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Cast:
    """CAST, CONVERT; `kind` is the type's first word in lower case, or `using`."""

    value: Expression
    kind: str
    length: int | None = None
    scale: int | None = None
    is_unsigned: bool = False
    charset: str | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """COUNT(*) has no arguments."""

    name: str
    arguments: tuple[Expression, ...]
    is_distinct: bool = False


Expression: TypeAlias = (
    Literal | Default | UserVariable | SystemVariable | ColumnName | Star | Call | Operation | Cast | Aggregate
)


@dataclass(frozen=True, slots=True)
class OrderKey:
    node: Expression
    is_descending: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    node: Expression
    name: str
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class GivenTable:
    name: str
    database: str | None = None
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class DerivedTable:
    query: SqlQuery
    alias: str


@dataclass(frozen=True, slots=True)
class Join:
    left: Source
    right: Source
    is_left: bool = False
    on: Expression | None = None


Source: TypeAlias = GivenTable | DerivedTable | Join


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlQuery:
    """`limit`: how many rows to leave out, and how many to give."""

    items: tuple[Item, ...]
    source: Source | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    having: Expression | None = None
    order_by: tuple[OrderKey, ...] = ()
    limit: tuple[int, int | None] | None = None
    is_distinct: bool = False


def mapped_children(node: Any, change: Callable[[Any], Any]) -> Any:
    match node:
        case Operation(operator=operator, operands=operands):
            return Operation(operator, tuple(map(change, operands)))
        case Call(arguments=arguments) | Aggregate(arguments=arguments):
            return replace(node, arguments=tuple(map(change, arguments)))
        case Cast(value=value):
            return replace(node, value=change(value))
    return node


def mapped(node: Any, change: Callable[[Any], Any]) -> Any:
    """The tree with parts that `change` replaces; None: look into the part."""
    found = change(node)
    if found is not None:
        return found
    return mapped_children(node, lambda child: mapped(child, change))


def contains(node: Any, kind: type) -> bool:
    return any(True for _ in parts(node, kind))


def children(node: Any) -> Sequence[Any]:
    match node:
        case Operation(operands=operands):
            return operands
        case Call(arguments=arguments) | Aggregate(arguments=arguments):
            return arguments
        case Cast(value=value):
            return (value,)
    return ()


def equalities(node: Any) -> list[tuple[Any, Any]]:
    """The pairs that are equal where a condition is met."""
    match node:
        case Operation(operator="AND", operands=operands):
            return [pair for operand in operands for pair in equalities(operand)]
        case Operation(operator="=", operands=(left, right)):
            return [(left, right)]
    return []


def parts(node: Any, kind: type[Part]) -> Iterator[Part]:
    if isinstance(node, kind):
        yield node
    for child in children(node):
        yield from parts(child, kind)


def interval_before(expression: Expression) -> tuple[Expression, Expression, str] | None:
    """Start, amount and unit of `start - INTERVAL amount unit`, also as DATE_SUB."""
    match expression:
        case (
            Operation(operator="-", operands=(start, Operation(operator="INTERVAL", operands=(amount, Literal(unit)))))
            | Call(
                name=("date_sub" | "subdate"),
                arguments=(start, Operation(operator="INTERVAL", operands=(amount, Literal(unit)))),
            )
        ):
            return start, amount, str(unit)
    return None
