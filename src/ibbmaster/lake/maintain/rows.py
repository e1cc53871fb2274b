"""The next step of one table: none, changed rows, added changes, or all rows anew."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import pyarrow as pa

from ibbmaster.errors import EventError, PositionError, UndecodableError
from ibbmaster.lake.doubts import find_doubts, folded_columns, untold_changes
from ibbmaster.lake.noting import periods_of
from ibbmaster.lake.pasts import START, Doubt, Past, Place, Truncation
from ibbmaster.lake.row_versions import (
    BEGIN,
    END,
    SECOND_US,
    WHOLE,
    LastChanges,
    NewVersions,
    PartialChangeError,
    last_changes,
    new_versions,
)
from ibbmaster.primary.dialogue.log_tables import LogSnapshot
from ibbmaster.primary.select.table_reader import TableReader, UnknownRowsError
from ibbmaster.replication.event.column_types.registry import kind_of
from ibbmaster.schema.model import SchemaPlace, TableVersion
from ibbmaster.schema.names import key_numbers
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.tables.arrow.cell import value_cell
from ibbmaster.tables.arrow.plan import selected_versions
from ibbmaster.tables.arrow.read_options import ReadOptions
from ibbmaster.tables.arrow.reading import Row, batches
from ibbmaster.tables.arrow.shape import (
    ABSENT_FIELD,
    CHANGE_FIELDS,
    GROUP_FIELDS,
    ShapeField,
    TableFields,
    arrow_schema,
    arrow_type,
    field_name,
)
from ibbmaster.tables.fold.contents import TableContents
from ibbmaster.tables.fold.row_doubts import UnknownRows
from ibbmaster.tables.fold.stored import InexactRowsError, own_columns
from .reshaping import Reshape, reshape_of
from .source import LogSource, Read, UncertainRowsError, just_before

OF_VERSIONS = ("_file_no", "_offset", "_change_no", "_commit_ts", "_gtid", "_change_type", ABSENT_FIELD.name)
PLACES = ("_file_no", "_offset", "_change_no", "_change_type", ABSENT_FIELD.name)
FIRST = tuple(field.name for field in (*GROUP_FIELDS, *CHANGE_FIELDS[1:], ABSENT_FIELD))


def folded_batches(
    reader: TableReader, snapshot: LogSnapshot, table: TableVersion, fields: Sequence[ShapeField]
) -> Iterator[pa.RecordBatch]:
    """A table's rows, with columns as `fields` call them, in order. Raises UnknownRowsError: the log does not tell
    them; IbbMasterError: the log cannot be read."""
    table = table.shown
    found = reader.rows_of(snapshot, table, [column.id for column in table.columns])
    return batches(tuple(fields), _rows(found.contents, found.places, table, fields))


def _rows(
    contents: TableContents, places: Iterable[int], table: TableVersion, fields: Sequence[ShapeField]
) -> Iterator[Row]:
    own = contents.layouts.add(own_columns(table))
    shown = [
        (kind_of(one.column).convert(one.column), value_cell(field.type))
        for one, field in zip(own.columns, fields, strict=True)
    ]
    for place in places:
        try:
            values = contents.values_in(own, place)
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
    """All rows now; `faults` has the reason once one is unreadable."""

    rows: pa.RecordBatchReader
    faults: list[Exception] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Patched:
    """Rows that change, or versions that begin and end, by these keys; or changes."""

    keys: tuple[str, ...]
    changes: LastChanges | NewVersions | pa.Table
    reshape: Reshape


class _Step(NamedTuple):
    past: Past
    reshape: Reshape | None = None
    read: Read | None = None
    is_none: bool = False


class TableRows:
    """The rows of tables at a log's end, or with history each version: all, or what is new since a position."""

    def __init__(self, source: LogSource, *, has_history: bool = False) -> None:
        self._source = source
        self._has_history = has_history
        self._reader = TableReader(source.log, source.history, base=source.base, loads_kernels=True)
        self._unread: EventError | None = None  # why requested changes are unreadable
        self._steps: dict[tuple[TableName, str | None], _Step] = {}

    def close(self) -> None:
        self._reader.close()

    def doubt(self, name: TableName) -> None:
        """Its rows are never in doubt."""

    def reads(self, name: TableName, table: TableVersion, rows_at: str | None) -> Read | None:
        step = self._step(name, table, rows_at)
        return None if step.is_none else step.read or self._whole_read(name, table, step.past)

    def find(self, name: TableName, table: TableVersion, rows_at: str | None) -> Replaced | Patched | None:
        """The step of a table with the rows of a position; None if they stay. Raises UncertainRowsError: the log does
        not have the rows."""
        step = self._step(name, table, rows_at)
        self._unread = None
        if step.is_none:
            return None
        if step.read is not None and step.reshape is not None and (found := self._folded(table, step.read)) is not None:
            return Patched(names_of_key(step.read.fields), found, step.reshape)
        faults: list[Exception] = []
        return Replaced(self._whole(name, table, step.past, faults), faults)

    def _step(self, name: TableName, table: TableVersion, rows_at: str | None) -> _Step:
        if (name, rows_at) not in self._steps:
            self._steps[name, rows_at] = self._new_step(name, table, rows_at)
        return self._steps[name, rows_at]

    def _new_step(self, name: TableName, table: TableVersion, rows_at: str | None) -> _Step:
        source = self._source
        then = place_of(source, rows_at)
        past = source.past(name)
        reshape = None if then is None else source.reshape(name, then, table)
        if then is None or reshape is None:
            return _Step(past)
        start, gtids = just_before(then), rows_at or ""
        if past.begin > start or untold_changes(source, past, start, gtids):
            return _Step(past)
        if name not in source.written_since(gtids) and not reshape:
            return _Step(past, is_none=True)
        return _Step(past, reshape, None if table.is_versioned else self._read(name, table, start, gtids))

    def _read(self, name: TableName, table: TableVersion, start: Place, gtids: str = "") -> Read | None:
        first = OF_VERSIONS if self._has_history else PLACES
        return Read(name, self._source.fields(table, first), start, gtids) if key_numbers(table) else None

    def _whole_read(self, name: TableName, table: TableVersion, past: Past) -> Read | None:
        source, has_history = self._source, self._has_history
        is_whole = bool(past.cuts) and (not has_history or source.base is not None or source.is_whole(name))
        if has_history and source.version_in_base(name) is not None:
            is_whole = True
        if find_doubts(source, past, has_gone=has_history, is_whole=is_whole):
            return None
        start = START if source.base_place is None else just_before(source.base_place)
        return self._read(name, table, start if has_history else past.begin)

    def _folded(
        self, table: TableVersion, read: Read, cuts: Sequence[Truncation] | None = None
    ) -> LastChanges | NewVersions | None:
        """The result of changes; None if these are not enough. With `cuts` they are all there were."""
        source = self._source
        keys = names_of_key(read.fields)
        columns = folded_columns(read.fields, keys, source.past(read.name), source.options.zero_dates)
        try:
            changes = source.changes(read)
            if not self._has_history:
                return last_changes(changes, columns)
            if cuts is not None and (first := self._in_base(table, read)) is not None:
                changes = pa.concat_tables([first, changes])
            return new_versions(changes, columns, cuts or ())
        except (PartialChangeError, EventError) as error:
            self._unread = error if isinstance(error, EventError) else self._unread
            return None

    def _whole(self, name: TableName, table: TableVersion, past: Past, faults: list[Exception]) -> pa.RecordBatchReader:
        """All rows, or versions: from changes if they are enough, or row by row."""
        fields = self._source.fields(table)
        schema = arrow_schema(fields)
        read = self._whole_read(name, table, past)
        found = None if read is None else self._folded(table, read, past.cuts)
        if isinstance(found, NewVersions) and not len(found.ended):
            return found.rows.to_reader()
        if isinstance(found, LastChanges) and not found.were_there.any():
            rows = found.rows.filter(pa.array(found.outcomes == WHOLE))
            return pa.RecordBatchReader.from_batches(schema, rows.cast(schema).to_batches())
        with _uncertain(self._unread):
            if self._has_history:
                return self._noted(name, table, fields).to_reader()
            snapshot = LogSnapshot(end=self._source.end_position, file_name="", state=self._source.log.state())
            batches = folded_batches(self._reader, snapshot, table, fields)
        return pa.RecordBatchReader.from_batches(schema, _noting(batches, faults))

    def _noted(self, name: TableName, table: TableVersion, fields: TableFields) -> pa.Table:
        contents, periods = periods_of(self._source, name, table)
        rows = _rows(contents, (one.place for one in periods), table.shown, fields)
        found = pa.Table.from_batches(batches(fields, rows), arrow_schema(fields))
        ends = [one.end for one in periods]
        begins = [one.begin for one in periods]
        for names, moments in ((BEGIN, begins), (END, ends)):
            seconds = [None if one is None or one[1] is None else one[1] * SECOND_US for one in moments]
            found = found.append_column(names[0], pa.array(seconds, arrow_type("timestamp")))
        for names, moments in ((BEGIN, begins), (END, ends)):
            found = found.append_column(names[1], pa.array([one and one[0] for one in moments], pa.string()))
        return found.append_column("_is_current", pa.array([one is None for one in ends], pa.bool_()))

    def _in_base(self, table: TableVersion, read: Read) -> pa.Table | None:
        """The dump's rows, as if its position had inserted them; None without them. Raises PartialChangeError: they
        have other columns since."""
        source, then = self._source, self._source.version_in_base(read.name)
        if then is None or source.base is None or source.base_place is None:
            return None
        reshape = reshape_of(replace(then, generation=table.generation), table, source.fields)
        if reshape is None:
            raise PartialChangeError("its columns have other types or values since the dump")
        snapshot = LogSnapshot(end=source.base_place.position, file_name="", state=source.log.state())
        fields = source.fields(then)
        rows = pa.Table.from_batches(folded_batches(self._reader, snapshot, then, fields), arrow_schema(fields))
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


def rows_of(options: ReadOptions, table: TableVersion, *, has_history: bool = False) -> pa.Table:
    """A table's rows where options end, or all their versions. Raises UncertainRowsError: the log does not have them;
    EventError: a value is unreadable."""
    with LogSource(options) as source, closing(TableRows(source, has_history=has_history)) as rows:
        found = rows.find(TableName(table.database, table.name), table, None)
        assert isinstance(found, Replaced)
        return found.rows.read_all()


def _noting(batches: Iterator[pa.RecordBatch], faults: list[Exception]) -> Iterator[pa.RecordBatch]:
    try:
        with _uncertain():
            yield from batches
    except Exception as error:
        faults.append(error)
        raise


@contextlib.contextmanager
def _uncertain(unread: EventError | None = None) -> Iterator[None]:
    """Raise what the fold does not know as a run says it, or `unread`, which says more."""
    try:
        yield
    except UncertainRowsError:
        if unread is None:
            raise
        raise unread from None
    except UnknownRowsError as error:
        raise unread or UncertainRowsError(error.unknown.gtid, error.unknown.reason) from None


def place_of(source: LogSource, rows_at: str | None) -> SchemaPlace | None:
    """None if the log has lost the position, or goes on from a later dump."""
    if rows_at is None:
        return None
    with contextlib.suppress(PositionError):
        place = source.place_of(rows_at)
        return None if source.base_place is not None and place < source.base_place else place
    return None


def names_of_key(fields: TableFields) -> tuple[str, ...]:
    """As in a DataFrame."""
    schema = fields.shape.schema
    return tuple(field_name(schema.columns[number].name) for number in schema.primary_key)


class TableChanges:
    """The changes of tables up to a log's end, all or those since a position."""

    def __init__(self, source: LogSource) -> None:
        self._source = source

    def close(self) -> None:
        """Nothing is kept open."""

    def doubt(self, name: TableName) -> Doubt | None:
        """The first change that no event shows."""
        return min(untold_changes(self._source, self._source.past(name), has_gone=True), default=None)

    def reads(self, name: TableName, table: TableVersion, rows_at: str | None) -> Read:
        return self._step(name, table, rows_at)[0]

    def find(self, name: TableName, table: TableVersion, rows_at: str | None) -> Replaced | Patched | None:
        """The step of a table with the changes up to a position; None if there are no more. Raises UncertainRowsError:
        the log does not have all of them."""
        read, reshape = self._step(name, table, rows_at)
        if reshape is None:
            self._source.expect_whole(name)
        found = self._source.changes(read)
        if reshape is None:
            return Replaced(found.to_reader())
        return Patched((), found, reshape) if len(found) or reshape else None

    def _step(self, name: TableName, table: TableVersion, rows_at: str | None) -> tuple[Read, Reshape | None]:
        source = self._source
        then = place_of(source, rows_at)
        fields = source.fields(table, FIRST)
        reshape = None if then is None else self._reshape(name, then, table, rows_at or "")
        if then is None or reshape is None:
            return Read(name, fields, START), None
        return Read(name, fields, just_before(then), rows_at or ""), reshape

    def _reshape(self, name: TableName, then: SchemaPlace, table: TableVersion, rows_at: str) -> Reshape | None:
        """How changes up to a position look now; None if they differ, or are of another table."""
        source = self._source
        reshape = source.reshape(name, then, table)
        if reshape and not (reshape.renamed or reshape.dropped):  # what images leave out may name these
            return reshape
        before = source.version_at(name, then)
        if before is None or not self._means(name, then):
            return None
        # logged rows stay as they were, also by MODIFY
        return Reshape() if self._columns(before) == self._columns(table) else None

    def _means(self, name: TableName, place: SchemaPlace) -> bool:
        """Whether the table of this name now had it at a place; TRUNCATE keeps it the same."""
        source = self._source
        options = replace(source.options, table=str(name), tables=())
        return selected_versions(options, source.history, source.end_place).means(*name, place)

    def _columns(self, table: TableVersion) -> set[tuple[int, ShapeField]]:
        return set(zip((one.id for one in table.shown.columns), self._source.fields(table), strict=True))
