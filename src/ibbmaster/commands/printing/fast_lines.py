"""A log as lines of text by kernels: no Python object for a row, except for unusual values. The references: the
printers of the formats."""

from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ibbmaster.api.log import Log
from ibbmaster.errors import EventError, UndecodableError
from ibbmaster.kernel.calls import Decoded, Kernels, LinePlan
from ibbmaster.kernel.fields import (
    ANY_TABLE,
    KIND_BITS,
    UPDATE_AFTER,
    EventColumn,
    LineColumn,
    LineField,
    LineOp,
    OutStatus,
    RowField,
    VariantColumn,
)
from ibbmaster.logs.stages.span import LogSpan
from ibbmaster.position import LOG_START
from ibbmaster.replication.event.column_types.registry import value_reader
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, decode_gtid_event
from ibbmaster.replication.event.header import TYPE_OFFSET
from ibbmaster.replication.event.statement.logged import STATEMENT_TYPES
from ibbmaster.replication.event.types import EventType
from ibbmaster.tables.arrow.collecting import event_batches
from ibbmaster.tables.arrow.event_batch import EventBatch, wanted_groups
from ibbmaster.tables.arrow.fast_reading import freeze
from ibbmaster.tables.arrow.plan import ReadTask, find_fields, open_task, plan_tasks, row_reader
from ibbmaster.tables.arrow.row_columns import RowColumns, raw_value
from ibbmaster.tables.arrow.row_tables import RowTables
from .content import statement_of
from .line_formats import LineBuffers, LineFormat, Piece, PieceValue, Steps, unusual_groups

STATEMENTS = (*STATEMENT_TYPES, EventType.XA_PREPARE)
OUT_SLACK = 1 << 12
LARGE_BATCH = 1 << 26  # bytes of events whose rows are written a few at a time
FEW_ROWS = 64
HEAD_VALUE_MAX = 64  # bytes
FRAMES_MAX = 256
BODY_OFFSET = 19 + 4 + 4  # of a QUERY event, after who ran it and for how long


class _Group(NamedTuple):
    identity: tuple[int, ...]
    note: str
    head: GtidEvent


class LineColumns(RowColumns):
    """Makes lines of changes and statements; yields buffers of lines, not record batches."""

    READS_EVERY_COLUMN = True
    _programs: Any  # the first step and how many, by kind of row event
    _program_count: int

    def __init__(
        self, task: ReadTask, kernels: Kernels, form: LineFormat, buffers: LineBuffers, file_name: str
    ) -> None:
        self._form = form
        self._buffers = buffers
        self._steps = Steps()
        heads = form.heads(file_name)
        self._head_steps = [self._steps.add(pieces) for pieces in heads]
        self._head_bytes = [sum(len(piece.text.encode()) + HEAD_VALUE_MAX for piece in pieces) for pieces in heads]
        boundaries = task.versions.boundaries()
        super().__init__(task.fields, row_reader(task), task.options.zero_dates, kernels, boundaries)
        self.side_numbers: dict[int, int] = {}  # by column number
        self._line_state = np.zeros(LineField.SIZE, dtype=np.int64)
        self._last: _Group | None = None
        self._heads: Any = np.zeros(0, dtype=np.uint8)
        self._head_offsets: Any = np.zeros(1, dtype=np.int64)
        self._frames: dict[bytes, None] = {}  # of QUERY events without a line

    @property
    def _no_table(self) -> int:
        return ANY_TABLE

    def _new_tables(self) -> RowTables:
        self._programs = np.zeros((64, 2), dtype=np.int64)
        self._program_count = 0
        self._forced: dict[tuple[int, frozenset[int]], tuple[int, int]] = {}
        return RowTables(None, None, self._reader, self._zero_dates, reading=self._form.reading)

    def record_batches(self, batch: EventBatch) -> Iterator[Any]:
        """Lines, in buffers of whole ones. Raises EventError."""
        self._begin_groups(batch)
        self._state[RowField.GROUP] = 0 if self._goes_on(batch) else -1
        for plain in self._plain.of(batch):
            for start, end in self._parts(plain):
                yield from self._in_order(plain, start, end)

    def _begin_groups(self, batch: EventBatch) -> None:
        self._notes = self._notes_of(batch)
        count = len(batch.groups)
        note_offsets = np.zeros(count + 1, dtype=np.int64)
        for group, note in self._notes.items():
            note_offsets[group + 1] = len(note)
        np.cumsum(note_offsets, out=note_offsets)
        notes = "".join(note for _, note in sorted(self._notes.items())).encode()
        room = sum(self._head_bytes) * count + len(notes) * len(self._head_steps) + OUT_SLACK
        if room > len(self._heads):
            self._heads = np.empty(room, dtype=np.uint8)
        self._head_offsets = np.zeros(len(self._head_steps) * count + 1, dtype=np.int64)
        for number, (first, size) in enumerate(self._head_steps):
            self._kernels.write_heads(
                batch.groups,
                note_offsets,
                np.frombuffer(bytearray(notes), dtype=np.uint8) if notes else self._steps.store,
                self._steps.steps[first : first + size],
                self._steps.store,
                self._head_offsets[number * count :],
                self._heads,
            )

    def _notes_of(self, batch: EventBatch) -> dict[int, str]:
        notes: dict[int, str] = {}
        if self._last is not None and self._last.identity == batch.identity(0):
            notes[0] = self._last.note
        firsts = np.flatnonzero(batch.events[:, EventColumn.NUMBER] == 0)
        for number, group, commit_id in unusual_groups(batch, firsts):
            if commit_id is None:
                head = self._head(batch, number)
                notes[group] = self._form.note(head.commit_id, head.xid)
            else:
                notes[group] = self._form.note(commit_id, None)
        last = len(batch.groups) - 1
        if len(firsts) and int(batch.events[firsts[-1], EventColumn.GROUP]) == last:
            self._last = _Group(batch.identity(-1), notes.get(last, ""), self._head(batch, int(firsts[-1])))
        self._whole, self._firsts = batch, firsts
        return notes

    @staticmethod
    def _head(batch: EventBatch, number: int) -> GtidEvent:
        with batch.naming_group(number):
            return decode_gtid_event(batch.event(number))

    def _head_of(self, batch: EventBatch, group: int) -> GtidEvent:
        if self._last is not None and batch.identity(group) == self._last.identity:
            return self._last.head
        place = int(np.searchsorted(self._whole.events[self._firsts, EventColumn.GROUP], group))
        return self._head(self._whole, int(self._firsts[place]))

    def _in_order(self, batch: EventBatch, start: int, end: int) -> Iterator[Any]:
        types = batch.data[batch.events[start:end, EventColumn.START] + TYPE_OFFSET]
        for statement in (start + np.flatnonzero(np.isin(types, STATEMENTS))).tolist():
            event = batch.event(statement)
            body = event[BODY_OFFSET:]
            if event[TYPE_OFFSET] == EventType.QUERY and body in self._frames:
                continue
            line = self._statement_line(batch, statement, event)
            if line is None:
                if len(self._frames) < FRAMES_MAX:
                    self._frames[body] = None
                continue
            yield from self._of_part(replace(batch, events=batch.events[start:statement]))
            yield self._numbered(batch, statement, *line)
            start = statement + 1
        yield from self._of_part(replace(batch, events=batch.events[start:end]))

    def _statement_line(self, batch: EventBatch, number: int, event: bytes) -> tuple[int, str] | None:
        """The head of a statement's line, and the text after its number; None: it has no line."""
        head = self._head_of(batch, int(batch.events[number, EventColumn.GROUP]))
        with batch.naming_group(number):
            statement = statement_of(event, head)
        return None if statement is None else self._form.statement(statement, is_ddl=bool(head.flags & GtidFlag.DDL))

    def _numbered(self, batch: EventBatch, number: int, head: int, text: str) -> bytes:
        group = int(batch.events[number, EventColumn.GROUP])
        identity = batch.identity(group)
        first, count = self._last_rows
        count = count if first == identity else 0
        self._last_rows = identity, count + 1
        start, end = self._head_offsets[(place := head * len(batch.groups) + group) : place + 2].tolist()
        return bytes(self._heads[start:end]) + f"{count}{text}".encode()

    def _portions(self, batch: EventBatch, count: int) -> Iterator[tuple[int, int]]:
        """All rows at once; large ones a few at a time, as the reference may write their values."""
        if len(batch.data) <= LARGE_BATCH:
            yield 0, count
            return
        start = 0
        while start < count:
            end = min(start + FEW_ROWS, count)
            if end < count and self._row_kinds[end] & (1 << KIND_BITS) - 1 == UPDATE_AFTER:
                end += 1
            yield start, end
            start = end

    def _flush(self, batch: EventBatch) -> Iterator[Any]:
        count = int(self._state[RowField.ROWS])
        if not count:
            return
        self._add_programs()
        for start, end in self._portions(batch, count):
            yield from self._lines(batch, start, end)
        self._valid[::2, :count] = 0
        self._state[RowField.ROWS] = 0

    def _add_programs(self) -> None:
        for variant in range(self._program_count, self._tables.variant_count):
            if variant == len(self._programs):
                self._programs = np.concatenate([self._programs, np.zeros_like(self._programs)])
            self._programs[variant] = self._steps.add(self.pieces(variant))
        self._program_count = self._tables.variant_count

    def pieces(self, variant: int, forced: Collection[int] = ()) -> list[Piece]:
        decoder = self._tables.decoders[self._tables.variants[variant, VariantColumn.MAP]]
        assert decoder is not None
        table = decoder.schema
        if len({column.name for column in table.columns}) < len(table.columns):
            raise EventError(f"{table.name}: two of its columns have the same name")
        before, after = (
            [number for number in range(bits.bit_length()) if bits >> number & 1]
            for bits in self._tables.presents[2 * variant : 2 * variant + 2]
        )
        kind = int(self._tables.variants[variant, VariantColumn.KIND])
        found = []
        for piece in self._form.line(table, kind, before, after):
            if piece.column in forced or piece.written.op == LineOp.SIDE:
                side = self.side_numbers.setdefault(piece.column, len(self.side_numbers))
                piece = piece._replace(written=PieceValue(LineOp.SIDE, side))
            found.append(piece)
        return found

    def sides_of(self, variant: int) -> list[int]:
        first, count = self._programs[variant].tolist()
        steps = self._steps.steps[first : first + count]
        return sorted(set((steps[steps[:, LineColumn.OP] == LineOp.SIDE, LineColumn.SLOT] // 2).tolist()))

    def program(self, variant: int, forced: frozenset[int]) -> tuple[int, int]:
        """The steps of a kind of row event, with columns that the reference writes."""
        if (variant, forced) not in self._forced:
            self._forced[variant, forced] = self._steps.add(self.pieces(variant, forced))
        return self._forced[variant, forced]

    def texts(self, batch: EventBatch, variant: int, number: int, rows: Any) -> Any:
        """A column in some rows, as the reference writes it, in UTF-8. Raises EventError."""
        decoder = self._tables.decoders[self._tables.variants[variant, VariantColumn.MAP]]
        assert decoder is not None
        column = decoder.schema.columns[number]
        read, reading = value_reader(column), self._form.reading(column)
        encoded = self._encoded(2 * number, rows, reading, batch)
        found = np.empty(len(encoded.dictionary) + 1, dtype=object)
        for place, value in enumerate(encoded.dictionary):
            try:
                found[place] = self._form.text(column, read(raw_value(value.as_py(), reading), 0)[0]).encode()
            except (ValueError, OverflowError) as error:
                raise UndecodableError(decoder.schema.name, column.name, column.type_name, str(error)) from None
        found[-1] = self._form.text(column, None).encode()
        return found[encoded.indices.fill_null(len(found) - 1).to_numpy()]

    def _lines(self, batch: EventBatch, start: int, end: int) -> Iterator[Any]:
        state = self._line_state
        rows = Decoded(self._values, self._valid, self._row_groups, self._row_kinds, self._event_sizes)
        first, count = self._last_rows
        state[LineField.ROW], state[LineField.ROWS], state[LineField.SIDE_ROW] = start, end, start
        state[LineField.GROUPS], state[LineField.GROUP] = len(batch.groups), -1
        group = int(self._row_groups[start])
        if batch.identity(group) == first:
            state[LineField.GROUP], state[LineField.NUMBER] = group, count
        sides = SideTexts(self, batch, self._programs, self._row_kinds[start:end] >> KIND_BITS, start)
        while True:
            out = self._buffers.take()
            state[LineField.OUT] = 0
            while True:
                plan = LinePlan(
                    sides.programs,
                    self._steps.steps,
                    self._steps.store,
                    self._steps.choices,
                    self._head_offsets,
                    self._heads,
                    sides.offsets,
                    sides.data,
                )
                status = self._kernels.write_lines(batch.data, state, plan, rows, out)
                if status == OutStatus.FALLBACK:
                    sides.add(
                        int(state[LineField.ROW]), int(self._steps.steps[state[LineField.STEP], LineColumn.SLOT]) // 2
                    )
                elif status == OutStatus.FULL and not state[LineField.OUT]:
                    out = np.empty(2 * len(out), dtype=np.uint8)
                else:
                    break
            yield memoryview(out)[: int(state[LineField.OUT])]
            if status == OutStatus.END:
                break
        self._last_rows = batch.identity(int(state[LineField.GROUP])), int(state[LineField.NUMBER])


class SideTexts:
    """The reference's texts in some rows, `start` the first; `variants` has their kinds of row events."""

    def __init__(self, maker: LineColumns, batch: EventBatch, programs: Any, variants: Any, start: int) -> None:
        self._maker = maker
        self._batch = batch
        self._variants = variants
        self._start = start
        self.programs = programs  # by kind of row event
        self._forced: dict[int, frozenset[int]] = {}
        self._columns: dict[int, Any] = {}
        self.offsets: Any = np.zeros((1, 1), dtype=np.int64)  # for each column of texts: where each begins
        self.data: Any = np.zeros(1, dtype=np.uint8)
        present = np.unique(variants).tolist()
        wanted = [(variant, number) for variant in present for number in maker.sides_of(variant)]
        for variant, number in wanted:
            self._write(variant, number)
        if wanted:
            self._arrange()

    def add(self, row: int, number: int) -> None:
        variant = int(self._variants[row - self._start])
        if not self._forced:
            self.programs = self.programs.copy()
        self._forced[variant] = self._forced.get(variant, frozenset()) | {number}
        self.programs[variant] = self._maker.program(variant, self._forced[variant])
        self._write(variant, number)
        self._arrange()

    def _write(self, variant: int, number: int) -> None:
        rows = np.flatnonzero(self._variants == variant)
        texts = self._columns.setdefault(number, np.full(len(self._variants), b"", dtype=object))
        texts[rows] = self._maker.texts(self._batch, variant, number, self._start + rows)

    def _arrange(self) -> None:
        self.offsets = np.zeros((len(self._maker.side_numbers), len(self._variants) + 1), dtype=np.int64)
        pieces, position = [], 0
        for number, texts in self._columns.items():
            sizes = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
            offsets = self.offsets[self._maker.side_numbers[number]]
            offsets[0] = position
            offsets[1:] = position + np.cumsum(sizes)
            position = int(offsets[-1])
            pieces.append(b"".join(texts))
        self.data = np.frombuffer(bytearray(b"".join(pieces)) + bytes(1), dtype=np.uint8)


class FastLines:
    """Lines of a log, or of a span, in runs of whole groups. `position` is where the last run begins."""

    def __init__(self, log: Log, kernels: Kernels, form: LineFormat, span: LogSpan | None = None) -> None:
        self._span = span
        self._log = log
        self._kernels = kernels
        self._form = form
        self.position = LOG_START
        self._pending: EventBatch | None = None

    def runs(self) -> Iterator[Iterator[Any]]:
        """Sequences of writable buffers, each valid until the next; read them whole before. Raises IbbMasterError:
        something is damaged; the current run is incomplete. The reference says what it is."""
        freeze()
        self._log.bring_to_files()
        self._log.stored.expect_whole()
        options = self._log.read_options(uses_kernels=True)
        fields = find_fields(options)
        buffers = LineBuffers()
        for task in filter(self._is_wanted, plan_tasks(options, fields)):
            name = self._log.engine.file_name(task.log_range.file_no)
            maker = LineColumns(task, self._kernels, self._form, buffers, name)
            with closing(open_task(task)) as source:
                batches = event_batches(source, task.log_range, self._kernels, is_strict=True)
                found = (batch for batch in batches if len(batch.groups))
                self._pending = next(found, None)
                while self._pending is not None:
                    self.position = self._pending.start(0)
                    buffers.reuse()
                    yield self._run(maker, found)
            for _ in maker.finish():
                pass

    def _is_wanted(self, task: ReadTask) -> bool:
        span, found = self._span, task.log_range
        if span is None:
            return True
        has_begun = (found.file_no, found.end_offset) > span.first_of(self._log.state)
        return has_begun and (span.groups.ends is None or (found.file_no, found.start_offset) < span.end)

    def _run(self, maker: LineColumns, found: Iterator[EventBatch]) -> Iterator[Any]:
        batch = self._pending
        while batch is not None:
            last = batch.identity(-1)
            if self._span is not None:
                batch = batch.of_groups(wanted_groups(batch.groups, self._span.groups))
            yield from maker.record_batches(batch)
            batch = next(found, None)
            if batch is None or batch.identity(0) != last:
                self._pending = batch
                return
        self._pending = None
