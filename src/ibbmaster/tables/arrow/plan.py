"""Plans a query on the driver: the columns, the groups, and the ranges of the log."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar, cast

from ibbmaster.errors import ConfigurationError
from ibbmaster.gtid import GtidPosition
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.loading import load
from ibbmaster.logs.archive.place import archive_at
from ibbmaster.logs.classic.engine import ClassicBinlog, ClassicRange
from ibbmaster.logs.log.base_file import base_position
from ibbmaster.logs.log.directory import damage_handler, open_directory
from ibbmaster.logs.log.group_content import MakeReaders, RowReader, TableDecoder, TableFilter
from ibbmaster.logs.log.group_folding import defined_history
from ibbmaster.logs.log.interface import GroupSource, LogEngine, OnFault, is_staged
from ibbmaster.logs.log.large_rows import large_rows
from ibbmaster.logs.log.locating import ReadStart, locate, resume
from ibbmaster.logs.log.log_range import WHOLE_FILE, GroupSelection, LogRange
from ibbmaster.logs.log.schema_history import LoggedSchema
from ibbmaster.logs.store.redo_names import has_redo_log
from ibbmaster.position import LOG_START, LogPosition
from ibbmaster.rows.shape import SchemaMode, TableShape, united, version_shape
from ibbmaster.schema.history import SchemaHistory
from ibbmaster.schema.model import SchemaPlace, TableVersion
from ibbmaster.schema.names import unknown_names
from ibbmaster.schema.versions import NO_VERSIONS, NameRange, TableVersions, named_ranges, ranges_of
from ibbmaster.sqltext.table_name import parse_table_name
from ibbmaster.storage.disk.place import modified_at, open_disk, place
from . import live
from .collecting import event_batches
from .ddl_scan import scan_ddl
from .read_options import Granularity, ReadOptions, Undecodable
from .schema_reading import readable_history, schema_of_log, versions_between, versions_of
from .shape import ShapeField, TableFields, generic_shape, table_fields
from .staging import history_cache_of, staged_log, with_spans
from .table_maps import SeenMap, last_decoder, seen_maps, seen_maps_by_reference

_HISTORIES: dict[tuple[object, ...], SchemaHistory] = {}
OF_ROWS = (Granularity.ROWS, Granularity.FAULTS)  # what reads values
STAGED_BYTES = 1 << 20  # of a log whose groups go through stages one by one
BUNDLE_BYTES = 64 << 20  # of small files that one Spark task reads


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTask:
    """One range, and what its reader needs to know. Sent to a worker."""

    options: ReadOptions
    fields: tuple[ShapeField, ...]
    selection: GroupSelection
    log_range: LogRange
    versions: TableVersions = NO_VERSIONS


def open_log(options: ReadOptions) -> LogEngine:
    """Raises ConfigurationError: the path is an archive; StoreError: it holds no log, or cannot be read."""
    if archive_at(place(options.path)) is not None:
        raise ConfigurationError(
            f"{options.path} is an archive, and tables are read from files: `ibbmaster convert {options.path} DIR`"
        )
    return _opened(options)


def _opened(options: ReadOptions) -> LogEngine:
    log: LogEngine
    if options.is_classic:
        log = classic = ClassicBinlog([place(options.path)], reads_heads_at_once=False)
        if options.is_strict:
            classic.check_numbers()
    elif options.is_strict and _has_redo_log(options.path):
        from ibbmaster.logs.store.followed import WrittenDirectory

        log = WrittenDirectory(open_disk(options.path))
    else:
        log = open_directory(options.path, is_strict=options.is_strict)
    try:
        return staged_log(options, log)
    except BaseException:
        log.close()
        raise


def _has_redo_log(path: str) -> bool:
    with closing(open_disk(path)) as disk:
        return has_redo_log(disk)


def open_source(options: ReadOptions) -> GroupSource:
    return open_log(options) if options.host is None else live.LiveSource(options)


def open_task(task: ReadTask) -> GroupSource:
    log_range = task.log_range
    if isinstance(log_range, ClassicRange) and not task.options.stages:
        return ClassicBinlog.of_range(log_range)
    # What was planned is no archive: no range has to ask again.
    return _opened(task.options) if task.options.host is None else live.LiveSource(task.options)


def load_kernels(options: ReadOptions) -> Kernels | None:
    """None if kernels are unavailable, or not worth the wait."""
    return load() if options.uses_kernels else None


def row_reader(task: ReadTask, make_readers: MakeReaders | None = None) -> RowReader:
    return RowReader(
        TableFilter(task.options.tables),
        task.options.declarations,
        keeps_bytes=task.options.undecodable is Undecodable.BINARY,
        find_version=task.versions.at,
        make_readers=make_readers,
        means=task.versions.means if task.versions.are_of_one else None,
        large=large_rows(task.options.row_event_max),
    )


def versions_in(
    source: GroupSource, options: ReadOptions, *, to_end: bool = False, known: SchemaHistory | None = None
) -> TableVersions:
    """The versions of selected tables in what is read, or `to_end` of the log; with `table` those of the one table
    called so where its shape is taken. Raises PositionError: a GTID of the options is not in the log."""
    if options.granularity not in OF_ROWS:
        return NO_VERSIONS
    history, end = history_in(source, options, known)
    versions = selected_versions(options, history, None if end is None else SchemaPlace(end, 0))
    return versions if to_end or end is None else versions.between(LOG_START, end)


def history_in(
    source: GroupSource, options: ReadOptions, known: SchemaHistory | None = None
) -> tuple[SchemaHistory, LogPosition | None]:
    """The schema history unless it is `known`, and the end of what is read if the log goes on."""
    if options.host is not None:
        return live.read_history(options, live.whole_range(options)), None
    log = cast(LogEngine, source)
    history = known or history_of(options, log.with_past)
    return history, None if options.ending_gtid is None else end_of(options.ending_gtid, options, log)


def selected_versions(
    options: ReadOptions, history: SchemaHistory, end: SchemaPlace | None = None, *, goes_on: bool = False
) -> TableVersions:
    """`end` is that of what is read, unless it is the log's. A stream `goes_on`: afterwards it also wants whatever is
    called so."""
    if options.table is None:
        return versions_of(history, TableFilter(options.tables).takes)
    name = history.case.table_key(*parse_table_name(options.table))
    if options.schema_mode is SchemaMode.AS_WRITTEN:
        return versions_between(history, name, named_ranges(name))
    names = ranges_of(history, name, _schema_place(options) or end)
    return versions_between(history, name, (*names, NameRange(name, end, None)) if goes_on else names)


def ended(options: ReadOptions) -> ReadOptions:
    return options if options.host is None else live.ended(options)


def needs_rows(options: ReadOptions, history: SchemaHistory, *, goes_on: bool = False) -> bool:
    """Whether statements leave the one table of options undefined somewhere, so that its rows must define it. One that
    no statement names needs none unless the log `goes_on`."""
    if options.table is None:
        return False
    versions = selected_versions(options, history)
    return not versions.are_defined() or (goes_on and versions.newest() is None)


def history_of(options: ReadOptions, log: LogEngine) -> SchemaHistory:
    """The schema history, as far as the log can be read; rows define tables where options need that."""
    on_fault = damage_handler(is_strict=options.is_strict)
    if on_fault is not None:
        return readable_history_of(options, log, on_fault)
    return _history_of(options, log)


def readable_history_of(
    options: ReadOptions, log: LogEngine, on_fault: OnFault, *, goes_on: bool = False
) -> SchemaHistory:
    """The same of a log that may be damaged; `goes_on` as in `needs_rows`."""
    return defined_history(
        partial(readable_history, log, options.declarations, on_fault, options.name_case),
        partial(needs_rows, options, goes_on=goes_on),
    )


def _history_of(options: ReadOptions, log: LogEngine) -> SchemaHistory:
    """A process folds an unchanged log only once."""
    where = place(options.path)
    directory = where if where.is_dir() else where.parent
    listed = log.files()
    times = modified_at(directory, [file.name for file in listed])
    files = tuple((file.name, file.size, time) for file, time in zip(listed, times, strict=True))
    base = None if options.base is None else (options.base, base_position(Path(options.base)))
    given = repr((options.declarations, options.name_case, options.stages, base))
    begin = str(log.start_of_file().state)
    key = (options.path, options.uses_kernels, files, begin, str(log.end()), str(log.state()), given)

    def folded(takes_rows: bool) -> SchemaHistory:
        found = _HISTORIES.get((*key, takes_rows))
        if found is None:
            found = logged_schema(options, log, is_once=bool(options.stages), takes_rows=takes_rows).history()
            if not takes_rows:
                _HISTORIES.clear()
            _HISTORIES[(*key, takes_rows)] = found
        return found

    return defined_history(folded, partial(needs_rows, options))


def logged_schema(
    options: ReadOptions, log: LogEngine, *, is_once: bool = False, takes_rows: bool = False
) -> LoggedSchema:
    """`is_once` and `takes_rows` as in `LoggedSchema`."""
    can_scan = options.uses_kernels and not (is_staged(log) and log.choice is None)
    scan, cache = scan_ddl if can_scan else None, history_cache_of(options)
    return schema_of_log(
        log,
        options.declarations,
        cache,
        scan=scan,
        case=options.name_case,
        is_once=is_once,
        takes_rows=takes_rows,
        dump=None if options.base is None else Path(options.base),
    )


def end_of(gtid: str, options: ReadOptions, log: LogEngine) -> LogPosition:
    places = locate(log, GtidPosition.parse(gtid), on_fault=damage_handler(is_strict=options.is_strict))
    return max(places.values(), default=LOG_START)


def _schema_place(options: ReadOptions) -> SchemaPlace | None:
    if options.schema_at is None:
        return None
    with closing(open_log(options)) as log:
        return SchemaPlace(end_of(options.schema_at, options, log), 0)


def find_fields(options: ReadOptions) -> tuple[ShapeField, ...]:
    """The columns of the DataFrame. Raises ConfigurationError: a column is unknown, or the table is not in the log or
    has no names."""
    if options.table is None:
        return generic_shape(options.granularity, options.columns)
    return fields_of(find_shape(options, options.table), options)


def fields_of(shape: TableShape, options: ReadOptions) -> TableFields:
    keeps_bytes = options.undecodable is Undecodable.BINARY
    return table_fields(shape, options.zero_dates, options.columns, keeps_bytes=keeps_bytes)


def find_shape(options: ReadOptions, name: str) -> TableShape:
    """Raises ConfigurationError: no group changes rows of that table, or its columns are unknown where the shape is
    taken; PositionError: that place is not in the log."""
    options = ended(options)
    with closing(open_source(options)) as source:
        return shape_of(
            source, options, name, lambda versions, since: maps_backwards(source, options, versions.boundaries(), since)
        )


FindMaps = Callable[[TableVersions, LogPosition | None], Generator[list[SeenMap], None, None]]
"""Those of a log, part by part from its end on, at most to parts that end before a place."""


def shape_of(source: GroupSource, options: ReadOptions, name: str, find_maps: FindMaps) -> TableShape:
    """As `find_shape`, in the log of options."""
    options = of_table(options, name)
    is_whole = options.ending_gtid is None or options.schema_mode is SchemaMode.AT
    versions = versions_in(source, options, to_end=is_whole)
    newest = versions.newest(_schema_place(options))
    if options.schema_mode is SchemaMode.AT and newest is None:
        raise ConfigurationError(f"{name}: its columns at GTID {options.schema_at} are not known")
    to_end = versions if is_whole else versions_in(source, options, to_end=True)
    since = newest.since if isinstance(newest, TableVersion) else None
    with closing(find_maps(to_end, None if since is None else since.position)) as maps:
        written = _last_written(options, to_end, maps)
    if not isinstance(newest, TableVersion) and options.schema_mode is not SchemaMode.AT:
        if written is None and newest is None:
            if options.host is None and options.ending_gtid is not None:
                return shape_of(source, replace(options, ending_gtid=None), name, find_maps)
            where = options.path or options.host
            raise ConfigurationError(f"no group in {where} changes rows of table {name}, and none creates it")
        if written is not None and (newest is None or written.schema.has_names):
            return TableShape(schema=written.schema, version=written.known_version, mode=options.schema_mode)
    if not isinstance(newest, TableVersion):
        assert newest is not None
        raise ConfigurationError(str(unknown_names(newest)))
    if written is not None and written.version == newest:
        shape = TableShape(schema=written.schema, version=newest.shown, mode=options.schema_mode)
    else:
        shape = version_shape(name, newest, options.schema_mode)
    if options.schema_mode is SchemaMode.AS_WRITTEN:
        others = [one for one in versions.of(*parse_table_name(name)) if isinstance(one, TableVersion)]
        return united(shape, [version_shape(name, one) for one in reversed(others)])
    return shape


def of_table(options: ReadOptions, name: str) -> ReadOptions:
    return replace(options, table=name, tables=(name,))


def _last_written(
    options: ReadOptions, versions: TableVersions, maps: Iterable[Sequence[SeenMap]]
) -> TableDecoder | None:
    reader = RowReader(declarations=options.declarations, find_version=versions.at, means=versions.means)
    found = (last_decoder(seen, reader) for seen in maps)
    return next((one for one in found if one is not None), None)


def maps_backwards(
    source: GroupSource, options: ReadOptions, boundaries: Sequence[SchemaPlace], since: LogPosition | None = None
) -> Generator[list[SeenMap], None, None]:
    """The tables that each range writes to, from the last to the first that ends after a place. Errors as
    `event_batches`, of damage that fails."""
    kernels = load_kernels(options) if options.is_strict else None
    on_fault = damage_handler(is_strict=options.is_strict)
    for log_range in _ranges_backwards(options, source):
        if since is not None and LogPosition(log_range.file_no, log_range.end_offset) <= since:
            return
        if kernels is not None:
            yield seen_maps(event_batches(source, log_range, kernels), boundaries, kernels)
        else:
            yield seen_maps_by_reference(source.groups_in(log_range, on_fault=on_fault), boundaries)


def _ranges_backwards(options: ReadOptions, source: GroupSource) -> Iterator[LogRange]:
    """Ranges of what is there now, backwards: those of the last file, of two more, of four more."""
    if options.host is not None:
        yield live.whole_range(options)
        return
    log = cast(LogEngine, source)
    size = min(options.partition_bytes, STAGED_BYTES) if options.stages else options.partition_bytes
    end = log.end()
    yield from reversed(log.ranges(LogPosition(end.file_no, 0), end, size=size))
    numbers = [file.file_no for file in log.files() if file.file_no < end.file_no]
    count = 2
    while numbers:
        begin, end = LogPosition(numbers[-count:][0], 0), LogPosition(numbers[-1], WHOLE_FILE)
        yield from reversed(log.ranges(begin, end, size=size))
        del numbers[-count:]
        count *= 2


def find_selection(options: ReadOptions, log: LogEngine) -> tuple[LogPosition, GroupSelection]:
    """The selected groups, and a place before all of them. Raises PositionError: a GTID of the options is not in the
    log."""
    on_fault = damage_handler(is_strict=options.is_strict)
    start = ReadStart(LOG_START, {})
    ends: dict[int, LogPosition] | None = None
    if options.starting_gtid:
        start = resume(log, GtidPosition.parse(options.starting_gtid), on_fault=on_fault)
    if options.ending_gtid is not None:
        position = GtidPosition.parse(options.ending_gtid)
        ends = locate(log, position, on_fault=on_fault) if options.ending_gtid else {}
    begin = start.begin
    if options.domains and options.domains <= set(start.starts):
        begin = max(begin, min(start.starts[domain] for domain in options.domains))
    selection = selection_of(options, tuple(start.starts.items()))
    return begin, selection if ends is None else replace(selection, ends=tuple(ends.items()))


def selection_of(options: ReadOptions, starts: tuple[tuple[int, LogPosition], ...] = ()) -> GroupSelection:
    return GroupSelection(
        starts=starts, domains=options.domains, start_time=options.starting_time, end_time=options.ending_time
    )


def plan_tasks(options: ReadOptions, fields: tuple[ShapeField, ...]) -> list[ReadTask]:
    """The ranges of one batch query, whose end is fixed here. Raises PositionError: a GTID of the options is not in the
    log; StoreError: the log has a hole, or there is none."""
    with closing(open_source(options)) as source:
        options, selection, ranges = planned_ranges(source, options)
        return tasks_between(options, fields, selection, ranges, versions_in(source, options))


def planned_ranges(source: GroupSource, options: ReadOptions) -> tuple[ReadOptions, GroupSelection, list[LogRange]]:
    """Options whose end stays, the selected groups, and their ranges; errors as `plan_tasks`."""
    if options.host is not None:
        options = ended(options)
        return options, selection_of(options), [live.whole_range(options)]
    log = cast(LogEngine, source)
    options = with_spans(options, log)
    start, selection = find_selection(options, log)
    end = log.end()
    if selection.ends is not None:
        end = min(end, max((position for _, position in selection.ends), default=LOG_START))
    return options, selection, log.ranges(start, end, size=options.partition_bytes)


class RangeTask(Protocol):
    @property
    def log_range(self) -> LogRange: ...

    @property
    def options(self) -> ReadOptions: ...


Task = TypeVar("Task", bound=RangeTask)


def bundled(tasks: Sequence[Task]) -> list[list[Task]]:
    """Small neighbours put together, in order."""
    bundles: list[list[Task]] = []
    size = 0
    for task in tasks:
        length = task.log_range.length
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
    """One task a range, with the versions of tables that hold there."""
    if options.host is not None:
        ranges = live.with_landmarks(ranges, versions)
    return [
        ReadTask(
            options=options,
            fields=fields,
            selection=selection,
            log_range=log_range,
            versions=versions.between(
                *(LogPosition(log_range.file_no, at) for at in (log_range.start_offset, log_range.end_offset))
            ),
        )
        for log_range in ranges
    ]
