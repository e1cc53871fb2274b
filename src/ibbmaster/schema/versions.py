"""The versions of some tables by place, and the table that a name means there: for readers of rows. RENAME and ALTER
keep a generation; TRUNCATE begins one with the same columns: for readers of changes it is the same table."""

import bisect
import dataclasses
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from ibbmaster.position import LogPosition
from ibbmaster.sqltext.table_name import TableName
from .catalog import KnownTable
from .folding import TABLE
from .history import BEFORE, SchemaHistory
from .model import SchemaPlace, TableVersion, UnknownTable
from .name_case import NameCase

Stretch = tuple[SchemaPlace | None, SchemaPlace | None, Hashable]
TableState = TableVersion | UnknownTable


class NameRange(NamedTuple):
    """Where a table had a name; None: from the log's beginning, to its end."""

    name: TableName
    since: SchemaPlace | None
    until: SchemaPlace | None

    def holds(self, name: TableName, place: SchemaPlace) -> bool:
        return name == self.name and self.begins_by(place) and (self.until is None or place < self.until)

    def begins_by(self, place: SchemaPlace) -> bool:
        return self.since is None or self.since <= place


def ranges_of(history: SchemaHistory, name: TableName, place: SchemaPlace | None = None) -> tuple[NameRange, ...]:
    """Every name of the table called so at a place, or at the end; else of the last one that had the name."""
    lines: dict[TableName, list[tuple[SchemaPlace, KnownTable]]] = {
        own: [(one.since, one.value) for one in line if one.value is not None]
        for own, line in history.lines[TABLE].items()
    }
    for line in list(lines.values()):
        for _, table in line:
            if isinstance(table, UnknownTable) and table.was is not None:
                lines.setdefault(TableName(*table.was), [])
    lines.setdefault(name, [])
    same = _truncated(lines.values())
    found = [
        (NameRange(own, since, until), same.get(table, table))
        for own, line in lines.items()
        for since, until, table in _stretches(own, line)
    ]
    wanted = [table for one, table in found if one.name == name and (place is None or one.begins_by(place))][-1]
    return tuple(one for one, table in found if table == wanted)


def named_ranges(name: TableName) -> tuple[NameRange, ...]:
    """Everything with this name, anywhere."""
    return (NameRange(name, None, None),)


def _which(table: KnownTable) -> Hashable:
    if isinstance(table, UnknownTable) and not table.generation:
        return table.was or (table.database, table.name)
    return table.generation


def _stretches(name: TableName, line: Sequence[tuple[SchemaPlace, KnownTable]]) -> Iterator[Stretch]:
    if not line:
        yield None, None, name
        return
    yield None, line[0][0], name
    for (since, table), (until, _) in pairwise([*line, (None, None)]):
        assert since is not None
        assert table is not None
        yield since, until, _which(table)


def _truncated(lines: Iterable[Sequence[tuple[SchemaPlace, KnownTable]]]) -> dict[Hashable, Hashable]:
    """By generation a table's first one, if that differs."""
    before: dict[int, int] = {}
    for line in lines:
        for (_, old), (_, new) in pairwise(line):
            if not isinstance(old, TableVersion) or not isinstance(new, TableVersion):
                continue
            if old.generation != new.generation and {one.id for one in old.columns} & {one.id for one in new.columns}:
                before[new.generation] = old.generation
    first: dict[Hashable, Hashable] = {}
    for generation in sorted(before):
        first[generation] = first.get(before[generation], before[generation])
    return first


class TableVersions:
    """By database and table as `case` finds them, in order. Tasks pickle them, so they keep only what rows need.
    `ranges` limit them to one table: its names, and where it had them."""

    def __init__(
        self,
        tables: Mapping[TableName, Sequence[TableState]],
        case: NameCase = NameCase.EXACT,
        ranges: Sequence[NameRange] = (),
    ) -> None:
        self.case = case
        self._tables = {name: [_lean(one) for one in versions] for name, versions in tables.items() if versions}
        self._ranges = tuple(ranges)
        self._index()

    def _index(self) -> None:
        self._places = {name: [one.since for one in versions[1:]] for name, versions in self._tables.items()}
        self._begun = sorted(
            one.since for versions in self._tables.values() for one in versions if one.since is not None
        )
        self._parts: dict[tuple[int, int], TableVersions] = {}  # by how many begin before a part's start and end

    def __getstate__(self) -> tuple[dict[TableName, list[TableState]], NameCase, tuple[NameRange, ...]]:
        return self._tables, self.case, self._ranges

    def __setstate__(self, state: tuple[dict[TableName, list[TableState]], NameCase, tuple[NameRange, ...]]) -> None:
        self._tables, self.case, self._ranges = state
        self._index()

    @property
    def are_of_one(self) -> bool:
        """Whether they are of one table, for which `means` answers."""
        return bool(self._ranges)

    def means(self, database: str, table: str, place: SchemaPlace) -> bool:
        """Whether events at a place that name a table so mean the one of these versions."""
        name = self.case.table_key(database, table)
        return any(called.holds(name, place) for called in self._ranges)

    def may_mean(self, database: str, table: str) -> bool:
        name = self.case.table_key(database, table)
        return any(called.name == name for called in self._ranges)

    def at(self, database: str, table: str, place: SchemaPlace) -> TableState | None:
        """The version of row events at a place; None if unknown."""
        name = self.case.table_key(database, table)
        versions = self._tables.get(name)
        if versions is None:
            return None
        found = versions[bisect.bisect_right(self._places[name], place)]  # type: ignore[type-var]
        return found if found.since is None or found.since <= place else None

    def newest(self, place: SchemaPlace | None = None) -> TableState | None:
        """The last version, up to a place, of their one table, under any name."""
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
        return not any(one.undefined_because for versions in self._tables.values() for one in versions)

    def boundaries(self) -> list[SchemaPlace]:
        found = {one.since for versions in self._tables.values() for one in versions}
        found |= {place for called in self._ranges for place in (called.since, called.until)}
        return sorted(place for place in found if place is not None)

    def landmarks(self) -> list[tuple[int, str]]:
        found = (one for versions in self._tables.values() for one in versions)
        return [(one.since.position.offset, one.gtid) for one in found if one.since is not None and one.gtid]

    def of(self, database: str, table: str) -> Sequence[TableState]:
        return self._tables.get(self.case.table_key(database, table), ())

    def between(self, start: LogPosition, end: LogPosition) -> "TableVersions":
        """Those that hold anywhere between two positions: the same object where nothing changes."""
        first, last = SchemaPlace(start, 0), SchemaPlace(end, 0)
        part = bisect.bisect_right(self._begun, first), bisect.bisect_right(self._begun, last)
        found = self._parts.get(part)
        if found is None:
            tables = {name: list(_between(versions, first, last)) for name, versions in self._tables.items()}
            found = self._parts[part] = TableVersions(tables, self.case, self._ranges)
        return found


def _between(versions: Sequence[TableState], start: SchemaPlace, end: SchemaPlace) -> Iterable[TableState]:
    for number, one in enumerate(versions):
        following = versions[number + 1].since if number + 1 < len(versions) else None
        if (one.since is None or one.since <= end) and (following is None or following > start):
            yield one


def _lean(table: TableState) -> TableState:
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
