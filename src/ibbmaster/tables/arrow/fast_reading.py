"""A range of a log as record batches, made by kernels: no Python object for an event or a row.

The reference, which takes the rest: `ibbmaster.tables.arrow.reading`.
"""

import dataclasses
import gc
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa

from ibbmaster.errors import IbbMasterError
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, EventColumn, GroupColumn, RowOp
from ibbmaster.logs.log.group_content import OF_XA, TableFilter, query_texts, table_name, xid_text
from ibbmaster.position import LOG_START, LogPosition
from ibbmaster.replication.event.gtid_event import GTID_FLAGS_OFFSET
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, TYPE_OFFSET
from ibbmaster.replication.event.rows.column import Column
from ibbmaster.replication.event.types import EventType
from ibbmaster.sqltext.table_name import parse_table_name
from .arrays import event_array, group_array, place_array, read_headers
from .cell import cell_reader
from .collecting import event_batches
from .column_reading import text_reading_of
from .event_batch import IDENTITY, EventBatch, wanted_groups
from .plan import ReadTask, find_fields, open_task, row_reader
from .read_options import Granularity, Undecodable
from .row_columns import RowColumns
from .row_tables import ColumnCells
from .shape import GROUP_FIELDS, ShapeField, arrow_schema, arrow_type

EVENTS_MAX = 1 << 16  # in one record batch
GROUP_NAMES = {field.name for field in GROUP_FIELDS}
FAIL = Undecodable.FAIL
MADE = (Granularity.EVENTS, Granularity.GROUPS, Granularity.ROWS)
IMAGES = ("before", "after")
NAMES_MAX = 10_000  # of tables, remembered by the bytes of their TABLE_MAP
PLACES = {"end_file_no": GroupColumn.END_FILE_NO, "end_offset": GroupColumn.END_OFFSET}
QUERIES = (int(EventType.QUERY), int(EventType.QUERY_COMPRESSED))
_is_frozen = False


def is_fast(task: ReadTask) -> bool:
    options = task.options
    return options.undecodable is FAIL and options.granularity in MADE


def is_sound(task: ReadTask, kernels: Kernels) -> bool:
    """Whether kernels read every value of a range without an error."""
    if task.options.host is not None:
        return False  # the primary would send it twice
    options = dataclasses.replace(task.options, granularity=Granularity.ROWS, columns=())
    task = dataclasses.replace(task, options=options, fields=find_fields(options))
    try:
        for _ in fast_batches(task, kernels):
            pass
    except IbbMasterError:
        return False
    return True


def fast_batches(task: ReadTask, kernels: Kernels) -> Iterator[pa.RecordBatch]:
    """The record batches of one range, an empty one for nothing; errors as `event_batches`, and EventError: a value is
    unreadable; it names the group."""
    made = _made(task, kernels)
    first = next(made, None)
    yield no_rows(task) if first is None else first
    yield from made


def _made(task: ReadTask, kernels: Kernels) -> Iterator[pa.RecordBatch]:
    freeze()
    maker = maker_of(task, kernels)
    with closing(open_task(task)) as source:
        for batch in event_batches(source, task.log_range, kernels, is_strict=task.options.is_strict):
            yield from maker.record_batches(batch.of_groups(wanted_groups(batch.groups, task.selection)))
    yield from maker.finish()


def sound_batches(task: ReadTask, kernels: Kernels) -> Generator[pa.RecordBatch, None, LogPosition | None]:
    """As `fast_batches`, up to a damaged group. Returns where the reference has to continue, None at the end. It holds
    each group until all of it was read: a damaged one leaves nothing."""
    freeze()
    maker = maker_of(task, kernels)
    held: list[pa.RecordBatch] = []
    begin, last_group = LOG_START, None
    has_yielded = False
    try:
        with closing(open_task(task)) as source:
            for batch in event_batches(source, task.log_range, kernels, is_strict=task.options.is_strict):
                if not len(batch.groups):
                    continue
                if batch.identity(0) != last_group:
                    held += maker.finish()
                    has_yielded |= bool(held)
                    yield from held
                    held, begin = [], batch.start(0)
                last_group = batch.identity(-1)
                held += maker.record_batches(batch.of_groups(wanted_groups(batch.groups, task.selection)))
        held += maker.finish()
    except IbbMasterError:
        return begin
    yield from held
    if not held and not has_yielded:
        yield no_rows(task)
    return None


def no_rows(task: ReadTask) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=arrow_schema(task.fields))


def maker_of(task: ReadTask, kernels: Kernels) -> "RowColumns | GroupColumns | EventColumns":
    match task.options.granularity:
        case Granularity.ROWS:
            return columns_of(task, kernels)
        case Granularity.GROUPS:
            return GroupColumns(task.fields, TableFilter(task.options.tables), kernels)
        case _:
            return EventColumns(task, kernels)


def columns_of(task: ReadTask, kernels: Kernels) -> RowColumns:
    options = task.options
    has_images = options.table is None and any(field.name in IMAGES for field in task.fields)
    columns = ImageColumns if has_images else RowColumns
    boundaries = task.versions.boundaries()
    reader, completes = row_reader(task), options.completes_keys
    return columns(task.fields, reader, options.zero_dates, kernels, boundaries, completes_keys=completes)


@dataclass(slots=True)
class _Sums:
    events: int = 0
    bytes: int = 0
    tables: dict[str, None] = field(default_factory=dict)  # a set in order
    query: str | None = None
    database: str | None = None
    xid: str | None = None

    def add(self, more: "_Sums") -> None:
        self.events += more.events
        self.bytes += more.bytes
        self.tables |= more.tables
        if self.query is None:
            self.query, self.database = more.query, more.database


class GroupColumns:
    """Rows of groups; the last one of a batch may go on in the next."""

    def __init__(self, fields: tuple[ShapeField, ...], tables: TableFilter, kernels: Kernels) -> None:
        self._fields = fields
        self._tables = tables
        self._kernels = kernels
        self._names: dict[bytes, str] = {}
        self._groups: Any = np.zeros((0, GroupColumn.COLUMNS), dtype=np.int64)  # the last one, or none
        self._sums: list[_Sums] = []

    def record_batches(self, batch: EventBatch) -> Iterator[pa.RecordBatch]:
        """The groups that are complete now. Raises EventError: an event is damaged; the text names the group."""
        sums = self._sums_of(batch)
        present = [number for number, one in enumerate(sums) if one.events]
        if not present:
            return
        groups, sums = batch.groups[present], [sums[number] for number in present]
        if self._sums and (self._groups[0, IDENTITY] == groups[0, IDENTITY]).all():
            self._sums[0].add(sums[0])
            sums[0] = self._sums[0]
        else:
            groups, sums = np.concatenate([self._groups, groups]), [*self._sums, *sums]
        self._groups, self._sums = groups[-1:], sums[-1:]
        yield from self._batch(groups[:-1], sums[:-1])

    def finish(self) -> Iterator[pa.RecordBatch]:
        yield from self._batch(self._groups, self._sums)
        self._groups, self._sums = self._groups[:0], []

    def _sums_of(self, batch: EventBatch) -> list[_Sums]:
        types = batch.data[batch.events[:, EventColumn.START] + TYPE_OFFSET]
        owners, count = batch.events[:, EventColumn.GROUP], len(batch.groups)
        sizes = np.zeros(count, dtype=np.int64)
        np.add.at(sizes, owners, batch.events[:, EventColumn.SIZE])
        counts = np.bincount(owners, minlength=count).tolist()
        sums = [_Sums(number, size) for number, size in zip(counts, sizes.tolist(), strict=True)]
        for number in np.flatnonzero(types == EventType.TABLE_MAP).tolist():
            event = batch.event(number)
            key = event[EVENT_HEADER_SIZE:]
            name = self._names.get(key)
            if name is None:
                if len(self._names) >= NAMES_MAX:
                    self._names.clear()
                with batch.naming_group(number):
                    name = self._names[key] = str(table_name(event))
            sums[owners[number]].tables.setdefault(name)
        for number in np.flatnonzero(np.isin(types, QUERIES)).tolist():
            one = sums[owners[number]]
            if one.query is None:
                with batch.naming_group(number):
                    one.query, one.database = query_texts(batch.event(number))
        flags = batch.data[batch.events[:, EventColumn.START] + GTID_FLAGS_OFFSET]
        for number in np.flatnonzero((types == EventType.GTID) & (flags & OF_XA != 0)).tolist():
            with batch.naming_group(number):
                sums[owners[number]].xid = xid_text(batch.event(number))
        return sums

    def _batch(self, groups: Any, sums: list[_Sums]) -> Iterator[pa.RecordBatch]:
        if self._tables.patterns:
            wanted = [any(map(self._tables.takes, map(parse_table_name, one.tables))) for one in sums]
            groups, sums = groups[np.array(wanted, dtype=bool)], list(compress(sums, wanted))
        if not len(groups):
            return
        rows = np.arange(len(groups))
        arrays = []
        for field_ in self._fields:
            name, kind = field_.name, arrow_type(field_.type)
            if name in GROUP_NAMES:
                arrays.append(group_array(name, EventBatch(None, groups, None), rows, self._kernels))
            elif name in PLACES:
                arrays.append(place_array(groups, rows, PLACES[name]))
            else:
                cells = [getattr(one, name) for one in sums]
                arrays.append(pa.array(map(list, cells) if name == "tables" else cells, kind))
        yield pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(self._fields))


class ImageColumns(RowColumns):
    """Changes of all tables; each record batch has rows of one."""

    READS_EVERY_COLUMN = True
    BYTES_MAX = 1 << 28  # bytes have two digits each, and are in two columns
    _columns: Mapping[str, Column] = {}  # of the current table, by name

    def _use_table(self, row: int) -> None:
        decoder = self._tables.decoders[row]
        assert decoder is not None
        columns = decoder.schema.columns
        self._table = decoder.schema.name
        self._columns = {column.name: column for column in columns}
        self._cells = {}
        for number, column in enumerate(columns):
            try:
                reading = text_reading_of(column)
            except ValueError:
                continue  # its step says what is wrong
            is_decimal = reading.op == RowOp.DECIMAL
            kind = f"decimal({column.size},{column.scale})" if is_decimal else "string"
            self._cells[column.name] = ColumnCells(column, 2 * number, reading, kind, cell_reader(column, kind))
        self._make_slots(2 * len(columns))

    def _images(self, batch: EventBatch, rows: slice, kinds: Any, variants: Any) -> dict[str, pa.Array]:
        names = list(self._columns)
        maps = _maps(
            names,
            [self._text_array(column, batch, rows) for column in self._columns.values()],
            self._present(names, 2 * variants + (kinds == UPDATE_AFTER)),
        )
        places = np.arange(len(kinds))
        return {
            "before": maps.take(pa.array(places - (kinds == UPDATE_AFTER), mask=kinds == INSERT)),
            "after": maps.take(pa.array(places + (kinds == UPDATE_BEFORE), mask=kinds == DELETE)),
        }

    def _present(self, names: list[str], halves: Any) -> Any:
        known, which = np.unique(halves, return_inverse=True)
        table = [[name not in self._tables.absent[half] for name in names] for half in known.tolist()]
        return np.array(table, dtype=bool).reshape(len(known), len(names))[which]

    def _text_array(self, column: Column, batch: EventBatch, rows: slice) -> pa.Array:
        cells = self._cells.get(column.name)
        if cells is None:
            return pa.nulls(rows.stop - rows.start, pa.string())
        slot, reading = cells.slot, cells.reading
        values, valid = self._values[slot, rows], self._valid[slot, rows]
        if reading.what == "number" and reading.op != RowOp.DECIMAL:
            is_unsigned = column.is_unsigned or reading.op == RowOp.BIG_ENDIAN
            numbers = values.view(np.uint64) if is_unsigned else values
            return pa.array(numbers, mask=valid == 0).cast(pa.string())
        return self._cell_array(cells, batch, rows).cast(pa.string())


def _maps(names: list[str], texts: list[pa.Array], present: Any) -> pa.MapArray:
    rows, columns = np.nonzero(present)
    offsets = np.zeros(len(present) + 1, dtype=np.int32)
    np.cumsum(present.sum(axis=1), out=offsets[1:])
    keys = pa.array(names, pa.string()).take(pa.array(columns))
    items = pa.concat_arrays(texts).take(pa.array(columns * len(present) + rows))
    return pa.MapArray.from_arrays(pa.array(offsets), keys, items)


class EventColumns:
    def __init__(self, task: ReadTask, kernels: Kernels) -> None:
        self._fields = task.fields
        self._kernels = kernels

    def record_batches(self, batch: EventBatch) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(batch.events), EVENTS_MAX):
            part = dataclasses.replace(batch, events=batch.events[start : start + EVENTS_MAX])
            groups = np.ascontiguousarray(part.events[:, EventColumn.GROUP])
            headers = read_headers(part, self._kernels)
            arrays = [
                group_array(field.name, part, groups, self._kernels)
                if field.name in GROUP_NAMES
                else event_array(field.name, part, headers, self._kernels)
                for field in self._fields
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(self._fields))

    def finish(self) -> Iterator[pa.RecordBatch]:
        return iter(())


def freeze() -> None:
    """Hide what the compiler left from collections: Spark's workers collect after every task."""
    global _is_frozen
    if not _is_frozen:
        _is_frozen = True
        gc.collect()
        gc.freeze()
