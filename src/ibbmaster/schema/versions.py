"""The versions of some tables, found by place: what those are given that read rows, also in other processes."""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from ibbmaster.position import LogPosition
from ibbmaster.schema.model import SchemaPlace, TableVersion, UnknownTable
from ibbmaster.schema.name_case import NameCase

TableState = TableVersion | UnknownTable
TableName = tuple[str, str]  # database, table


class TableVersions:
    """By database and table as `case` finds them, in the order of the log.

    Pickled with a task, so it keeps what rows need.
    """

    def __init__(self, tables: Mapping[TableName, Sequence[TableState]], case: NameCase = NameCase.EXACT) -> None:
        self._case = case
        self._tables = {name: [_lean(one) for one in versions] for name, versions in tables.items() if versions}
        self._index()

    def _index(self) -> None:
        self._places = {name: [one.since for one in versions[1:]] for name, versions in self._tables.items()}

    def __getstate__(self) -> tuple[dict[TableName, list[TableState]], NameCase]:
        return self._tables, self._case

    def __setstate__(self, state: tuple[dict[TableName, list[TableState]], NameCase]) -> None:
        self._tables, self._case = state
        self._index()

    @property
    def case(self) -> NameCase:
        """How names are compared."""
        return self._case

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

    def boundaries(self) -> list[SchemaPlace]:
        """Every place where one of the tables becomes another, in order."""
        return sorted({one.since for versions in self._tables.values() for one in versions if one.since is not None})

    def of(self, database: str, table: str) -> Sequence[TableState]:
        """Every version of a table, in order."""
        return self._tables.get(self._case.table_key(database, table), ())

    def between(self, start: LogPosition, end: LogPosition) -> TableVersions:
        """Those that hold somewhere between two positions."""
        first, last = SchemaPlace(start, 0), SchemaPlace(end, 0)
        found = {name: list(_between(versions, first, last)) for name, versions in self._tables.items()}
        return TableVersions(found, self._case)


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
