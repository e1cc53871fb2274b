"""A format's lines as steps for kernels: texts, values, and texts of the reference."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ibbmaster.kernel.fields import EventColumn, LineColumn, LineOp
from ibbmaster.replication.event.gtid_event import GTID_EVENT_SIZE_MIN, GTID_FLAGS_OFFSET, GtidExtraFlag, GtidFlag
from ibbmaster.replication.event.header import TYPE_OFFSET
from ibbmaster.replication.event.rows.charset import NO_LETTER, letters_of
from ibbmaster.replication.event.rows.column import Column
from ibbmaster.replication.event.types import EventType
from ibbmaster.tables.arrow.column_reading import line_op
from ibbmaster.tables.arrow.event_batch import EventBatch

OUT_BYTES = 4 << 20  # in one piece


class PieceValue(NamedTuple):
    op: LineOp
    first: int = 0
    second: int = 0
    opening: str = ""
    closing: str = ""
    null: str = "null"
    choices: Sequence[str | None] = ()  # what it chooses among; None: the reference does


SIDE = PieceValue(LineOp.SIDE)  # written by the reference


class Piece(NamedTuple):
    """A text, and what follows: a value of the column with that number, or `written`."""

    text: str = ""
    written: PieceValue = PieceValue(LineOp.TEXT)
    column: int = -1
    is_after: bool = False


def written_value(
    column: Column, *, quote: str, base64: tuple[str, str], labels: Sequence[str | None] | None, letters: Any
) -> PieceValue:
    """Plain numbers, and texts between quotes. `letters` escapes a letter; `labels` are texts of an ENUM."""
    op, first, second = line_op(column)
    match op:
        case LineOp.SIDE | LineOp.INTEGER:
            return PieceValue(op, first, second)
        case LineOp.CHOICE:
            return SIDE if labels is None else PieceValue(op, 0, len(labels), choices=labels)
        case LineOp.LETTERS:
            known = (letters_of(column.charset or "") or "").ljust(256, NO_LETTER)
            texts = [None if letter == NO_LETTER else letters(letter) for letter in known]
            return PieceValue(op, 0, 0, quote, quote, choices=texts)
        case LineOp.BASE64:
            return PieceValue(op, first, 0, *base64)
    return PieceValue(op, first, second, quote, quote)


class Steps:
    """With the texts they refer to; they only grow."""

    def __init__(self) -> None:
        self.steps: Any = np.zeros((64, LineColumn.COLUMNS), dtype=np.int64)  # see `LineColumn`
        self.store: Any = np.zeros(1 << 12, dtype=np.uint8)  # the bytes of all texts
        self.choices: Any = np.zeros((64, 2), dtype=np.int64)  # begin in the store, and bytes; -1: for the reference
        self._texts: dict[str, tuple[int, int]] = {}
        self._chosen: dict[tuple[str | None, ...], int] = {}
        self._step_count = self._bytes = self._choice_count = 0

    def add(self, pieces: Sequence[Piece]) -> tuple[int, int]:
        first = self._step_count
        for text, written, column, is_after in _merged(pieces):
            if self._step_count == len(self.steps):
                self.steps = np.concatenate([self.steps, np.zeros_like(self.steps)])
            argument = self._choices_at(written.choices) if written.choices else written.first
            self.steps[self._step_count] = (
                written.op,
                *self.text(text),
                2 * column,
                is_after,
                argument,
                written.second,
                *self.text(written.opening),
                *self.text(written.closing),
                *self.text(written.null),
            )
            self._step_count += 1
        return first, self._step_count - first

    def text(self, text: str) -> tuple[int, int]:
        if text not in self._texts:
            data = text.encode()
            while self._bytes + len(data) + 32 > len(self.store):
                self.store = np.concatenate([self.store, np.zeros_like(self.store)])
            self.store[self._bytes : self._bytes + len(data)] = np.frombuffer(data, dtype=np.uint8)
            self._texts[text] = self._bytes, len(data)
            self._bytes += len(data)
        return self._texts[text]

    def _choices_at(self, choices: Sequence[str | None]) -> int:
        key = tuple(choices)
        if key not in self._chosen:
            first = self._chosen[key] = self._choice_count
            rows = [(0, -1) if text is None else self.text(text) for text in key]
            while first + len(rows) > len(self.choices):
                self.choices = np.concatenate([self.choices, np.zeros_like(self.choices)])
            self.choices[first : first + len(rows)] = rows
            self._choice_count += len(rows)
        return self._chosen[key]


def _merged(pieces: Sequence[Piece]) -> list[Piece]:
    found: list[Piece] = []
    for piece in pieces:
        if found and found[-1].written.op == LineOp.TEXT:
            piece = piece._replace(text=found.pop().text + piece.text)
        found.append(piece)
    return found


class LineBuffers:
    """Reusable: to touch memory for the first time takes as long as to write it."""

    def __init__(self) -> None:
        self._free: list[Any] = []
        self._used: list[Any] = []

    def take(self) -> Any:
        buffer = self._free.pop() if self._free else np.empty(OUT_BYTES, dtype=np.uint8)
        self._used.append(buffer)
        return buffer

    def reuse(self) -> None:
        self._free += self._used
        self._used.clear()


def unusual_groups(batch: EventBatch, firsts: Any) -> Iterator[tuple[int, int, int | None]]:
    """Number and group of GTID events that say more: the commit id, None for what the reference must read."""
    events, data = batch.events[firsts], batch.data
    starts, sizes = events[:, EventColumn.START], events[:, EventColumn.SIZE]
    is_odd = (sizes < GTID_EVENT_SIZE_MIN) | (data[starts + TYPE_OFFSET] != EventType.GTID)
    flags = data[np.where(is_odd, 0, starts + GTID_FLAGS_OFFSET)]
    is_odd |= flags & (GtidFlag.PREPARED_XA | GtidFlag.COMPLETED_XA) != 0
    has_commit = flags & GtidFlag.GROUP_COMMIT != 0
    used = GTID_FLAGS_OFFSET + 1 + 8 * has_commit
    is_odd |= used > sizes
    extra = np.where(is_odd | (used >= sizes), 0, data[np.where(used < sizes, starts + used, 0)])
    is_odd |= extra & (GtidExtraFlag.COMMIT_ALTER | GtidExtraFlag.ROLLBACK_ALTER) != 0
    used += (extra != 0) + (extra & GtidExtraFlag.MULTI_ENGINE != 0) + 4 * (extra & GtidExtraFlag.THREAD_ID != 0)
    is_odd |= used > sizes
    groups = events[:, EventColumn.GROUP]
    for place in np.flatnonzero(is_odd | has_commit).tolist():
        commit_id = None
        if not is_odd[place]:
            at = int(starts[place]) + GTID_FLAGS_OFFSET + 1
            commit_id = int.from_bytes(data[at : at + 8].tobytes(), "little")
        yield int(firsts[place]), int(groups[place]), commit_id
