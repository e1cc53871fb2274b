"""The tables that a fold follows: those whose rows are wanted, and those whose foreign keys change rows of them."""

from __future__ import annotations

from collections.abc import Sequence

from ibbmaster.rows.certainty import MERGED, SchemaTimeline, engine_of
from ibbmaster.schema.model import ForeignConstraint, SchemaPlace, TableVersion

CASCADING = frozenset(("CASCADE", "SET NULL", "SET DEFAULT"))

Children = Sequence[tuple[TableVersion, ForeignConstraint]]


class MissingTablesError(Exception):
    """Other tables, whose rows were not kept from the start, decide about rows that are kept."""

    def __init__(self, generations: frozenset[int]) -> None:
        super().__init__(generations)
        self.generations = generations


class FollowedTables:
    """`wanted` are the generations whose rows are kept, None for all. Tables are those at a place of the log, until
    `forget`."""

    def __init__(self, timeline: SchemaTimeline, wanted: frozenset[int] | None) -> None:
        self.wanted = wanted
        self._timeline = timeline
        self._children: dict[tuple[str, str], list[tuple[TableVersion, ForeignConstraint]]] | None = None
        self._followed: dict[tuple[str, str], Children] = {}  # of those, the children whose rows are kept

    def forget(self) -> None:
        """A statement may have changed tables."""
        self._children = None
        self._followed.clear()

    def keeps(self, table: TableVersion) -> bool:
        """Whether the rows of a table are kept."""
        return self.wanted is None or table.generation in self.wanted

    def follows(self, table: TableVersion, place: SchemaPlace) -> bool:
        """Whether row events of a table matter for rows that are kept. Raises MissingTablesError: they do, and its own
        rows are not kept."""
        if self.keeps(table) or engine_of(table) in MERGED:
            return True
        if needed := self._leading_to_wanted(table, place, frozenset()):
            raise MissingTablesError(needed)
        return False

    def _leading_to_wanted(self, table: TableVersion, place: SchemaPlace, passed: frozenset[int]) -> frozenset[int]:
        """The tables from this one on whose foreign keys change rows of a table that is kept."""
        found: frozenset[int] = frozenset()
        passed |= {table.generation}
        for child, _ in self._children_named(table.database, table.name, place):
            if self.keeps(child):
                found |= {table.generation}
            elif child.generation not in passed and (more := self._leading_to_wanted(child, place, passed)):
                found |= more | {table.generation}
        return found

    def children_of(self, database: str, name: str, place: SchemaPlace) -> Children:
        """The tables that are kept whose foreign keys to a table change rows of theirs, and these keys. Raises
        MissingTablesError: rows of others must be kept, too."""
        found = self._followed.get((database, name))
        if found is None:
            found = [one for one in self._children_named(database, name, place) if self.follows(one[0], place)]
            self._followed[database, name] = found
        return found

    def _children_named(self, database: str, name: str, place: SchemaPlace) -> Children:
        if self._children is None:
            self._children = {}
            for child in self._timeline.at(place).tables.values():
                if not isinstance(child, TableVersion):
                    continue
                for key in child.foreign_keys:
                    if CASCADING & {key.on_delete, key.on_update}:
                        self._children.setdefault((key.parent_database, key.parent_table), []).append((child, key))
        return self._children.get((database, name), [])
