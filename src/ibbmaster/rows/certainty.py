"""Which rows statements make uncertain: the only source of that, and of the wording of the reason."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol, TypeGuard

from ibbmaster.schema.catalog import FUNCTION, PACKAGES, TRIGGER, KnownTable, SchemaCatalog
from ibbmaster.schema.model import SchemaPlace, TableKind, TableVersion
from ibbmaster.schema.reading import expect_table
from ibbmaster.sqltext.cursor import Cursor
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.sqltext.token import tokens
from . import effects

MERGED = frozenset(("MERGE", "MRG_MYISAM"))
ELSEWHERE = frozenset(("FEDERATED", "FEDERATEDX", "SPIDER", "CONNECT", "OQGRAPH", "SPHINX"))
_CALLED = (FUNCTION, *PACKAGES)
_WORD = re.compile(r"[\w$]+")
_HEAD_OF_TRIGGER = re.compile(r"\bfor\s+each\s+row\b")


class SchemaTimeline(Protocol):
    """The tables at every place up to the wanted one."""

    def at(self, place: SchemaPlace | None = None) -> SchemaCatalog: ...

    def table_at(self, database: str, name: str, place: SchemaPlace) -> KnownTable | None: ...


@dataclass(frozen=True, slots=True)
class Gone:
    """No row of a generation is left."""

    generation: int


@dataclass(frozen=True, slots=True)
class Fresh:
    """A table that was empty when it was made: the log has all its rows."""

    table: TableVersion


@dataclass(frozen=True, slots=True)
class Altered:
    """The rows now belong to another table version."""

    table: TableVersion


@dataclass(frozen=True, slots=True)
class RowsGone:
    """A statement in statement format removed all rows; `reason` is for readers that cannot follow it."""

    table: TableVersion
    reason: str


@dataclass(frozen=True, slots=True)
class Doubted:
    """Rows are no longer known; unless it `adds`, only if there are some."""

    table: TableVersion
    reason: str
    adds: bool = True
    step: effects.PartitionStep | None = None  # a reader that has the rows can follow it by their values
    is_open: bool = False  # rows that later events report are known again
    leaves: bool = False  # older rows stay as they were; only others may have been added


Outcome = Gone | Fresh | Altered | RowsGone | Doubted


class StatementFold:
    def __init__(self, timeline: SchemaTimeline) -> None:
        self._timeline = timeline
        self._substituted: set[int] = set()  # generations whose engine may differ from their DDL
        self._known: tuple[SchemaPlace, SchemaCatalog] | None = None  # until a statement may change it

    def fork(self) -> StatementFold:
        other = StatementFold(self._timeline)
        other._substituted = set(self._substituted)
        return other

    def take(self, effect: effects.Effect, place: SchemaPlace, text: str | None = None) -> Iterator[Outcome]:
        """What an effect of the statement with this `text` leads to."""
        if not isinstance(effect, effects.WrittenTables):
            self._known = None
        match effect:
            case effects.WrittenTables():
                yield from self._written(effect, place, text)
            case effects.EventsLost():
                yield from self.everywhere(effect.reason, place)
            case effects.Unknown():
                for one in self.doubted(effect.table, effect.reason, place, adds=effect.adds):
                    yield replace(one, step=effect.step)
            case effects.ProgramChanged():
                pass
            case effects.Substituted():
                self._substitute(effect, place)
            case effects.Emptied(table=table, is_kept=is_kept):
                before, after = self.before(table, place), self.after(table, place)
                if before is not None and is_kept:
                    yield from self.merged(before, "its rows are removed", place)
                    if after is not None and before.generation in self._substituted:
                        self._substituted.add(after.generation)  # that is of the table, not of its rows
                yield from self._replaced(before, after)
            case effects.DatabaseGone(database=database):
                for name in list(self._timeline.at(place).tables):
                    if name[0].lower() == database.lower():
                        table = TableName(*name)
                        yield from self._replaced(self.before(table, place), self.after(table, place))
            case effects.Changed(table=table):
                after = self.after(table, place)
                if after is not None:
                    yield Altered(after)

    def reaches_all(
        self, effect: effects.Effect, place: SchemaPlace
    ) -> TypeGuard[effects.WrittenTables | effects.EventsLost]:
        return isinstance(effect, effects.EventsLost) or (
            isinstance(effect, effects.WrittenTables) and self._reached(effect, place, None) is None
        )

    def _reached(
        self, effect: effects.WrittenTables, place: SchemaPlace, text: str | None
    ) -> frozenset[TableName] | None:
        if effect.tables is None:
            return None
        if self._known is None:
            self._known = place, self._timeline.at(place)
        since, catalog = self._known
        return tables_reached(catalog if since <= place else self._timeline.at(place), effect.tables, text)

    def _written(self, effect: effects.WrittenTables, place: SchemaPlace, text: str | None) -> Iterator[Outcome]:
        reached = self._reached(effect, place, text)
        if reached is None:
            yield from self.everywhere(effect.reason, place)
            return
        tables = {table.generation: table for name in effect.tables or () if (table := self.before(name, place))}
        found = {table.generation: table for name in reached if (table := self.before(name, place))}
        for number, table in (tables | found).items():
            if table.kind is TableKind.VIEW:
                continue  # the tables behind it are reached
            is_reached = number in found
            is_told = is_told_by_key(table) and self.engine_reason(table) is None
            if effect.empties and is_told and not is_reached:
                yield RowsGone(table, effect.reason)
                continue
            adds, leaves = effect.adds or is_reached, is_told and not (effect.changes or is_reached)
            for one in self.doubted(TableName(table.database, table.name), effect.reason, place, adds=adds):
                is_own = one.table.generation == number
                yield replace(one, is_open=is_told, leaves=leaves) if is_own else one

    def keeps_rows(self, table: TableVersion) -> bool:
        return engine_of(table) != effects.BLACKHOLE or table.generation in self._substituted

    def engine_reason(self, table: TableVersion) -> str | None:
        """Why a log lacks the rows of a table; None if its engine keeps them itself."""
        engine = engine_of(table)
        if engine == effects.BLACKHOLE and table.generation in self._substituted:
            return "its engine BLACKHOLE keeps no rows, and sql_mode lets a server take another one"
        if engine in MERGED:
            return "a MERGE table has the rows of the tables in its UNION"
        return f"its engine {engine} has its rows elsewhere" if engine in ELSEWHERE else None

    def everywhere(self, reason: str, place: SchemaPlace) -> Iterator[Doubted]:
        for table in self._timeline.at(place).tables.values():
            if isinstance(table, TableVersion) and table.kind is TableKind.BASE and self.keeps_rows(table):
                yield Doubted(table, reason)

    def doubted(self, name: TableName, reason: str, place: SchemaPlace, *, adds: bool = True) -> Iterator[Doubted]:
        table = self.after(name, place) or self.before(name, place)
        if table is not None and table.kind is TableKind.VIEW:
            yield from self.everywhere(reason, place)  # it may show any of them
        elif table is not None:
            yield from self.merged(table, reason, place)
            if self.keeps_rows(table):
                yield Doubted(table, reason, adds)

    def merged(self, table: TableVersion, reason: str, place: SchemaPlace) -> Iterator[Doubted]:
        reason = f"through the MERGE table {table.full_name}: {reason}"
        for name in union_of(table):
            one = self.after(name, place) or self.before(name, place)
            if one is not None and self.keeps_rows(one):
                yield Doubted(one, reason)

    def _substitute(self, effect: effects.Substituted, place: SchemaPlace) -> None:
        after = self.after(effect.table, place)
        like = None if effect.like is None else self.before(effect.like, place)
        if after is None or (effect.like is not None and (like is None or like.generation not in self._substituted)):
            return
        if effect.is_sure:
            self._substituted.discard(after.generation)
        else:
            self._substituted.add(after.generation)

    def _replaced(self, before: TableVersion | None, after: TableVersion | None) -> Iterator[Outcome]:
        if before is not None and (after is None or after.generation != before.generation):
            yield Gone(before.generation)
        if after is not None and (before is None or after.generation != before.generation):
            yield Fresh(after)

    def after(self, table: TableName, place: SchemaPlace) -> TableVersion | None:
        return self.before(table, SchemaPlace(place.position, place.event_no + 1))

    def before(self, table: TableName, place: SchemaPlace) -> TableVersion | None:
        found = self._timeline.table_at(*table, place)
        return found if isinstance(found, TableVersion) else None


def union_of(table: TableVersion) -> Iterator[TableName]:
    union = table.options.get("UNION")
    if union is not None and engine_of(table) in MERGED:
        cursor = Cursor(Cursor(tokens(union)).bracketed())
        while not cursor.is_at_end:
            yield expect_table(cursor, table.database)
            cursor.takes_sign(",")


def is_told_by_key(table: TableVersion) -> bool:
    return (
        table.kind is TableKind.BASE
        and not table.is_versioned
        and not table.periods
        and not any(column.is_hidden or column.period is not None for column in table.columns)
    )


def doubt_text(gtid: str, reason: str) -> str:
    return f"not exact since {gtid or 'the log begins'}, because {reason}"


def engine_of(table: TableVersion) -> str:
    return table.options.get("ENGINE", "").upper()


def tables_reached(
    catalog: SchemaCatalog, tables: Iterable[TableName], text: str | None
) -> frozenset[TableName] | None:
    """The tables, as keys of the catalog, whose rows a statement on these may change by views, triggers and functions;
    None: any. Only functions in `text`, if known, can run."""
    routines = [program.name for program in catalog.programs.values() if program.kind in _CALLED]
    if routines and (text is None or _is_any_in(routines, _words(text))):
        return None
    found = set[TableName]()
    waiting = [TableName(*catalog.case.table_key(*table)) for table in tables]
    seen = set(waiting)
    while waiting:
        for words in map(_words, _run_by(catalog, waiting.pop())):
            if not words or "call" in words or _is_any_in(routines, words):
                return None
            found |= {TableName(*key) for key in catalog.tables if _is_in(key[1], words)}
        waiting += found - seen
        seen |= found
    return frozenset(found)


def _run_by(catalog: SchemaCatalog, table: TableName) -> Iterator[str]:
    known = catalog.tables.get(table)
    if isinstance(known, TableVersion) and known.kind is TableKind.VIEW:
        yield known.text or ""
    for program in catalog.programs.values():
        if program.kind == TRIGGER and catalog.case.table_key(program.database, program.table) == table:
            yield _HEAD_OF_TRIGGER.split(program.text.lower(), maxsplit=1)[-1]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _is_in(name: str, words: Collection[str]) -> bool:
    return _words(name) <= set(words)


def _is_any_in(names: Iterable[str], words: Collection[str]) -> bool:
    return any(_is_in(name, words) for name in names)
