"""Changes of rows as Arrow arrays, read by the kernel; what is unusual is read value by value."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ibbmaster.arrow.arrays import decimal_array, fixed_array, group_array, string_array, timestamp_array
from ibbmaster.arrow.cell import cell_reader
from ibbmaster.arrow.column_reading import Reading, reading_of
from ibbmaster.arrow.event_batch import EventBatch
from ibbmaster.arrow.plain_events import PlainEvents
from ibbmaster.arrow.read_options import ZeroDates
from ibbmaster.arrow.row_tables import RowTables
from ibbmaster.arrow.shape import ABSENT_FIELD, RESERVED, ShapeField, arrow_type
from ibbmaster.errors import EventError, UndecodableError
from ibbmaster.event.header import EVENT_HEADER_SIZE, TYPE_OFFSET
from ibbmaster.event.rows.changes import RowDecoder
from ibbmaster.event.rows.column import Column, ColumnType
from ibbmaster.event.table_map import TABLE_ID_SIZE
from ibbmaster.event.types import EventType
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import (
    ANY_TABLE,
    CHANGE_TYPES,
    KIND_BITS,
    OPEN_TABLES_MIN,
    UPDATE_AFTER,
    Decoded,
    KnownTables,
    OpenColumn,
    RowField,
    RowOp,
    RowStatus,
    VariantColumn,
)
from ibbmaster.log.group_content import RowReader

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_MAX = 1 << 16  # in one record batch
STRING_BYTES_MAX = 1 << 30  # of all its columns


class RowColumns:
    """Reads changes out of batches of events, into record batches of some fields: of one table, or without values."""

    READS_EVERY_COLUMN = False  # of every table, whatever the fields

    def __init__(
        self, fields: tuple[ShapeField, ...], reader: RowReader, zero_dates: ZeroDates, kernels: Kernels
    ) -> None:
        self._fields = fields
        self._own = [field for field in fields if field.name not in RESERVED]
        self._tables = RowTables(None if self.READS_EVERY_COLUMN else self._own, reader, zero_dates)
        self._slots = dict(self._tables.slots)
        self._reader = reader
        self._kernels = kernels
        self._table = ""
        self._columns: dict[str, Column] = {}  # by name, as the current table has them
        self._readings: dict[str, Reading] = {}
        self._plain = PlainEvents()
        slots = max(2 * len(self._own), 1)
        self._values = np.zeros((slots, ROWS_MAX), dtype=np.int64)
        self._valid = np.zeros((slots, ROWS_MAX), dtype=np.uint8)
        self._row_groups = np.zeros(ROWS_MAX, dtype=np.int64)
        self._row_kinds = np.zeros(ROWS_MAX, dtype=np.int64)
        self._state = np.zeros(RowField.SIZE, dtype=np.int64)
        self._state[RowField.TABLE] = -1 if self._own or self.READS_EVERY_COLUMN else ANY_TABLE
        self._last_rows: tuple[tuple[int, ...], int] = ((), 0)  # the group of the row before, and how many it had
        self._open = _open_tables(OPEN_TABLES_MIN)
        self._last_group: tuple[int, ...] = ()

    def record_batches(self, batch: EventBatch) -> Iterator[pa.RecordBatch]:
        """The changes in a batch of events.

        Raises:
            EventError: an event is damaged, or belongs to no table; it names the group.
            UndecodableError: a value cannot be read.
        """
        batch = self._plain.of(batch)
        state, tables = self._state, self._tables
        # A group that continues from the batch before keeps the tables it has named.
        state[RowField.GROUP] = 0 if self._goes_on(batch) else -1
        state[RowField.EVENT] = state[RowField.OFFSET] = 0
        while True:
            status = self._kernels.decode_rows(
                batch.data,
                batch.events,
                state,
                KnownTables(
                    self._open,
                    tables.known,
                    tables.maps,
                    len(tables.decoders),
                    tables.variants,
                    tables.variant_count,
                    tables.steps,
                ),
                Decoded(self._values, self._valid, self._row_groups, self._row_kinds),
            )
            number = int(state[RowField.EVENT])
            match RowStatus(status):
                case RowStatus.NEW_MAP:
                    with batch.naming_group(number):
                        tables.add_map(batch.event(number))
                case RowStatus.NEW_TABLE:
                    yield from self._flush(batch)
                    self._use_table(int(state[RowField.TABLE]))
                case RowStatus.NEW_VARIANT:
                    with batch.naming_group(number):
                        event = batch.event(number)
                        tables.add_variant(event, self._decoder_of(event))
                case RowStatus.MANY_TABLES:
                    self._make_room()
                case RowStatus.FULL:
                    yield from self._flush(batch)
                case RowStatus.BAD:
                    self._complain(batch, number)
                case RowStatus.END:
                    yield from self._flush(batch)
                    return

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The log ends here.

        Raises:
            EventError: it ends inside the fragments of a row event.
        """
        self._plain.finish()
        return iter(())

    def _goes_on(self, batch: EventBatch) -> bool:
        """Whether the first group is the last one of the batch before; notes the last one."""
        if not len(batch.groups):
            return False
        is_same = bool(len(batch.events)) and batch.identity(0) == self._last_group
        self._last_group = batch.identity(-1)
        return is_same

    def _use_table(self, row: int) -> None:
        """Rows of this table come next: how its columns are read."""
        decoder = self._tables.decoders[row]
        assert decoder is not None
        self._table = decoder.schema.name
        self._columns = {column.name: column for column in decoder.schema.columns if column.name in self._slots}
        self._readings = {}
        for name, column in self._columns.items():
            with contextlib.suppress(ValueError):  # it is in no image, or its step says what is wrong
                self._readings[name] = reading_of(column, self._own[self._slots[name] // 2].type)

    def _make_room(self) -> None:
        """For more tables in the current group: what they take is bounded by the bytes of the group."""
        known, turn = self._open, self._state[RowField.TURN]
        self._open = _open_tables(2 * len(known))
        for entry in known[known[:, OpenColumn.TURN] == turn]:
            self._open[self._kernels.find_open(self._open, entry[OpenColumn.ID], turn)] = entry

    def _decoder_of(self, event: bytes) -> RowDecoder:
        """The table that the group of a row event has named for it."""
        table_id = int.from_bytes(event[EVENT_HEADER_SIZE : EVENT_HEADER_SIZE + TABLE_ID_SIZE], "little")
        place = self._kernels.find_open(self._open, table_id, self._state[RowField.TURN])
        if self._open[place, OpenColumn.TURN] == self._state[RowField.TURN]:
            decoder: RowDecoder | None = self._tables.decoders[self._open[place, OpenColumn.MAP]]
            if decoder is not None:
                return decoder
        raise EventError(f"row event of table {table_id}, which no TABLE_MAP of its group names")

    def _complain(self, batch: EventBatch, number: int) -> NoReturn:
        """Say what is wrong with an event, as the reference decoder finds it."""
        event = batch.event(number)
        with batch.naming_group(number):
            if event[TYPE_OFFSET] == EventType.TABLE_MAP:
                self._reader.decoder(event)
            else:
                for _ in self._decoder_of(event).changes(event):
                    pass
            raise EventError("a row event that cannot be read")

    # Rows -------------------------------------------------------------------------------------

    def _flush(self, batch: EventBatch) -> Iterator[pa.RecordBatch]:
        """What was read so far, as one record batch, or several if its strings are too long for one."""
        count = int(self._state[RowField.ROWS])
        if not count:
            return
        for start, end in self._portions(batch, count):
            yield self._record_batch(batch, slice(start, end))
        self._valid[:, :count] = 0
        self._state[RowField.ROWS] = 0

    def _is_padded(self, name: str) -> bool:
        return self._columns[name].type == ColumnType.STRING and self._readings[name].what == "bytes"

    def _bytes_max(self) -> int:
        """Of strings in one record batch."""
        return STRING_BYTES_MAX

    def _portions(self, batch: EventBatch, count: int) -> Iterator[tuple[int, int]]:
        """Rows that fit into one record batch each; the two of an update stay together."""
        bytes_max = self._bytes_max()
        if len(batch.data) <= bytes_max and not any(map(self._is_padded, self._readings)):
            yield 0, count
            return
        sizes = np.zeros(count, dtype=np.int64)
        for name, reading in self._readings.items():
            if reading.op == RowOp.RAW_PREFIXED:
                slot = self._slots[name]
                padding = self._columns[name].size if self._is_padded(name) else 0
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
        arrays = []
        for field in self._fields:
            if field.name in images:
                arrays.append(images[field.name])
            elif field in self._own:
                arrays.append(self._own_array(field, batch, rows))
            elif field.name == "_change_type":
                arrays.append(_picked(kinds, pa.array(CHANGE_TYPES)))
            elif field.name == "_change_no":
                arrays.append(pa.array(self._numbers(batch, groups)))
            elif field.name == "_table":
                names = [decoder and decoder.schema.name for decoder in self._tables.decoders]
                arrays.append(_picked(self._tables.variants[variants, VariantColumn.MAP], pa.array(names, pa.string())))
            elif field.name == ABSENT_FIELD.name:
                lists = pa.array(self._tables.absent, pa.list_(pa.string()))
                arrays.append(lists.take(pa.array(2 * variants + (kinds == UPDATE_AFTER))))
            else:
                arrays.append(group_array(field.name, batch, groups, self._kernels))
        schema = pa.schema([pa.field(field.name, arrow_type(field.type)) for field in self._fields])
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _images(self, batch: EventBatch, rows: slice, kinds: Any, variants: Any) -> dict[str, pa.Array]:
        """The columns `before` and `after`, for those who have them."""
        return {}

    def _numbers(self, batch: EventBatch, groups: Any) -> Any:
        """Which of the rows of its group each row is, counting those that are read."""
        starts = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
        lengths = np.diff(np.append(starts, len(groups)))
        numbers = np.arange(len(groups)) - np.repeat(starts, lengths)
        first, count = self._last_rows
        if batch.identity(groups[0]) == first:
            numbers[: lengths[0]] += count
        self._last_rows = batch.identity(groups[-1]), int(numbers[-1]) + 1
        return numbers

    def _own_array(self, field: ShapeField, batch: EventBatch, rows: slice) -> pa.Array:
        import pyarrow as pa

        kind = arrow_type(field.type)
        count = rows.stop - rows.start
        column, reading = self._columns.get(field.name), self._readings.get(field.name)
        if column is None or reading is None:
            return pa.nulls(count, kind)
        slot = self._slots[field.name]
        values, more, valid = self._values[slot, rows], self._values[slot + 1, rows], self._valid[slot, rows]
        match reading.what:
            case "text":
                try:
                    if column.charset != "ascii" or not _has_high_bytes(batch.data, values, more, valid):
                        return string_array(kind, batch.data, values, more, valid, self._kernels)
                except pa.ArrowInvalid:
                    pass
                return self._slow_array(column, field, batch, rows)
            case "bytes":
                padded = column.size if self._is_padded(field.name) else 0
                return string_array(kind, batch.data, values, more, valid, self._kernels, padded=padded)
            case "number":
                return _number_array(kind, values, more if reading.op == RowOp.DECIMAL else None, valid)
            case _:
                return self._slow_array(column, field, batch, rows)

    def _slow_array(self, column: Column, field: ShapeField, batch: EventBatch, rows: slice) -> pa.Array:
        """Values that are read one by one, each different one once."""
        import pyarrow as pa

        slot, reading = self._slots[field.name], self._readings[field.name]
        read = cell_reader(column, field.type)
        data = batch.data
        cache: dict[bytes, object] = {}
        cells: list[object] = []
        columns = zip(
            self._values[slot, rows].tolist(),
            self._values[slot + 1, rows].tolist(),
            self._valid[slot, rows].tolist(),
            strict=True,
        )
        for row, (value, size, is_valid) in enumerate(columns, start=rows.start):
            if not is_valid:
                cells.append(None)
                continue
            if reading.what == "code":
                raw = value.to_bytes(reading.first, "little", signed=value < 0)
            else:
                raw = data[value : value + size].tobytes()
                if reading.op == RowOp.RAW_PREFIXED:
                    raw = size.to_bytes(reading.first, "little") + raw
            if raw not in cache:
                if len(cache) > ROWS_MAX:
                    cache.clear()
                try:
                    cache[raw] = read(raw, 0)[0]
                except (ValueError, OverflowError) as error:
                    group = int(self._row_groups[row])
                    undecodable = UndecodableError(self._table, column.name, column.type_name, str(error))
                    raise EventError(f"{batch.place(group)}: {undecodable}") from None
            cells.append(cache[raw])
        return pa.array(cells, arrow_type(field.type))


def _open_tables(size: int) -> Any:
    return np.full((size, OpenColumn.COLUMNS), -1, dtype=np.int64)


def _number_array(kind: pa.DataType, values: Any, more: Any, valid: Any) -> pa.Array:
    """Numbers as cells; `more` has the upper halves of those that have one, for others it is None.

    The numbers are copied: their buffers are those of the next rows, too, and record batches may be kept.
    """
    import pyarrow as pa

    if pa.types.is_decimal(kind):
        return decimal_array(values, more, valid, kind)
    if kind in (pa.int32(), pa.float32(), pa.date32()):
        return fixed_array(kind, values.astype(np.int32), valid)
    if pa.types.is_timestamp(kind):
        return timestamp_array(values.copy(), valid, zone=kind.tz)
    return fixed_array(kind, values.copy(), valid)


def _has_high_bytes(data: Any, starts: Any, sizes: Any, valid: Any) -> bool:
    """Whether some string has a byte that is no ASCII; looks at everything between the first and the last."""
    places = starts[valid.astype(bool)]
    if not len(places):
        return False
    end = int((places + sizes[valid.astype(bool)]).max())
    return bool((data[int(places.min()) : end] > 127).any())


def _picked(places: Any, values: pa.Array) -> pa.Array:
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32)), values).cast(pa.string())
