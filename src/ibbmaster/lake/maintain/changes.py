"""The changes of tables, one after the other, each once: what has taken effect is added, and stays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ibbmaster.arrow.plan import selected_versions
from ibbmaster.arrow.shape import ABSENT_FIELD, CHANGE_FIELDS, GROUP_FIELDS, ShapeField
from ibbmaster.lake.maintain.reshaping import Reshape
from ibbmaster.lake.maintain.rows import Replaced, place_of
from ibbmaster.lake.maintain.source import LogSource, Read, just_before
from ibbmaster.lake.pasts import START, Doubt
from ibbmaster.schema.model import SchemaPlace, TableVersion
from ibbmaster.sqltext.table_name import TableName

if TYPE_CHECKING:
    import pyarrow as pa

FIRST = tuple(field.name for field in (*GROUP_FIELDS, *CHANGE_FIELDS[1:], ABSENT_FIELD))


@dataclass(frozen=True, slots=True)
class FreshChanges:
    """Changes that come after those that are there."""

    rows: pa.Table
    reshape: Reshape


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
        if before is None or not self._means(name, then):
            return None
        # what is logged of rows stays as it was, also by MODIFY
        return Reshape() if self._columns(before) == self._columns(table) else None

    def _means(self, name: TableName, place: SchemaPlace) -> bool:
        """Whether the table that is called so now was called so at a place; TRUNCATE leaves it the same."""
        source = self._source
        options = replace(source.options, table=str(name), tables=())
        return selected_versions(options, source.history, source.end_place).means(*name, place)

    def _columns(self, table: TableVersion) -> set[tuple[int, ShapeField]]:
        return set(zip((one.id for one in table.shown.columns), self._source.fields(table), strict=True))
