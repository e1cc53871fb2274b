"""Rows of an answer out of stored images, as the wire has them: the reference of `fast_rows`. Blocks are made on
demand, and a slow client costs no memory."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from ibbmaster.errors import IbbMasterError
from ibbmaster.kernel.calls import Kernels
from ibbmaster.replication.event.column_types.floating import Floating
from ibbmaster.replication.event.column_types.kind import TextSettings
from ibbmaster.replication.event.column_types.registry import kind_of
from ibbmaster.replication.wire.binary_row import ROW_BIT, ROW_MARK, encode_binary_value
from ibbmaster.replication.wire.packet import frame_packets
from ibbmaster.replication.wire.refusal import broken_off
from ibbmaster.replication.wire.response import ColumnDefinition, Err
from ibbmaster.schema.model import TableColumn
from ibbmaster.storage.codec import lenenc
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.tables.fold.row_conversion import first_value
from ibbmaster.tables.fold.row_file import HEAD
from ibbmaster.tables.fold.stored import Span, StoredColumn, StoredLayout, StoredLayouts
from ibbmaster.work import BrokenOffError, check_wanted
from .local_values import Change

BLOCK_SIZE = 1 << 20  # bytes of one block, about
NULL = bytes((lenenc.NULL,))
Encode = Callable[[bytes], bytes]
Condition = Callable[[bytes, Sequence[Span]], bool]
"""Whether a row is wanted, by its image and the places of values in it."""
CHOSEN_ROWS = 1 << 12  # that a filter leaves, written together
ROWS_BETWEEN_LOOKS = 1 << 8


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


class StoredRowBlocks:
    """Rows by the places where they are kept; a filter may leave some out. See `RowBlocks`."""

    def __init__(
        self,
        data: Buffer,
        places: array[int],
        values: RowValues,
        *,
        condition: Callable[[StoredLayout], Condition] | None = None,
        skip: int = 0,
        limit: int | None = None,
        on_error: Callable[[Exception], Err],
        kernels: Kernels | None = None,
    ) -> None:
        self._data = data
        self._places = places
        self._values = values
        self._make_condition = condition
        self._conditions: dict[int, Condition] = {}
        self._skip = skip
        self._left = limit
        self._on_error = on_error
        self._kernels = kernels
        self._blocks: Iterator[array[int]] | None = None
        self._writer: Writer | None = None

    def next_block(self, sequence: int) -> tuple[Buffer, int] | Err | None:
        """Packets of more rows."""
        try:
            if self._blocks is None:
                self._blocks = self._chosen()
            while True:
                check_wanted()
                if self._writer is None:
                    places = next(self._blocks, None)
                    if places is None:
                        return None
                    self._writer = self._new_writer(places)
                found = self._writer.write(sequence)
                if found is not None:
                    return found
                self._writer = None
        except (IbbMasterError, ValueError) as error:
            self.close()
            return self._on_error(error)
        except BrokenOffError as error:
            self.close()
            return broken_off(error.reason).err

    def close(self) -> None:
        self._blocks, self._writer = iter(()), None

    def _new_writer(self, places: array[int]) -> Writer:
        if self._kernels is None:
            return Writer(self._data, places, self._values)
        from .fast_rows import FastWriter

        return FastWriter(self._data, places, self._values, self._kernels)

    def _chosen(self) -> Iterator[array[int]]:
        if self._make_condition is None:
            yield self._places
            return
        chosen, last_no = array("q"), -1
        for count, place in enumerate(self._places):
            if not count % ROWS_BETWEEN_LOOKS:
                check_wanted()
            if self._left == 0:
                break
            size, layout_no = HEAD.unpack_from(self._data, place)
            if layout_no != last_no:
                last_no, layout = layout_no, self._values.layouts[layout_no]
                if layout_no not in self._conditions:
                    self._conditions[layout_no] = self._make_condition(layout)
                is_wanted, spans_of = self._conditions[layout_no], layout.spans
            image = bytes(self._data[place + HEAD.size : place + HEAD.size + size])
            if not is_wanted(image, spans_of(image)[0]):
                continue
            if self._skip:
                self._skip -= 1
                continue
            if self._left is not None:
                self._left -= 1
            chosen.append(place)
            if len(chosen) == CHOSEN_ROWS:
                yield chosen
                chosen = array("q")
        if chosen:
            yield chosen
