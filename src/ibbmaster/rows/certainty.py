"""What becomes uncertain of the rows of tables by statements: their effects on the versions that tables have.

Whoever keeps rows, or reads them from the log, asks here which of them a statement leaves in doubt, and in which
words that is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol, TypeGuard

from ibbmaster.rows.effects import (
    BLACKHOLE,
    Changed,
    DatabaseGone,
    Effect,
    Emptied,
    EventsLost,
    PartitionStep,
    ProgramMade,
    Substituted,
    Unknown,
    WrittenTables,
)
from ibbmaster.schema.catalog import KnownTable, SchemaCatalog
from ibbmaster.schema.model import SchemaPlace, TableKind, TableVersion
from ibbmaster.schema.reading import expect_table
from ibbmaster.sqltext.cursor import Cursor
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.sqltext.token import tokens

MERGED = frozenset(("MERGE", "MRG_MYISAM"))
ELSEWHERE = frozenset(("FEDERATED", "FEDERATEDX", "SPIDER", "CONNECT", "OQGRAPH", "SPHINX"))


class SchemaTimeline(Protocol):
    """What tables look like at every place of the log, up to where they are asked for."""

    def at(self, place: SchemaPlace | None = None) -> SchemaCatalog: ...

    def table_at(self, database: str, name: str, place: SchemaPlace) -> KnownTable | None: ...


@dataclass(frozen=True, slots=True)
class Gone:
    """The rows of a generation are no more."""

    generation: int


@dataclass(frozen=True, slots=True)
class Fresh:
    """A table that had no row when it came: all that it ever has is behind."""

    table: TableVersion


@dataclass(frozen=True, slots=True)
class Altered:
    """Rows are in another version of their table."""

    table: TableVersion


@dataclass(frozen=True, slots=True)
class Doubted:
    """Rows of a table are no longer known; unless it `adds`, only if it has some.

    `step`: whoever has the rows can tell by their values.
    """

    table: TableVersion
    reason: str
    adds: bool = True
    step: PartitionStep | None = None


Outcome = Gone | Fresh | Altered | Doubted


class StatementFold:
    """The effects of statements, one after the other, in the order of the log."""

    def __init__(self, timeline: SchemaTimeline) -> None:
        self._timeline = timeline
        self.has_programs = False
        self._substituted: set[int] = set()  # generations whose engine may be another one than their DDL says

    def fork(self) -> StatementFold:
        """The same, to go on from by itself."""
        other = StatementFold(self._timeline)
        other.has_programs, other._substituted = self.has_programs, set(self._substituted)
        return other

    def take(self, effect: Effect, place: SchemaPlace) -> Iterator[Outcome]:
        """What an effect of the statement at a place comes to."""
        match effect:
            case WrittenTables() | EventsLost() if self.reaches_all(effect):
                yield from self.everywhere(effect.reason, place)
            case WrittenTables(tables=tables):
                for table in tables or ():
                    yield from self.doubted(table, effect.reason, place, adds=effect.adds)
            case Unknown():
                for one in self.doubted(effect.table, effect.reason, place, adds=effect.adds):
                    yield replace(one, step=effect.step)
            case ProgramMade():
                self.has_programs = True
            case Substituted():
                self._substitute(effect, place)
            case Emptied(table=table, is_kept=is_kept):
                before = self.before(table, place)
                if before is not None and is_kept:
                    yield from self.merged(before, "its rows are removed", place)
                yield from self._replaced(before, self.after(table, place))
            case DatabaseGone(database=database):
                for name in list(self._timeline.at(place).tables):
                    if name[0].lower() == database.lower():
                        table = TableName(*name)
                        yield from self._replaced(self.before(table, place), self.after(table, place))
            case Changed(table=table):
                after = self.after(table, place)
                if after is not None:
                    yield Altered(after)

    def reaches_all(self, effect: Effect) -> TypeGuard[WrittenTables | EventsLost]:
        """Whether it may have changed rows of any table."""
        return isinstance(effect, EventsLost) or (
            isinstance(effect, WrittenTables) and (effect.tables is None or self.has_programs)
        )

    def keeps_rows(self, table: TableVersion) -> bool:
        """Whether its engine is one that has rows at all."""
        return engine_of(table) != BLACKHOLE or table.generation in self._substituted

    def engine_reason(self, table: TableVersion) -> str | None:
        """Why nobody can tell the rows of a table by what a log puts into it; None if its engine keeps them itself."""
        if table.generation in self._substituted:
            return "its engine BLACKHOLE keeps no rows, and sql_mode lets a server take another one"
        engine = engine_of(table)
        if engine in MERGED:
            return "a MERGE table has the rows of the tables in its UNION"
        return f"its engine {engine} has its rows elsewhere" if engine in ELSEWHERE else None

    def everywhere(self, reason: str, place: SchemaPlace) -> Iterator[Doubted]:
        """All tables that keep rows."""
        for table in self._timeline.at(place).tables.values():
            if isinstance(table, TableVersion) and table.kind is TableKind.BASE and self.keeps_rows(table):
                yield Doubted(table, reason)

    def doubted(self, name: TableName, reason: str, place: SchemaPlace, *, adds: bool = True) -> Iterator[Doubted]:
        """A table that a statement at a place names, and those that it consists of."""
        table = self.after(name, place) or self.before(name, place)
        if table is not None and table.kind is TableKind.VIEW:
            yield from self.everywhere(reason, place)  # it may show any of them
        elif table is not None:
            yield from self.merged(table, reason, place)
            if self.keeps_rows(table):
                yield Doubted(table, reason, adds)

    def merged(self, table: TableVersion, reason: str, place: SchemaPlace) -> Iterator[Doubted]:
        """Rows of the tables that a MERGE table consists of are changed through it; none of these is a MERGE table."""
        reason = f"{reason} through the MERGE table {table.full_name}"
        for name in union_of(table):
            one = self.after(name, place) or self.before(name, place)
            if one is not None and self.keeps_rows(one):
                yield Doubted(one, reason)

    def _substitute(self, effect: Substituted, place: SchemaPlace) -> None:
        """Whether a table that a statement gives the engine BLACKHOLE may have got another one."""
        after = self.after(effect.table, place)
        like = None if effect.like is None else self.before(effect.like, place)
        if after is None or (effect.like is not None and (like is None or like.generation not in self._substituted)):
            return
        if effect.is_sure:
            self._substituted.discard(after.generation)
        else:
            self._substituted.add(after.generation)

    def _replaced(self, before: TableVersion | None, after: TableVersion | None) -> Iterator[Outcome]:
        """A table is gone, is another one, or empty."""
        if before is not None and (after is None or after.generation != before.generation):
            yield Gone(before.generation)
        if after is not None and (before is None or after.generation != before.generation):
            yield Fresh(after)

    def after(self, table: TableName, place: SchemaPlace) -> TableVersion | None:
        """A table as a statement leaves it."""
        return self.before(table, SchemaPlace(place.position, place.event_no + 1))

    def before(self, table: TableName, place: SchemaPlace) -> TableVersion | None:
        """A table as a statement finds it."""
        found = self._timeline.table_at(*table, place)
        return found if isinstance(found, TableVersion) else None


def union_of(table: TableVersion) -> Iterator[TableName]:
    """The tables that a MERGE table consists of."""
    union = table.options.get("UNION")
    if union is not None and engine_of(table) in MERGED:
        cursor = Cursor(Cursor(tokens(union)).bracketed())
        while not cursor.is_at_end:
            yield expect_table(cursor, table.database)
            cursor.takes_sign(",")


def engine_of(table: TableVersion) -> str:
    """In capitals; empty if no statement says it."""
    return table.options.get("ENGINE", "").upper()
