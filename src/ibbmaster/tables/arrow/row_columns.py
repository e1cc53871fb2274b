"""Changes of rows as Arrow arrays, read by the kernel; unusual values are read one by one."""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from ibbmaster.errors import EventError, UndecodableError
from ibbmaster.kernel.calls import Decoded, Kernels
from ibbmaster.kernel.fields import (
    ANY_TABLE,
    CHANGE_TYPES,
    KIND_BITS,
    OPEN_TABLES_MIN,
    UPDATE_AFTER,
    EventColumn,
    RowField,
    RowOp,
    RowStatus,
    VariantColumn,
)
from ibbmaster.logs.log.group_content import RowReader
from ibbmaster.replication.event.column_types.registry import kind_of
from ibbmaster.replication.event.header import TYPE_OFFSET
from ibbmaster.replication.event.rows.changes import ABSENT
from ibbmaster.replication.event.rows.charset import letters_of
from ibbmaster.replication.event.rows.value import Value
from ibbmaster.replication.event.types import EventType
from ibbmaster.rows.expr.column_casts import converted
from ibbmaster.rows.shape import ColumnOrigin
from ibbmaster.rows.walk import unmapped
from ibbmaster.schema.model import SchemaPlace
from ibbmaster.storage.codec.buffer import Buffer
from .arrays import decimal_array, fixed_array, group_array, picked_texts, shown_array, string_array, timestamp_array
from .cell import value_cell
from .column_reading import Reading, text_op
from .event_batch import EventBatch, PlainEvents
from .read_options import ZeroDates
from .row_tables import ColumnCells, RowTables
from .shape import ABSENT_FIELD, RESERVED, ShapeField, TableFields, arrow_schema, arrow_type
from .table_maps import more_open_tables, new_open_tables, open_row

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_MAX = 1 << 16  # in one record batch
SLOT_LENGTH = ROWS_MAX + 64 * 3  # slots a power of two apart push each other out of caches


class RowColumns:
    """Record batches of batches of events: of one table, or without values."""

    READS_EVERY_COLUMN = False  # of every table, whatever the fields
    BYTES_MAX = 1 << 30

    def __init__(
        self,
        fields: tuple[ShapeField, ...],
        reader: RowReader,
        zero_dates: ZeroDates,
        kernels: Kernels,
        boundaries: Sequence[SchemaPlace] = (),
        *,
        completes_keys: bool = False,
    ) -> None:
        self._completes_keys = completes_keys
        self._fields = fields
        self._own = [field for field in fields if field.name not in RESERVED]
        self._own_names = {field.name for field in self._own}
        self._zero_dates = zero_dates
        self._reader = reader
        self._tables = self._new_tables()
        self._boundaries = boundaries
        self._passed = 0  # boundaries in front of what is read
        self._kernels = kernels
        self._table = ""
        self._cells: dict[str, ColumnCells] = {}  # by name, as the current table has its columns
        self._names: dict[int, str] = {}  # by column number
        self._origins: dict[str, ColumnOrigin] = {}  # by name in the DataFrame
        self._plain = PlainEvents(reader.large)
        slots = max(2 * len(self._own), 1)
        self._values = np.zeros((slots, SLOT_LENGTH), dtype=np.int64)
        self._valid = np.zeros((slots, SLOT_LENGTH), dtype=np.uint8)
        self._row_groups = np.zeros(ROWS_MAX, dtype=np.int64)
        self._row_kinds = np.zeros(ROWS_MAX, dtype=np.int64)
        self._event_sizes = np.zeros(64, dtype=np.int64)
        self._state = np.zeros(RowField.SIZE, dtype=np.int64)
        self._state[RowField.TABLE] = self._no_table
        self._last_rows: tuple[tuple[int, ...], int] = ((), 0)  # the last row's group, and how many rows it had
        self._open = new_open_tables(OPEN_TABLES_MIN)
        self._last_group: tuple[int, ...] = ()

    @property
    def _no_table(self) -> int:
        is_any = not self._own and not self.READS_EVERY_COLUMN and ABSENT_FIELD not in self._fields
        return ANY_TABLE if is_any else -1

    def _new_tables(self) -> RowTables:
        shape = self._fields.shape if isinstance(self._fields, TableFields) else None
        own = None if self.READS_EVERY_COLUMN else self._own
        return RowTables(own, shape, self._reader, self._zero_dates, completes_keys=self._completes_keys)

    def record_batches(self, batch: EventBatch) -> Iterator[pa.RecordBatch]:
        """Raises EventError: an event is damaged, or belongs to no table; it names the group; UndecodableError: a value
        cannot be read."""
        self.begin(batch)
        for plain in self._plain.of(batch):
            yield from self.of_plain(plain)

    def begin(self, batch: EventBatch) -> None:
        """Announce a batch: a group that continues keeps the tables it has named."""
        self._state[RowField.GROUP] = 0 if self._goes_on(batch) else -1

    def of_plain(self, batch: EventBatch) -> Iterator[pa.RecordBatch]:
        """The changes in plain events of the batch; errors as `record_batches`."""
        for start, end in self._parts(batch):
            yield from self._of_part(dataclasses.replace(batch, events=batch.events[start:end]))

    def _parts(self, batch: EventBatch) -> Iterator[tuple[int, int]]:
        """Events between which no table changes; tables are forgotten in between."""
        start, count = 0, len(batch.events)
        while start < count:
            passed = bisect.bisect_right(self._boundaries, batch.schema_place(start)) if self._boundaries else 0
            if passed != self._passed:
                self._pass_boundary(is_in_group=bool(batch.events[start, EventColumn.NUMBER]))
                self._passed = passed
            end = count
            if passed < len(self._boundaries):
                end = bisect.bisect_left(range(count), self._boundaries[passed], lo=start, key=batch.schema_place)
            yield start, end
            start = end

    def _pass_boundary(self, *, is_in_group: bool) -> None:
        if is_in_group:
            self._tables.forget()
            return
        self._tables = self._new_tables()
        self._state[RowField.TABLE] = self._no_table
        self._state[RowField.TURN] += 1

    def _of_part(self, batch: EventBatch) -> Iterator[pa.RecordBatch]:
        state, tables = self._state, self._tables
        state[RowField.EVENT] = state[RowField.OFFSET] = 0
        while True:
            status = self._kernels.decode_rows(
                batch.data,
                batch.events,
                state,
                tables.known(self._open),
                tables.steps,
                Decoded(self._values, self._valid, self._row_groups, self._row_kinds, self._sizes()),
            )
            number = int(state[RowField.EVENT])
            match RowStatus(status):
                case RowStatus.NEW_MAP:
                    with batch.naming_group(number):
                        tables.add_map(batch.event(number), batch.schema_place(number))
                case RowStatus.NEW_TABLE:
                    yield from self._flush(batch)
                    with batch.naming_group(number):
                        self._use_table(int(state[RowField.TABLE]))
                case RowStatus.NEW_VARIANT:
                    with batch.naming_group(number):
                        self._add_variant(batch.event_view(number))
                case RowStatus.MANY_TABLES:
                    self._open = more_open_tables(self._open, state[RowField.TURN], self._kernels)
                case RowStatus.FULL:
                    yield from self._flush(batch)
                case RowStatus.BAD:
                    self._complain(batch, number)
                case RowStatus.END:
                    yield from self._flush(batch)
                    return

    def _sizes(self) -> Any:
        more = len(self._tables.variants) - len(self._event_sizes)
        if more > 0:
            self._event_sizes = np.concatenate([self._event_sizes, np.zeros(more, dtype=np.int64)])
        return self._event_sizes

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Errors as `PlainEvents.finish`."""
        self._plain.finish()
        return iter(())

    def _goes_on(self, batch: EventBatch) -> bool:
        if not len(batch.groups):
            return False
        is_same = bool(len(batch.events)) and batch.identity(0) == self._last_group
        self._last_group = batch.identity(-1)
        return is_same

    def _use_table(self, row: int) -> None:
        decoder = self._tables.decoders[row]
        assert decoder is not None
        found = self._tables.cells_of(row)
        self._table = decoder.schema.name
        self._cells = {cells.column.name: cells for cells in found.cells.values()}
        self._names = {number: cells.column.name for number, cells in found.cells.items()}
        self._origins = found.origins

    def _make_slots(self, count: int) -> None:
        more = count - len(self._values)
        if more > 0:
            self._values = np.concatenate([self._values, np.zeros((more, SLOT_LENGTH), dtype=np.int64)])
            self._valid = np.concatenate([self._valid, np.zeros((more, SLOT_LENGTH), dtype=np.uint8)])

    def _row_of(self, event: Buffer) -> int:
        row = open_row(event, self._open, self._state[RowField.TURN], self._kernels)
        if self._tables.decoders[row] is None:
            raise unmapped(event)
        return row

    def _add_variant(self, event: Buffer) -> None:
        self._tables.add_variant(event, self._row_of(event))
        self._make_slots(self._tables.slot_count)

    def _complain(self, batch: EventBatch, number: int) -> None:
        event = batch.event_view(number)
        with batch.naming_group(number):
            if event[TYPE_OFFSET] == EventType.TABLE_MAP:
                self._reader.decoder(bytes(event), batch.schema_place(number))
            else:
                decoder = self._tables.decoders[self._row_of(event)]
                assert decoder is not None
                for _ in decoder.changes(event):
                    pass
            raise EventError("a row event that cannot be read")

    # Rows -------------------------------------------------------------------------------------

    def _flush(self, batch: EventBatch) -> Iterator[pa.RecordBatch]:
        count = int(self._state[RowField.ROWS])
        if not count:
            return
        self._complete(count)
        for start, end in self._portions(batch, count):
            yield self._record_batch(batch, slice(start, end))
        self._valid[::2, :count] = 0
        self._state[RowField.ROWS] = 0

    def _complete(self, count: int) -> None:
        if not any(self._tables.completed):
            return
        after = np.flatnonzero(self._row_kinds[:count] & (1 << KIND_BITS) - 1 == UPDATE_AFTER)
        variants = self._row_kinds[after] >> KIND_BITS
        for variant in np.unique(variants):
            rows, bits = after[variants == variant], self._tables.completed[variant]
            for number, name in self._names.items():
                if bits >> number & 1:
                    slot = self._cells[name].slot
                    self._values[slot : slot + 2, rows] = self._values[slot : slot + 2, rows - 1]
                    self._valid[slot, rows] = self._valid[slot, rows - 1]

    @staticmethod
    def _padded(cells: ColumnCells) -> int:
        is_padded = cells.column.is_fixed_length and cells.reading.what == "bytes"
        return cells.column.size if is_padded else 0

    def _portions(self, batch: EventBatch, count: int) -> Iterator[tuple[int, int]]:
        """Rows that fit into a record batch; those of an update stay together."""
        bytes_max = self.BYTES_MAX
        if len(batch.data) <= bytes_max and not any(map(self._padded, self._cells.values())):
            yield 0, count
            return
        sizes = np.zeros(count, dtype=np.int64)
        for cells in self._cells.values():
            if cells.reading.op == RowOp.RAW_PREFIXED:
                slot, padding = cells.slot, self._padded(cells)
                sizes += np.where(self._valid[slot, :count], np.maximum(self._values[slot + 1, :count], padding), 0)
        start = 0
        passed = np.cumsum(sizes)
        while start < count:
            before = int(passed[start - 1]) if start else 0
            end = max(int(np.searchsorted(passed, before + bytes_max, side="right")), start + 1)
            if end < count and self._row_kinds[end] & (1 << KIND_BITS) - 1 == UPDATE_AFTER:
                end += 1
            yield start, end
            start = end

    def _record_batch(self, batch: EventBatch, rows: slice) -> pa.RecordBatch:
        import pyarrow as pa

        groups, kinds = self._row_groups[rows], self._row_kinds[rows] & (1 << KIND_BITS) - 1
        variants = self._row_kinds[rows] >> KIND_BITS
        images = self._images(batch, rows, kinds, variants)
        halves = 2 * variants + (kinds == UPDATE_AFTER)
        arrays = []
        for field in self._fields:
            if field.name in images:
                arrays.append(images[field.name])
            elif field.name in self._own_names:
                arrays.append(self._own_array(field, batch, rows, halves))
            elif field.name == "_change_type":
                arrays.append(picked_texts(kinds, CHANGE_TYPES))
            elif field.name == "_change_no":
                arrays.append(pa.array(self._numbers(batch, groups)))
            elif field.name == "_table":
                maps, numbers = np.unique(self._tables.variants[variants, VariantColumn.MAP], return_inverse=True)
                names = [decoder and decoder.schema.name for decoder in map(self._tables.decoders.__getitem__, maps)]
                arrays.append(picked_texts(numbers, names))
            elif field.name == ABSENT_FIELD.name:
                arrays.append(self._absent_array(batch, rows, halves))
            else:
                arrays.append(group_array(field.name, batch, groups, self._kernels))
        return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(self._fields))

    def _images(self, batch: EventBatch, rows: slice, kinds: Any, variants: Any) -> dict[str, pa.Array]:
        return {}

    def _numbers(self, batch: EventBatch, groups: Any) -> Any:
        starts = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
        lengths = np.diff(np.append(starts, len(groups)))
        numbers = np.arange(len(groups)) - np.repeat(starts, lengths)
        first, count = self._last_rows
        if batch.identity(groups[0]) == first:
            numbers[: lengths[0]] += count
        self._last_rows = batch.identity(groups[-1]), int(numbers[-1]) + 1
        return numbers

    def _own_array(self, field: ShapeField, batch: EventBatch, rows: slice, halves: Any) -> pa.Array:
        import pyarrow as pa

        kind = arrow_type(field.type)
        origin = self._origins[field.name]
        name = None if origin.number is None else self._names.get(origin.number)
        if name is not None:
            array = self._cell_array(self._cells[name], batch, rows)
            array = array if array.type == kind else array.cast(kind)
        else:
            array = pa.repeat(pa.scalar(value_cell(field.type)(origin.fill), kind), rows.stop - rows.start)
        computed = self._computed(origin, batch, rows, halves)
        if not computed:
            return array
        to_cell = value_cell(field.type)
        cells = array.to_pylist()
        for row, value in computed.items():
            cells[row] = None if value is ABSENT else to_cell(value)
        return pa.array(cells, kind)

    def _computed(self, origin: ColumnOrigin, batch: EventBatch, rows: slice, halves: Any) -> dict[int, Value]:
        """By row, values that images leave out; ABSENT if unknown."""
        if origin.compute is None:
            return {}
        presents = [self._tables.presents[half] for half in halves.tolist()]
        lacking = [row for row, bits in enumerate(presents) if origin.number is None or not bits >> origin.number & 1]
        if not lacking:
            return {}
        inputs = {name: self._input_values(one, batch, rows) for name, one in origin.inputs}
        found: dict[int, Value] = {}
        for row in lacking:
            values = {name: inputs[name][row] if one.is_told(presents[row]) else ABSENT for name, one in origin.inputs}
            found[row] = origin.computed(values)
        return found

    def _input_values(self, origin: ColumnOrigin, batch: EventBatch, rows: slice) -> list[Value]:
        name = None if origin.number is None else self._names.get(origin.number)
        if name is None:
            return [origin.fill] * (rows.stop - rows.start)
        cells = self._cells[name]
        values = self._cell_array(cells, batch, rows).to_pylist()
        if (kind := kind_of(cells.column)).is_exact:
            values = [None if value is None else (int if kind.is_integer else Decimal)(value) for value in values]
        if origin.convert is None:
            return values  # type: ignore[no-any-return]
        return [converted(origin.convert, value) for value in values]

    def _absent_array(self, batch: EventBatch, rows: slice, halves: Any) -> pa.Array:
        """What each image leaves out, and nothing else tells."""
        import pyarrow as pa

        lists = pa.array(self._tables.absent, pa.list_(pa.string())).take(pa.array(halves))
        untold: dict[int, set[str]] = {}
        for name, origin in self._origins.items():
            for row, value in self._computed(origin, batch, rows, halves).items():
                if value is ABSENT:
                    untold.setdefault(row, set()).add(name)
        if not untold:
            return lists
        cells = lists.to_pylist()
        for row, names in untold.items():
            cells[row] = [name for name in self._origins if name in names or name in cells[row]]
        return pa.array(cells, lists.type)

    def _cell_array(self, cells: ColumnCells, batch: EventBatch, rows: slice) -> pa.Array:
        import pyarrow as pa

        kind, slot, column = arrow_type(cells.type), cells.slot, cells.column
        values, more, valid = self._values[slot, rows], self._values[slot + 1, rows], self._valid[slot, rows]
        match cells.reading.what:
            case "text":
                letters = letters_of(column.charset or "utf8mb4")
                # The slow path says where a text is none.
                with contextlib.suppress(pa.ArrowInvalid, UnicodeDecodeError):
                    return string_array(kind, batch.data, values, more, valid, self._kernels, letters=letters)
            case "bytes":
                padded = self._padded(cells)
                return string_array(kind, batch.data, values, more, valid, self._kernels, padded=padded)
            case "shown":
                shown = shown_array(batch.data, values, more, valid, self._kernels, *text_op(column))
                if shown is not None:
                    return shown
            case "number":
                return _number_array(kind, values, more if cells.reading.op == RowOp.DECIMAL else None, valid)
        return self._slow_array(cells, batch, rows)

    def _slow_array(self, cells: ColumnCells, batch: EventBatch, rows: slice) -> pa.Array:
        import pyarrow as pa

        encoded = self._encoded(cells.slot, rows, cells.reading, batch)
        found: list[object] = []
        for place, value in enumerate(encoded.dictionary):
            try:
                found.append(cells.read(raw_value(value.as_py(), cells.reading), 0)[0])
            except (ValueError, OverflowError) as error:
                row = rows.start + encoded.indices.index(place).as_py()
                undecodable = UndecodableError(self._table, cells.column.name, cells.column.type_name, str(error))
                raise EventError(f"{batch.place(int(self._row_groups[row]))}: {undecodable}") from None
        return pa.array(found, arrow_type(cells.type)).take(encoded.indices)

    def _encoded(self, slot: int, rows: Any, reading: Reading, batch: EventBatch) -> pa.DictionaryArray:
        import pyarrow as pa

        values, more, valid = self._values[slot, rows], self._values[slot + 1, rows], self._valid[slot, rows]
        if reading.what == "code":
            return pa.array(values, mask=valid == 0).dictionary_encode()
        return string_array(pa.binary(), batch.data, values, more, valid, self._kernels).dictionary_encode()


def raw_value(value: Any, reading: Reading) -> bytes:
    if reading.what == "code":
        return int(value).to_bytes(reading.first, "little", signed=value < 0)
    prefix = len(value).to_bytes(reading.first, "little") if reading.op == RowOp.RAW_PREFIXED else b""
    return prefix + bytes(value)


def _number_array(kind: pa.DataType, values: Any, more: Any, valid: Any) -> pa.Array:
    """`more` has upper halves. The numbers are copied: the next rows use their buffers."""
    import pyarrow as pa

    if pa.types.is_decimal(kind):
        return decimal_array(values, more, valid, kind)
    if kind in (pa.int32(), pa.float32(), pa.date32()):
        return fixed_array(kind, values.astype(np.int32), valid)
    if pa.types.is_timestamp(kind):
        return timestamp_array(values.copy(), valid, zone=kind.tz)
    return fixed_array(kind, values.copy(), valid)
