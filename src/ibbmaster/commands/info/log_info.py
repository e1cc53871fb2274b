"""The answer of `ibbmaster info` as numbers and texts. The fields: docs/json.md."""

from collections.abc import Callable
from pathlib import Path

from ibbmaster.api.log_files import LogFiles, stored_bytes
from ibbmaster.errors import StoreError
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.loading import do_pay, has_numpy, load
from ibbmaster.logs.log.directory import kernel_source
from ibbmaster.logs.log.interface import GroupSource, LogEngine
from ibbmaster.logs.log.log_range import LogRange
from ibbmaster.position import LOG_START
from ibbmaster.sizes import time_text
from .counting import GroupCounter, take_start
from .statistics import ChangeSum, DomainSum, GroupSum, LogStatistics, TableSum

RANGE_BYTES = 64 << 20
OnBytes = Callable[[int], object]
Facts = dict[str, object]


def log_info(
    path: Path,
    engine: LogEngine,
    stored: LogFiles,
    file_no: int | None = None,
    *,
    on_bytes: OnBytes = lambda count: None,
) -> Facts:
    """A log in `stored` files, or one of its `.ibb` files. `on_bytes` receives the bytes of further events. Raises
    EventError, FormatError, ClassicFormatError: the log is damaged; StoreError: there is none, or it is unreadable."""
    found = [file for file in engine.files() if file.size]
    if not found:
        raise StoreError(f"{path}: no binlog files (binlog-000000.ibb and so on)")
    names = {file.name for file in found if file_no in (None, file.file_no)}
    files = [facts for facts in stored.facts() if facts["name"] in names]
    redo = stored.redo() if file_no is None else None
    statistics = summarize(engine, stored_bytes(path, found), file_no, on_bytes=on_bytes)
    state = engine.state()
    for facts in files:
        if "server_version" in facts:
            statistics.servers[str(facts["server_version"])] += bool(facts["server_start"])
    return {
        "path": str(path),
        "format": stored.format_name,
        "files": files,
        "redo_log": None if redo is None else redo.as_json() | {"in_use": redo.is_in_use, "text": redo.line()},
        "gtid_position": str(state.position()),
        "gtid_state": str(state),
        "checksums": " and ".join(sorted({str(facts["checksums"]) for facts in files if "checksums" in facts})),
        **statistics_facts(statistics),
    }


def summarize(
    engine: LogEngine, size: int, file_no: int | None = None, *, on_bytes: OnBytes = lambda count: None
) -> LogStatistics:
    """Every group, or those that end in an `.ibb` file; by kernels where that pays for `size` bytes."""
    kernels = load() if has_numpy() and do_pay(size) else None
    statistics = LogStatistics()
    with kernel_source(engine) as source:
        ranges = [
            one
            for one in source.ranges(LOG_START, engine.end(), size=RANGE_BYTES)
            if file_no is None or one.file_no == file_no
        ]
        if kernels is None:
            _count_groups(source, ranges, statistics, on_bytes)
        else:
            from ibbmaster.tables.arrow.collecting import event_batches
            from .fast_counting import BatchCounter

            counter = BatchCounter(statistics, kernels)
            for log_range in ranges:
                on_start = lambda group: take_start(statistics, group)  # noqa: E731 - as a callback
                for batch in event_batches(source, log_range, kernels, on_start=on_start):
                    on_bytes(counter.take(batch))
            counter.finish()
    return statistics


def _count_groups(source: GroupSource, ranges: list[LogRange], statistics: LogStatistics, on_bytes: OnBytes) -> None:
    counter = GroupCounter(statistics)
    for log_range in ranges:
        for group in source.groups_in(log_range):
            size = statistics.size
            counter.take(group, source.file_name)
            on_bytes(statistics.size - size)


def statistics_facts(statistics: LogStatistics) -> Facts:
    """Times are UTC."""
    pause = statistics.longest_pause
    return {
        "groups": statistics.groups,
        "events": statistics.events,
        "bytes": statistics.size,
        "first": _moment(statistics.first),
        "last": _moment(statistics.last),
        "earliest": time_text(statistics.earliest) if statistics.groups else None,
        "latest": time_text(statistics.latest) if statistics.groups else None,
        "clock_steps_back": statistics.clock_steps_back,
        "longest_pause": None
        if pause is None
        else {
            "seconds": pause.seconds,
            "from": time_text(pause.timestamp),
            "after": str(pause.after),
            "before": str(pause.before),
        },
        "domains": [_domain_facts(one, statistics.domains[one]) for one in sorted(statistics.domains)],
        "tables": [_table_facts(name, statistics.tables[name]) for name in sorted(statistics.tables)],
        "largest": [_group_facts(group) for group in statistics.largest()],
        "event_types": [
            {"type": name, "events": count, "bytes": size} for name, (count, size) in statistics.types_by_name().items()
        ],
        "compressed_events": statistics.compressed_events,
        "annotations": statistics.annotations,
        "servers": [{"version": one, "starts": statistics.servers[one]} for one in sorted(statistics.servers)],
        "time_line": {
            "span_seconds": statistics.time_line.span_s,
            "spans": [
                {"from": time_text(since), "groups": groups, "bytes": size}
                for since, groups, size in statistics.time_line.rows()
            ],
        },
    }


def _moment(found: tuple[Gtid, int] | None) -> Facts | None:
    return None if found is None else {"gtid": str(found[0]), "time": time_text(found[1])}


def _domain_facts(domain_id: int, found: DomainSum) -> Facts:
    return {
        "domain": domain_id,
        "groups": found.groups,
        "bytes": found.size,
        "first": str(found.first),
        "last": str(found.last),
        "gap_count": found.gap_count,
        "missing": found.missing,
        "gaps": [{"after": str(gap.after), "before": str(gap.before), "missing": gap.missing} for gap in found.gaps],
        "steps_back": found.steps_back,
        "servers": [
            {"server_id": server, "groups": pair.groups, "bytes": pair.size, "first": pair.first, "last": pair.last}
            for server, pair in sorted(found.pairs.items())
        ],
    }


def _table_facts(name: str, found: TableSum) -> Facts:
    return {
        "table": name,
        **{
            kind.value: {"count": found.counts[kind], "bytes": found.sizes[kind]}
            if found.is_counted or kind is ChangeSum.DDL
            else None
            for kind in ChangeSum
        },
        "column_names": found.has_names,
    }


def _group_facts(group: GroupSum) -> Facts:
    return {
        "gtid": str(group.gtid),
        "bytes": group.size,
        "events": group.events,
        "time": time_text(group.timestamp),
        "file_no": group.start.file_no,
        "file_offset": group.start.offset,
        "tables": list(group.tables),
    }
