"""Counts a log's content by kernels, many groups at once. The reference: `ibbmaster.commands.info.counting`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ibbmaster.errors import EventError
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import (
    DELETE,
    INSERT,
    KIND_BITS,
    UPDATE_AFTER,
    EventColumn,
    GroupColumn,
    MapColumn,
    OpenColumn,
    RowField,
    VariantColumn,
)
from ibbmaster.logs.log.group_content import MAY_HOLD_DDL, QUERIES, UNPLACED, RowReader, TableDecoder, table_name
from ibbmaster.logs.log.large_rows import large_rows
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.gtid_event import GTID_FLAGS_OFFSET
from ibbmaster.replication.event.header import TYPE_OFFSET
from ibbmaster.replication.event.rows.table_schema import decode_table_schema
from ibbmaster.replication.event.table_map import ROW_EVENT_TYPES
from ibbmaster.replication.event.types import EventType
from ibbmaster.schema.model import SchemaPlace
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.tables.arrow.event_batch import ALL_BITS, IDENTITY, EventBatch
from ibbmaster.tables.arrow.read_options import ZeroDates
from ibbmaster.tables.arrow.row_columns import RowColumns
from .counting import note_table, shown_tables, sizes_of, take_statement
from .statistics import LARGEST, ChangeSum, GroupSum, LogStatistics, PairSum, SequenceGap, TimeGap

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = {INSERT: ChangeSum.INSERT, DELETE: ChangeSum.DELETE}  # all others are updates
TYPES = 256
IS_QUERY = np.isin(np.arange(TYPES), QUERIES)


class BatchCounter:
    """A group may continue in the next batch."""

    def __init__(self, statistics: LogStatistics, kernels: Kernels) -> None:
        self.statistics = statistics
        self._rows = RowSums(statistics, kernels)
        self._held: _Run | None = None  # the last group
        self._types = np.zeros(TYPES, dtype=np.int64)
        self._type_sizes = np.zeros(TYPES, dtype=np.int64)

    def take(self, batch: EventBatch) -> int:
        """Returns the bytes of events. Raises EventError, which names the group."""
        if not len(batch.groups):
            return 0
        sizes = np.ascontiguousarray(batch.events[:, EventColumn.SIZE])
        types = batch.data[batch.events[:, EventColumn.START] + TYPE_OFFSET]
        self._types += np.bincount(types, minlength=TYPES)
        self._type_sizes += np.bincount(types, weights=sizes, minlength=TYPES).astype(np.int64)
        run, held = _Run.of(batch), self._held
        if held is not None and (run.rows[0, IDENTITY] == held.rows[0, IDENTITY]).all():
            run = run.joined(held)
        elif held is not None:
            self._take_groups(held, None)
        for _ in self._rows.record_batches(batch):
            pass
        self._take_statements(batch, types, run.may_hold_ddl)
        self._take_groups(run.part(slice(0, -1))._replace(tables=run.tables), batch)
        last = run.part(slice(-1, None))
        self._held = last._replace(rows=last.rows.copy(), tables=self._rows.open_names())
        return int(sizes.sum())

    def finish(self) -> None:
        """Errors as `PlainEvents.finish`."""
        for _ in self._rows.finish():
            pass
        if self._held is not None:
            self._take_groups(self._held, None)
            self._held = None
        for event_type in np.flatnonzero(self._types).tolist():
            self.statistics.take_type(event_type, int(self._types[event_type]), int(self._type_sizes[event_type]))
        self._types[:] = self._type_sizes[:] = 0

    def _take_statements(self, batch: EventBatch, types: Any, may_hold_ddl: Any) -> None:
        owners = batch.events[:, EventColumn.GROUP]
        for number in np.flatnonzero(IS_QUERY[types] & may_hold_ddl[owners]).tolist():
            with batch.naming_group(number):
                take_statement(self.statistics, batch.event(number))

    def _take_groups(self, run: _Run, batch: EventBatch | None) -> None:
        if not len(run.rows):
            return
        first = self.statistics.groups
        self._take_times(run)
        domains = run.rows[:, GroupColumn.DOMAIN]
        for domain_id in np.unique(domains).tolist():
            self._take_domain(run.part(domains == domain_id))
        self.statistics.groups += len(run.rows)
        self.statistics.events += int(run.events.sum())
        self.statistics.size += int(run.sizes.sum())
        large = np.flatnonzero(run.sizes > self.statistics.large_size())
        large = large[np.argsort(-run.sizes[large], kind="stable")[:LARGEST]]
        for number in large.tolist():
            tables = frozenset() if batch is None else _names_in(batch, number)
            self.statistics.take_large(run.group(number, first, tables if number else tables | run.tables))

    def _take_times(self, run: _Run) -> None:
        statistics, times = self.statistics, run.rows[:, GroupColumn.TIMESTAMP]
        firsts = np.concatenate([[0], np.flatnonzero(np.diff(times)) + 1])
        counts, sizes = np.diff(np.append(firsts, len(times))), np.add.reduceat(run.sizes, firsts)
        for second, count, size in zip(times[firsts].tolist(), counts.tolist(), sizes.tolist(), strict=True):
            statistics.time_line.add(second, count, size)
        statistics.take_time(run.gtid(0), int(times[0]))
        if len(times) > 1:
            steps = np.diff(times)
            statistics.clock_steps_back += int((steps < 0).sum())
            at = int(steps.argmax())
            statistics.take_pause(TimeGap(int(steps[at]), run.gtid(at), run.gtid(at + 1), int(times[at])))
            statistics.earliest = min(statistics.earliest, int(times.min()))
            statistics.latest = max(statistics.latest, int(times.max()))
            statistics.last = run.gtid(-1), int(times[-1])

    def _take_domain(self, run: _Run) -> None:
        statistics, first = self.statistics, run.gtid(0)
        statistics.take_gtid(first, int(run.sizes[0]))
        run = run.part(slice(1, None))
        if not len(run.rows):
            return
        domain = statistics.domains[first.domain_id]
        numbers = run.rows[:, GroupColumn.SEQ_NO].astype(np.uint64)
        before = np.concatenate([np.array([first.seq_no], dtype=np.uint64), numbers[:-1]])
        domain.steps_back += int((numbers <= before).sum())
        for at in np.flatnonzero((numbers > before) & (numbers - before > 1)).tolist():
            domain.take_gap(SequenceGap(run.gtid(at - 1) if at else first, run.gtid(at)))
        domain.last = run.gtid(-1)
        servers = run.rows[:, GroupColumn.SERVER]
        _, places = np.unique(servers, return_index=True)
        for server_id in servers[np.sort(places)].tolist():
            of_server = np.flatnonzero(servers == server_id)
            size, ends = int(run.sizes[of_server].sum()), numbers[of_server[[0, -1]]].tolist()
            domain.take_pair(server_id, PairSum(len(of_server), size, *ends))


class _Run(NamedTuple):
    rows: Any  # see GroupColumn
    events: Any
    sizes: Any
    may_hold_ddl: Any
    tables: frozenset[str] = frozenset()

    @classmethod
    def of(cls, batch: EventBatch) -> _Run:
        groups = batch.groups
        may_hold_ddl = np.zeros(len(groups), dtype=bool)
        begun = groups[:, GroupColumn.FIRST_NUMBER] == 0
        flags = batch.data[groups[begun, GroupColumn.START] + GTID_FLAGS_OFFSET]
        may_hold_ddl[begun] = flags & MAY_HOLD_DDL != 0
        firsts = np.searchsorted(batch.events[:, EventColumn.GROUP], np.arange(len(groups) + 1))
        return cls(groups, np.diff(firsts), groups[:, GroupColumn.END] - groups[:, GroupColumn.START], may_hold_ddl)

    def joined(self, held: _Run) -> _Run:
        for mine, other in ((self.events, held.events), (self.sizes, held.sizes)):
            mine[0] += other[0]
        self.may_hold_ddl[0] |= held.may_hold_ddl[0]
        return self._replace(tables=held.tables)

    def part(self, which: Any) -> _Run:
        return _Run(self.rows[which], self.events[which], self.sizes[which], self.may_hold_ddl[which])

    def gtid(self, number: int) -> Gtid:
        row = self.rows[number]
        return Gtid(
            domain_id=int(row[GroupColumn.DOMAIN]),
            server_id=int(row[GroupColumn.SERVER]),
            seq_no=int(row[GroupColumn.SEQ_NO]) % ALL_BITS,
        )

    def group(self, number: int, first: int, tables: frozenset[str]) -> GroupSum:
        row = self.rows[number]
        return GroupSum(
            size=int(self.sizes[number]),
            turn=-(first + number),
            gtid=self.gtid(number),
            timestamp=int(row[GroupColumn.TIMESTAMP]),
            start=LogPosition(int(row[GroupColumn.FILE_NO]), int(row[GroupColumn.FILE_OFFSET])),
            events=int(self.events[number]),
            tables=shown_tables(tables),
        )


def _names_in(batch: EventBatch, group: int) -> frozenset[str]:
    first, last = np.searchsorted(batch.events[:, EventColumn.GROUP], [group, group + 1])
    types = batch.data[batch.events[first:last, EventColumn.START] + TYPE_OFFSET]
    maps = first + np.flatnonzero(types == EventType.TABLE_MAP)
    return frozenset(str(table_name(batch.event(number))) for number in maps.tolist())


class _CountedTables(RowReader):
    """Knows tables as their TABLE_MAPs; leaves out those whose rows have no known length."""

    def __init__(self, statistics: LogStatistics) -> None:
        super().__init__(large=large_rows())
        self._statistics = statistics
        self.names: list[str] = []

    def decoder(self, event: bytes, place: SchemaPlace = UNPLACED) -> TableDecoder | None:
        schema = decode_table_schema(event)
        self.names.append(schema.name)
        is_counted = sizes_of(schema) is not None
        note_table(self._statistics, schema, is_counted=is_counted)
        return super().decoder(event, place) if is_counted else None


class RowSums(RowColumns):
    def __init__(self, statistics: LogStatistics, kernels: Kernels) -> None:
        self._statistics = statistics
        self._known = _CountedTables(statistics)
        super().__init__((), self._known, ZeroDates.NULL, kernels)

    def open_names(self) -> frozenset[str]:
        entries = self._open[self._open[:, OpenColumn.TURN] == self._state[RowField.TURN]]
        return frozenset(self._known.names[row] for row in entries[:, OpenColumn.MAP].tolist())

    def _add_variant(self, event: Buffer) -> None:
        row = self._row_of(event)
        try:
            super()._add_variant(event)
        except EventError:
            self._give_up(row)

    def _complain(self, batch: EventBatch, number: int) -> None:
        event = batch.event_view(number)
        if event[TYPE_OFFSET] not in ROW_EVENT_TYPES:
            super()._complain(batch, number)
        with batch.naming_group(number):
            self._give_up(self._row_of(event))

    def _give_up(self, row: int) -> None:
        self._statistics.table(self._known.names[row]).is_counted = False
        self._tables.maps[row, MapColumn.IS_WANTED] = 0

    def _flush(self, batch: EventBatch) -> Iterator[pa.RecordBatch]:
        count = int(self._state[RowField.ROWS])
        self._state[RowField.ROWS] = 0
        kinds = self._row_kinds[:count]
        variants = kinds[kinds & (1 << KIND_BITS) - 1 != UPDATE_AFTER] >> KIND_BITS
        counts = np.bincount(variants, minlength=self._tables.variant_count)
        sizes = self._event_sizes
        for variant in np.flatnonzero(counts + sizes[: len(counts)]).tolist():
            row = self._tables.variants[variant]
            decoder = self._tables.decoders[row[VariantColumn.MAP]]
            assert decoder is not None
            kind = KINDS.get(int(row[VariantColumn.KIND]), ChangeSum.UPDATE)
            self._statistics.take_changes(decoder.schema.name, kind, int(counts[variant]), int(sizes[variant]))
        sizes[:] = 0
        return iter(())
