"""Rows: how long the schema history of a log takes, folded from its DDL and taken from its cache."""

from __future__ import annotations

import gc
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import ibbmaster
from benchmarks.figures import Bench, Figure, Target, rows, spread
from ibbmaster.logs.log.history_cache import HistoryCache
from ibbmaster.logs.log.interface import LogEngine
from ibbmaster.logs.log.schema_history import LoggedSchema
from ibbmaster.tables.arrow.ddl_scan import scan_ddl

GROUPS = 100_000
DDL_EVERY = 100  # groups
TABLES = 50
CREATE = (
    "CREATE TABLE t{} (id INT PRIMARY KEY, a VARCHAR(20) NOT NULL DEFAULT 'x', b DATETIME(6), c DECIMAL(20,4), d TEXT, "
    "e ENUM('a','b'), KEY (a), KEY (b, c))"
)


def build(directory: Path, groups: int) -> None:
    """A log of so many groups, in which tables are made and altered."""
    with ibbmaster.create(directory, durability="later") as log:
        for number in range(groups):
            statement = f"INSERT INTO t VALUES ({number})"
            if number % DDL_EVERY == 0:
                nth = number // DDL_EVERY
                alter = f"ALTER TABLE t{nth % TABLES} ADD COLUMN c{nth} INT DEFAULT {nth} AFTER a"
                statement = CREATE.format(nth) if nth < TABLES else alter
            log.append(f"0-1-{number + 1}", statement, database="d")


def seconds_of_history(log: LogEngine, cache: HistoryCache | None) -> float:
    """Processor time, so that a busy machine does not count, and without what earlier rounds have left to collect."""
    gc.collect()
    begun = time.process_time()
    LoggedSchema(log, cache=cache, scan=scan_ddl).history()
    return time.process_time() - begun


@rows("schema")
def histories(bench: Bench) -> Iterator[Figure]:
    """Folding, of which the limit is the scan alone; and opening with the cache."""
    groups = int(bench.pick(GROUPS, GROUPS // 10))
    with tempfile.TemporaryDirectory(dir=bench.base) as name:
        directory = Path(name) / "log"
        build(directory, groups)
        opened = ibbmaster.open(directory)
        log, cache = opened.engine, opened.history_cache
        seconds_of_history(log, cache)  # writes the cache, and loads the kernels

        def scan() -> float:
            begun = time.process_time()
            scan_ddl(log, lambda *_: None)
            return time.process_time() - begun

        found = bench.rounds(
            {
                "fold": lambda: seconds_of_history(log, None),
                "scan": scan,
                "cached": lambda: seconds_of_history(log, cache),
            }
        )
    yield Figure(
        name=f"schema history of {groups:,} groups with {groups // DDL_EVERY:,} DDL, folded",
        unit="s CPU",
        ours=statistics.median(found["fold"]),
        spread=spread(found["fold"]),
        limit=statistics.median(found["scan"]),
        limit_name="scan alone",
        target=Target(value=2, is_ceiling=True),
    )
    yield Figure(
        name="the same from its cache",
        unit="ms CPU",
        ours=statistics.median(found["cached"]) * 1e3,
        spread=spread(found["cached"]),
        target=Target(value=50, is_ceiling=True),
    )
