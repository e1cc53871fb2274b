"""The versions of some tables, found by place, and which table a name means: what readers of rows are given.

RENAME and ALTER keep a generation. TRUNCATE begins one with the same columns: for those who read
changes it is the table that it was.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from ibbmaster.position import LogPosition
from ibbmaster.schema.catalog import KnownTable
from ibbmaster.schema.folding import TABLE
from ibbmaster.schema.history import BEFORE, SchemaHistory
from ibbmaster.schema.model import SchemaPlace, TableVersion, UnknownTable
from ibbmaster.schema.name_case import NameCase
from ibbmaster.sqltext.table_name import TableName

Stretch = tuple[SchemaPlace | None, SchemaPlace | None, Hashable]  # since, until, and which table
TableState = TableVersion | UnknownTable


class NameRange(NamedTuple):
    """From where to where a table was called so; None: from the beginning of the log, to its end."""

    name: TableName
    since: SchemaPlace | None
    until: SchemaPlace | None  # the first place where it was not

    def holds(self, name: TableName, place: SchemaPlace) -> bool:
        """Whether events at a place that name a table so mean this one."""
        return name == self.name and self.begins_by(place) and (self.until is None or place < self.until)

    def begins_by(self, place: SchemaPlace) -> bool:
        return self.since is None or self.since <= place


def ranges_of(history: SchemaHistory, name: TableName, place: SchemaPlace | None = None) -> tuple[NameRange, ...]:
    """Every name of the table that is called so at a place, or at the end; in no order. Where no table is called so
    there, it is the last one that was."""
    lines: dict[TableName, list[tuple[SchemaPlace, KnownTable]]] = {
        own: [(one.since, one.value) for one in line if one.value is not None]
        for own, line in history.lines[TABLE].items()
    }
    for line in list(lines.values()):
        for _, table in line:
            if isinstance(table, UnknownTable) and table.was is not None:
                lines.setdefault(TableName(*table.was), [])
    lines.setdefault(TableName(*name), [])
    same = _truncated(lines.values())
    found = [
        (NameRange(own, since, until), same.get(table, table))
        for own, line in lines.items()
        for since, until, table in _stretches(own, line)
    ]
    wanted = [table for one, table in found if one.name == name and (place is None or one.begins_by(place))][-1]
    return tuple(one for one, table in found if table == wanted)


def named_ranges(name: TableName) -> tuple[NameRange, ...]:
    """Whatever is called so, wherever that is."""
    return (NameRange(name, None, None),)


def _which(table: KnownTable) -> Hashable:
    """What distinguishes a table from others of its name: its generation, or what it was called before the log."""
    if isinstance(table, UnknownTable) and not table.generation:
        return table.was or (table.database, table.name)
    return table.generation


def _stretches(name: TableName, line: Sequence[tuple[SchemaPlace, KnownTable]]) -> Iterator[Stretch]:
    """What a name means, from place to place."""
    if not line:
        yield None, None, name
        return
    yield None, line[0][0], name
    for (since, table), (until, _) in pairwise([*line, (None, None)]):
        assert since is not None
        assert table is not None
        yield since, until, _which(table)


def _truncated(lines: Iterable[Sequence[tuple[SchemaPlace, KnownTable]]]) -> dict[Hashable, Hashable]:
    """By generation the first one of a table, if that is another."""
    before: dict[int, int] = {}
    for line in lines:
        for (_, old), (_, new) in pairwise(line):
            if not isinstance(old, TableVersion) or not isinstance(new, TableVersion):
                continue
            if old.generation != new.generation and _share_columns(old, new):
                before[new.generation] = old.generation
    first: dict[Hashable, Hashable] = {}
    for generation in sorted(before):
        first[generation] = first.get(before[generation], before[generation])
    return first


def _share_columns(one: TableVersion, other: TableVersion) -> bool:
    return bool({column.id for column in one.columns} & {column.id for column in other.columns})


class TableVersions:
    """By database and table as `case` finds them, in the order of the log. Pickled with a task, so it keeps what rows
    need. `ranges` limit them to one table: the names it had, and where. Without ranges they are of all tables."""

    def __init__(
        self,
        tables: Mapping[TableName, Sequence[TableState]],
        case: NameCase = NameCase.EXACT,
        ranges: Sequence[NameRange] = (),
    ) -> None:
        self._case = case
        self._tables = {name: [_lean(one) for one in versions] for name, versions in tables.items() if versions}
        self._ranges = tuple(ranges)
        self._index()

    def _index(self) -> None:
        self._places = {name: [one.since for one in versions[1:]] for name, versions in self._tables.items()}
        self._begun = sorted(
            one.since for versions in self._tables.values() for one in versions if one.since is not None
        )
        self._parts: dict[tuple[int, int], TableVersions] = {}  # by how many have begun where a part starts and ends

    def __getstate__(self) -> tuple[dict[TableName, list[TableState]], NameCase, tuple[NameRange, ...]]:
        return self._tables, self._case, self._ranges

    def __setstate__(self, state: tuple[dict[TableName, list[TableState]], NameCase, tuple[NameRange, ...]]) -> None:
        self._tables, self._case, self._ranges = state
        self._index()

    @property
    def case(self) -> NameCase:
        """How names are compared."""
        return self._case

    @property
    def are_of_one(self) -> bool:
        """Whether they are of one table, which `means` knows."""
        return bool(self._ranges)

    def means(self, database: str, table: str, place: SchemaPlace) -> bool:
        """Whether events at a place that name a table so mean the one that these versions are of."""
        name = self._case.table_key(database, table)
        return any(called.holds(name, place) for called in self._ranges)

    def may_mean(self, database: str, table: str) -> bool:
        """Whether there are such events at any place."""
        name = self._case.table_key(database, table)
        return any(called.name == name for called in self._ranges)

    def at(self, database: str, table: str, place: SchemaPlace) -> TableState | None:
        """The version that a row event at a place is of; None where nothing is known."""
        name = self._case.table_key(database, table)
        versions = self._tables.get(name)
        if versions is None:
            return None
        found = versions[bisect.bisect_right(self._places[name], place)]  # type: ignore[type-var]
        return found if found.since is None or found.since <= place else None

    def last(self, database: str, table: str) -> TableState | None:
        """The last version there is."""
        versions = self.of(database, table)
        return versions[-1] if versions else None

    def newest(self, place: SchemaPlace | None = None) -> TableState | None:
        """The last version up to a place of the one table that they are of, under whatever name."""
        found: TableState | None = None
        for called in self._ranges:
            for one in self._tables.get(called.name, ()):
                since = one.since or BEFORE
                if not called.holds(called.name, since) or (place is not None and since > place):
                    continue
                if found is None or (found.since or BEFORE) <= since:
                    found = one
        return found

    def are_defined(self) -> bool:
        """Whether statements define all of them."""
        return not any(one.undefined_because for versions in self._tables.values() for one in versions)

    def boundaries(self) -> list[SchemaPlace]:
        """Every place where one of the tables becomes another, in order."""
        found = {one.since for versions in self._tables.values() for one in versions}
        found |= {place for called in self._ranges for place in (called.since, called.until)}
        return sorted(place for place in found if place is not None)

    def landmarks(self) -> list[tuple[int, str]]:
        """Of versions that begin within what a primary has sent, the number of the group there, and its GTID."""
        found = (one for versions in self._tables.values() for one in versions)
        return [(one.since.position.offset, one.gtid) for one in found if one.since is not None and one.gtid]

    def of(self, database: str, table: str) -> Sequence[TableState]:
        """Every version of a table, in order."""
        return self._tables.get(self._case.table_key(database, table), ())

    def between(self, start: LogPosition, end: LogPosition) -> TableVersions:
        """Those that hold somewhere between two positions: one object for all between which nothing changes."""
        first, last = SchemaPlace(start, 0), SchemaPlace(end, 0)
        part = bisect.bisect_right(self._begun, first), bisect.bisect_right(self._begun, last)
        found = self._parts.get(part)
        if found is None:
            tables = {name: list(_between(versions, first, last)) for name, versions in self._tables.items()}
            found = self._parts[part] = TableVersions(tables, self._case, self._ranges)
        return found


def _between(versions: Sequence[TableState], start: SchemaPlace, end: SchemaPlace) -> Iterable[TableState]:
    for number, one in enumerate(versions):
        following = versions[number + 1].since if number + 1 < len(versions) else None
        if (one.since is None or one.since <= end) and (following is None or following > start):
            yield one


def _lean(table: TableState) -> TableState:
    """A version without what says nothing of rows."""
    if isinstance(table, UnknownTable):
        return table
    key = table.primary_key
    return dataclasses.replace(
        table,
        indexes=() if key is None else (key,),
        foreign_keys=(),
        checks=(),
        options={},
        periods=(),
        partitioning=None,
        text=None,
    )


NO_VERSIONS = TableVersions({})
