"""The changes of tables, one after the other, each once: what has taken effect is added, and stays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ibbmaster.arrow.shape import ABSENT_FIELD, CHANGE_FIELDS, GROUP_FIELDS
from ibbmaster.lake.continuing import changes_of_table
from ibbmaster.lake.maintain.reshaping import Reshape
from ibbmaster.lake.maintain.rows import Replaced, place_of
from ibbmaster.lake.maintain.source import LogSource, Read, just_before
from ibbmaster.lake.pasts import START, Doubt
from ibbmaster.schema.model import SchemaPlace, TableVersion
from ibbmaster.spark.options import parse_options
from ibbmaster.sqltext.table_name import TableName, parse_table_name

if TYPE_CHECKING:
    import pyarrow as pa

FIRST = tuple(field.name for field in (*GROUP_FIELDS, *CHANGE_FIELDS[1:], ABSENT_FIELD))


@dataclass(frozen=True, slots=True)
class FreshChanges:
    """Changes that come after those that are there."""

    rows: pa.Table
    reshape: Reshape


def doubts_of(given: Mapping[str, str], tables: Iterable[str]) -> dict[str, str]:
    """By table, since when a log may not have all changes of its rows, and why; tables without a doubt are left out."""
    with LogSource(parse_options(given)) as source:
        found = {
            name: TableChanges(source).doubt(source.history.case.table_key(*parse_table_name(name))) for name in tables
        }
    return {name: str(doubt) for name, doubt in found.items() if doubt is not None}


class TableChanges:
    """The changes of the tables of a log up to its end, all of them or those since a position."""

    def __init__(self, source: LogSource) -> None:
        self._source = source

    def close(self) -> None:
        """There is nothing that stays open."""

    def doubt(self, name: TableName) -> Doubt | None:
        """The first change of rows that no event shows."""
        past = self._source.past(name)
        parents = sorted(past.ancestors & self._source.written_since("")) if past.ancestors else []
        cascades = (Doubt(START, "", f"its foreign key to {one} may change rows without an event") for one in parents)
        return min([*past.past_doubts, *past.doubts, *cascades], default=None)

    def reads(self, name: TableName, table: TableVersion, rows_at: str | None) -> Read:
        """The changes that `find` will read."""
        return self._step(name, table, rows_at)[0]

    def find(self, name: TableName, table: TableVersion, rows_at: str | None) -> Replaced | FreshChanges | None:
        """What becomes of a table that has the changes up to a position; None if there are no more.

        Raises:
            UncertainRowsError: the log does not have all changes of it.
        """
        read, reshape = self._step(name, table, rows_at)
        if reshape is None:
            self._source.expect_whole(name)
        found = self._source.changes(read)
        if reshape is None:
            return Replaced(found.to_reader())
        return FreshChanges(found, reshape) if len(found) or reshape else None

    def _step(self, name: TableName, table: TableVersion, rows_at: str | None) -> tuple[Read, Reshape | None]:
        """What is read, and how changes up to a position look now; None if there are none to go on from."""
        source = self._source
        then = place_of(source, rows_at)
        fields = source.fields(table, FIRST)
        reshape = None if then is None else self._reshape(name, then, table, rows_at or "")
        if then is None or reshape is None:
            return Read(name, fields, START), None
        return Read(name, fields, just_before(then), rows_at or ""), reshape

    def _reshape(self, name: TableName, then: SchemaPlace, table: TableVersion, rows_at: str) -> Reshape | None:
        """How changes up to a position look now; None if they are others, or are of another table."""
        source = self._source
        reshape = source.reshape(name, then, table)
        if reshape and not (reshape.renamed or reshape.dropped):  # these may be named by what images leave out
            return reshape
        before = source.version_at(name, then)
        if before is None or set(source.fields(before)) != set(source.fields(table)):
            return None
        others = any(changes_of_table(source.options, source.history, str(name), then, source.end_place))
        return None if others else Reshape()
