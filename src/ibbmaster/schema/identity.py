"""Which table a name means, and what that table was called before and is called later: by generation, not by name.

RENAME and ALTER keep a generation. TRUNCATE begins one with the same columns: for those who read
changes it is the table that it was.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from ibbmaster.schema.catalog import KnownTable
from ibbmaster.schema.folding import TABLE
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import SchemaPlace, TableVersion, UnknownTable
from ibbmaster.sqltext.table_name import TableName


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
    """Every name of the table that is called so at a place, or at the end; in no order.

    Where no table is called so there, it is the last one that was.
    """
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


Stretch = tuple[SchemaPlace | None, SchemaPlace | None, Hashable]  # since, until, and which table


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
