"""Expressions over groups: which values a group has, and which of several it shows."""

from __future__ import annotations

import dataclasses
from typing import Any

from ibbmaster.expr.comparing import is_ordered_by_sqlite
from ibbmaster.expr.compiling import Emitter
from ibbmaster.expr.emitting import PlannedQuery
from ibbmaster.expr.scalars import Slot
from ibbmaster.expr.walking import children, mapped, slots
from ibbmaster.select.aggregates import aggregate_slot
from ibbmaster.select.sources import KnownNames
from ibbmaster.sqltext.expression import Aggregate, Literal
from ibbmaster.sqltext.query_tree import GivenTable, Source
from ibbmaster.wire.refusal import not_supported


class GroupPlan:
    """Expressions over groups: of their keys, of aggregates, and of what the keys decide."""

    def __init__(
        self,
        emitter: Emitter,
        scope: KnownNames,
        keys: list[Any],
        equal: list[tuple[Any, Any]],
        *,
        is_stable: bool,
        has_full_groups: bool,
    ) -> None:
        self._is_stable = is_stable
        self._has_full_groups = has_full_groups
        self._emitter = emitter
        self._scope = scope
        self._keys = keys
        self._known = self._determined(keys, equal)

    def _determined(self, keys: list[Any], equal: list[tuple[Any, Any]]) -> set[Slot]:
        known = {key for key in keys if isinstance(key, Slot)}
        while not self._has_full_groups:
            size = len(known)
            for one, other in equal:
                if is_exact(one) and is_exact(other) and (one in known or other in known):
                    known |= {one, other}
                for slot, value in ((one, other), (other, one)):
                    if is_exact(slot) and isinstance(value, Literal):
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
        return mapped(node, self._part)

    def _part(self, node: Any) -> Any:
        for key in self._keys:
            if node == key:
                return self._key_slot(key)
        match node:
            case Aggregate():
                return aggregate_slot(node, self._emitter, is_stable=self._is_stable, is_grouped=bool(self._keys))
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
        return Slot(f"{choosing(self._is_stable)}({sql})", kind, self._scope.block)


def is_exact(node: Any) -> bool:
    """Whether values of a column that compare alike are the same."""
    return isinstance(node, Slot) and is_ordered_by_sqlite(node.type)


def choosing(is_stable: bool) -> str:
    """What takes one of several texts that compare alike: the first one, or none."""
    return "first_row" if is_stable else "same_row"


def has_known_order(scope: KnownNames, where: Any, source: Source | None) -> bool:
    """Whether a server reads the rows in the order in which they are here: of one table, by no index but its key."""
    if not isinstance(source, GivenTable) or len(scope.tables) != 1 or not scope.tables[0].is_clustered:
        return False
    return where is None or not any(slot in scope.tables[0].indexed for slot in slots(where))


def sorts_groups(node: Any) -> bool:
    """Whether a server sorts the rows for an aggregate before it sees them."""
    if isinstance(node, Aggregate):
        return node.is_distinct
    return isinstance(node, PlannedQuery) or any(map(sorts_groups, children(node)))
