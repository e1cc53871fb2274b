"""Scalars as SQL: functions of ours that SQLite calls with what it has of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ibbmaster.expr import values
from ibbmaster.expr.kinds import Type
from ibbmaster.expr.scalars import Row, Scalar, Slot
from ibbmaster.wire.refusal import not_supported


class SqlFunctions(Protocol):
    """What keeps functions and parameters of a statement for SQLite."""

    def function(self, compute: Callable[..., Any], count: int) -> str:
        """The name that SQLite calls a function by."""

    def parameter(self, value: Any) -> str:
        """How SQL names a value."""

    def key_column(self, slot: Slot) -> str | None:
        """A column that holds the sort key of another one, if that is one of a table."""


def emit_scalar(scalar: Scalar, slots: Sequence[Slot], registry: SqlFunctions) -> str:
    """SQL of a scalar's values as SQLite holds them; `slots` are what its row has."""
    if scalar.slot is not None and scalar.slot.type.kind is scalar.type.kind and is_same(scalar.slot.type, scalar.type):
        return scalar.slot.sql
    store = values.storing(scalar.type)
    if scalar.is_constant:
        value = scalar.value
        return registry.parameter(value if value is None or store is None else store(value))
    loads = [values.loading(slot.type) for slot in slots]
    return (
        f"{registry.function(_function(scalar.run, loads, store), len(slots))}({', '.join(slot.sql for slot in slots)})"
    )


def is_same(one: Type, other: Type) -> bool:
    return (one.kind, one.scale, one.is_wide) == (other.kind, other.scale, other.is_wide)


def _function(
    run: Callable[[Row], Any], loads: Sequence[values.Convert | None], store: values.Convert | None
) -> Callable[..., Any]:
    if store is None and not any(loads):
        return lambda *row: run(row)
    wanted = [(index, load) for index, load in enumerate(loads) if load is not None]

    def compute(*row: Any) -> Any:
        if wanted:
            given = list(row)
            for index, load in wanted:
                if given[index] is not None:
                    given[index] = load(given[index])
            row = tuple(given)
        value = run(row)
        return value if value is None or store is None else store(value)

    return compute


@dataclass(frozen=True, slots=True, eq=False)
class PlannedQuery:
    """A query in an expression, as SQL with its columns."""

    sql: str
    types: tuple[Type, ...]
    is_single: bool  # whether it has one row at most for certain


class _NoSqlite:
    """What stands here for SQLite, which is not asked."""

    def function(self, compute: Callable[..., Any], count: int) -> str:
        raise not_supported("a query in this expression")

    def parameter(self, value: Any) -> str:
        raise not_supported("a query in this expression")

    def key_column(self, slot: Slot) -> str | None:
        return None


NO_SQLITE = _NoSqlite()
