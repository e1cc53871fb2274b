"""Reads a log forward by kernels, many groups at once; the reference takes all but plain changes of rows."""

from typing import Any

import numpy as np

from ibbmaster.errors import EventError, IbbMasterError
from ibbmaster.kernel.calls import ChangedTables, KeptChanges, Kernels
from ibbmaster.kernel.fields import (
    ANY_TABLE,
    KEY_MAX,
    OPEN_TABLES_MIN,
    ChangeOp,
    EventColumn,
    GroupColumn,
    ImageColumn,
    KeyColumn,
    MapColumn,
    RowField,
    RowStatus,
    VariantColumn,
)
from ibbmaster.logs.log.directory import kernel_source
from ibbmaster.logs.log.group_content import xid_text
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.gtid_event import GTID_FLAGS_OFFSET, GtidFlag
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, TYPE_OFFSET
from ibbmaster.replication.event.rows.changes import KINDS, ChangeKind
from ibbmaster.replication.event.statement.logged import STATEMENT_TYPES
from ibbmaster.replication.event.table_map import TABLE_ID_SIZE, RowsHeader, decode_rows_header
from ibbmaster.replication.event.types import EventType
from ibbmaster.rows.certainty import MERGED, engine_of
from ibbmaster.rows.effects import LOST
from ibbmaster.schema.indexing import row_key
from ibbmaster.schema.model import SchemaPlace, TableKind
from ibbmaster.tables.arrow.collecting import event_batches
from ibbmaster.tables.arrow.event_batch import ALL_BITS, EventBatch, PlainEvents, is_before
from ibbmaster.tables.arrow.table_maps import MapStore, more_open_tables, new_open_tables, open_row, with_room
from ibbmaster.work import check_wanted
from .fast_kept_rows import FastKeptRows
from .folding import NotPlainError, RowFold, is_of_replace
from .kept_rows import HEAD, KeptRows, WrongChangeError
from .row_events import MappedTable
from .sorted_rows import keys_in
from .stored import key_op

ANNOTATION_DISTANCE = 1 << 6
CHANGES_MAX = 1 << 16
IMAGES_BYTES = 8 << 20
MAPS_MAX = 1 << 10  # known tables, before all are forgotten between groups
NAME_OFFSET = EVENT_HEADER_SIZE + TABLE_ID_SIZE  # in a TABLE_MAP: what identifies its table
BY_REFERENCE = (0,) * 8
IS_OTHER = np.isin(np.arange(256), [*STATEMENT_TYPES, *LOST]).astype(np.uint8)


class FastRowFold(RowFold):
    """`advance` also raises NotPlainError: the log is damaged, changes contradict each other, or a group undoes some:
    the reference has to begin anew."""

    kept: FastKeptRows

    def use(self, kernels: Kernels) -> "FastRowFold":
        self._kernels = kernels
        return self

    def _like(self, kept: KeptRows) -> "FastRowFold":
        return super()._like(kept).use(self._kernels)

    def _read(self, end: LogPosition) -> None:
        changes = _Changes(self, self._kernels)
        try:
            with kernel_source(self._engine) as source:
                for log_range in self._engine.ranges(self.position, end, size=1 << 62):
                    for batch in event_batches(source, log_range, self._kernels):
                        check_wanted()
                        if len(batch.groups):
                            changes.take(batch, self.position, end)
            changes.finish()
            self.kept.conclude()
        except (IbbMasterError, WrongChangeError) as error:
            raise NotPlainError from error

    # What changes of rows are collected for ---------------------------------------------------

    def map_at(self, event: bytes, gtid: str, place: SchemaPlace) -> MappedTable | None:
        self._gtid = gtid
        return self._map(event, place.position, place.event_no)

    def change_at(
        self, mapped: MappedTable, event: bytes, first: int, annotation: bytes | None, gtid: str, place: SchemaPlace
    ) -> None:
        """Apply a row event by the reference, from the row on at `first`; `annotation` has its statement."""
        self._gtid, self._place = gtid, place
        self._is_replace = None if annotation is None else is_of_replace(annotation)
        self._change(mapped, event, first)

    def apply_at(self, event: bytes, head: bytes | None, gtid: str, place: SchemaPlace) -> None:
        """Apply an event of another type; `head` is its group's GTID event, if known. Raises NotPlainError: it needs
        more of its group."""
        self._gtid, self._place = gtid, place
        if head is None:
            raise NotPlainError
        self._savepoints.clear()
        self._apply_other(event, xid_text(head), {})

    def is_wanted(self, mapped: MappedTable | None) -> bool:
        if mapped is None:
            return False
        contents, table = mapped.contents, mapped.contents.table
        is_known = (contents.unknown is None or contents.is_open) and self._statements.keeps_rows(table)
        is_told = table.kind is TableKind.SEQUENCE or engine_of(table) in MERGED
        return is_known or is_told or bool(self.children_of(table))

    def is_plain(self, mapped: MappedTable, kind: ChangeKind) -> bool:
        """Whether row events of a table change its rows alone, and all of them."""
        contents, table = mapped.contents, mapped.contents.table
        return (
            contents.unknown is None
            and not contents.is_doubtful
            and table.kind is not TableKind.SEQUENCE
            and not table.is_versioned
            and not contents.references
            and self._statements.keeps_rows(table)
            and (kind is ChangeKind.INSERT or not self.children_of(table))
        )

    @property
    def has_forgotten(self) -> bool:
        """Whether a statement may have changed tables since the last TABLE_MAP."""
        return not self._mapped


class _Changes:
    def __init__(self, fold: RowFold, kernels: Kernels) -> None:
        assert isinstance(fold, FastRowFold)
        self._fold = fold
        self._kernels = kernels
        self._plain = PlainEvents(fold.large)
        self._state = np.zeros(int(RowField.SIZE), dtype=np.int64)
        self._state[RowField.TABLE] = ANY_TABLE
        self._open = new_open_tables(OPEN_TABLES_MIN)
        maps, ops, places, sizes = (np.zeros(CHANGES_MAX, dtype=np.int64) for _ in range(4))
        keys, images = (np.zeros(size, dtype=np.uint8) for size in (CHANGES_MAX * KEY_MAX, IMAGES_BYTES))
        self._out = KeptChanges(maps, ops, places, sizes, keys, images)
        self._last_group: tuple[int, ...] = ()
        self._is_last_wanted = True
        self._forget_all()

    def _forget_all(self) -> None:
        self._mapped: list[MappedTable | None] = []
        self._maps = MapStore(NAME_OFFSET)
        self._columns: Any = np.zeros((256, ImageColumn.COLUMNS), dtype=np.int64)
        self._column_count = 0
        self._parts: Any = np.zeros((64, KeyColumn.COLUMNS), dtype=np.int64)
        self._part_count = 0
        self._spans: Any = np.zeros((64, 2), dtype=np.int64)
        self._state[RowField.TURN] += 1

    def take(self, batch: EventBatch, start: LogPosition, end: LogPosition) -> None:
        """Collect a batch, as far as its groups begin in a range."""
        goes_on = batch.identity(0) == self._last_group
        wanted = self._wanted(batch, start, end)
        if goes_on:
            wanted[0] = self._is_last_wanted
        self._last_group, self._is_last_wanted = batch.identity(-1), bool(wanted[-1])
        self._state[RowField.GROUP] = 0 if goes_on else -1
        if not goes_on and len(self._mapped) > MAPS_MAX:
            self._keep()
            self._forget_all()
        for plain in self._plain.of(batch.of_groups(wanted)):
            self._take_plain(plain)
        self._fold.expect_room()

    def _wanted(self, batch: EventBatch, start: LogPosition, end: LogPosition) -> Any:
        groups, events, base = batch.groups, batch.events, self._fold.base
        wanted = ~is_before(groups, start) & is_before(groups, end)
        if base is not None:
            for number, (domain_id, seq_no) in enumerate(groups[:, [GroupColumn.DOMAIN, GroupColumn.SEQ_NO]].tolist()):
                wanted[number] &= not base.has(domain_id, seq_no % ALL_BITS)
        starts = events[:, EventColumn.START]
        heads = np.flatnonzero(batch.data[starts + TYPE_OFFSET] == EventType.GTID)
        flags = batch.data[starts[heads] + GTID_FLAGS_OFFSET]
        for number in heads[flags & GtidFlag.PREPARED_XA != 0].tolist():
            group = int(events[number, EventColumn.GROUP])
            if wanted[group]:
                self._fold.prepare(batch.event(number), batch.start(group))
                wanted[group] = False
        return wanted

    def finish(self) -> None:
        """Errors as `PlainEvents.finish`."""
        self._plain.finish()
        self._keep()

    def _take_plain(self, batch: EventBatch) -> None:
        state = self._state
        state[RowField.EVENT] = state[RowField.OFFSET] = 0
        while True:
            known = self._maps.known(self._open, IS_OTHER)
            tables = ChangedTables(self._columns, self._parts, self._spans)
            status = self._kernels.collect_changes(batch.data, batch.events, state, known, tables, self._out)
            number = int(state[RowField.EVENT])
            match RowStatus(status):
                case RowStatus.END:
                    return
                case RowStatus.FULL if state[RowField.ROWS]:
                    self._keep()
                case RowStatus.FULL:  # for one image
                    size = int(batch.events[number, EventColumn.SIZE]) + HEAD.size
                    self._out = self._out._replace(images=np.empty(size, dtype=np.uint8))
                case RowStatus.NEW_MAP:
                    self._keep()
                    self._add_map(batch, number)
                case RowStatus.NEW_VARIANT:
                    self._add_variant(batch.event(number))
                case RowStatus.MANY_TABLES:
                    self._open = more_open_tables(self._open, state[RowField.TURN], self._kernels)
                case RowStatus.BY_REFERENCE:
                    self._keep()
                    self._change(batch, number)
                case RowStatus.OTHER_EVENT | RowStatus.BAD:
                    self._keep()
                    self._apply(batch, number)

    # What is for the reference ----------------------------------------------------------------

    def _at(self, batch: EventBatch, number: int) -> tuple[str, SchemaPlace]:
        return batch.gtid(int(batch.events[number, EventColumn.GROUP])), batch.schema_place(number)

    def _row_of(self, event: bytes) -> int:
        return open_row(event, self._open, self._state[RowField.TURN], self._kernels)

    def _change(self, batch: EventBatch, number: int) -> None:
        event = batch.event(number)
        mapped = self._mapped[self._row_of(event)]
        assert mapped is not None
        offset = int(self._state[RowField.OFFSET])
        first = offset - int(batch.events[number, EventColumn.START]) if offset else 0
        self._fold.change_at(mapped, event, first, self._annotation(batch, number), *self._at(batch, number))
        self._pass(number)

    @staticmethod
    def _annotation(batch: EventBatch, number: int) -> bytes | None:
        group = batch.events[number, EventColumn.GROUP]
        for before in range(number - 1, max(number - ANNOTATION_DISTANCE, -1), -1):
            if batch.events[before, EventColumn.GROUP] != group:
                return None
            if batch.data[batch.events[before, EventColumn.START] + TYPE_OFFSET] == EventType.ANNOTATE_ROWS:
                return batch.event(before)
        return None

    def _apply(self, batch: EventBatch, number: int) -> None:
        event = batch.event(number)
        if not IS_OTHER[event[TYPE_OFFSET]]:
            raise EventError("a row event, or a TABLE_MAP, that cannot be read")
        group = batch.events[number, EventColumn.GROUP]
        first = int(np.searchsorted(batch.events[:, EventColumn.GROUP], group))
        is_head = batch.data[batch.events[first, EventColumn.START] + TYPE_OFFSET] == EventType.GTID
        self._fold.apply_at(event, batch.event(first) if is_head else None, *self._at(batch, number))
        self._pass(number)

    def _pass(self, number: int) -> None:
        self._state[RowField.EVENT], self._state[RowField.OFFSET] = number + 1, 0
        if self._fold.has_forgotten:
            if self._state[RowField.OPEN]:
                raise NotPlainError
            self._maps.forget()
            return
        for row, mapped in enumerate(self._mapped):
            self._maps.maps[row, MapColumn.IS_WANTED] = self._fold.is_wanted(mapped)
            if mapped is not None and (mapped.contents.references or mapped.contents.is_doubtful):
                variants = self._maps.variants[: self._maps.variant_count]
                variants[variants[:, VariantColumn.MAP] == row, VariantColumn.IS_BY_REFERENCE] = 1

    # Tables -----------------------------------------------------------------------------------

    def _add_map(self, batch: EventBatch, number: int) -> None:
        event = batch.event(number)
        mapped = self._fold.map_at(event, *self._at(batch, number))
        self._maps.note_map(event, is_wanted=self._fold.is_wanted(mapped))
        self._mapped.append(mapped)

    def _add_variant(self, event: bytes) -> None:
        row, header = self._row_of(event), decode_rows_header(event)
        mapped = self._mapped[row]
        assert mapped is not None
        plan = self._plan(mapped, header, KINDS[EventType(event[TYPE_OFFSET])])
        self._maps.note_variant(event, row, header, (*(plan or BY_REFERENCE), plan is None))

    def _plan(self, mapped: MappedTable, header: RowsHeader, kind: ChangeKind) -> tuple[int, ...] | None:
        """How a kernel takes row events, as `VariantColumn` has it; None if the reference has to."""
        layout, contents = mapped.layout, mapped.contents
        count = len(layout.columns)
        present, after = _places(header.columns_present, count), _places(header.columns_after, count)
        kept = after if kind is ChangeKind.UPDATE else present
        if header.column_count != count or not self._fold.is_plain(mapped, kind):
            return None
        if not present or (kind is not ChangeKind.DELETE and len(kept) < count):
            return None
        index = row_key(contents.table)
        key = [] if index is None else [(layout.places[part.column_id], part.is_descending) for part in index.parts]
        if any(place not in present for place, _ in key) or (index is None and kind is not ChangeKind.INSERT):
            return None
        contents.used.add(layout.number)
        first, first_part = self._add_image(mapped, present, key)
        second, second_part = self._add_image(mapped, after, key) if kind is ChangeKind.UPDATE else (0, 0)
        return first, len(present), second, len(after), first_part, second_part, len(key), layout.number

    def _add_image(self, mapped: MappedTable, places: list[int], key: list[tuple[int, bool]]) -> tuple[int, int]:
        first, first_part = self._column_count, self._part_count
        self._column_count += len(places)
        self._part_count += len(key)
        self._columns = with_room(self._columns, self._column_count)
        self._parts = with_room(self._parts, self._part_count)
        self._spans = with_room(self._spans, len(places))
        for number, place in enumerate(places, first):
            column = mapped.layout.columns[place]
            self._columns[number] = -1 if column.fixed is None else column.fixed, column.prefix
        for number, (place, is_descending) in enumerate(key, first_part):
            self._parts[number] = places.index(place), key_op(mapped.layout.columns[place]), is_descending
        return first, first_part

    # Rows -------------------------------------------------------------------------------------

    def _keep(self) -> None:
        state, out = self._state, self._out
        count = int(state[RowField.ROWS])
        if not count:
            return
        images = out.images[: int(state[RowField.OUT])]
        places = out.places[:count] + self._fold.kept.rows.append_block(images.data)
        maps = out.maps[:count]
        first = int(maps[0])
        if (maps == first).all():
            self._keep_of(first, slice(0, count), places)
        else:
            for row in np.unique(maps).tolist():
                chosen = np.flatnonzero(maps == row)
                self._keep_of(row, chosen, places[chosen])
        state[RowField.ROWS] = state[RowField.OUT] = 0

    def _keep_of(self, row: int, chosen: Any, places: Any) -> None:
        mapped = self._mapped[row]
        assert mapped is not None
        contents = mapped.contents
        if contents.unknown is not None:
            return
        sizes, ops = self._out.key_sizes[chosen], self._out.ops[chosen].astype(np.int8)
        if not contents.is_keyed:
            assert not (ops != ChangeOp.INSERT).any()
            self._fold.kept.append(contents.number, places)
            return
        keys = keys_in(self._out.keys.reshape(-1, KEY_MAX)[chosen], sizes)
        self._fold.kept.change(contents.number, ops, keys, places)


def _places(present: bytes, count: int) -> list[int]:
    bits = int.from_bytes(present, "little")
    return [place for place in range(count) if bits >> place & 1]
