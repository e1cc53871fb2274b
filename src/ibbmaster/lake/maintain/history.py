"""Every version of each row, with when it held (SCD type 2): new ones are added, and those end that they replace."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ibbmaster.arrow.shape import ABSENT_FIELD, arrow_schema
from ibbmaster.dialogue.log_tables import LogSnapshot
from ibbmaster.fold.folding import WITHOUT_BEGINNING
from ibbmaster.lake.maintain.last_changes import PartialChangeError
from ibbmaster.lake.maintain.reshaping import Reshape, reshape_of
from ibbmaster.lake.maintain.rows import Replaced, folded_batches, names_of_key, place_of
from ibbmaster.lake.maintain.source import LogSource, Read, UncertainRowsError, just_before
from ibbmaster.lake.maintain.versions import NewVersions, new_versions
from ibbmaster.lake.pasts import START, Past, Place, Truncation
from ibbmaster.schema.model import TableVersion
from ibbmaster.select.table_reader import TableReader
from ibbmaster.sqltext.table_name import TableName

if TYPE_CHECKING:
    import pyarrow as pa

FIRST = ("_file_no", "_offset", "_change_no", "_commit_ts", "_gtid", "_change_type", ABSENT_FIELD.name)


@dataclass(frozen=True, slots=True)
class FreshVersions:
    """New versions of rows, by these key columns."""

    keys: tuple[str, ...]
    versions: NewVersions
    reshape: Reshape


class RowHistory:
    """The versions of the rows of tables up to the end of a log, all of them or those since a position."""

    def __init__(self, source: LogSource) -> None:
        self._source = source

    def close(self) -> None:
        """There is nothing that stays open."""

    def doubt(self, name: TableName) -> None:
        """There are no versions about which there is doubt."""

    def find(self, name: TableName, table: TableVersion, rows_at: str | None) -> Replaced | FreshVersions | None:
        """What becomes of a table that has the versions up to a position; None if there are no more.

        Raises:
            UncertainRowsError: the log does not have all versions of the rows.
        """
        past, read, reshape = self._step(name, table, rows_at)
        if reshape is not None:
            _expect_all(table, past, read.start)
            if name not in self._source.written_since(read.gtids) and not reshape:
                return None
            found = self._versions(table, read, ())
            if found is not None:
                return FreshVersions(_keys(table, read), found, reshape)
        _expect_all(table, past, START)
        self._source.expect_whole(name)
        first = self._in_base(name, table, read)
        if first is None and not past.cuts:
            raise UncertainRowsError("", WITHOUT_BEGINNING)
        start = START if self._source.base_place is None else just_before(self._source.base_place)
        found = self._versions(table, read._replace(start=start, gtids=""), past.cuts, first)
        if found is None or len(found.ended):
            raise UncertainRowsError("", "images leave out what no version before them has, or contradict each other")
        return Replaced(found.rows.to_reader())

    def reads(self, name: TableName, table: TableVersion, rows_at: str | None) -> Read | None:
        """The changes that `find` will read first, if it reads them; errors as `find`."""
        past, read, reshape = self._step(name, table, rows_at)
        _expect_all(table, past, read.start)
        is_none = reshape is not None and not reshape and name not in self._source.written_since(read.gtids)
        return None if is_none else read

    def _step(self, name: TableName, table: TableVersion, rows_at: str | None) -> tuple[Past, Read, Reshape | None]:
        """What is read, and how versions up to a position look now; None if there are none to go on from."""
        source = self._source
        past = source.past(name)
        then = place_of(source, rows_at)
        start = START if then is None else just_before(then)
        reshape = None if then is None else source.reshape(name, then, table)
        fields = source.fields(table, FIRST)
        if reshape is None or past.begin > start:
            return past, Read(name, fields, START), None
        return past, Read(name, fields, start, rows_at or ""), reshape

    def _in_base(self, name: TableName, table: TableVersion, read: Read) -> pa.Table | None:
        """The rows of the dump that the log goes on from, as if its position had inserted them; None without them."""
        import pyarrow as pa

        source, then = self._source, self._source.version_in_base(name)
        if then is None or source.base is None or source.base_place is None:
            return None
        reshape = reshape_of(replace(then, generation=table.generation), table, source.fields)
        if reshape is None:
            raise UncertainRowsError("", "its columns have others types or values since the dump: give a later one")
        snapshot = LogSnapshot(end=source.base_place.position, file_name="", state=source.log.state())
        with closing(TableReader(source.log, source.history, base=source.base)) as reader:
            fields = source.fields(then)
            rows = pa.Table.from_batches(folded_batches(reader, snapshot, then, fields), arrow_schema(fields))
        file_no, offset = just_before(source.base_place)
        own = {reshape.renamed.get(one, one): rows[one] for one in rows.column_names if one not in reshape.dropped}
        own |= {"_gtid": str(source.base.position), "_change_type": "insert", ABSENT_FIELD.name: []}
        own |= {"_file_no": file_no, "_offset": offset, "_change_no": 0}
        columns = [
            found.cast(field.type)
            if isinstance(found := own.get(field.name), pa.ChunkedArray)
            else pa.array([found] * len(rows), field.type)
            for field in arrow_schema(read.fields)
        ]
        return pa.table(columns, schema=arrow_schema(read.fields))

    def _versions(
        self, table: TableVersion, read: Read, cuts: Sequence[Truncation], first: pa.Table | None = None
    ) -> NewVersions | None:
        """Those that rows of before and changes make; None if these are not enough."""
        import pyarrow as pa

        keys = _keys(table, read)
        names = [field.name for field in read.fields[len(FIRST) :]]
        try:
            changes = self._source.changes(read)
            changes = changes if first is None else pa.concat_tables([first, changes])
            found = new_versions(changes, keys, names, self._source.past(read.name).nulls, cuts)
        except PartialChangeError:
            return None
        if any(found.rows[key].null_count for key in keys):
            raise UncertainRowsError("", "a value of its key is no date: --zero-dates text keeps it")
        return found


def _keys(table: TableVersion, read: Read) -> tuple[str, ...]:
    return names_of_key(read.fields[len(FIRST) :], table)


def _expect_all(table: TableVersion, past: Past, start: Place) -> None:
    """See that what has become of rows after a place is in events, and all of it.

    Raises:
        UncertainRowsError: it may not be.
    """
    doubts = [doubt for doubt in (*past.past_doubts, *past.doubts) if doubt.place > start]
    if doubts:
        raise UncertainRowsError(min(doubts).gtid, min(doubts).reason)
    for parent in sorted(past.ancestors):
        raise UncertainRowsError("", f"its foreign key to {parent} may change rows without an event")
    if table.primary_key is None:
        raise UncertainRowsError("", "it has no primary key")
    if table.is_versioned or any(one.expression is not None for one in table.columns):
        raise UncertainRowsError("", "images may leave out what the server computes for it")
