"""Rows of an answer out of stored images, as the wire has them: the reference of `fast_rows`."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ibbmaster.replication.event.column_types.floating import Floating
from ibbmaster.replication.event.column_types.kind import TextSettings
from ibbmaster.replication.event.column_types.registry import kind_of
from ibbmaster.replication.wire.binary_row import ROW_BIT, ROW_MARK, encode_binary_value
from ibbmaster.replication.wire.packet import frame_packets
from ibbmaster.replication.wire.response import ColumnDefinition
from ibbmaster.schema.model import TableColumn
from ibbmaster.storage.codec import lenenc
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.tables.fold.row_conversion import first_value
from ibbmaster.tables.fold.row_file import HEAD
from ibbmaster.tables.fold.stored import StoredColumn, StoredLayout, StoredLayouts
from .local_values import Change

BLOCK_SIZE = 1 << 20  # bytes of one block, about
NULL = bytes((lenenc.NULL,))
Encode = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column of an answer: of the table, or the same text in every row (None: NULL). `change` computes it from the
    text of a column."""

    definition: ColumnDefinition
    column: TableColumn | None = None
    own: StoredColumn | None = None  # how the version of the table itself would store it
    text: bytes | None = None
    change: Change | None = None


class RowValues:
    """Encodes rows for the text protocol or the binary one. `used`: the layouts that rows may have."""

    def __init__(
        self,
        columns: Sequence[ShownColumn],
        layouts: StoredLayouts,
        shown: TextSettings,
        *,
        is_binary: bool,
        used: Collection[int] = (),
    ) -> None:
        self.used_layouts = [layouts[number] for number in sorted(used)]
        self.columns = columns
        self.shown = shown
        self.is_binary = is_binary
        self.layouts = layouts
        self._plans: dict[int, list[tuple[int | None, Encode | None, bytes | None]]] = {}

    def payload(self, layout_no: int, image: bytes) -> bytes:
        """Raises ValueError: a value cannot be shown."""
        layout = self.layouts[layout_no]
        plan = self._plans.get(layout_no)
        if plan is None:
            plan = self._plans[layout_no] = [self.step(column, layout) for column in self.columns]
        spans, _ = layout.spans(image)
        values: list[bytes | None] = []
        for place, encode, constant in plan:
            span = None if place is None else spans[place]
            if place is None or encode is None:
                values.append(constant)
            else:
                values.append(None if span is None else encode(image[span[0] : span[1]]))
        return (
            _binary_row(values) if self.is_binary else b"".join([NULL if value is None else value for value in values])
        )

    def step(self, column: ShownColumn, layout: StoredLayout) -> tuple[int | None, Encode | None, bytes | None]:
        """Where a column's value is in an image and how it is encoded; or what it is in each row."""
        if column.column is None or column.own is None:
            text = column.text
            return None, None, None if text is None else self._encoded(column, text)
        place = layout.places.get(column.column.id)
        if place is None:
            value = first_value(column.column, column.own)
            return None, None, None if value is None else self.encode(column, column.own)(value)
        return place, self.encode(column, layout.columns[place]), None

    def encode(self, column: ShownColumn, stored: StoredColumn) -> Encode:
        assert column.column is not None
        own = kind_of(stored.column)
        text = own.shown(stored.column, column.column.type, self.shown)
        kind = column.definition.column_type
        if (change := column.change) is not None:
            return lambda data: self._encoded(column, change(text(data)))
        if not self.is_binary:
            return lambda data: lenenc.encode_bytes(text(data))
        if isinstance(own, Floating) and own.word == column.column.type.word:
            return bytes
        return lambda data: encode_binary_value(kind, text(data))

    def _encoded(self, column: ShownColumn, text: bytes) -> bytes:
        if self.is_binary:
            return encode_binary_value(column.definition.column_type, text)
        return lenenc.encode_bytes(text)


def _binary_row(values: Sequence[bytes | None]) -> bytes:
    nulls = bytearray((len(values) + ROW_BIT + 7) // 8)
    for number, value in enumerate(values, ROW_BIT):
        if value is None:
            nulls[number // 8] |= 1 << number % 8
    return ROW_MARK + bytes(nulls) + b"".join([value for value in values if value is not None])


class Writer:
    def __init__(self, data: Buffer, places: array[int], values: RowValues) -> None:
        self._data = data
        self._places = places
        self._values = values
        self._next = 0

    def write(self, sequence: int) -> tuple[Buffer, int] | None:
        """Packets of more rows, and the number behind them; None at the end. Raises ValueError: a value cannot be
        shown."""
        out = bytearray()
        while self._next < len(self._places) and len(out) < BLOCK_SIZE:
            packets, sequence = frame_packets(self.payload(), sequence)
            out += packets
        return (out, sequence) if out else None

    def payload(self) -> bytes:
        place = self._places[self._next]
        size, layout_no = HEAD.unpack_from(self._data, place)
        start = place + HEAD.size
        self._next += 1
        return self._values.payload(layout_no, bytes(self._data[start : start + size]))
