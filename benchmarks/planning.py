"""Rows: how long the plan of a query takes, of a log of many small files, of either kind.

Each is planned in a new process, as Spark does it: columns and ranges, in seconds of processor time without imports.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path

import ibbmaster
from benchmarks.arrows import RowLog
from benchmarks.figures import Bench, Figure, Target, rows, spread
from ibbmaster.logs.classic.exporting import export_traditional
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.replication.event.rows.encoding import RowMetadata
from ibbmaster.spark.partition import partitions_of
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.storage.ibb.page import PAGE_SIZE
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import find_fields, load_kernels, plan_tasks

FILES = (10_000, 1_000)
FILE_BYTES = 4 * PAGE_SIZE
QUERIES = {
    "events": {"granularity": "events"},
    "a table": {"table": "bench.t"},
}


def build(base: Path, files: int) -> dict[str, Path]:
    """The same rows in so many small files of each kind."""
    pages, classic = base / "ibb", base / "classic"
    pages.mkdir()
    classic.mkdir()
    RowLog("", metadata=RowMetadata.NO_LOG).write(pages, files * 1070, file_bytes=FILE_BYTES)
    with ibbmaster.open(pages) as log, closing(RealDisk(classic)) as disk:
        export_traditional(log.engine, disk, PROFILES["classic-10.11"], max_file_bytes=FILE_BYTES - PAGE_SIZE)
    return {".ibb": pages, "traditional": classic}


def seconds_of(path: str, given: dict[str, str], cache: str, is_classic: bool) -> float:
    """Processor time of a plan in this process."""
    os.environ["XDG_CACHE_HOME"] = cache
    options = parse_options({"path": path, **given}, is_classic=is_classic)
    load_kernels(options)
    begun = time.process_time()
    partitions_of(plan_tasks(options, find_fields(options)))
    return time.process_time() - begun


@rows("plan", is_further=True)
def plans(bench: Bench) -> Iterator[Figure]:
    """Of rows once without the history of tables that an earlier query has kept, and once with it."""
    files = round(bench.pick(*FILES))
    with tempfile.TemporaryDirectory(dir=bench.base) as name:
        logs = build(Path(name), files)
        for kind, path in logs.items():
            count = len([one for one in path.iterdir() if one.suffix not in (".index", ".state")])
            for what, given in QUERIES.items():
                found: dict[str, list[float]] = {"first": [], "again": []}
                for _ in range(bench.repeats):
                    with tempfile.TemporaryDirectory(dir=bench.base) as cache:
                        (Path(cache) / "ibbmaster").mkdir()
                        kernels = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ibbmaster/kernels"
                        (Path(cache) / "ibbmaster/kernels").symlink_to(kernels)
                        for turn, times in found.items():
                            if turn == "first" or what != "events":
                                with get_context("spawn").Pool(1) as pool:
                                    times.append(pool.apply(seconds_of, (str(path), given, cache, kind != ".ibb")))
                for turn, times in found.items():
                    if times:
                        yield Figure(
                            name=f"plan of {what}, {count:,} {kind} files, {turn}",
                            unit="s CPU",
                            ours=statistics.median(times),
                            spread=spread(times),
                            target=Target(value=1, is_ceiling=True),
                        )
