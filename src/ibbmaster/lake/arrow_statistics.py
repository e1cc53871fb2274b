"""How much an archive holds, counted in one process: as `lake.statistics`, without a JVM."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ibbmaster.arrow.plan import find_fields, plan_tasks
from ibbmaster.arrow.read_options import Granularity, ReadOptions
from ibbmaster.arrow.reading import read_task
from ibbmaster.lake.statistics import BIGGEST, Table

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = {"insert": "inserts", "update_postimage": "updates", "delete": "deletes"}


class _Sums:
    """Groups, their bytes and events."""

    def __init__(self) -> None:
        self.groups = self.bytes = self.events = 0

    def take(self, size: int, events: int) -> None:
        self.groups += 1
        self.bytes += size
        self.events += events

    def shown(self) -> dict[str, object]:
        return {"groups": self.groups, "bytes": self.bytes, "events": self.events}


def count_log(options: ReadOptions) -> dict[str, Table]:
    """What `lake.statistics.statistics` counts.

    Raises:
        FormatError, ClassicFormatError, EventError: the archive is damaged.
    """
    domains, hours, of_tables = (
        defaultdict[int, _Sums](_Sums),
        defaultdict[Any, _Sums](_Sums),
        defaultdict[str, int](int),
    )
    biggest: list[tuple[int, str, int, list[str]]] = []
    columns = ("_gtid", "_domain", "_commit_ts", "events", "bytes", "tables")
    for batch in _batches(replace(options, granularity=Granularity.GROUPS, columns=columns)):
        for gtid, domain, moment, events, size, tables in zip(*(one.to_pylist() for one in batch.columns), strict=True):
            domains[domain].take(size, events)
            hours[moment.replace(minute=0, second=0, tzinfo=None)].take(size, events)
            for table in set(tables):
                of_tables[table] += 1
            biggest.append((-size, gtid, events, tables))
        biggest = heapq.nsmallest(BIGGEST, biggest)
    changes = _count_changes(options)
    return {
        "domains": [{"domain": domain, **domains[domain].shown()} for domain in sorted(domains)],
        "hours": [{"hour": hour, **hours[hour].shown()} for hour in sorted(hours)],
        "biggest": [
            {"gtid": gtid, "bytes": -size, "events": events, "tables": tables} for size, gtid, events, tables in biggest
        ],
        "tables": [
            {"table": table, "groups": of_tables[table], **_counted(changes.get(table))} for table in sorted(of_tables)
        ],
    }


def _count_changes(options: ReadOptions) -> dict[str, dict[str, int]]:
    """How many changes of each kind, by table."""
    import pyarrow.compute as pc

    found: dict[str, dict[str, int]] = {}
    for batch in _batches(replace(options, columns=("_table", "_change_type"))):
        both = pc.binary_join_element_wise(batch["_table"], batch["_change_type"], "\0")
        for one in pc.value_counts(both).to_pylist():
            table, _, kind = one["values"].rpartition("\0")
            counts = found.setdefault(table, dict.fromkeys(KINDS.values(), 0))
            if kind in KINDS:
                counts[KINDS[kind]] += one["counts"]
    return found


def _counted(counts: dict[str, int] | None) -> dict[str, object]:
    if counts is None:
        return dict.fromkeys(("rows", *KINDS.values()))
    return {"rows": sum(counts.values()), **counts}


def _batches(options: ReadOptions) -> Iterator[pa.RecordBatch]:
    fields = find_fields(options)
    for task in plan_tasks(options, fields):
        yield from read_task(task)
