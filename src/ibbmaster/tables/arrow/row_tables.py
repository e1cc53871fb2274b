"""The tables and kinds of row events of a DataFrame, for the kernel."""

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ibbmaster.errors import UndecodableError
from ibbmaster.kernel.fields import RowOp, StepColumn
from ibbmaster.logs.log.group_content import RowReader, TableDecoder
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE
from ibbmaster.replication.event.rows.column import Column, TableSchema
from ibbmaster.replication.event.rows.value import Reader
from ibbmaster.replication.event.table_map import decode_rows_header
from ibbmaster.rows.shape import ColumnOrigin, TableShape
from ibbmaster.schema.model import SchemaPlace
from ibbmaster.storage.codec.buffer import Buffer
from .cell import cell_reader, completed_columns, converting_reader
from .column_reading import Reading, can_cast, raw_reading_of, reading_of, size_of, text_reading_of
from .read_options import ZeroDates
from .shape import ShapeField, column_type, expect_readable, field_name
from .table_maps import MapStore, with_room

Step = tuple[int, int, int, int, int]  # the columns of StepColumn


class ColumnCells(NamedTuple):
    """How values become cells: the slot they are read into, and what is made of them there."""

    column: Column
    slot: int
    reading: Reading
    type: str  # Spark's name of it
    read: Reader  # where the kernel does not make the cells


class TableCells:
    def __init__(
        self, decoder: TableDecoder, shape: TableShape | None, fields: list[ShapeField], zero_dates: ZeroDates
    ):
        self._schema = decoder.schema
        self._zero_dates = zero_dates
        self.origins: dict[str, ColumnOrigin] = {}  # of the shape's columns, by name in the DataFrame
        self.cells: dict[int, ColumnCells] = {}  # by column number
        if shape is None:
            return
        names = [field_name(column.name) for column in shape.columns]
        self.origins = dict(zip(names, shape.origins(decoder.schema, decoder.known_version), strict=True))
        wanted = dict(zip(names, shape.columns, strict=True))
        for index, field in enumerate(fields):
            origin = self.origins[field.name]
            if origin.number is not None:
                self._add_field(2 * index, field, origin, wanted[field.name])
        for origin in self.origins.values():
            for _, made_of in origin.inputs:
                if made_of.number is not None and made_of.number not in self.cells:
                    slot = 2 * (len(fields) + sum(cell.slot >= 2 * len(fields) for cell in self.cells.values()))
                    self._add_input(slot, made_of.number)

    def _add_field(self, slot: int, field: ShapeField, origin: ColumnOrigin, wanted: Column) -> None:
        assert origin.number is not None
        column = self._schema.columns[origin.number]
        found = expect_readable(self._schema.name, column, wanted, field, self._zero_dates)
        try:
            if (found == field.type and origin.convert is None) or can_cast(found, field.type):
                cells = ColumnCells(column, slot, reading_of(column, found), found, cell_reader(column, found))
            else:
                read = converting_reader(column, origin.convert, field.type)
                cells = ColumnCells(column, slot, raw_reading_of(column), field.type, read)
        except ValueError:
            return  # its step says what is wrong
        self.cells[origin.number] = cells

    def _add_input(self, slot: int, number: int) -> None:
        column = self._schema.columns[number]
        own = column_type(column, self._zero_dates)
        with contextlib.suppress(ValueError):
            self.cells[number] = ColumnCells(column, slot, reading_of(column, own), own, cell_reader(column, own))


class RowTables(MapStore):
    """A `MapStore` with `steps`, see `StepColumn`.

    `fields` are DataFrame columns of a table: number n has the slots 2n and 2n + 1; after them are those of columns
    that others are computed from. With None each column of a table is read as text, in the slots of its number.

    Attributes:
        decoders: reference decoders of known tables; None for unwanted ones.
        table_cells: beside them, how they are read.
        presents: for each kind of row event the columns of its first image, and of its second, a bit each.
        absent: beside them, the names of those left out.
        completed: for each kind of row event what its second image gets from its first, a bit each.
        slot_count: slots that the steps write to.
    """

    def __init__(
        self,
        fields: list[ShapeField] | None,
        shape: TableShape | None,
        reader: RowReader,
        zero_dates: ZeroDates,
        *,
        completes_keys: bool = False,
        reading: Callable[[Column], Reading] = text_reading_of,
    ) -> None:
        super().__init__(EVENT_HEADER_SIZE)
        self._completes_keys = completes_keys
        self._reading = reading
        self._fields = fields
        self._shape = shape
        self._reader = reader
        self._zero_dates = zero_dates
        self.decoders: list[TableDecoder | None] = []
        self.table_cells: list[TableCells | None] = []
        self.steps: Any = np.zeros((256, StepColumn.COLUMNS), dtype=np.int64)
        self._step_count = 0
        self.presents: list[int] = []
        self.absent: list[list[str]] = []
        self.completed: list[int] = []
        self.slot_count = 0

    def add_map(self, event: bytes, place: SchemaPlace) -> None:
        """Raises EventError: its columns have no names, and some are wanted."""
        decoder = self._reader.decoder(event, place)
        if decoder is not None and self._fields:
            decoder.expect_names()
        self.note_map(event, is_wanted=decoder is not None)
        self.decoders.append(decoder)
        self.table_cells.append(None)

    def cells_of(self, row: int) -> TableCells:
        """Raises EventError: a column has another type than in the DataFrame."""
        found = self.table_cells[row]
        if found is None:
            decoder = self.decoders[row]
            assert decoder is not None
            found = self.table_cells[row] = TableCells(decoder, self._shape, self._fields or [], self._zero_dates)
        return found

    def add_variant(self, event: Buffer, row: int) -> None:
        """Know a kind of row event. Raises EventError: it has other columns than the table, or the DataFrame;
        UndecodableError: a column's values are unreadable."""
        header = decode_rows_header(event)
        decoder = self.decoders[row]
        assert decoder is not None
        schema = decoder.schema
        decoder.expect_columns(header)
        first = self._add_steps(row, decoder, header.columns_present)
        after = self._add_steps(row, decoder, header.columns_after) if header.columns_after else (0, 0)
        self.note_variant(event, row, header, (*first, *after))
        shown = (1 << len(schema.columns)) - 1
        before, told = (
            int.from_bytes(bits, "little") & shown for bits in (header.columns_present, header.columns_after)
        )
        completed = 0
        if self._completes_keys and header.columns_after:
            completed = before & ~told & completed_columns(schema, decoder.known_version)
        self.completed.append(completed)
        for present in (before, told | completed):
            self.presents.append(present)
            self.absent.append(self._absent_names(row, schema, present))

    def _absent_names(self, row: int, schema: TableSchema, present: int) -> list[str]:
        if self._shape is None:
            return [column.name for number, column in enumerate(schema.columns) if not present >> number & 1]
        return [name for name, origin in self.cells_of(row).origins.items() if not origin.is_told(present)]

    def _add_steps(self, row: int, decoder: TableDecoder, present: bytes) -> tuple[int, int]:
        first = self._step_count
        bits = int.from_bytes(present, "little")
        cells = self.cells_of(row).cells
        for number, column in enumerate(decoder.stored):
            if not bits >> number & 1:
                continue
            self.steps = with_room(self.steps, self._step_count + 1)
            try:
                if self._fields is None and not column.is_internal:
                    step = _step(self._reading(column), 2 * number)
                elif number in cells:
                    step = _step(cells[number].reading, cells[number].slot)
                else:
                    step = _skipping(reading_of(column, column_type(column, self._zero_dates)))
            except ValueError as error:
                raise UndecodableError(decoder.schema.name, column.name, column.type_name, str(error)) from None
            self.steps[self._step_count] = step
            self.slot_count = max(self.slot_count, step[3] + 2)
            self._step_count += 1
        return first, self._step_count - first


def _step(reading: Reading, slot: int) -> Step:
    return reading.op, reading.first, reading.second, slot, size_of(reading)


def _skipping(reading: Reading) -> Step:
    op = RowOp.SKIP_PREFIXED if reading.op == RowOp.RAW_PREFIXED else RowOp.SKIP_FIXED
    return op, 0, 0, 0, size_of(reading)
