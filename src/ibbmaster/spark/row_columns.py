"""The changes of one table as Arrow arrays, read by the kernel; what is unusual is read value by value."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ibbmaster.errors import EventError, UndecodableError
from ibbmaster.event.header import EVENT_HEADER_SIZE
from ibbmaster.event.query import decompress
from ibbmaster.event.rows.changes import RowDecoder
from ibbmaster.event.rows.column import Column, ColumnType, Kind, TableSchema
from ibbmaster.event.rows.number import decimal_size
from ibbmaster.event.rows.partial import PartialRows
from ibbmaster.event.rows.temporal import FRACTION_SIZES
from ibbmaster.event.rows.value import INTEGER_SIZES, SHORT_LENGTH_MAX, Value, value_reader
from ibbmaster.event.table_map import TABLE_ID_SIZE, decode_rows_header
from ibbmaster.event.types import EventType
from ibbmaster.kernel.fields import (
    ANY_TABLE,
    CHANGE_TYPES,
    DELETE,
    INSERT,
    KIND_BITS,
    OPEN_TABLES_MAX,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    EventColumn,
    MapColumn,
    RowField,
    RowOp,
    RowStatus,
    StepColumn,
    VariantColumn,
)
from ibbmaster.spark.arrow_columns import decimal_array, fixed_array, group_array, string_array, timestamp_array
from ibbmaster.spark.cell import cell_reader
from ibbmaster.spark.event_batch import EventBatch
from ibbmaster.spark.options import ZeroDates
from ibbmaster.spark.shape import ABSENT_FIELD, CHANGE_FIELDS, GROUP_FIELDS, Field, arrow_type, column_type
from ibbmaster.store.group_content import RowReader

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_MAX = 1 << 16  # in one record batch
UTF8_CHARSETS = ("utf8mb4", "utf8mb3", "ascii")
KINDS = {
    EventType.WRITE_ROWS_V1: INSERT,
    EventType.WRITE_ROWS: INSERT,
    EventType.UPDATE_ROWS_V1: UPDATE_BEFORE,
    EventType.UPDATE_ROWS: UPDATE_BEFORE,
    EventType.DELETE_ROWS_V1: DELETE,
    EventType.DELETE_ROWS: DELETE,
}
TYPE_OFFSET, SIZE_OFFSET = 4, 9
COMPRESSED_STEP_V1 = EventType.WRITE_ROWS_COMPRESSED_V1 - EventType.WRITE_ROWS_V1
COMPRESSED_STEP_V2 = EventType.WRITE_ROWS_COMPRESSED - EventType.WRITE_ROWS
COMPRESSED_V1 = range(EventType.WRITE_ROWS_COMPRESSED_V1, EventType.DELETE_ROWS_COMPRESSED_V1 + 1)
COMPRESSED_V2 = range(EventType.WRITE_ROWS_COMPRESSED, EventType.DELETE_ROWS_COMPRESSED + 1)
NOT_PLAIN = (*COMPRESSED_V1, *COMPRESSED_V2, int(EventType.PARTIAL_ROW_DATA))
RESERVED = {field.name for field in (*GROUP_FIELDS, *CHANGE_FIELDS, ABSENT_FIELD)}

Convert = Callable[[Value], object]


@dataclass(frozen=True, slots=True)
class Reading:
    """How a column is read: the kernel's step, and what its numbers are."""

    op: RowOp
    first: int
    second: int
    what: str  # number, text, bytes; code: a number that stands for a value; value: bytes that do


def reading_of(column: Column, spark_type: str) -> Reading:
    """How the values of a column become cells of a type that `shape.column_type` gave for it.

    Raises:
        ValueError: values of this type cannot be read at all.
    """
    size = column.size
    match column.type:
        case ColumnType.TINY | ColumnType.SHORT | ColumnType.INT24 | ColumnType.LONG | ColumnType.LONGLONG:
            return Reading(RowOp.INTEGER, INTEGER_SIZES[ColumnType(column.type)], int(not column.is_unsigned), "number")
        case ColumnType.FLOAT:
            return Reading(RowOp.FLOAT, 0, 0, "number")
        case ColumnType.DOUBLE:
            return Reading(RowOp.DOUBLE, 0, 0, "number")
        case ColumnType.BIT:
            return Reading(RowOp.BIG_ENDIAN, (size + 7) // 8, 0, "number")
        case ColumnType.YEAR:
            return Reading(RowOp.YEAR, 0, 0, "number")
        case ColumnType.NEWDECIMAL if spark_type.startswith("decimal"):
            return Reading(RowOp.DECIMAL, size, column.scale, "number")
        case ColumnType.NEWDECIMAL:
            return Reading(RowOp.RAW_FIXED, decimal_size(size, column.scale), 0, "value")
        case ColumnType.ENUM | ColumnType.SET:
            return Reading(RowOp.INTEGER, size, 0, "code")
        case ColumnType.DATE | ColumnType.NEWDATE if spark_type == "date":
            return Reading(RowOp.DATE, 0, 0, "number")
        case ColumnType.DATETIME2 if spark_type != "string":
            return Reading(RowOp.DATETIME, column.scale, 0, "number")
        case ColumnType.TIMESTAMP2 if spark_type != "string":
            return Reading(RowOp.TIMESTAMP, column.scale, 0, "number")
    fixed = _fixed_size(column)
    if fixed is not None:
        return Reading(RowOp.RAW_FIXED, fixed, 0, "value")
    what = "value"
    if column.type not in (ColumnType.VARCHAR_COMPRESSED, ColumnType.BLOB_COMPRESSED):
        if column.kind is Kind.TEXT and (column.charset or "utf8mb4") in UTF8_CHARSETS:
            what = "text"
        elif column.kind in (Kind.BINARY, Kind.GEOMETRY):
            what = "bytes"
    return Reading(RowOp.RAW_PREFIXED, _length_size(column), 0, what)


def _fixed_size(column: Column) -> int | None:
    """Bytes of a temporal value; None for strings."""
    from ibbmaster.event.rows import temporal

    digits = column.scale
    sizes = {
        ColumnType.DATE: 3,
        ColumnType.NEWDATE: 3,
        ColumnType.TIME2: 3 + FRACTION_SIZES[digits],
        ColumnType.DATETIME2: 5 + FRACTION_SIZES[digits],
        ColumnType.TIMESTAMP2: 4 + FRACTION_SIZES[digits],
        ColumnType.TIME: temporal.OLD_TIME_SIZES[digits],
        ColumnType.DATETIME: temporal.OLD_DATETIME_SIZES[digits],
        ColumnType.TIMESTAMP: 4 + FRACTION_SIZES[digits],
    }
    return sizes.get(ColumnType(column.type)) if column.type in ColumnType.__members__.values() else None


def _length_size(column: Column) -> int:
    match column.type:
        case ColumnType.STRING | ColumnType.VARCHAR | ColumnType.VAR_STRING | ColumnType.VARCHAR_COMPRESSED:
            return 1 if column.size <= SHORT_LENGTH_MAX else 2
        case ColumnType.BLOB | ColumnType.BLOB_COMPRESSED | ColumnType.GEOMETRY:
            return column.size
    raise ValueError("values of this type cannot be read")


class RowColumns:
    """Reads the changes of one table out of batches of events, into record batches of some fields."""

    def __init__(
        self, fields: tuple[Field, ...], reader: RowReader, zero_dates: ZeroDates, kernels: ModuleType
    ) -> None:
        self._fields = fields
        self._own = [field for field in fields if field.name not in RESERVED]
        self._slots = {field.name: 2 * index for index, field in enumerate(self._own)}
        self._reader = reader
        self._zero_dates = zero_dates
        self._kernels = kernels
        self._known = np.zeros(1 << 16, dtype=np.uint8)
        self._known_size = 0
        self._maps = np.zeros((64, MapColumn.COLUMNS), dtype=np.int64)
        self._decoders: list[RowDecoder | None] = []  # of the tables in `_maps`
        self._variants = np.zeros((64, VariantColumn.COLUMNS), dtype=np.int64)
        self._variant_count = 0
        self._steps = np.zeros((256, StepColumn.COLUMNS), dtype=np.int64)
        self._step_count = 0
        self._table = ""
        self._columns: dict[str, Column] = {}  # by name, as the table at hand has them
        self._readings: dict[str, Reading] = {}
        self._partial = PartialRows()
        slots = max(2 * len(self._own), 1)
        self._values = np.zeros((slots, ROWS_MAX), dtype=np.int64)
        self._valid = np.zeros((slots, ROWS_MAX), dtype=np.uint8)
        self._row_groups = np.zeros(ROWS_MAX, dtype=np.int64)
        self._row_kinds = np.zeros(ROWS_MAX, dtype=np.int64)
        self._state = np.zeros(RowField.SIZE, dtype=np.int64)
        self._state[RowField.TABLE] = -1 if self._own else ANY_TABLE
        self._absent: list[list[str]] = []  # by kind of row event, of the first image and of the second
        self._last_rows: tuple[tuple[int, ...], int] = ((), 0)  # the group of the row before, and how many it had
        self._open = np.zeros((OPEN_TABLES_MAX + 1, 2), dtype=np.int64)
        self._last_group: tuple[int, ...] = ()

    def record_batches(self, batch: EventBatch) -> Iterator[pa.RecordBatch]:
        """The changes in a batch of events.

        Raises:
            EventError: an event is damaged, or belongs to no table; it names the group.
            UndecodableError: a value cannot be read.
        """
        batch = self._plain(batch)
        state = self._state
        # A group that goes on from the batch before keeps the tables it has named.
        state[RowField.GROUP] = 0 if self._goes_on(batch) else -1
        state[RowField.EVENT] = state[RowField.OFFSET] = 0
        while True:
            status = self._kernels.decode_rows(
                batch.data,
                batch.events,
                len(batch.events),
                state,
                self._open,
                self._known,
                self._maps,
                len(self._decoders),
                self._variants,
                self._variant_count,
                self._steps,
                self._values,
                self._valid,
                self._row_groups,
                self._row_kinds,
            )
            number = int(state[RowField.EVENT])
            match RowStatus(status):
                case RowStatus.NEW_MAP:
                    self._add_map(batch, number)
                case RowStatus.NEW_TABLE:
                    yield from self._flush(batch)
                    self._use_table(int(state[RowField.TABLE]))
                case RowStatus.NEW_VARIANT:
                    self._add_variant(batch, number)
                case RowStatus.FULL:
                    yield from self._flush(batch)
                case RowStatus.BAD:
                    raise self._problem(batch, number)
                case RowStatus.END:
                    yield from self._flush(batch)
                    return

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The log ends here.

        Raises:
            EventError: it ends inside the fragments of a row event.
        """
        if self._partial.is_open:
            raise EventError("the group ends inside the fragments of a row event")
        return iter(())

    def _goes_on(self, batch: EventBatch) -> bool:
        """Whether the first group is the last one of the batch before; notes the last one."""
        if not len(batch.groups):
            return False
        key = slice(0, 6)
        is_same = bool(len(batch.events)) and tuple(batch.groups[0, key].tolist()) == self._last_group
        self._last_group = tuple(batch.groups[-1, key].tolist())
        return is_same

    # Tables and kinds of row events ----------------------------------------------------------

    def _remember(self, data: bytes) -> int:
        """Keep bytes; returns where."""
        start = self._known_size
        while start + len(data) > len(self._known):
            self._known = np.concatenate([self._known, np.zeros_like(self._known)])
        self._known[start : start + len(data)] = memoryview(data)
        self._known_size += len(data)
        return start

    def _add_map(self, batch: EventBatch, number: int) -> None:
        event = batch.event(number)
        try:
            decoder = self._reader.decoder(event)
        except EventError as error:
            raise _in_group(error, batch, number) from error
        if len(self._decoders) == len(self._maps):
            self._maps = np.concatenate([self._maps, np.zeros_like(self._maps)])
        start = self._remember(event[EVENT_HEADER_SIZE:])
        self._maps[len(self._decoders)] = start, len(event) - EVENT_HEADER_SIZE, decoder is not None
        self._decoders.append(decoder)

    def _add_variant(self, batch: EventBatch, number: int) -> None:
        event = batch.event(number)
        decoder = self._decoder_of(batch, number)
        try:
            header = decode_rows_header(event)
            schema = decoder.schema
            if header.column_count != len(schema.columns):
                columns = len(schema.columns)
                raise EventError(f"row event of {header.column_count} columns, {schema.name} has {columns}")
            first = self._add_steps(schema, header.columns_present)
            after = self._add_steps(schema, header.columns_after) if header.columns_after else (0, 0)
        except EventError as error:
            raise _in_group(error, batch, number) from error
        bits = header.columns_present + header.columns_after
        if self._variant_count == len(self._variants):
            self._variants = np.concatenate([self._variants, np.zeros_like(self._variants)])
        self._variants[self._variant_count] = (
            self._decoders.index(decoder),
            KINDS[EventType(event[TYPE_OFFSET])],
            header.column_count,
            self._remember(bits),
            len(bits),
            *first,
            *after,
        )
        self._variant_count += 1
        self._absent += [_absent_names(schema, bits) for bits in (header.columns_present, header.columns_after)]

    def _add_steps(self, schema: TableSchema, present: bytes) -> tuple[int, int]:
        """The steps of an image with these columns: the first, and how many."""
        first = self._step_count
        bits = int.from_bytes(present, "little")
        for number, column in enumerate(schema.columns):
            if not bits >> number & 1:
                continue
            if self._step_count == len(self._steps):
                self._steps = np.concatenate([self._steps, np.zeros_like(self._steps)])
            try:
                self._steps[self._step_count] = self._step(schema, column)
            except ValueError as error:
                raise UndecodableError(schema.name, column.name, column.type_name, str(error)) from None
            self._step_count += 1
        return first, self._step_count - first

    def _step(self, schema: TableSchema, column: Column) -> tuple[int, int, int, int]:
        slot = self._slots.get(column.name)
        found = column_type(column, self._zero_dates)
        reading = reading_of(column, found)
        if slot is None:
            if reading.op == RowOp.RAW_PREFIXED:
                return RowOp.SKIP_PREFIXED, reading.first, 0, 0
            size = reading.first if reading.op in (RowOp.INTEGER, RowOp.BIG_ENDIAN, RowOp.RAW_FIXED) else None
            return RowOp.SKIP_FIXED, _skipped_size(reading) if size is None else size, 0, 0
        wanted = self._own[slot // 2].type
        if found != wanted:
            raise EventError(f"{schema.name} column {column.name} is {found} here, the DataFrame has {wanted}")
        return reading.op, reading.first, reading.second, slot

    def _use_table(self, row: int) -> None:
        """Rows of this table come next: how its columns are read."""
        decoder = self._decoders[row]
        assert decoder is not None
        self._table = decoder.schema.name
        self._columns = {column.name: column for column in decoder.schema.columns if column.name in self._slots}
        self._readings = {}
        for name, column in self._columns.items():
            with contextlib.suppress(ValueError):  # it is in no image, or its step says what is wrong
                self._readings[name] = reading_of(column, self._own[self._slots[name] // 2].type)

    def _decoder_of(self, batch: EventBatch, number: int) -> RowDecoder:
        """The table that the group of a row event has named for it."""
        event = batch.event(number)
        table_id = int.from_bytes(event[EVENT_HEADER_SIZE : EVENT_HEADER_SIZE + TABLE_ID_SIZE], "little")
        for known_id, row in self._open[: self._state[RowField.OPEN]].tolist():
            decoder: RowDecoder | None = self._decoders[row]
            if known_id == table_id and decoder is not None:
                return decoder
        raise _in_group(
            EventError(f"row event of table {table_id}, which no TABLE_MAP of its group names"), batch, number
        )

    def _problem(self, batch: EventBatch, number: int) -> EventError:
        """What is wrong with an event, as the careful decoder finds it."""
        event = batch.event(number)
        try:
            if event[TYPE_OFFSET] == EventType.TABLE_MAP:
                self._reader.decoder(event)
            else:
                for _ in self._decoder_of(batch, number).changes(event):
                    pass
        except EventError as error:
            return _in_group(error, batch, number)
        return _in_group(EventError("a row event that cannot be read"), batch, number)

    # Rows -------------------------------------------------------------------------------------

    def _flush(self, batch: EventBatch) -> Iterator[pa.RecordBatch]:
        """What was read so far, as one record batch, or several if its strings are too long for one."""
        count = int(self._state[RowField.ROWS])
        if not count:
            return
        for start, end in self._portions(count):
            yield self._record_batch(batch, slice(start, end))
        self._valid[:, :count] = 0
        self._state[RowField.ROWS] = 0

    def _portions(self, count: int) -> Iterator[tuple[int, int]]:
        """Rows that fit into one record batch each."""
        sizes = np.zeros(count, dtype=np.int64)
        for name, reading in self._readings.items():
            if reading.op == RowOp.RAW_PREFIXED:
                slot = self._slots[name]
                padding = self._columns[name].size if reading.what == "bytes" else 0
                sizes += np.where(self._valid[slot, :count], np.maximum(self._values[slot + 1, :count], padding), 0)
        start = 0
        passed = np.cumsum(sizes)
        while start < count:
            before = int(passed[start - 1]) if start else 0
            end = int(np.searchsorted(passed, before + (1 << 30), side="right"))
            yield start, max(end, start + 1)
            start = max(end, start + 1)

    def _record_batch(self, batch: EventBatch, rows: slice) -> pa.RecordBatch:
        import pyarrow as pa

        groups, kinds = self._row_groups[rows], self._row_kinds[rows] & (1 << KIND_BITS) - 1
        variants = self._row_kinds[rows] >> KIND_BITS
        numbers = self._numbers(batch, groups)
        arrays = []
        for field in self._fields:
            if field.name in self._slots:
                arrays.append(self._own_array(field, batch, rows))
            elif field.name == "_change_type":
                arrays.append(_picked(kinds, pa.array(CHANGE_TYPES)))
            elif field.name == "_change_no":
                arrays.append(pa.array(numbers))
            elif field.name == "_table":
                names = [decoder and decoder.schema.name for decoder in self._decoders]
                arrays.append(_picked(self._variants[variants, VariantColumn.MAP], pa.array(names, pa.string())))
            elif field.name == ABSENT_FIELD.name:
                lists = pa.array(self._absent, pa.list_(pa.string()))
                arrays.append(lists.take(pa.array(2 * variants + (kinds == UPDATE_AFTER))))
            else:
                arrays.append(group_array(field.name, batch, groups, self._kernels))
        schema = pa.schema([pa.field(field.name, arrow_type(field.type)) for field in self._fields])
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _numbers(self, batch: EventBatch, groups: Any) -> Any:
        """Which of the rows of its group each row is, counting those that are read."""
        key = slice(0, 6)
        starts = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
        lengths = np.diff(np.append(starts, len(groups)))
        numbers = np.arange(len(groups)) - np.repeat(starts, lengths)
        first, count = self._last_rows
        if tuple(batch.groups[groups[0], key].tolist()) == first:
            numbers[: lengths[0]] += count
        self._last_rows = tuple(batch.groups[groups[-1], key].tolist()), int(numbers[-1]) + 1
        return numbers

    def _own_array(self, field: Field, batch: EventBatch, rows: slice) -> pa.Array:
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
                padded = column.size if column.type == ColumnType.STRING else 0
                return string_array(kind, batch.data, values, more, valid, self._kernels, padded=padded)
            case "number":
                return _number_array(kind, values, more, valid)
            case _:
                return self._slow_array(column, field, batch, rows)

    def _slow_array(self, column: Column, field: Field, batch: EventBatch, rows: slice) -> pa.Array:
        """Values that are read one by one, each different one once."""
        import pyarrow as pa

        slot, reading = self._slots[field.name], self._readings[field.name]
        read, to_cell = value_reader(column), cell_reader(column, field.type)
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
                    cache[raw] = to_cell(read(raw, 0)[0])
                except (ValueError, OverflowError) as error:
                    group = int(self._row_groups[row])
                    undecodable = UndecodableError(self._table, column.name, column.type_name, str(error))
                    raise EventError(f"group {batch.gtid(group)}: {undecodable}") from None
            cells.append(cache[raw])
        return pa.array(cells, arrow_type(field.type))

    def _plain(self, batch: EventBatch) -> EventBatch:
        """The same events, compressed ones unpacked and fragments of row events put together."""
        types = batch.data[batch.events[:, EventColumn.START] + TYPE_OFFSET]
        if not np.isin(types, NOT_PLAIN).any() and not self._partial.is_open:
            return batch
        data, rows = bytearray(), []
        for number, row in enumerate(batch.events.tolist()):
            try:
                event = self._plain_event(batch.event(number))
            except EventError as error:
                raise _in_group(error, batch, number) from error
            if event is not None:
                rows.append([len(data), len(event), *row[2:]])
                data += event
        events = np.array(rows, dtype=np.int64).reshape(-1, EventColumn.COLUMNS)
        return EventBatch(np.frombuffer(data, dtype=np.uint8), batch.groups, events)

    def _plain_event(self, event: bytes) -> bytes | None:
        if event[TYPE_OFFSET] == EventType.PARTIAL_ROW_DATA:
            whole = self._partial.take(event)
            return None if whole is None else self._plain_event(whole)
        step = COMPRESSED_STEP_V1 if event[TYPE_OFFSET] in COMPRESSED_V1 else COMPRESSED_STEP_V2
        if event[TYPE_OFFSET] not in COMPRESSED_V1 and event[TYPE_OFFSET] not in COMPRESSED_V2:
            return event
        offset = decode_rows_header(event).rows_offset
        plain = bytearray(event[:offset] + decompress(event[offset:]))
        plain[TYPE_OFFSET] -= step
        plain[SIZE_OFFSET : SIZE_OFFSET + 4] = len(plain).to_bytes(4, "little")
        return bytes(plain)


def _skipped_size(reading: Reading) -> int:
    """Bytes of a number that nobody wants."""
    match reading.op:
        case RowOp.FLOAT:
            return 4
        case RowOp.DOUBLE:
            return 8
        case RowOp.YEAR:
            return 1
        case RowOp.DATE:
            return 3
        case RowOp.DATETIME:
            return 5 + FRACTION_SIZES[reading.first]
        case RowOp.TIMESTAMP:
            return 4 + FRACTION_SIZES[reading.first]
        case _:
            return decimal_size(reading.first, reading.second)


def _number_array(kind: pa.DataType, values: Any, more: Any, valid: Any) -> pa.Array:
    import pyarrow as pa

    if pa.types.is_decimal(kind):
        is_wide = kind != pa.decimal128(20, 0) or bool((more != 0).any())
        return decimal_array(values, more if is_wide else None, valid, kind)
    if kind in (pa.int32(), pa.float32(), pa.date32()):
        return fixed_array(kind, values.astype(np.int32), valid)
    if pa.types.is_timestamp(kind):
        return timestamp_array(values, valid, zone=kind.tz)
    return fixed_array(kind, values, valid)


def _has_high_bytes(data: Any, starts: Any, sizes: Any, valid: Any) -> bool:
    """Whether some string has a byte that is no ASCII; looks at everything between the first and the last."""
    places = starts[valid.astype(bool)]
    if not len(places):
        return False
    end = int((places + sizes[valid.astype(bool)]).max())
    return bool((data[int(places.min()) : end] > 127).any())


def _absent_names(schema: TableSchema, present: bytes) -> list[str]:
    """The columns that an image leaves out."""
    bits = int.from_bytes(present, "little")
    return [column.name for number, column in enumerate(schema.columns) if not bits >> number & 1]


def _picked(places: Any, values: pa.Array) -> pa.Array:
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32)), values).cast(pa.string())


def _in_group(error: EventError, batch: EventBatch, number: int) -> EventError:
    """The same error, which also names the group."""
    return EventError(f"group {batch.gtid(int(batch.events[number, EventColumn.GROUP]))}: {error}")
