"""The tables and kinds of row events that the kernel knows: what it is given once, and finds from then on."""

from __future__ import annotations

from typing import Any

import numpy as np

from ibbmaster.arrow.column_reading import reading_of, size_of, text_reading_of
from ibbmaster.arrow.read_options import ZeroDates
from ibbmaster.arrow.shape import ShapeField, column_type, expect_names
from ibbmaster.errors import EventError, UndecodableError
from ibbmaster.event.header import EVENT_HEADER_SIZE, TYPE_OFFSET
from ibbmaster.event.rows.changes import RowDecoder
from ibbmaster.event.rows.column import Column, TableSchema
from ibbmaster.event.table_map import decode_rows_header
from ibbmaster.event.types import EventType
from ibbmaster.kernel.fields import DELETE, INSERT, UPDATE_BEFORE, MapColumn, RowOp, StepColumn, VariantColumn
from ibbmaster.log.group_content import RowReader

KINDS = {
    EventType.WRITE_ROWS_V1: INSERT,
    EventType.WRITE_ROWS: INSERT,
    EventType.UPDATE_ROWS_V1: UPDATE_BEFORE,
    EventType.UPDATE_ROWS: UPDATE_BEFORE,
    EventType.DELETE_ROWS_V1: DELETE,
    EventType.DELETE_ROWS: DELETE,
}


class RowTables:
    """Arrays with the columns `MapColumn`, `VariantColumn` and `StepColumn`, and the bytes they refer to.

    `fields` are the columns of the DataFrame that are those of a table: field number n has the
    slots 2n and 2n + 1. With None every column of each table is read, as what becomes text; column
    number n has these slots.

    Attributes:
        decoders: the reference decoder of each known table; None for one that is not wanted.
        absent: for each kind of row event the columns that its first image leaves out, and its second.
    """

    def __init__(self, fields: list[ShapeField] | None, reader: RowReader, zero_dates: ZeroDates) -> None:
        self._fields = fields
        self.slots = {field.name: 2 * index for index, field in enumerate(fields or ())}
        self._reader = reader
        self._zero_dates = zero_dates
        self.known: Any = np.zeros(1 << 16, dtype=np.uint8)
        self._known_bytes = 0
        self.maps: Any = np.zeros((64, MapColumn.COLUMNS), dtype=np.int64)
        self.decoders: list[RowDecoder | None] = []
        self.variants: Any = np.zeros((64, VariantColumn.COLUMNS), dtype=np.int64)
        self.variant_count = 0
        self.steps: Any = np.zeros((256, StepColumn.COLUMNS), dtype=np.int64)
        self._step_count = 0
        self.absent: list[list[str]] = []

    def _remember(self, data: bytes) -> int:
        """Keep bytes; returns where."""
        start = self._known_bytes
        while start + len(data) > len(self.known):
            self.known = _longer(self.known)
        self.known[start : start + len(data)] = memoryview(data)
        self._known_bytes += len(data)
        return start

    def add_map(self, event: bytes) -> None:
        """Know the table of a TABLE_MAP event.

        Raises:
            EventError: its columns have no names, and some of them are wanted.
        """
        decoder = self._reader.decoder(event)
        if decoder is not None and self._fields:
            expect_names(decoder.schema)
        if len(self.decoders) == len(self.maps):
            self.maps = _longer(self.maps)
        start = self._remember(event[EVENT_HEADER_SIZE:])
        self.maps[len(self.decoders)] = start, len(event) - EVENT_HEADER_SIZE, decoder is not None
        self.decoders.append(decoder)

    def add_variant(self, event: bytes, decoder: RowDecoder) -> None:
        """Know the kind of a row event of a table.

        Raises:
            EventError: its columns are not those of the table, or of the DataFrame.
            UndecodableError: values of one of its columns cannot be read at all.
        """
        header = decode_rows_header(event)
        schema = decoder.schema
        if header.column_count != len(schema.columns):
            columns = len(schema.columns)
            raise EventError(f"row event of {header.column_count} columns, {schema.name} has {columns}")
        first = self._add_steps(schema, header.columns_present)
        after = self._add_steps(schema, header.columns_after) if header.columns_after else (0, 0)
        bits = header.columns_present + header.columns_after
        if self.variant_count == len(self.variants):
            self.variants = _longer(self.variants)
        self.variants[self.variant_count] = (
            self.decoders.index(decoder),
            KINDS[EventType(event[TYPE_OFFSET])],
            header.column_count,
            self._remember(bits),
            len(bits),
            *first,
            *after,
        )
        self.variant_count += 1
        self.absent += [_absent_names(schema, bits) for bits in (header.columns_present, header.columns_after)]

    def _add_steps(self, schema: TableSchema, present: bytes) -> tuple[int, int]:
        """The steps of an image with these columns: the first, and how many."""
        first = self._step_count
        bits = int.from_bytes(present, "little")
        for number, column in enumerate(schema.columns):
            if not bits >> number & 1:
                continue
            if self._step_count == len(self.steps):
                self.steps = _longer(self.steps)
            try:
                if self._fields is None:
                    self.steps[self._step_count] = _text_step(column, 2 * number)
                else:
                    self.steps[self._step_count] = self._step(self._fields, schema, column)
            except ValueError as error:
                raise UndecodableError(schema.name, column.name, column.type_name, str(error)) from None
            self._step_count += 1
        return first, self._step_count - first

    def _step(self, fields: list[ShapeField], schema: TableSchema, column: Column) -> tuple[int, int, int, int, int]:
        slot = self.slots.get(column.name)
        found = column_type(column, self._zero_dates)
        reading = reading_of(column, found)
        size = size_of(reading)
        if slot is None:
            op = RowOp.SKIP_PREFIXED if reading.op == RowOp.RAW_PREFIXED else RowOp.SKIP_FIXED
            return op, 0, 0, 0, size
        wanted = fields[slot // 2].type
        if found != wanted:
            raise EventError(f"{schema.name} column {column.name} is {found} here, the DataFrame has {wanted}")
        return reading.op, reading.first, reading.second, slot, size


def _text_step(column: Column, slot: int) -> tuple[int, int, int, int, int]:
    reading = text_reading_of(column)
    return reading.op, reading.first, reading.second, slot, size_of(reading)


def _longer(array: Any) -> Any:
    """An array of twice the length."""
    return np.concatenate([array, np.zeros_like(array)])


def _absent_names(schema: TableSchema, present: bytes) -> list[str]:
    """The columns that an image leaves out."""
    bits = int.from_bytes(present, "little")
    return [column.name for number, column in enumerate(schema.columns) if not bits >> number & 1]
