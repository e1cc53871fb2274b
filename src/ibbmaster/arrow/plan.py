"""What a query reads, decided on the driver: the columns, which groups, and the ranges of the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ibbmaster.arrow.cell import cell_reader
from ibbmaster.arrow.collecting import event_batches
from ibbmaster.arrow.event_batch import EventBatch
from ibbmaster.arrow.read_options import ReadOptions, Undecodable
from ibbmaster.arrow.shape import ShapeField, column_type, generic_shape, named_as_fields, table_shape
from ibbmaster.classic.engine import ClassicBinlog
from ibbmaster.errors import ConfigurationError
from ibbmaster.event.header import TYPE_OFFSET
from ibbmaster.event.rows.column import Column, TableSchema
from ibbmaster.event.rows.value import Reader
from ibbmaster.event.types import EventType
from ibbmaster.gtid import GtidPosition
from ibbmaster.kernel.cache import KernelSet
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import EventColumn
from ibbmaster.kernel.loading import load
from ibbmaster.log.group_content import RowReader, TableFilter, group_events
from ibbmaster.log.interface import GroupSource, LogEngine
from ibbmaster.log.locating import locate
from ibbmaster.log.log_range import GroupSelection, LogRange
from ibbmaster.log.strictness import damage_handler, open_directory
from ibbmaster.position import LOG_START, LogPosition

BUNDLE_BYTES = 64 << 20  # of small files that one Spark task reads; it costs as much as to read some of them


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTask:
    """One range, and all that its reader needs to know. Sent to a worker."""

    options: ReadOptions
    fields: tuple[ShapeField, ...]
    selection: GroupSelection
    log_range: LogRange


def open_log(options: ReadOptions) -> LogEngine:
    """The log at the path of options."""
    if options.is_classic:
        return ClassicBinlog([Path(options.path)])
    return open_directory(options.path, is_strict=options.is_strict)


def open_source(options: ReadOptions) -> GroupSource:
    """The log or the primary that options name."""
    if options.host is not None:
        from ibbmaster.arrow.live import LiveSource

        return LiveSource(options)
    return open_log(options)


def load_kernels(options: ReadOptions) -> Kernels | None:
    """The kernels that read; None where they cannot be had, or shall not be waited for."""
    return load(KernelSet.READ) if options.uses_kernels else None


def row_reader(options: ReadOptions) -> RowReader:
    """What reads the changes of rows that options select: of one table as cells, of any as values."""
    keeps_bytes = options.undecodable is Undecodable.BINARY
    if options.table is None:
        return RowReader(TableFilter(options.tables), options.declarations, keeps_bytes=keeps_bytes)

    def read_cells(column: Column) -> Reader:
        return cell_reader(column, column_type(column, options.zero_dates))

    return RowReader(
        TableFilter(options.tables),
        options.declarations,
        keeps_bytes=keeps_bytes,
        named=named_as_fields,
        reader_of=read_cells,
    )


def find_fields(options: ReadOptions) -> tuple[ShapeField, ...]:
    """The columns of the DataFrame.

    Raises:
        ConfigurationError: a column is unknown, or the table is not in the log or has no names.
    """
    if options.table is None:
        return generic_shape(options.granularity, options.columns)
    return table_shape(
        find_table(options, options.table),
        options.zero_dates,
        options.columns,
        keeps_bytes=options.undecodable is Undecodable.BINARY,
    )


def find_table(options: ReadOptions, name: str) -> TableSchema:
    """The table as the log has it last, its columns called as in a DataFrame: looks from the end, range by range.

    Raises:
        ConfigurationError: no group changes that table.
    """
    ranges = _all_ranges(options)
    with closing(open_source(options)) as source:
        reader = RowReader(TableFilter((name,)), options.declarations, named=named_as_fields)
        kernels = load_kernels(options) if options.is_strict else None
        for log_range in reversed(ranges):
            if kernels is not None:
                found = _last_schema(event_batches(source, log_range, kernels), reader)
            else:
                found = _last_schema_by_reference(options, source, log_range, reader)
            if found is not None:
                return found
    raise ConfigurationError(f"no group in {options.path or options.host} changes rows of table {name}")


def _all_ranges(options: ReadOptions) -> list[LogRange]:
    """Ranges with all that is there now."""
    if options.host is not None:
        from ibbmaster.arrow.live import whole_range

        return [whole_range(options)]
    with closing(open_log(options)) as log:
        return log.ranges(LOG_START, log.end(), size=options.partition_bytes)


def _last_schema(batches: Iterable[EventBatch], reader: RowReader) -> TableSchema | None:
    """The table of a reader as the last TABLE_MAP has it; others are looked at once."""
    import numpy as np

    found: TableSchema | None = None
    others: set[bytes] = set()
    for batch in batches:
        types = batch.data[batch.events[:, EventColumn.START] + TYPE_OFFSET]
        for number in reversed(np.flatnonzero(types == EventType.TABLE_MAP).tolist()):
            event = batch.event(number)
            if event in others:
                continue
            decoder = reader.decoder(event)
            if decoder is not None:
                found = decoder.schema
                break
            others.add(event)
    return found


def _last_schema_by_reference(
    options: ReadOptions, source: GroupSource, log_range: LogRange, reader: RowReader
) -> TableSchema | None:
    found = None
    for group in source.groups_in(log_range, on_fault=damage_handler(is_strict=options.is_strict)):
        for found in reader.schemas(group_events(group)):  # noqa: B007  # the last one is wanted
            pass
    return found


def find_selection(options: ReadOptions, log: LogEngine) -> GroupSelection:
    """Which groups the options select.

    Raises:
        PositionError: a GTID of them is not in the log.
    """
    on_fault = damage_handler(is_strict=options.is_strict)
    starts: dict[int, LogPosition] = {}
    ends: dict[int, LogPosition] | None = None
    if options.starting_gtid:
        starts = locate(log, GtidPosition.parse(options.starting_gtid), on_fault=on_fault)
    if options.ending_gtid is not None:
        position = GtidPosition.parse(options.ending_gtid)
        ends = locate(log, position, on_fault=on_fault) if options.ending_gtid else {}
    return GroupSelection(
        starts=tuple(starts.items()),
        ends=None if ends is None else tuple(ends.items()),
        domains=options.domains,
        start_time=options.starting_time,
        end_time=options.ending_time,
    )


def plan_tasks(options: ReadOptions, fields: tuple[ShapeField, ...]) -> list[ReadTask]:
    """The ranges of one batch query; the end is fixed here, so a log that grows gives one answer.

    Raises:
        PositionError: a GTID of the options is not in the log.
        StoreError: the log has a hole, or there is none.
    """
    if options.host is not None:
        selection = GroupSelection(
            domains=options.domains, start_time=options.starting_time, end_time=options.ending_time
        )
        return tasks_between(options, fields, selection, _all_ranges(options))
    with closing(open_log(options)) as log:
        selection = find_selection(options, log)
        end = log.end()
        if selection.ends is not None:
            end = min(end, max((position for _, position in selection.ends), default=LOG_START))
        start = LOG_START
        if selection.starts and set(options.domains) and set(options.domains) <= set(dict(selection.starts)):
            start = min(position for domain, position in selection.starts if domain in options.domains)
        return tasks_between(options, fields, selection, log.ranges(start, end, size=options.partition_bytes))


def bundled(tasks: Sequence[ReadTask]) -> list[list[ReadTask]]:
    """Neighbours put together where they are small, in order."""
    bundles: list[list[ReadTask]] = []
    size = 0
    for task in tasks:
        length = task.log_range.end_offset - task.log_range.start_offset
        if not bundles or size + length > min(BUNDLE_BYTES, task.options.partition_bytes):
            bundles.append([])
            size = 0
        bundles[-1].append(task)
        size += length
    return bundles


def tasks_between(
    options: ReadOptions, fields: tuple[ShapeField, ...], selection: GroupSelection, ranges: list[LogRange]
) -> list[ReadTask]:
    """One task a range."""
    return [ReadTask(options=options, fields=fields, selection=selection, log_range=log_range) for log_range in ranges]
