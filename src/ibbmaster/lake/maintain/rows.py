"""What becomes of one table: nothing, some rows otherwise, or all of it anew."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ibbmaster.arrow.read_options import ReadOptions
from ibbmaster.arrow.shape import ABSENT_FIELD, ShapeField, arrow_schema
from ibbmaster.dialogue.log_tables import LogSnapshot
from ibbmaster.errors import EventError, PositionError
from ibbmaster.lake.folded import folded_batches
from ibbmaster.lake.maintain.last_changes import WHOLE, LastChanges, PartialChangeError, last_changes
from ibbmaster.lake.maintain.reshaping import Reshape
from ibbmaster.lake.maintain.source import LogSource, Read, UncertainRowsError, just_before
from ibbmaster.lake.pasts import Past, Place
from ibbmaster.schema.model import SchemaPlace, TableVersion
from ibbmaster.schema.names import key_numbers
from ibbmaster.select.table_reader import TableReader, UnknownRowsError
from ibbmaster.sqltext.table_name import TableName

if TYPE_CHECKING:
    import pyarrow as pa


PLACES = ("_file_no", "_offset", "_change_no", "_change_type", ABSENT_FIELD.name)


@dataclass(frozen=True, slots=True)
class Replaced:
    """All rows of a table, as it has them now; `faults` has the reason once a row cannot be read."""

    rows: pa.RecordBatchReader
    faults: list[Exception] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Patched:
    """The rows that have become others, by these key columns."""

    keys: tuple[str, ...]
    changes: LastChanges
    reshape: Reshape


class _Step(NamedTuple):
    """How a table goes on: not at all, by changes that patch it, or anew."""

    past: Past
    reshape: Reshape | None = None
    read: Read | None = None
    is_none: bool = False


class CurrentRows:
    """The rows that the tables of a log have at its end, or what has changed of them since a position."""

    def __init__(self, source: LogSource) -> None:
        self._source = source
        self._reader = TableReader(source.log, source.history, base=source.base, loads_kernels=True)
        self._unread: EventError | None = None  # why the changes that were asked for cannot be read
        self._written: dict[str, set[TableName]] = {}  # since a position

    def close(self) -> None:
        """Forget the rows that were read."""
        self._reader.close()

    def doubt(self, name: TableName) -> None:
        """There are no rows about which there is doubt."""

    def reads(self, name: TableName, table: TableVersion, rows_at: str | None) -> Read | None:
        """The changes that `find` will read first, if it reads them."""
        step = self._step(name, table, rows_at)
        if step.is_none:
            return None
        return self._whole_read(name, table, step.past) if step.read is None else step.read

    def find(self, name: TableName, table: TableVersion, rows_at: str | None) -> Replaced | Patched | None:
        """What becomes of a table whose rows are there as of a position; None if they are still the same.

        Raises:
            UncertainRowsError: the log does not have the rows.
        """
        step = self._step(name, table, rows_at)
        self._unread = None
        if step.is_none:
            return None
        if step.read is not None and step.reshape is not None:
            found = self._folded_changes(table, step.read)
            if found is not None:
                return Patched(*found, step.reshape)
        faults: list[Exception] = []
        return Replaced(self._whole(name, table, step.past, faults), faults)

    def _step(self, name: TableName, table: TableVersion, rows_at: str | None) -> _Step:
        """How rows that are there as of a position become those of now."""
        source = self._source
        then = place_of(source, rows_at)
        past = source.past(name)
        reshape = None if then is None else source.reshape(name, then, table)
        if then is None or reshape is None:
            return _Step(past)
        start = just_before(then)
        news = self._written_since(rows_at or "") & {name, *past.ancestors}
        is_known = past.begin <= start and not any(doubt.place > start for doubt in past.doubts)
        if is_known and not news and not reshape:
            return _Step(past, is_none=True)
        if is_known and news <= {name} and not _is_special(table):
            return _Step(past, reshape, self._read(name, table, start, rows_at or ""))
        return _Step(past)

    def _written_since(self, gtids: str) -> set[TableName]:
        found = self._written.get(gtids)
        if found is None:
            found = self._written[gtids] = self._source.written_since(gtids)
        return found

    def _whole(self, name: TableName, table: TableVersion, past: Past, faults: list[Exception]) -> pa.RecordBatchReader:
        """All rows: from the changes alone if that is enough, or row by row."""
        import pyarrow as pa

        fields = self._source.fields(table)
        schema = arrow_schema(fields)
        read = self._whole_read(name, table, past)
        found = None if read is None else self._folded_changes(table, read)
        if found is not None and not found[1].were_there.any():
            changes = found[1]
            rows = changes.rows.filter(pa.array(changes.outcomes == WHOLE))
            return pa.RecordBatchReader.from_batches(schema, rows.cast(schema).to_batches())
        end = self._source.end_position
        snapshot = LogSnapshot(end=end, file_name="", state=self._source.log.state())
        with _uncertain(self._unread):
            batches = folded_batches(self._reader, snapshot, table, fields)
        return pa.RecordBatchReader.from_batches(schema, _noting(batches, faults))

    def _whole_read(self, name: TableName, table: TableVersion, past: Past) -> Read | None:
        """The changes that may be enough for all rows."""
        is_plain = bool(past.cuts) and not past.doubts and not past.ancestors and not _is_special(table)
        return self._read(name, table, past.begin, "") if is_plain else None

    def _read(self, name: TableName, table: TableVersion, start: Place, gtids: str) -> Read | None:
        """The changes after a place; None without a key by which they could be folded."""
        return Read(name, self._source.fields(table, PLACES), start, gtids) if key_numbers(table) else None

    def _folded_changes(self, table: TableVersion, read: Read) -> tuple[tuple[str, ...], LastChanges] | None:
        """The key, and what becomes of each row that has changed; None if the changes are not enough."""
        fields = read.fields[len(PLACES) :]
        keys, names = names_of_key(fields, table), [field.name for field in fields]
        try:
            changes = self._source.changes(read)
            found = last_changes(changes, keys, names, self._source.past(read.name).nulls)
        except (PartialChangeError, EventError) as error:  # following the rows one by one may tell more
            self._unread = error if isinstance(error, EventError) else self._unread
            return None
        if found.known and any(one.expression is not None for one in table.columns):
            return None  # an image may leave out what the server has computed
        if any(found.rows[key].null_count for key in keys):
            return None  # a date that is none here
        return keys, found


class _Finding(Protocol):
    """How rows of one kind are found, as `CurrentRows` has it."""

    def find(self, name: TableName, table: TableVersion, rows_at: str | None) -> object: ...

    def close(self) -> None: ...


def rows_of(options: ReadOptions, table: TableVersion, kind: Callable[[LogSource], _Finding]) -> pa.Table:
    """The rows of a table where options end, or all versions of them.

    Raises:
        UncertainRowsError: the log does not have them.
        EventError: a value cannot be read.
    """
    with LogSource(options) as source, closing(kind(source)) as rows:
        found = rows.find(TableName(table.database, table.name), table, None)
        assert isinstance(found, Replaced)
        return found.rows.read_all()


def _noting(batches: Iterator[pa.RecordBatch], faults: list[Exception]) -> Iterator[pa.RecordBatch]:
    """The same, with the error that ends them noted: what a library makes of it on its way is another one."""
    try:
        with _uncertain():
            yield from batches
    except Exception as error:
        faults.append(error)
        raise


@contextlib.contextmanager
def _uncertain(unread: EventError | None = None) -> Iterator[None]:
    """What the fold of rows says of what it does not know, as a run has it; `unread` says more, where it is given."""
    try:
        yield
    except UnknownRowsError as error:
        raise unread or UncertainRowsError(error.unknown.gtid, error.unknown.reason) from None


def place_of(source: LogSource, rows_at: str | None) -> SchemaPlace | None:
    """Where a position is; None if the log does not have it any more, or goes on from a dump of a later one."""
    if rows_at is None:
        return None
    with contextlib.suppress(PositionError):
        place = source.place_of(rows_at)
        return None if source.base_place is not None and place < source.base_place else place
    return None


def names_of_key(fields: Sequence[ShapeField], table: TableVersion) -> tuple[str, ...]:
    """The columns of the primary key, as they are called here; `fields` are the table's columns."""
    return tuple(fields[number].name for number in key_numbers(table))


def _is_special(table: TableVersion) -> bool:
    """Whether rows of a table may be no rows that hold now."""
    return table.is_versioned
