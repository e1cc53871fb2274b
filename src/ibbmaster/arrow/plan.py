"""What a query reads, decided on the driver: the columns, which groups, and the ranges of the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ibbmaster.arrow.collecting import event_batches
from ibbmaster.arrow.ddl_scan import scan_ddl
from ibbmaster.arrow.event_batch import EventBatch
from ibbmaster.arrow.read_options import Granularity, ReadOptions, Undecodable
from ibbmaster.arrow.schema_reading import readable_history, schema_of_log, versions_of
from ibbmaster.arrow.shape import ShapeField, generic_shape, table_fields
from ibbmaster.classic.engine import ClassicBinlog
from ibbmaster.errors import ConfigurationError
from ibbmaster.event.header import TYPE_OFFSET
from ibbmaster.event.types import EventType
from ibbmaster.gtid import GtidPosition
from ibbmaster.kernel.cache import KernelSet
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import EventColumn
from ibbmaster.kernel.loading import load
from ibbmaster.log.group_content import MakeReaders, RowReader, TableDecoder, TableFilter, group_events
from ibbmaster.log.history_cache import HistoryCache
from ibbmaster.log.interface import GroupSource, LogEngine
from ibbmaster.log.locating import locate
from ibbmaster.log.log_range import GroupSelection, LogRange
from ibbmaster.log.schema_history import LoggedSchema
from ibbmaster.log.strictness import damage_handler, open_directory
from ibbmaster.position import LOG_START, LogPosition
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import SchemaPlace, TableVersion
from ibbmaster.schema.names import unknown_names
from ibbmaster.schema.shape import SchemaMode, TableShape, united, version_shape
from ibbmaster.schema.versions import NO_VERSIONS, TableState, TableVersions

_HISTORIES: dict[tuple[object, ...], SchemaHistory] = {}  # the last one
OF_ROWS = (Granularity.ROWS, Granularity.FAULTS)  # what reads values
BUNDLE_BYTES = 64 << 20  # of small files that one Spark task reads; it costs as much as to read some of them


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTask:
    """One range, and all that its reader needs to know. Sent to a worker."""

    options: ReadOptions
    fields: tuple[ShapeField, ...]
    selection: GroupSelection
    log_range: LogRange
    versions: TableVersions = NO_VERSIONS  # of the tables that are asked for, in this range


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


def row_reader(task: ReadTask, make_readers: MakeReaders | None = None) -> RowReader:
    """What reads the changes of rows that a task selects."""
    return RowReader(
        TableFilter(task.options.tables),
        task.options.declarations,
        keeps_bytes=task.options.undecodable is Undecodable.BINARY,
        find_version=task.versions.at,
        make_readers=make_readers,
    )


def find_versions(options: ReadOptions, *, to_end: bool = False) -> TableVersions:
    """The versions of the tables that options select, of what is read, or `to_end` of the log; none of a primary.

    Raises:
        PositionError: a GTID of the options is not in the log.
    """
    if options.host is not None or options.granularity not in OF_ROWS:
        return NO_VERSIONS
    with closing(open_log(options)) as log:
        on_fault = damage_handler(is_strict=options.is_strict)
        if on_fault is not None:
            history = readable_history(log, options.declarations, on_fault, options.name_case)
        else:
            history = _history_of(options, log)
        versions = versions_of(history, TableFilter(options.tables).takes)
        if to_end or options.ending_gtid is None:
            return versions
        return versions.between(LOG_START, _end_of(options.ending_gtid, options, log))


def _history_of(options: ReadOptions, log: LogEngine) -> SchemaHistory:
    """The schema history of a log; one that has not changed since is folded once in a process."""
    files = tuple((file.name, file.size, _modified_at(options.path, file.name)) for file in log.files())
    told = repr((options.declarations, options.name_case))
    key = (options.path, options.uses_kernels, files, str(log.end()), str(log.state()), told)
    found = _HISTORIES.get(key)
    if found is None:
        found = logged_schema(options, log).history()
        _HISTORIES.clear()
        _HISTORIES[key] = found
    return found


def _modified_at(path: str, name: str) -> int:
    """When a file of a log was written last, in nanoseconds; 0 if that cannot be told."""
    place = Path(path)
    try:
        return (place / name if place.is_dir() else place).stat().st_mtime_ns
    except OSError:
        return 0


def logged_schema(options: ReadOptions, log: LogEngine) -> LoggedSchema:
    """The schema history of the log of options."""
    scan = scan_ddl if options.uses_kernels else None
    cache = HistoryCache(Path(options.path), is_written=False)
    return schema_of_log(log, options.declarations, cache, scan=scan, case=options.name_case)


def _end_of(gtid: str, options: ReadOptions, log: LogEngine) -> LogPosition:
    """Behind a position."""
    places = locate(log, GtidPosition.parse(gtid), on_fault=damage_handler(is_strict=options.is_strict))
    return max(places.values(), default=LOG_START)


def _schema_place(options: ReadOptions) -> SchemaPlace:
    """Behind the GTID whose shape is asked for."""
    assert options.schema_at is not None
    with closing(open_log(options)) as log:
        return SchemaPlace(_end_of(options.schema_at, options, log), 0)


def find_fields(options: ReadOptions) -> tuple[ShapeField, ...]:
    """The columns of the DataFrame.

    Raises:
        ConfigurationError: a column is unknown, or the table is not in the log or has no names.
    """
    if options.table is None:
        return generic_shape(options.granularity, options.columns)
    return table_fields(
        find_shape(options, options.table),
        options.zero_dates,
        options.columns,
        keeps_bytes=options.undecodable is Undecodable.BINARY,
    )


def find_shape(options: ReadOptions, name: str) -> TableShape:
    """The shape in which options read a table.

    Raises:
        ConfigurationError: no group changes rows of that table, or its columns are not known where the shape is taken.
        PositionError: that place is not in the log.
    """
    written = _last_written(options, name, find_versions(options, to_end=True))
    versions = find_versions(options)
    database, _, table = name.partition(".")
    newest: TableState | None = versions.last(database, table)
    if options.schema_mode is SchemaMode.AT:
        newest = versions.at(database, table, _schema_place(options))
        if newest is None:
            raise ConfigurationError(f"{name}: its columns at GTID {options.schema_at} are not known")
    elif newest is None or (written.schema.has_names and not isinstance(newest, TableVersion)):
        return TableShape(schema=written.schema, version=written.known_version, mode=options.schema_mode)
    if not isinstance(newest, TableVersion):
        raise ConfigurationError(str(unknown_names(newest)))
    if written.version == newest:
        shape = TableShape(schema=written.schema, version=newest, mode=options.schema_mode)
    else:
        shape = version_shape(name, newest, options.schema_mode)
    if options.schema_mode is SchemaMode.AS_WRITTEN:
        others = [one for one in versions.of(database, table) if isinstance(one, TableVersion)]
        return united(shape, [version_shape(name, one) for one in reversed(others)])
    return shape


def _last_written(options: ReadOptions, name: str, versions: TableVersions) -> TableDecoder:
    """What reads the table as the log has it last: looks from the end, range by range.

    Raises:
        ConfigurationError: no group changes that table.
    """
    ranges = _all_ranges(options)
    with closing(open_source(options)) as source:
        reader = RowReader(TableFilter((name,)), options.declarations, find_version=versions.at)
        kernels = load_kernels(options) if options.is_strict else None
        for log_range in reversed(ranges):
            if kernels is not None:
                found = _last_decoder(event_batches(source, log_range, kernels), reader)
            else:
                found = _last_decoder_by_reference(options, source, log_range, reader)
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


def _last_decoder(batches: Iterable[EventBatch], reader: RowReader) -> TableDecoder | None:
    """What reads the table of a reader as the last TABLE_MAP has it; others are looked at once."""
    import numpy as np

    found: TableDecoder | None = None
    others: set[bytes] = set()
    for batch in batches:
        types = batch.data[batch.events[:, EventColumn.START] + TYPE_OFFSET]
        for number in reversed(np.flatnonzero(types == EventType.TABLE_MAP).tolist()):
            event = batch.event(number)
            if event in others:
                continue
            decoder = reader.decoder(event, batch.schema_place(number))
            if decoder is not None:
                found = decoder
                break
            others.add(event)
    return found


def _last_decoder_by_reference(
    options: ReadOptions, source: GroupSource, log_range: LogRange, reader: RowReader
) -> TableDecoder | None:
    found = None
    for group in source.groups_in(log_range, on_fault=damage_handler(is_strict=options.is_strict)):
        for found in reader.decoders(group_events(group), group.start):  # noqa: B007  # the last one is wanted
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
        return tasks_between(options, fields, selection, _all_ranges(options), NO_VERSIONS)
    with closing(open_log(options)) as log:
        selection = find_selection(options, log)
        end = log.end()
        if selection.ends is not None:
            end = min(end, max((position for _, position in selection.ends), default=LOG_START))
        start = LOG_START
        if selection.starts and set(options.domains) and set(options.domains) <= set(dict(selection.starts)):
            start = min(position for domain, position in selection.starts if domain in options.domains)
        ranges = log.ranges(start, end, size=options.partition_bytes)
        return tasks_between(options, fields, selection, ranges, find_versions(options))


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
    options: ReadOptions,
    fields: tuple[ShapeField, ...],
    selection: GroupSelection,
    ranges: list[LogRange],
    versions: TableVersions,
) -> list[ReadTask]:
    """One task a range, each with the versions of tables that hold there."""
    return [
        ReadTask(
            options=options,
            fields=fields,
            selection=selection,
            log_range=log_range,
            versions=versions.between(
                LogPosition(log_range.file_no, log_range.start_offset),
                LogPosition(log_range.file_no, log_range.end_offset),
            ),
        )
        for log_range in ranges
    ]
