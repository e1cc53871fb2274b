"""The versions of some tables, found by place: what those are given that read rows, also in other processes."""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from ibbmaster.position import LogPosition
from ibbmaster.schema.history import BEFORE
from ibbmaster.schema.identity import NameRange
from ibbmaster.schema.model import SchemaPlace, TableVersion, UnknownTable
from ibbmaster.schema.name_case import NameCase
from ibbmaster.sqltext.table_name import TableName

TableState = TableVersion | UnknownTable


class TableVersions:
    """By database and table as `case` finds them, in the order of the log.

    Pickled with a task, so it keeps what rows need. `ranges` limit them to one table: the names it
    had, and where. Without ranges they are of all tables.
    """

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
