"""Changes of rows of any table, their images as maps from column name to text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ibbmaster.arrow.cell import cell_reader
from ibbmaster.arrow.column_reading import text_reading_of
from ibbmaster.arrow.event_batch import EventBatch
from ibbmaster.arrow.row_columns import RowColumns
from ibbmaster.arrow.row_tables import ColumnCells
from ibbmaster.event.column_types.registry import kind_of
from ibbmaster.event.column_types.temporal import FRACTION_SIZES
from ibbmaster.event.rows.column import Column
from ibbmaster.kernel.fields import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, RowOp

if TYPE_CHECKING:
    import pyarrow as pa

IMAGES = ("before", "after")
TEXT_BYTES_MAX = 1 << 28  # of values in one record batch: bytes have two digits each, and are in two columns
DATE_SIZE = len("YYYY-MM-DD")
MOMENT_SIZE = len("YYYY-MM-DD hh:mm:ss")
YEAR_MAX = 9999
ZERO = ord("0")
Parts = tuple[Any, Any, Any, Any, Any, Any, Any]  # year, month, day, hour, minute, second, fraction


class ImageColumns(RowColumns):
    """Reads the changes of all tables; the rows of a record batch are of one."""

    READS_EVERY_COLUMN = True
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
                continue  # it is in no image, or its step says what is wrong
            is_decimal = reading.op == RowOp.DECIMAL
            kind = f"decimal({column.size},{column.scale})" if is_decimal else "string"
            self._cells[column.name] = ColumnCells(column, 2 * number, reading, kind, cell_reader(column, kind))
        self._make_slots(2 * len(columns))

    def _bytes_max(self) -> int:
        return TEXT_BYTES_MAX

    def _images(self, batch: EventBatch, rows: slice, kinds: Any, variants: Any) -> dict[str, pa.Array]:
        import pyarrow as pa

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
        """The values of a column as text; where an image has none, there is NULL."""
        import pyarrow as pa

        cells = self._cells.get(column.name)
        if cells is None:
            return pa.nulls(rows.stop - rows.start, pa.string())
        slot, reading = cells.slot, cells.reading
        values, valid = self._values[slot, rows], self._valid[slot, rows]
        if reading.what == "number" and reading.op != RowOp.DECIMAL:
            is_unsigned = column.is_unsigned or reading.op == RowOp.BIG_ENDIAN
            numbers = values.view(np.uint64) if is_unsigned else values
            return pa.array(numbers, mask=valid == 0).cast(pa.string())
        if reading.op == RowOp.DECIMAL:
            return self._cell_array(cells, batch, rows).cast(pa.string())
        if kind_of(column).has_day and not column.has_old_format:
            texts = moment_texts(column, batch.data, values, valid)
            if texts is not None:
                return texts
        return self._cell_array(cells, batch, rows)


def _maps(names: list[str], texts: list[pa.Array], present: Any) -> pa.MapArray:
    import pyarrow as pa

    rows, columns = np.nonzero(present)
    offsets = np.zeros(len(present) + 1, dtype=np.int32)
    np.cumsum(present.sum(axis=1), out=offsets[1:])
    keys = pa.array(names, pa.string()).take(pa.array(columns))
    items = pa.concat_arrays(texts).take(pa.array(columns * len(present) + rows))
    return pa.MapArray.from_arrays(pa.array(offsets), keys, items)


def moment_texts(column: Column, data: Any, starts: Any, valid: Any) -> pa.Array | None:
    """DATE, DATETIME and TIMESTAMP (since 10.1) as text; None if one of them is not as it should be. `starts` says
    where each value begins in `data`, `valid` has 0 for those that are NULL."""
    import pyarrow as pa

    is_there = valid != 0
    places = starts[is_there]
    has_clock = kind_of(column).is_clock
    digits = column.scale if has_clock else 0
    if not has_clock:
        packed = _number(data, places, 3, highest_first=False)
        zeros = np.zeros_like(packed)
        if (packed >> 9 > YEAR_MAX).any():
            return None
        parts = (packed >> 9, packed >> 5 & 15, packed & 31, zeros, zeros, zeros, zeros)
    else:
        read = _timestamp if kind_of(column).is_zoned else _datetime
        found = read(data, places, digits)
        if found is None:
            return None
        parts = found
    size = MOMENT_SIZE + (1 + digits if digits else 0) if has_clock else DATE_SIZE
    text = _text(parts, size, digits)
    offsets = np.zeros(len(valid) + 1, dtype=np.int32)
    np.cumsum(is_there * size, out=offsets[1:])
    mask = None if is_there.all() else pa.py_buffer(np.packbits(is_there, bitorder="little"))
    return pa.Array.from_buffers(pa.string(), len(valid), [mask, pa.py_buffer(offsets), pa.py_buffer(text)])


def _number(data: Any, places: Any, size: int, *, highest_first: bool = True) -> Any:
    order = range(size) if highest_first else reversed(range(size))
    number = np.zeros(len(places), dtype=np.int64)
    for index in order:
        number = number << 8 | data[places + index]
    return number


def _fraction(data: Any, places: Any, digits: int) -> Any | None:
    size = FRACTION_SIZES[digits]
    fraction = _number(data, places, size)
    if (fraction >= 10 ** (2 * size)).any():
        return None
    return fraction // 10 if digits % 2 else fraction


def _datetime(data: Any, places: Any, digits: int) -> Parts | None:
    packed = _number(data, places, 5) - (1 << 39)
    fraction = _fraction(data, places + 5, digits)
    year, month = np.divmod(packed >> 22, 13)
    if fraction is None or (packed < 0).any() or (year > YEAR_MAX).any():
        return None
    return year, month, packed >> 17 & 31, packed >> 12 & 31, packed >> 6 & 63, packed & 63, fraction


def _timestamp(data: Any, places: Any, digits: int) -> Parts | None:
    seconds = _number(data, places, 4)
    is_moment = _number(data, places, 4 + FRACTION_SIZES[digits]) != 0  # a digit that is not shown counts, too
    fraction = _fraction(data, places + 4, digits)
    if fraction is None:
        return None
    moments = seconds.astype("datetime64[s]")
    months = moments.astype("datetime64[M]")
    year, month = np.divmod(months.astype(np.int64) + 1970 * 12, 12)
    day = (moments.astype("datetime64[D]") - months).astype(np.int64) + 1
    clock = seconds % 86400
    parts = (year, month + 1, day, clock // 3600, clock // 60 % 60, clock % 60)
    return (*(part * is_moment for part in parts), fraction)


def _text(parts: Parts, size: int, digits: int) -> Any:
    """YYYY-MM-DD hh:mm:ss.ffffff of each, cut to `size`, one after the other."""
    count = len(parts[0])
    text = np.empty((count, size), dtype=np.uint8)
    layout = ((parts[0], 4, "-"), (parts[1], 2, "-"), (parts[2], 2, " "), (parts[3], 2, ":"), (parts[4], 2, ":"))
    column = 0
    for number, width, behind in (*layout, (parts[5], 2, "."), (parts[6], digits, "")):
        if column >= size:
            break
        rest = number
        for place in range(column + width - 1, column - 1, -1):
            rest, digit = np.divmod(rest, 10)
            text[:, place] = digit + ZERO
        column += width
        if column < size:
            text[:, column] = ord(behind)
            column += 1
    return text
