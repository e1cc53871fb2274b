"""A log as lines of JSON, made by kernels and Arrow: no Python object for a row. The reference: `json_lines`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ibbmaster.api.log import Log
from ibbmaster.arrow.collecting import event_batches
from ibbmaster.arrow.event_batch import EventBatch
from ibbmaster.arrow.fast_reading import freeze
from ibbmaster.arrow.image_columns import OF_MOMENTS, ImageColumns
from ibbmaster.arrow.plan import find_fields, open_source, plan_tasks, row_reader
from ibbmaster.arrow.row_tables import ColumnCells
from ibbmaster.arrow.temporal_texts import moment_texts
from ibbmaster.event.gtid_event import GtidEvent, GtidFlag, decode_gtid_event
from ibbmaster.event.header import TYPE_OFFSET
from ibbmaster.event.rows.column import Column
from ibbmaster.event.rows.kinds.registry import value_reader
from ibbmaster.event.rows.value import Reader, Value
from ibbmaster.event.statement.logged import STATEMENT_TYPES
from ibbmaster.event.types import EventType
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import (
    DELETE,
    INSERT,
    KIND_BITS,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    EventColumn,
    GroupColumn,
    RowField,
    RowOp,
)
from ibbmaster.position import LOG_START
from ibbmaster.printing.content import statement_of
from ibbmaster.printing.json_lines import change_begin, head_text, json_text, json_value, statement_text

if TYPE_CHECKING:
    import pyarrow as pa

STATEMENTS = (*STATEMENT_TYPES, EventType.XA_PREPARE)
PLAIN = bytes(set(range(0x20, 0x100)) - {0x22, 0x5C, 0x7F, 0xC2, 0xE2, 0xEF})  # what begins no escaped letter
VALUE_BYTES_MAX = 1 << 26  # in one array of lines: each byte may become six letters, and be in two images
LINE_KINDS = {INSERT: "insert", UPDATE_BEFORE: "update", DELETE: "delete"}
ESCAPED = r"[\x00-\x1f\"\\\x7f-\x{9f}\x{2028}-\x{202e}\x{2066}-\x{2069}\x{feff}]"  # as `UNSEEN`, and what JSON escapes


class _Head(NamedTuple):
    """What lines say of a group."""

    text: str
    event: GtidEvent


class FastLines:
    """The lines of a log in runs of whole groups. `position` is where the run begins that was given last."""

    def __init__(self, log: Log, kernels: Kernels) -> None:
        self._log = log
        self._kernels = kernels
        self.position = LOG_START
        self._pending: EventBatch | None = None

    def runs(self) -> Iterator[Iterator[Any]]:
        """Each run is what can be written as bytes, in pieces; to be read whole before the next.

        Raises:
            IbbMasterError: something is damaged; a run that has begun then is not whole. The reference says what it is.
        """
        freeze()
        self._log.bring_to_files()
        self._log.stored.expect_whole()
        options = self._log.read_options(uses_kernels=True)
        fields = find_fields(options)
        for task in plan_tasks(options, fields):
            boundaries = task.versions.boundaries()
            maker = JsonColumns(fields, row_reader(task), options.zero_dates, self._kernels, boundaries)
            with closing(open_source(options)) as source:
                batches = event_batches(source, task.log_range, self._kernels, is_strict=True)
                found = (batch for batch in batches if len(batch.groups))
                self._pending = next(found, None)
                while self._pending is not None:
                    self.position = self._pending.start(0)
                    yield self._run(maker, found)
            for _ in maker.finish():
                pass

    def _run(self, maker: JsonColumns, found: Iterator[EventBatch]) -> Iterator[Any]:
        batch = self._pending
        while batch is not None:
            last = batch.identity(-1)
            yield from maker.record_batches(batch)
            batch = next(found, None)
            if batch is None or batch.identity(0) != last:
                self._pending = batch
                return


class JsonColumns(ImageColumns):
    """Makes lines of changes and statements; what it gives are arrays of lines, in place of record batches."""

    _heads: Mapping[tuple[int, ...], _Head] = {}  # of the groups of a batch
    _begins: Mapping[int, str] = {}  # what lines say in front of the images, by kind
    _is_quoted: dict[str, bool]  # by column, of the array that was made last

    def record_batches(self, batch: EventBatch) -> Iterator[Any]:
        """The lines of a batch of events, in buffers of whole lines.

        Raises:
            EventError: an event is damaged, or a value cannot be read.
        """
        self._note_heads(batch)
        self._state[RowField.GROUP] = 0 if self._goes_on(batch) else -1
        for plain in self._plain.of(batch):
            for start, end in self._parts(plain):
                yield from self._in_order(plain, start, end)

    def _in_order(self, batch: EventBatch, start: int, end: int) -> Iterator[Any]:
        """Rows and statements of some events, as they follow each other."""
        types = batch.data[batch.events[start:end, EventColumn.START] + TYPE_OFFSET]
        for statement in (start + np.flatnonzero(np.isin(types, STATEMENTS))).tolist():
            yield from self._of_part(replace(batch, events=batch.events[start:statement]))
            yield from self._statement_line(batch, statement)
            start = statement + 1
        yield from self._of_part(replace(batch, events=batch.events[start:end]))

    def _statement_line(self, batch: EventBatch, number: int) -> Iterator[bytes]:
        identity = batch.identity(int(batch.events[number, EventColumn.GROUP]))
        head = self._heads[identity]
        with batch.naming_group(number):
            statement = statement_of(batch.event(number), head.event)
        if statement is None:
            return
        first, count = self._last_rows
        count = count if first == identity else 0
        self._last_rows = identity, count + 1
        text = statement_text(statement, is_ddl=bool(head.event.flags & GtidFlag.DDL))
        yield f'{head.text},"number":{count},{text}\n'.encode()

    def _note_heads(self, batch: EventBatch) -> None:
        """What the GTID events of a batch say; of a group that began before it is known."""
        known = self._heads
        self._heads = {}
        for group in range(len(batch.groups)):
            identity = batch.identity(group)
            if identity in known:
                self._heads[identity] = known[identity]
        for number in np.flatnonzero(batch.events[:, EventColumn.NUMBER] == 0).tolist():
            group = int(batch.events[number, EventColumn.GROUP])
            with batch.naming_group(number):
                event = decode_gtid_event(batch.event(number))
            timestamp = int(batch.groups[group, GroupColumn.TIMESTAMP])
            self._heads[batch.identity(group)] = _Head(head_text(event, timestamp), event)

    def _use_table(self, row: int) -> None:
        super()._use_table(row)
        self._is_quoted = {}
        decoder = self._tables.decoders[row]
        assert decoder is not None
        self._begins = {kind: f',{change_begin(decoder.schema, name)},"before":' for kind, name in LINE_KINDS.items()}
        for name, cells in self._cells.items():
            if cells.reading.what in ("code", "value"):
                self._cells[name] = ColumnCells(
                    cells.column, cells.slot, cells.reading, "string", _json_reader(cells.column)
                )

    def _bytes_max(self) -> int:
        return VALUE_BYTES_MAX

    def _record_batch(self, batch: EventBatch, rows: slice) -> Any:
        """The lines of rows of one table, in one buffer."""
        kinds = self._row_kinds[rows] & (1 << KIND_BITS) - 1
        halves = 2 * (self._row_kinds[rows] >> KIND_BITS) + (kinds == UPDATE_AFTER)
        places = np.flatnonzero(kinds != UPDATE_AFTER)
        texts = {name: self._json_array(column, batch, rows) for name, column in self._columns.items()}
        images = self._images_of_lines(texts, places, kinds[places], halves)
        kinds, groups = kinds[places], self._row_groups[rows][places]
        return _buffer(_joined([*self._line_begins(batch, groups, kinds), *images, "}\n"]))

    def _line_begins(self, batch: EventBatch, groups: Any, kinds: Any) -> Iterator[Any]:
        """What lines say in front of their images."""
        import pyarrow as pa

        found, which = np.unique(groups, return_inverse=True)
        heads = [f'{self._heads[batch.identity(group)].text},"number":' for group in found.tolist()]
        yield heads[0] if len(heads) == 1 else pa.array(heads).take(pa.array(which))
        yield pa.array(self._numbers(batch, groups)).cast(pa.string())
        if (kinds == kinds[0]).all():
            yield self._begins[int(kinds[0])]
        else:
            yield pa.array([self._begins.get(kind, "") for kind in range(UPDATE_AFTER + 1)]).take(pa.array(kinds))

    def _images_of_lines(self, texts: Mapping[str, pa.Array], places: Any, kinds: Any, halves: Any) -> Iterator[Any]:
        """Both images of each line, and what is between them; of `places` among the rows."""
        import pyarrow as pa

        known = np.unique(halves).tolist()
        if len(known) == 1 and not (kinds == UPDATE_BEFORE).any():
            image = self._object(texts, known[0])
            is_new = bool((kinds == INSERT).all())
            yield from ('null,"after":', *image) if is_new else (*image, ',"after":null')
            return
        parts, orders = [], []
        for half in known:
            order = np.flatnonzero(halves == half)
            chosen = {name: text.take(pa.array(order)) for name, text in texts.items()}
            parts.append(_joined(self._object(chosen, half), len(order)))
            orders.append(order)
        images = pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(orders))))
        yield images.take(pa.array(places, mask=kinds == INSERT))
        yield ',"after":'
        yield images.take(pa.array(places + (kinds == UPDATE_BEFORE), mask=kinds == DELETE))

    def _object(self, texts: Mapping[str, pa.Array], half: int) -> list[Any]:
        """An image as an object of JSON, of the columns it has, in pieces that are joined for each row."""
        import pyarrow.compute as pc

        names = [name for name in self._columns if name not in self._tables.absent[half]]
        pieces: list[Any] = ["{"]
        for mark, name in zip(["", *[","] * len(names)], names, strict=False):
            quote = '"' if self._is_quoted[name] else ""
            text = texts[name]
            if quote and text.null_count:
                quote, text = "", pc.binary_join_element_wise('"', text, '"', "")
            pieces += [f"{mark}{json_text(name)}:{quote}", text, quote]
        return [*pieces, "}"]

    def _json_array(self, column: Column, batch: EventBatch, rows: slice) -> pa.Array:
        """The values of a column as JSON, without its quotes where `_is_quoted` says so; NULL stays NULL."""
        import pyarrow as pa

        cells = self._cells.get(column.name)
        self._is_quoted[column.name] = False
        if cells is None:
            return pa.nulls(rows.stop - rows.start, pa.string())
        if cells.reading.what == "number":
            self._is_quoted[column.name] = cells.reading.op == RowOp.DECIMAL
            return self._text_array(column, batch, rows)
        if column.kind in OF_MOMENTS and not column.has_old_format:
            moments = moment_texts(column, batch.data, self._values[cells.slot, rows], self._valid[cells.slot, rows])
            if moments is not None:
                self._is_quoted[column.name] = True
                return moments
        texts = self._cell_array(cells, batch, rows)
        if cells.reading.what == "shown":
            self._is_quoted[column.name] = True
        if cells.reading.what == "text":
            self._is_quoted[column.name] = _is_plain(_buffer(texts))
            return texts if self._is_quoted[column.name] else _as_json(texts)
        return texts


def _json_reader(column: Column) -> Reader:
    """Reads values as JSON."""
    try:
        read = value_reader(column)
    except ValueError as error:
        problem = str(error)

        def refuse(data: bytes, offset: int) -> tuple[Value, int]:
            raise ValueError(problem)

        return refuse

    def read_json(data: bytes, offset: int) -> tuple[Value, int]:
        value, end = read(data, offset)
        return json_text(json_value(value)), end

    return read_json


def _as_json(texts: pa.Array) -> pa.Array:
    """Texts as JSON; those with letters that are escaped one by one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_odd = pc.match_substring_regex(texts, ESCAPED)
    odd = [json_text(text) for text in texts.filter(is_odd).to_pylist()]
    quoted = pc.binary_join_element_wise('"', texts, '"', "")
    return pc.replace_with_mask(quoted, is_odd.fill_null(False), pa.array(odd, pa.string()))


def _joined(pieces: Sequence[Any], count: int = 1) -> pa.Array:
    """Pieces one after the other, row by row: arrays, and texts that are the same in all `count` rows; NULL is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    merged: list[Any] = []
    for piece in pieces:
        if merged and isinstance(piece, str) and isinstance(merged[-1], str):
            merged[-1] += piece
        elif piece != "" or not isinstance(piece, str):
            merged.append(piece)
    if all(isinstance(piece, str) for piece in merged):
        return pa.repeat("".join(merged), count)
    return pc.binary_join_element_wise(*merged, "", null_handling="replace", null_replacement="null")


def _buffer(texts: pa.Array) -> memoryview:
    """The bytes of the texts of an array, one after the other."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)
    start, end = int(ends[texts.offset]), int(ends[texts.offset + len(texts)])
    return memoryview(data)[start:end] if data is not None else memoryview(b"")


def _is_plain(data: memoryview) -> bool:
    """Whether no letter of some text in UTF-8 may be one that is escaped: those of some others are taken for it."""
    return not bytes(data).translate(None, PLAIN)
