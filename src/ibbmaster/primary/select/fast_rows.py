"""Blocks of rows written by a kernel; the reference is `row_values.Writer`."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ibbmaster.kernel.calls import AnswerPlan, Kernels
from ibbmaster.kernel.fields import AnswerField, LayoutColumn, OutStatus, ValueColumn, ValueOp
from ibbmaster.replication.event.column_types.registry import kind_of
from ibbmaster.replication.event.column_types.strings import is_copied, wanted_charset
from ibbmaster.replication.event.rows.charset import byte_texts, is_of_single_bytes
from ibbmaster.replication.event.rows.column import Column, ValueKind
from ibbmaster.replication.wire.packet import frame_packets
from ibbmaster.schema.model import SqlType
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.tables.fold.stored import StoredLayout
from .row_values import BLOCK_SIZE, Encode, RowValues, ShownColumn, Writer

if TYPE_CHECKING:
    from ibbmaster.kernel.calls import Numbers

FIXED_BOUND = 96  # bytes of a value without a length of its own; longer zeros are for Python
LENGTH_BOUND = 9
LABELS_MAX = 4096

Step = tuple[int, int, int, int, int]  # ValueOp, and what the columns FIRST to FOURTH of ValueColumn have


class AnswerPlanner:
    """Makes the arrays that `kernel.row_values` reads."""

    def __init__(self, values: RowValues) -> None:
        layouts = values.used_layouts
        self._values = values
        self._texts: list[bytes] = []
        self._known_texts: dict[tuple[bytes, ...], int] = {}
        self.sides: list[int] = []  # numbers in the answer of the columns that Python encodes
        self._encoders: dict[tuple[int, int], Encode] = {}
        steps: list[list[int]] = []
        rows = np.full((max((layout.number for layout in layouts), default=0) + 1, LayoutColumn.COLUMNS), -1, np.int64)
        stored: list[tuple[int, int]] = []
        for layout in layouts:
            try:
                own = [self._step(number, column, layout) for number, column in enumerate(values.columns)]
            except (ValueError, LookupError):
                continue  # the reference raises the error of its rows
            bound = 64 + (len(values.columns) + 9) // 8 + sum(self._bound(step) for step, _ in own)
            factor = 4 if any(step[0] == ValueOp.BYTES for step, _ in own) else 1
            rows[layout.number] = len(stored), len(layout.columns), len(steps), bound, factor
            stored += [(-1 if one.fixed is None else one.fixed, one.prefix) for one in layout.columns]
            steps += [[step[0], place, *step[1:]] for step, place in own]
        columns_max = max((len(layout.columns) for layout in layouts), default=1)
        self._spans = np.zeros((columns_max, 2), dtype=np.int64)
        self._layouts = rows
        self._stored = np.array(stored or [(0, 0)], dtype=np.int64)
        self._steps = np.array(steps or [[0] * ValueColumn.COLUMNS], dtype=np.int64)
        ends = np.cumsum([0, *(len(text) for text in self._texts)])
        self._offsets = ends.astype(np.int64)
        self._joined = np.frombuffer(b"".join(self._texts) + b"\0", dtype=np.uint8).copy()

    def plan(self, side_offsets: Numbers, sides: bytes) -> AnswerPlan:
        texts = np.frombuffer(sides or b"\0", dtype=np.uint8).copy()
        made = self._layouts, self._stored, self._steps, self._offsets, self._joined
        return AnswerPlan(*made, side_offsets, texts, self._spans)

    def encoder(self, number: int, layout_no: int) -> Encode | None:
        """How Python encodes a column in rows of a layout; None: the kernel does."""
        return self._encoders.get((number, layout_no))

    def _bound(self, step: Step) -> int:
        op, first, second = step[:3]
        if op == ValueOp.PAD:
            return first + LENGTH_BOUND
        if op == ValueOp.CHOICE:
            return max(map(len, self._texts[first : first + second]))
        if op == ValueOp.CONSTANT:
            return 1 if first < 0 else len(self._texts[first])
        return FIXED_BOUND

    def _add_texts(self, texts: Sequence[bytes]) -> int:
        known = tuple(texts)
        if known not in self._known_texts:
            self._known_texts[known] = len(self._texts)
            self._texts += texts
        return self._known_texts[known]

    def _step(self, number: int, column: ShownColumn, layout: StoredLayout) -> tuple[Step, int]:
        place, encode, constant = self._values.step(column, layout)
        if place is None:
            return (int(ValueOp.CONSTANT), -1 if constant is None else self._add_texts([constant]), 0, 0, 0), -1
        assert column.column is not None
        assert encode is not None
        stored, kind = layout.columns[place], column.column.type
        step = None
        if column.change is None:
            step = self._kernel_step(stored.column, kind, encode)
        if step is None:
            if number not in self.sides:
                self.sides.append(number)
            self._encoders[number, layout.number] = encode
            step = (int(ValueOp.SIDE), self.sides.index(number), 0, 0, 0)
        return step, place

    def _kernel_step(self, column: Column, kind: SqlType, encode: Encode) -> Step | None:
        found = kind_of(column).answer(column, kind, is_binary=self._values.is_binary)
        if found is not None:
            op, first, second, third, fourth = found
            if op == ValueOp.CHOICE.name:
                if second > LABELS_MAX:
                    return None
                first = self._add_texts([encode(number.to_bytes(2, "little")) for number in range(second)])
            return int(ValueOp[op]), first, second, third, fourth
        if column.kind is not ValueKind.TEXT or column.is_compressed:
            return None
        charset, wanted = column.charset or "utf8mb4", wanted_charset(kind, self._values.shown.charset)
        if is_copied(charset, wanted):
            return int(ValueOp.COPY), 0, 0, 0, 0
        if is_of_single_bytes(charset) and wanted is not None:
            return int(ValueOp.BYTES), self._add_texts(byte_texts(charset, wanted)), 0, 0, 0
        return None


SIDE_ROWS = 1 << 11  # for which Python makes texts at a time


class FastWriter(Writer):
    def __init__(self, data: Buffer, places: array[int], values: RowValues, kernels: Kernels) -> None:
        super().__init__(data, places, values)
        self._kernels = kernels
        self._planner = AnswerPlanner(values)
        self._source = np.frombuffer(data or b"\0", dtype=np.uint8)
        self._numbers = np.frombuffer(places or array("q", [0]), dtype=np.int64)
        self._state = np.zeros(int(AnswerField.SIZE), dtype=np.int64)
        self._state[AnswerField.SHOWN] = len(values.columns)
        self._state[AnswerField.IS_BINARY] = values.is_binary
        self._state[AnswerField.ZONE_S] = values.shown.time_zone_s
        self._plan = self._planner.plan(np.zeros((1, 1), dtype=np.int64), b"")
        self._side_end = 0 if self._planner.sides else len(places)

    def write(self, sequence: int) -> tuple[Buffer, int] | None:
        """As `Writer.write`."""
        state = self._state
        out = np.empty(BLOCK_SIZE, dtype=np.uint8)
        state[AnswerField.SEQUENCE], state[AnswerField.OUT] = sequence, 0
        while self._next < len(self._places):
            if self._next >= self._side_end:
                self._make_sides()
            state[AnswerField.NEXT], state[AnswerField.END] = self._next, self._side_end
            status = self._kernels.write_rows(self._source, self._numbers, state, self._plan, out)
            self._next = int(state[AnswerField.NEXT])
            if status == OutStatus.FULL:
                break
            if status == OutStatus.FALLBACK:
                if state[AnswerField.OUT]:
                    break
                packets, sequence = frame_packets(self.payload(), int(state[AnswerField.SEQUENCE]))
                return packets, sequence
        size = int(state[AnswerField.OUT])
        return (out[:size].data, int(state[AnswerField.SEQUENCE])) if size else None

    def _make_sides(self) -> None:
        """Encode values of the next rows in Python, up to the first row that the reference writes."""
        state = self._state
        state[AnswerField.NEXT], state[AnswerField.END] = self._next, len(self._places)
        starts, sizes = np.zeros(SIDE_ROWS, dtype=np.int64), np.zeros(SIDE_ROWS, dtype=np.int64)
        offsets = np.zeros((len(self._planner.sides), SIDE_ROWS + 1), dtype=np.int64)
        texts = bytearray()
        count = 0
        for side, number in enumerate(self._planner.sides):
            count = self._kernels.locate_values(self._source, self._numbers, state, self._plan, number, starts, sizes)
            offsets[side, 0] = len(texts)
            known: dict[tuple[int, bytes], bytes] = {}
            for row, (start, size) in enumerate(zip(starts[:count].tolist(), sizes[:count].tolist(), strict=True)):
                place = self._places[self._next + row]
                layout_no = int.from_bytes(self._data[place + 4 : place + 6], "little")
                encode = self._planner.encoder(number, layout_no)
                if start >= 0 and encode is not None:
                    raw = bytes(self._data[start : start + size])
                    text = known.get((layout_no, raw))
                    if text is None:
                        text = known[layout_no, raw] = encode(raw)
                    texts += text
                offsets[side, row + 1] = len(texts)
        self._plan = self._planner.plan(offsets, bytes(texts))
        state[AnswerField.SIDE_START] = self._next
        self._side_end = self._next + max(count, 1)
