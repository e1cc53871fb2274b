"""Several tables in one scan of a log: it reads blocks once, and each row event by the reader of its table.

Another scan, which reads no rows, finds the tables. What kernels do not read is read table by table.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import EventColumn
from ibbmaster.logs.log.group_content import TableFilter, own_name, table_name
from ibbmaster.logs.log.interface import GroupSource, LogEngine
from ibbmaster.logs.log.large_rows import large_rows
from ibbmaster.logs.log.log_range import LogRange
from ibbmaster.logs.stages.engine import StagedLog
from ibbmaster.logs.stages.options import expect_only
from ibbmaster.logs.stages.table_pattern import unmatched_error
from ibbmaster.position import LOG_START, LogPosition
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, TYPE_OFFSET
from ibbmaster.replication.event.table_map import ROW_EVENT_TYPES, TABLE_ID_SIZE
from ibbmaster.replication.event.types import EventType
from ibbmaster.rows.walk import TABLE_ID
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import SchemaPlace, TableKind, TableVersion
from ibbmaster.schema.versions import TableVersions
from ibbmaster.sqltext.table_name import TableName, parse_table_name
from .collecting import event_batches
from .event_batch import EventBatch, PlainEvents, wanted_groups
from .fast_reading import columns_of, freeze, is_fast
from .live import with_landmarks
from .plan import (
    ReadTask,
    ended,
    fields_of,
    find_selection,
    history_in,
    history_of,
    load_kernels,
    maps_backwards,
    of_table,
    open_log,
    open_source,
    open_task,
    planned_ranges,
    selected_versions,
    shape_of,
    tasks_between,
    versions_in,
)
from .read_options import ReadOptions
from .reading import read_task
from .shape import TableFields
from .staging import expect_log
from .table_maps import SeenMap, last_of_each

if TYPE_CHECKING:
    import pyarrow as pa

IS_OF_TABLE = np.isin(np.arange(256), [EventType.TABLE_MAP, *ROW_EVENT_TYPES])
TABLE_ID_BITS = np.arange(TABLE_ID_SIZE) * 8


@dataclass(frozen=True, slots=True)
class TablesTask:
    """One range, and what is read of each table there, by name. Sent to a worker."""

    tasks: Mapping[str, ReadTask]

    @property
    def first(self) -> ReadTask:
        return next(iter(self.tasks.values()))

    @property
    def log_range(self) -> LogRange:
        return self.first.log_range

    @property
    def options(self) -> ReadOptions:
        return self.first.options


# Which tables --------------------------------------------------------------------------------


def find_tables(options: ReadOptions, *, only_changed: bool = False) -> dict[str, TableFields]:
    """The tables that options select, by their names at the end: those with changes in what is read, or near its start,
    and unless `only_changed` those that are there at the end. Raises ConfigurationError: a pattern matches no table
    where all are wanted; the columns of a table are unknown."""
    options = ended(options)
    takes = TableFilter(options.tables).takes
    with closing(open_source(options)) as source:
        history, ending = history_in(source, options)
        end = None if ending is None else SchemaPlace(ending, 0)
        begin = _begin_of(source, options) if only_changed else LOG_START
        boundaries = sorted({*_boundaries(history), *([] if end is None else [end]), SchemaPlace(begin, 0)})
        parts = maps_backwards(source, options, boundaries, begin)
        maps = sorted(seen for part in parts for seen in part if seen.place.position >= begin)
        names = _names(options, history, end, maps, only_changed=only_changed)
        found = {name: _fields_of(source, options, name, maps) for name in names if takes(parse_table_name(name))}
    for pattern in () if only_changed else options.tables:
        if not any(map(TableFilter((pattern,)).takes, map(parse_table_name, found))):
            raise unmatched_error(options.path or options.host, pattern, names)
    return found


def expect_tables(options: ReadOptions) -> None:
    """Check that each pattern for tables matches one, reading only as much as that needs; tables of a running primary
    may come later. Raises ConfigurationError: a pattern matches none; the error lists the tables."""
    if options.host is not None:
        return
    with closing(open_log(options)) as log:
        inner = log
        for given in reversed(options.stages):
            assert isinstance(inner, StagedLog)
            expect_only(inner, given)
            inner = inner.inner
        wanted = () if options.table is not None else options.tables
        names: set[TableName] = set()
        for found in _names_found(log, options) if wanted else ():
            names |= found
            wanted = tuple(one for one in wanted if not any(map(TableFilter((one,)).takes, found)))
            if not wanted:
                return
    if wanted:
        raise unmatched_error(options.path, wanted[0], map(str, names))


def _names_found(log: LogEngine, options: ReadOptions) -> Iterator[set[TableName]]:
    yield set(history_of(options, log.with_past).names())
    for maps in maps_backwards(log, options, []):
        yield {table_name(seen.event) for seen in maps}


def _begin_of(source: GroupSource, options: ReadOptions) -> LogPosition:
    if options.host is not None or not options.starting_gtid:
        return LOG_START
    return find_selection(options, cast(LogEngine, source))[0]


def _boundaries(history: SchemaHistory) -> list[SchemaPlace]:
    places = {one.since for name in set(history.names()) for one in history.versions(*name)}
    return sorted(place for place in places if place is not None)


def _names(
    options: ReadOptions,
    history: SchemaHistory,
    end: SchemaPlace | None,
    maps: Sequence[SeenMap],
    *,
    only_changed: bool,
) -> list[str]:
    found = set()
    for name in {str(table_name(seen.event)) for seen in maps if end is None or seen.place < end}:
        newest = selected_versions(of_table(options, name), history, end).newest(end)
        found.add(name if newest is None else newest.full_name)
    for key in () if only_changed else set(history.names()):
        known = history.table_at(*key, end)
        if isinstance(known, TableVersion) and known.kind is TableKind.BASE:
            found.add(known.full_name)
    return sorted(found)


def _fields_of(source: GroupSource, options: ReadOptions, name: str, maps: list[SeenMap]) -> TableFields:
    def find_maps(versions: TableVersions, since: LogPosition | None) -> Generator[list[SeenMap], None, None]:
        yield maps

    return fields_of(shape_of(source, options, name, find_maps), options)


# What is read --------------------------------------------------------------------------------


def plan_tables(
    options: ReadOptions, tables: Mapping[str, TableFields], *, known: SchemaHistory | None = None
) -> list[TablesTask]:
    """The ranges of one query of these tables; errors as `plan_tasks`. `known` is the schema history of a log that has
    lost its beginning."""
    with closing(open_source(options)) as source:
        options, selection, ranges = planned_ranges(source, options)
        versions = {name: versions_in(source, of_table(options, name), known=known) for name in tables}
    if options.host is not None:
        for one in versions.values():
            ranges = with_landmarks(ranges, one)
    planned = [
        tasks_between(of_table(options, name), fields, selection, ranges, versions[name])
        for name, fields in tables.items()
    ]
    return [TablesTask(dict(zip(tables, tasks, strict=True))) for tasks in zip(*planned, strict=True)]


def read_tables(task: TablesTask, left_out: Collection[str] = ()) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The record batches of one range, each with the name of its table; errors as `read_task`. Batches of a table are
    in the order of the log; without rows it has none, or an empty one. Tables `left_out`, also meanwhile, are not
    read."""
    first, options = task.first, task.options
    kernels = load_kernels(options) if options.is_strict and is_fast(first) else None
    if kernels is None:
        for name, one in task.tasks.items():
            if name not in left_out:
                yield from ((name, batch) for batch in read_task(one))
        return
    if options.host is None:
        expect_log(options, task.log_range, is_strict=True)
    freeze()
    readers = TableReaders(task.tasks, kernels, left_out)
    with closing(open_task(first)) as source:
        for batch in event_batches(source, task.log_range, kernels):
            yield from readers.record_batches(batch.of_groups(wanted_groups(batch.groups, first.selection)))
    readers.finish()


class TableReaders:
    """Hands events to those that may read them, by the table numbers of TABLE_MAP events."""

    def __init__(self, tasks: Mapping[str, ReadTask], kernels: Kernels, left_out: Collection[str] = ()) -> None:
        self._left_out = left_out
        self._kernels = kernels
        self._tasks = tasks
        self._columns = {name: columns_of(task, kernels) for name, task in tasks.items()}
        self._plain = PlainEvents(large_rows(next(iter(tasks.values())).options.row_event_max))
        self._takers: dict[int, set[str]] = {}  # by number: the tables that may have had it in this range

    def record_batches(self, batch: EventBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        for columns in self._columns.values():
            columns.begin(batch)
        for plain in self._plain.of(batch):
            for name, part in self._divided(plain):
                yield from ((name, found) for found in self._columns[name].of_plain(part))

    def finish(self) -> None:
        """Errors as `PlainEvents.finish`."""
        self._plain.finish()

    def _divided(self, batch: EventBatch) -> Iterator[tuple[str, EventBatch]]:
        starts, sizes = batch.events[:, EventColumn.START], batch.events[:, EventColumn.SIZE]
        types = batch.data[starts + TYPE_OFFSET]
        numbers = np.flatnonzero(IS_OF_TABLE[types])
        if not len(numbers):
            return
        self._learn(batch, numbers[types[numbers] == EventType.TABLE_MAP])
        ids, codes = np.unique(_table_ids(batch, numbers), return_inverse=True)
        is_short = sizes[numbers] < EVENT_HEADER_SIZE + TABLE_ID_SIZE
        takers = [self._takers.get(number) for number in ids.tolist()]
        for name in self._columns:
            if name in self._left_out:
                continue
            is_own = np.array([found is None or name in found for found in takers])  # unknown: its reader says why
            own = numbers[is_own[codes] | is_short]
            if len(own):
                yield name, replace(batch, events=batch.events[own])

    def _learn(self, batch: EventBatch, maps: Any) -> None:
        for number in last_of_each(batch, maps, EVENT_HEADER_SIZE, self._kernels):
            event = batch.event(number)
            with batch.naming_group(number):
                called = own_name(event)
            found = self._takers.setdefault(int.from_bytes(event[TABLE_ID], "little"), set())
            found.update(name for name, task in self._tasks.items() if _may_mean(task, called))


def _may_mean(task: ReadTask, name: TableName) -> bool:
    if task.versions.are_of_one:
        return task.versions.may_mean(*name)
    return TableFilter(task.options.tables).takes(name)


def _table_ids(batch: EventBatch, numbers: Any) -> Any:
    places = batch.events[numbers, EventColumn.START][:, None] + np.arange(TABLE_ID.start, TABLE_ID.stop)
    digits = batch.data[np.minimum(places, len(batch.data) - 1)].astype(np.int64)
    return (digits << TABLE_ID_BITS).sum(axis=1)
