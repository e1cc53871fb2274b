"""Blocks of rows written by a kernel; the reference, which takes what it does not: `sql.row_writer.Writer`."""

from __future__ import annotations

from array import array

import numpy as np

from ibbmaster.codec.buffer import Buffer
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import AnswerField, AnswerStatus
from ibbmaster.select.answer_plan import AnswerPlanner
from ibbmaster.select.row_values import RowValues
from ibbmaster.select.row_writer import BLOCK_SIZE, Writer
from ibbmaster.wire.packet import frame_packets

SIDE_ROWS = 1 << 11  # whose texts Python makes at a time


class FastWriter(Writer):
    """Writes rows by a kernel."""

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
        self._spans = np.zeros((self._planner.spans_max, 2), dtype=np.int64)
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
            status = self._kernels.write_rows(self._source, self._numbers, state, self._plan, self._spans, out)
            self._next = int(state[AnswerField.NEXT])
            if status == AnswerStatus.FULL:
                break
            if status == AnswerStatus.FALLBACK:
                if state[AnswerField.OUT]:
                    break
                packets, sequence = frame_packets(self.payload(), int(state[AnswerField.SEQUENCE]))
                return packets, sequence
        size = int(state[AnswerField.OUT])
        return (out[:size].data, int(state[AnswerField.SEQUENCE])) if size else None

    def _make_sides(self) -> None:
        """The values that Python encodes, of the rows that come next; up to the first that the reference writes."""
        state = self._state
        state[AnswerField.NEXT], state[AnswerField.END] = self._next, len(self._places)
        starts, sizes = np.zeros(SIDE_ROWS, dtype=np.int64), np.zeros(SIDE_ROWS, dtype=np.int64)
        offsets = np.zeros((len(self._planner.sides), SIDE_ROWS + 1), dtype=np.int64)
        texts = bytearray()
        count = 0
        for side, number in enumerate(self._planner.sides):
            count = self._kernels.locate_values(
                self._source, self._numbers, state, self._plan, self._spans, number, starts, sizes
            )
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
