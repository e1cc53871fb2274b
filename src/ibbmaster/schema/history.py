"""The versions of every table over a log, by the DDL in front of each place."""

import bisect
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from ibbmaster.position import LOG_START, LogPosition
from ibbmaster.replication.event.rows.column import TableSchema
from ibbmaster.replication.event.statement.logged import LoggedStatement
from ibbmaster.sqltext.table_name import TableName
from .catalog import TRIGGER, KnownTable, SchemaCatalog
from .folding import DATABASE, PROGRAM, TABLE, SchemaFold
from .model import SchemaPlace, TableVersion, UnknownTable
from .name_case import NameCase, ambiguous
from .names import derived_table, disagreement

BEFORE = SchemaPlace(LogPosition(-1, 0), 0)  # the log's first event
NO_STATEMENT = "its CREATE TABLE is not in the log; give its CREATE TABLE with --schema"


class SchemaChange(NamedTuple):
    """The value after a place; None: it is gone."""

    since: SchemaPlace
    value: Any


class SchemaHistory:
    """Folds DDL in the order of the log, and finds every table at any place of it.

    `base` is the schema before the first statement, `end` the position up to which the log was read, `places` has the
    place of each change, in order. `case` is how the log's server compares names. Without it names are exact;
    `fold.finder` has statements that contradict that, and `is_whole` tells it whether base and log have all tables."""

    def __init__(
        self, base: SchemaCatalog | None = None, case: NameCase | None = None, *, is_whole: bool = True
    ) -> None:
        self.end = LOG_START
        self.disagreements: list[str] = []
        self.lines: dict[str, dict[Any, list[SchemaChange]]] = {TABLE: {}, DATABASE: {}, PROGRAM: {}}
        self.places: list[SchemaPlace] = []
        self._place = BEFORE
        self.is_whole = is_whole
        self.fold = SchemaFold(self._note, case, is_whole=is_whole)
        if base is not None:
            self._begin_with(base)

    @property
    def case(self) -> NameCase:
        return self.fold.case

    def fix_case(self) -> None:
        """Compare names as now, without looking for contradictions."""
        self.fold.finder = None

    def _begin_with(self, base: SchemaCatalog) -> None:
        for database in base.databases.values():
            self.fold.set_database(database)
        for table in base.tables.values():
            self.fold.learn(table)
            if isinstance(table, TableVersion):
                self.fold.last_id = max(self.fold.last_id, *(one.id for one in table.columns), 0)
                self.fold.last_generation = max(self.fold.last_generation, table.generation)

    def add(self, place: SchemaPlace, gtid: str, timestamp: int, statement: LoggedStatement) -> None:
        self._place = place
        reason = self.fold.apply(statement, place, gtid, timestamp)
        if reason is not None:
            self.disagreements.append(f"GTID {gtid}: {reason}; no table is known from here on")

    def add_restart(self) -> None:
        self.fold.restart()

    def take_rows(self, place: SchemaPlace, gtid: str, schema: TableSchema) -> None:
        """Take a TABLE_MAP event after all statements before it: a table without a statement is as its rows name it,
        from before the log on if none has named it, else from the event on. One that was known better once, or
        contradicts itself, stays unknown."""
        line = self.lines[TABLE].get(self.case.table_key(schema.database, schema.table), [])
        last = line[-1].value if line else None
        if not schema.has_names or (line and last is None):
            return
        since = SchemaPlace(place.position, place.event_no - 1)
        if isinstance(last, TableVersion):
            problem = disagreement(last, schema) if last.undefined_because else None
            if problem is not None:
                reason = f"{last.undefined_because} (its rows disagree with later statements: {problem})"
                lost = UnknownTable(database=last.database, name=last.name, since=since, gtid=gtid, reason=reason)
                self._learn(since, replace(lost, generation=last.generation))
            return
        if last is not None and (last.was is not None or _was_known(line)):
            return
        derived = derived_table(schema, since, gtid, self.fold.new_id)
        if last is None:
            derived = replace(derived, since=None, gtid=None, undefined_because=NO_STATEMENT)
            self._learn(BEFORE, replace(derived, generation=self._new_generation()))
        elif last.generation or len(line) == 1:
            generation = last.generation or self._numbered(line)
            self._learn(since, replace(derived, generation=generation, undefined_because=last.reason))

    def _new_generation(self) -> int:
        self.fold.last_generation += 1
        return self.fold.last_generation

    def _numbered(self, line: list[SchemaChange]) -> int:
        known = replace(line[0].value, generation=self._new_generation())
        before = SchemaChange(BEFORE, replace(known, since=None, gtid=None))
        line[:] = [before, SchemaChange(line[0].since, known)]
        self._note_place(BEFORE)
        return int(known.generation)

    def _learn(self, since: SchemaPlace, table: KnownTable) -> None:
        self._place = since
        self.fold.learn(table)
        self._note_place(since)

    def _note_place(self, since: SchemaPlace) -> None:
        place = bisect.bisect_left(self.places, since)
        if self.places[place : place + 1] != [since]:
            self.places.insert(place, since)

    def table_at(self, database: str, name: str, place: SchemaPlace | None = None) -> KnownTable | None:
        """As events at a place see it, or at the end."""
        key = self.case.table_key(database, name)
        found: KnownTable | None = _at(self.lines[TABLE].get(key, ()), place)
        return found if found is not None else self._maybe_another(key, place)

    def table_of_trigger(self, trigger: TableName, place: SchemaPlace) -> TableName | None:
        """As events at a place see it; None if the log does not show it."""
        key = (self.case.key(trigger.database), TRIGGER, trigger.name)
        found = _at(self.lines[PROGRAM].get(key, ()), place)
        return None if found is None else TableName(found.database, found.table)

    def _maybe_another(self, name: TableName, place: SchemaPlace | None) -> UnknownTable | None:
        """A missing table that may be an existing one in other letters."""
        finder = self.fold.finder
        others = finder.others(name) if finder is not None and finder.found is None else ()
        there = {other for other in others if _at(self.lines[TABLE].get(other, ()), place) is not None}
        if not there:
            return None
        return UnknownTable(database=name.database, name=name.name, since=None, gtid=None, reason=ambiguous(there))

    def at(self, place: SchemaPlace | None = None) -> SchemaCatalog:
        """As events at a place see it, or at the end."""
        tables, databases, programs = (
            {key: value for key, line in list(lines.items()) if (value := _at(line, place)) is not None}  # it may grow
            for lines in self.lines.values()
        )
        return SchemaCatalog(
            databases=MappingProxyType(databases),
            tables=MappingProxyType(tables),
            programs=MappingProxyType(programs),
            case=self.case,
        )

    def take_line(self, part: str, key: Any, changes: list[SchemaChange]) -> None:
        """Start with versions folded before; part is TABLE, DATABASE or PROGRAM."""
        self._place = changes[-1].since
        self.fold.take(part, key, changes[-1].value)
        self.lines[part][key] = changes

    def note_places(self) -> None:
        lines = (line for part in self.lines.values() for line in part.values())
        self.places = sorted({change.since for line in lines for change in line})

    def versions(self, database: str, name: str) -> Sequence[KnownTable]:
        key = self.case.table_key(database, name)
        return [one.value for one in self.lines[TABLE].get(key, ()) if one.value is not None]

    def names(self) -> Iterator[TableName]:
        yield from self.lines[TABLE]

    def _note(self, part: str, key: Hashable, value: Any) -> None:
        line = self.lines[part].setdefault(key, [])
        if line and line[-1].since == self._place:
            line[-1] = SchemaChange(self._place, value)  # several steps of one statement
        else:
            line.append(SchemaChange(self._place, value))
            if not self.places or self.places[-1] < self._place:
                self.places.append(self._place)


def _was_known(line: Sequence[SchemaChange]) -> bool:
    generation = line[-1].value.generation
    return any(isinstance(one.value, TableVersion) and one.value.generation == generation for one in line)


def _at(line: Sequence[SchemaChange], place: SchemaPlace | None) -> Any:
    number = len(line) if place is None else bisect.bisect_left(line, place, key=lambda change: change.since)
    return line[number - 1].value if number else None
