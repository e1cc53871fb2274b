"""Walks over the expressions of a query."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ibbmaster.expr.scalars import Slot
from ibbmaster.sqltext.expression import Aggregate, Call, Cast, Operation
from ibbmaster.wire.refusal import RefusedError, not_supported


def mapped_children(node: Any, change: Callable[[Any], Any]) -> Any:
    match node:
        case Operation(operator=operator, operands=operands):
            return Operation(operator, tuple(map(change, operands)))
        case Call(arguments=arguments) | Aggregate(arguments=arguments):
            return dataclasses.replace(node, arguments=tuple(map(change, arguments)))
        case Cast(value=value):
            return dataclasses.replace(node, value=change(value))
    return node


def mapped(node: Any, change: Callable[[Any], Any]) -> Any:
    """The tree with parts replaced by what `change` returns; None leaves a part, and looks into it."""
    found = change(node)
    if found is not None:
        return found
    return mapped_children(node, lambda child: mapped(child, change))


def contains(node: Any, kind: Any) -> bool:
    """Whether a part is of a kind."""
    return isinstance(node, kind) or any(contains(child, kind) for child in children(node))


def children(node: Any) -> Sequence[Any]:
    match node:
        case Operation(operands=operands):
            return operands
        case Call(arguments=arguments) | Aggregate(arguments=arguments):
            return arguments
        case Cast(value=value):
            return (value,)
    return ()


def rows_compared(node: Any) -> Any:
    """A comparison of rows as comparisons of their values; other nodes as they are."""
    match node:
        case Operation(
            operator=("=" | "!=" | "<" | "<=" | ">" | ">=") as operator,
            operands=(Operation(operator="ROW", operands=left), Operation(operator="ROW", operands=right)),
        ):
            if len(left) != len(right):
                raise RefusedError(1241, "21000", f"Operand should contain {len(left)} column(s)")
            return _compared_rows(operator, left, right)
        case Operation(operator="IN", operands=(Operation(operator="ROW") as left, *others)):
            if not all(isinstance(one, Operation) and one.operator == "ROW" for one in others):
                raise not_supported("rows IN such a list")
            return Operation("OR", tuple(rows_compared(Operation("=", (left, one))) for one in others))
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


def equalities(node: Any) -> list[tuple[Any, Any]]:
    """The pairs that are equal wherever a condition holds."""
    match node:
        case Operation(operator="AND", operands=operands):
            return [pair for operand in operands for pair in equalities(operand)]
        case Operation(operator="=", operands=(left, right)):
            return [(left, right)]
    return []


def slots(node: Any) -> Iterator[Slot]:
    if isinstance(node, Slot):
        yield node
    for child in children(node):
        yield from slots(child)
