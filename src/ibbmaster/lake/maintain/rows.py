"""What becomes of one table: nothing, some rows otherwise, changes that are added, or all of it anew."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ibbmaster.arrow.cell import value_cell
from ibbmaster.arrow.plan import selected_versions
from ibbmaster.arrow.read_options import ReadOptions
from ibbmaster.arrow.reading import Row, batches
from ibbmaster.arrow.shape import ABSENT_FIELD, CHANGE_FIELDS, GROUP_FIELDS, ShapeField, arrow_schema
from ibbmaster.dialogue.log_tables import LogSnapshot
from ibbmaster.errors import EventError, PositionError, UndecodableError
from ibbmaster.event.rows.kinds.registry import kind_of
from ibbmaster.fold.contents import InexactRowsError
from ibbmaster.fold.row_doubts import UnknownRows
from ibbmaster.fold.stored import own_columns
from ibbmaster.lake.maintain.last_changes import WHOLE, LastChanges, PartialChangeError, last_changes
from ibbmaster.lake.maintain.reshaping import Reshape
from ibbmaster.lake.maintain.source import LogSource, Read, UncertainRowsError, just_before
from ibbmaster.lake.pasts import START, Doubt, Past, Place
from ibbmaster.schema.model import SchemaPlace, TableVersion
from ibbmaster.schema.names import key_numbers
from ibbmaster.select.table_reader import FoundRows, TableReader, UnknownRowsError
from ibbmaster.sqltext.table_name import TableName

if TYPE_CHECKING:
    import pyarrow as pa

PLACES = ("_file_no", "_offset", "_change_no", "_change_type", ABSENT_FIELD.name)
FIRST = tuple(field.name for field in (*GROUP_FIELDS, *CHANGE_FIELDS[1:], ABSENT_FIELD))


def folded_batches(
    reader: TableReader, snapshot: LogSnapshot, table: TableVersion, fields: Sequence[ShapeField]
) -> Iterator[pa.RecordBatch]:
    """The rows of a table, its columns as `fields` call them and have them, in their order.

    Raises:
        UnknownRowsError: the log does not tell the rows.
        IbbMasterError: the log cannot be read.
    """
    table = table.shown
    found = reader.rows_of(snapshot, table, [column.id for column in table.columns])
    return batches(tuple(fields), _rows(found, table, fields))


def _rows(found: FoundRows, table: TableVersion, fields: Sequence[ShapeField]) -> Iterator[Row]:
    contents = found.contents
    own = contents.layouts.add(own_columns(table))
    shown = [
        (kind_of(one.column).convert(one.column), value_cell(field.type))
        for one, field in zip(own.columns, fields, strict=True)
    ]
    for place in found.places:
        layout_no, image = contents.kept.rows.read(place)
        try:
            values = contents.values_in(own, contents.layouts[layout_no], image)
        except InexactRowsError as error:
            raise UnknownRowsError(table, UnknownRows(table.gtid or "", str(error))) from None
        cells: list[object] = []
        for value, (convert, to_cell) in zip(values, shown, strict=True):
            try:
                cells.append(None if value is None else to_cell(convert(value)))
            except (ValueError, OverflowError) as error:
                column = own.columns[len(cells)].column
                raise UndecodableError(table.full_name, column.name, column.type_name, str(error)) from None
        yield tuple(cells)


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
