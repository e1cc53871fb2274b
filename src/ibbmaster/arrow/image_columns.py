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
from ibbmaster.arrow.temporal_texts import moment_texts
from ibbmaster.event.rows.column import Column, ValueKind
from ibbmaster.kernel.fields import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, RowOp

if TYPE_CHECKING:
    import pyarrow as pa

IMAGES = ("before", "after")
TEXT_BYTES_MAX = 1 << 28  # of values in one record batch: bytes have two digits each, and are in two columns
OF_MOMENTS = (ValueKind.DATE, ValueKind.DATETIME, ValueKind.TIMESTAMP)


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
        """A row for each image: whether it has each column."""
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
            is_unsigned = column.is_unsigned or column.kind is ValueKind.BIT
            numbers = values.view(np.uint64) if is_unsigned else values
            return pa.array(numbers, mask=valid == 0).cast(pa.string())
        if reading.op == RowOp.DECIMAL:
            return self._cell_array(cells, batch, rows).cast(pa.string())
        if column.kind in OF_MOMENTS and not column.has_old_format:
            texts = moment_texts(column, batch.data, values, valid)
            if texts is not None:
                return texts
        return self._cell_array(cells, batch, rows)


def _maps(names: list[str], texts: list[pa.Array], present: Any) -> pa.MapArray:
    """A map for each row of `present`, of the columns it has; `texts` are these columns."""
    import pyarrow as pa

    rows, columns = np.nonzero(present)
    offsets = np.zeros(len(present) + 1, dtype=np.int32)
    np.cumsum(present.sum(axis=1), out=offsets[1:])
    keys = pa.array(names, pa.string()).take(pa.array(columns))
    items = pa.concat_arrays(texts).take(pa.array(columns * len(present) + rows))
    return pa.MapArray.from_arrays(pa.array(offsets), keys, items)
