"""Lines of JSON for kernels, plain or in Debezium's envelope; references: `content.JsonLines`, `debezium_lines`."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ibbmaster.kernel.fields import DELETE, INSERT, UPDATE_BEFORE, EventColumn, GroupColumn, LineColumn, LineOp
from ibbmaster.replication.event.column_types.decimals import WIDE_DIGITS
from ibbmaster.replication.event.column_types.registry import kind_of
from ibbmaster.replication.event.gtid_event import (
    GTID_EVENT_SIZE_MIN,
    GTID_FLAGS_OFFSET,
    GtidExtraFlag,
    GtidFlag,
    GtidXid,
)
from ibbmaster.replication.event.header import TYPE_OFFSET
from ibbmaster.replication.event.rows.charset import NO_LETTER, letters_of
from ibbmaster.replication.event.rows.column import Column, TableSchema
from ibbmaster.replication.event.statement.logged import LoggedStatement
from ibbmaster.replication.event.types import EventType
from ibbmaster.tables.arrow.column_reading import Reading, line_op, line_reading_of, raw_reading_of, reading_of
from ibbmaster.tables.arrow.event_batch import EventBatch
from .debezium_lines import ENVELOPE, MILLISECONDS_MAX, OPERATIONS, connect_value, form_of, has_clock
from .json_lines import change_begin, json_text, json_value, statement_text

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


KINDS = {INSERT: "insert", UPDATE_BEFORE: "update", DELETE: "delete"}
BASE64 = '{"base64":"', '"}'
HEADS = ("milliseconds", "microseconds", "nanoseconds", "server_id", "gtid", "file", "position")
SECONDS = int(GroupColumn.TIMESTAMP)


def labels_of(column: Column) -> list[str] | None:
    return None if column.labels is None else [json_text(label) for label in ("", *column.labels)]


def unquoted(text: str) -> str:
    return json_text(text)[1:-1]


def image(
    form: "JsonFormat | DebeziumFormat",
    table: TableSchema,
    numbers: Sequence[int],
    present: Sequence[int],
    *,
    is_after: bool,
) -> list[Piece]:
    pieces = [Piece("{")]
    for number in numbers:
        column = table.columns[number]
        text = f"{',' if len(pieces) > 1 else ''}{json_text(column.name)}:"
        is_there = number in present
        pieces.append(Piece(text, form.written(column), number, is_after) if is_there else Piece(f"{text}null"))
    return [*pieces, Piece("}")]


class JsonFormat:
    def reading(self, column: Column) -> Reading:
        """Raises ValueError: values of this type are unreadable."""
        return line_reading_of(column)

    def heads(self, file_name: str) -> Sequence[Sequence[Piece]]:
        """What lines of a group of a file share, without values."""
        return [
            [
                Piece('{"gtid":"', PieceValue(LineOp.GTID)),
                Piece('","time":"', PieceValue(LineOp.MOMENT)),
                Piece('","domain":', PieceValue(LineOp.GROUP, GroupColumn.DOMAIN, 1)),
                Piece(',"server_id":', PieceValue(LineOp.GROUP, GroupColumn.SERVER, 1)),
                Piece("", PieceValue(LineOp.NOTE)),
                Piece(',"number":'),
            ]
        ]

    def note(self, commit_id: int | None, xid: GtidXid | None) -> str:
        text = "" if commit_id is None else f',"commit_id":{commit_id}'
        return text if xid is None else f'{text},"xid":"{xid}"'

    def line(self, table: TableSchema, kind: int, before: Sequence[int], after: Sequence[int]) -> Sequence[Piece]:
        """Images have these columns, none without an image."""
        old = [] if kind == INSERT else before
        new = before if kind == INSERT else after
        return [
            Piece("", PieceValue(LineOp.HEAD, 0)),
            Piece("", PieceValue(LineOp.NUMBER)),
            Piece(f',{change_begin(table, KINDS[kind])},"before":'),
            *([Piece("null")] if kind == INSERT else image(self, table, old, old, is_after=False)),
            Piece(',"after":'),
            *([Piece("null")] if kind == DELETE else image(self, table, new, new, is_after=kind == UPDATE_BEFORE)),
            Piece("}\n"),
        ]

    def written(self, column: Column) -> PieceValue:
        return written_value(column, quote='"', base64=BASE64, labels=labels_of(column), letters=unquoted)

    def text(self, column: Column, value: object) -> str:
        return json_text(json_value(value))

    def statement(self, statement: LoggedStatement, *, is_ddl: bool) -> tuple[int, str] | None:
        """The head before the number, and the text after it; None: no line."""
        return 0, f",{statement_text(statement, is_ddl=is_ddl)}\n"


class DebeziumFormat:
    def reading(self, column: Column) -> Reading:
        match form_of(column):
            case "bits":
                return raw_reading_of(column)
            case "number":
                return reading_of(column, "timestamp_ntz" if has_clock(column) else "date")
            case "unscaled" if column.size <= WIDE_DIGITS:
                return reading_of(column, kind_of(column).frame_type(column, keeps_zeros=True))
        return line_reading_of(column)

    def heads(self, file_name: str) -> Sequence[Sequence[Piece]]:
        return [
            *([Piece("", PieceValue(LineOp.GROUP, SECONDS, 10**power))] for power in (3, 6, 9)),
            [Piece("", PieceValue(LineOp.GROUP, int(GroupColumn.SERVER), 1))],
            [Piece('"', PieceValue(LineOp.GTID)), Piece('"')],
            [Piece(json_text(file_name))],
            [Piece("", PieceValue(LineOp.GROUP, int(GroupColumn.FILE_OFFSET), 1))],
        ]

    def note(self, commit_id: int | None, xid: GtidXid | None) -> str:
        return ""

    def line(self, table: TableSchema, kind: int, before: Sequence[int], after: Sequence[int]) -> Sequence[Piece]:
        same = {"database": table.database, "table": table.table, "operation": OPERATIONS[KINDS[kind]]}
        texts = {name: json_text(value) for name, value in same.items()}
        pieces: list[Piece] = []
        numbers = range(len(table.columns))
        for place, part in enumerate(ENVELOPE):
            if place % 2 == 0 or part in texts:
                pieces.append(Piece(texts[part] if place % 2 else part))
            elif part == "row":
                pieces.append(Piece("", PieceValue(LineOp.NUMBER)))
            elif part == "before":
                pieces += [Piece("null")] if kind == INSERT else image(self, table, numbers, before, is_after=False)
            elif part == "after":
                new, is_update = before if kind == INSERT else after, kind == UPDATE_BEFORE
                pieces += [Piece("null")] if kind == DELETE else image(self, table, numbers, new, is_after=is_update)
            else:
                pieces.append(Piece("", PieceValue(LineOp.HEAD, HEADS.index(part))))
        return [*pieces, Piece("\n")]

    def written(self, column: Column) -> PieceValue:
        match form_of(column):
            case "unscaled" if column.size <= WIDE_DIGITS:
                return PieceValue(LineOp.UNSCALED, 0, 0, '"', '"')
            case "raw" | "bits" | "unscaled":
                return SIDE
            case "number":
                is_short = has_clock(column) and column.scale <= MILLISECONDS_MAX
                return PieceValue(LineOp.INTEGER, 1, 1000 if is_short else 0)
            case "zoned":
                return PieceValue(LineOp.TIMESTAMP, column.scale, ord("T"), '"', 'Z"')
            case "bytes":
                return PieceValue(LineOp.BASE64, column.size if column.is_fixed_length else 0, 0, '"', '"')
        return written_value(column, quote='"', base64=('"', '"'), labels=labels_of(column), letters=unquoted)

    def text(self, column: Column, value: object) -> str:
        return json_text(connect_value(column, value))

    def statement(self, statement: LoggedStatement, *, is_ddl: bool) -> tuple[int, str] | None:
        return None


LineFormat = JsonFormat | DebeziumFormat
