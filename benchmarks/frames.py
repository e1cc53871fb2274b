"""How fast archives become DataFrames.

`python -m benchmarks.frames [--repeats 5] [--rows 4000000] [--mb 512]`

Rows: one process decodes inserts of (bigint, int, varchar(50), decimal(10,2), datetime(6)), 100 rows an
event, into Arrow, beside python-mysql-replication and `mariadb-binlog -v`, which read the same log from a
server. Scan: Spark takes the columns of all events (its sink `noop` reads every one), with all its processes
on one core and on two, beside a source that yields tuples.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from lanes.primary import IbbPrimary
from lanes.programs import find_lane
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import WriteRowsEvent
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from ibbmaster.disk.local import RealDisk
from ibbmaster.event.control import encode_xid
from ibbmaster.event.gtid_event import GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.event.rows.changes import ChangeKind
from ibbmaster.event.rows.encoding import WrittenTable, encode_rows, encode_table_map, written_table
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.loading import load
from ibbmaster.lake.session import open_session
from ibbmaster.spark.fast_reading import fast_batches
from ibbmaster.spark.options import parse_options
from ibbmaster.spark.partition import partitions_of
from ibbmaster.spark.plan import ReadTask, find_fields, plan_tasks
from ibbmaster.spark.reading import rows_of
from ibbmaster.spark.shape import spark_ddl
from ibbmaster.store.writer import BinlogWriter
from ibbmaster.testing.crash import make_event, make_gtid_event

COLUMNS = {
    "id": "bigint",
    "n": "int",
    "word": "varchar(50)",
    "price": "decimal(10,2)",
    "moment": "datetime(6)",
}
ROWS_IN_EVENT = 100
PEER_ROWS = 200_000  # as many as python-mysql-replication reads: the rate is the same for more
WARM_RUNS = {"ibb": 3, "naive": 1}  # until Java has compiled what it runs
EVENT_BODY = 131  # bytes: events of 150
SCANNED = "_file_no,_offset,event_type,event_ts,server_id,bytes"


def make_rows(directory: Path, count: int) -> None:
    """A log of inserts, 100 rows in each event."""
    table: WrittenTable = written_table("bench.t", COLUMNS, table_id=1)
    chance = random.Random(1)
    images = [
        table.image(
            [
                None if chance.random() < 0.05 and name != "id" else value
                for name, value in {
                    "id": number,
                    "n": chance.randrange(1 << 31),
                    "word": "x" * chance.randrange(10, 30),
                    "price": f"{chance.randrange(10**9) / 100:.2f}",
                    "moment": f"2024-02-{1 + number % 28:02} 01:02:03.{number % 10**6:06}",
                }.items()
            ]
        )
        for number in range(10_000)
    ]
    body = [
        [
            encode_table_map(table, server_id=1),
            *encode_rows(
                table,
                ChangeKind.INSERT,
                ((None, image) for image in images[start : start + ROWS_IN_EVENT]),
                server_id=1,
                size_max=1 << 20,
            ),
            encode_xid(start, server_id=1),
        ]
        for start in range(0, len(images), ROWS_IN_EVENT)
    ]
    with BinlogWriter(RealDisk(directory), is_sparse=True) as writer:
        for number in range(count // ROWS_IN_EVENT):
            gtid = Gtid(domain_id=0, server_id=1, seq_no=number + 1)
            event = encode_gtid_event(GtidEvent(gtid=gtid, flags=GtidFlag.TRANSACTIONAL))
            writer.write_group(gtid, event, body[number % len(body)])


def make_events(directory: Path, size: int) -> None:
    """A log of groups of 20 events of 150 bytes."""
    event = make_event(23, 1, bytes(EVENT_BODY))
    body = [event * 19, make_event(16, 1, bytes(8))]
    with BinlogWriter(RealDisk(directory), max_file_bytes=256 << 20, is_sparse=True) as writer:
        for number in range(1, size // (20 * len(event)) + 1):
            gtid = Gtid(domain_id=0, server_id=1, seq_no=number)
            writer.write_group(gtid, make_gtid_event(gtid), body)


def median_s(work: Callable[[], object], repeats: int) -> float:
    """Seconds."""

    def once() -> float:
        begun = time.perf_counter()
        work()
        return time.perf_counter() - begun

    return statistics.median(once() for _ in range(repeats))


def tasks_of(directory: Path) -> list[ReadTask]:
    """What a query of all columns of the table reads."""
    given = {"path": str(directory), "table": "bench.t", "columns": ",".join(COLUMNS), "partitionBytes": "32m"}
    options = parse_options(given)
    return plan_tasks(options, find_fields(options))


def decode(tasks: list[ReadTask]) -> int:
    """Rows, in this process."""
    kernels = load()
    assert kernels is not None
    return sum(batch.num_rows for task in tasks for batch in fast_batches(task, kernels))


def read_with_library(primary: IbbPrimary) -> None:
    """The first rows with python-mysql-replication."""
    settings = {"host": "127.0.0.1", "port": primary.port, "user": primary.user, "passwd": primary.password}
    with contextlib.closing(
        BinLogStreamReader(
            connection_settings=settings, server_id=77, is_mariadb=True, auto_position="", only_events=[WriteRowsEvent]
        )
    ) as reader:
        count = 0
        for event in reader:
            count += len(event.rows)
            if count >= PEER_ROWS:
                return


def print_with_tool(primary: IbbPrimary) -> None:
    """All rows with mariadb-binlog."""
    command = [
        *find_lane("10.11").command("mariadb-binlog"),
        "--no-defaults",
        "--read-from-remote-server",
        "--protocol=TCP",
        "--host=127.0.0.1",
        f"--port={primary.port}",
        f"--user={primary.user}",
        f"--password={primary.password}",
        "--skip-ssl",
        "-v",
        "--base64-output=DECODE-ROWS",
        "--to-last-log",
        "binlog-000000.ibb",
    ]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


class NaiveReader(DataSourceReader):
    """Yields a tuple an event."""

    def __init__(self, path: str) -> None:
        self._given = {"path": path, "granularity": "events", "columns": SCANNED}

    def partitions(self) -> list[InputPartition]:
        options = parse_options(self._given)
        return list(partitions_of(plan_tasks(options, find_fields(options))))

    def read(self, partition: Any) -> Iterator[tuple[object, ...]]:
        for task in partition.tasks:
            for file_no, offset, kind, _, server_id, size in rows_of(task):
                yield file_no, offset, kind, None, server_id, size  # Spark wants a datetime for a moment: more work


class NaiveSource(DataSource):
    """The same columns as `ibb`, without Arrow."""

    @classmethod
    def name(cls) -> str:
        return "naive"

    def schema(self) -> str:
        return spark_ddl(
            find_fields(parse_options({"path": self.options["path"], "granularity": "events", "columns": SCANNED}))
        )

    def reader(self, schema: Any) -> DataSourceReader:
        return NaiveReader(self.options["path"])


def scan(session: SparkSession, source: str, directory: Path) -> None:
    """Have Spark look at every event."""
    reader = session.read.format(source)
    if source == "ibb":
        reader = reader.option("granularity", "events").option("columns", SCANNED)
    reader.load(str(directory)).write.format("noop").mode("overwrite").save()


def scan_rates(directory: Path, size: float, repeats: int, cores: int, sources: tuple[str, ...]) -> dict[str, float]:
    """GB/s of each source. For a process of its own: Spark and its workers stay on the cores that it chooses."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    session = open_session(f"local[{cores}]", name="bench")
    session.dataSource.register(importlib.import_module("benchmarks.frames").NaiveSource)  # workers find it there
    found = {}
    for source in sources:
        for _ in range(WARM_RUNS[source]):
            scan(session, source, directory)
        found[source] = size / median_s(lambda source=source: scan(session, source, directory), repeats)  # type: ignore[misc]
    session.stop()
    return found


def in_processes(count: int, work: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> tuple[list[Any], float]:
    """What some calls return in processes of their own, and how long the second round of them took."""
    with get_context("spawn").Pool(count) as pool:
        pool.starmap(work, arguments, chunksize=1)  # warm
        begun = time.perf_counter()
        found = pool.starmap(work, arguments, chunksize=1)
        return found, time.perf_counter() - begun


def main() -> None:
    """Print one table: medians, with ratios."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frames", description=main.__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="runs of each (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=4_000_000, help="to decode (default: %(default)s)")
    parser.add_argument("--mb", type=int, default=1024, help="of events to scan (default: %(default)s)")
    args = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    print("| what | rate | beside | ratio |")
    print("| --- | ---: | --- | ---: |")
    base = Path(tempfile.mkdtemp(dir="/var/tmp"))
    try:
        rows, events = base / "rows", base / "events"
        rows.mkdir()
        events.mkdir()
        make_rows(rows, args.rows)
        tasks = tasks_of(rows)
        assert decode(tasks) == args.rows  # and warm
        ours = args.rows / median_s(lambda: decode(tasks), args.repeats) / 1e6
        print(f"| rows into Arrow, one core | {ours:.2f} M rows/s | 8 asked for | {ours / 8:.2f} |", flush=True)
        _, took = in_processes(2, decode, [(tasks[0::2],), (tasks[1::2],)])
        both = args.rows / took / 1e6
        print(
            f"| rows into Arrow, two cores | {both:.2f} M rows/s | one core {ours:.2f} | {both / ours:.2f} |",
            flush=True,
        )
        primary = IbbPrimary(rows, "--read-only", "--profile", "classic-10.11")
        primary.start()
        try:
            library = PEER_ROWS / median_s(lambda: read_with_library(primary), 1) / 1e6
            print(
                f"| rows into Arrow | {ours:.2f} | python-mysql-replication {library:.3f} | {ours / library:,.0f} |",
                flush=True,
            )
            tool = args.rows / median_s(lambda: print_with_tool(primary), 1) / 1e6
            print(f"| rows into Arrow | {ours:.2f} | mariadb-binlog -v {tool:.3f} | {ours / tool:.1f} |", flush=True)
            print(f"| rows into Arrow, two cores | {both:.2f} | mariadb-binlog -v {tool:.3f} | {both / tool:.1f} |")
        finally:
            primary.kill()
        make_events(events, args.mb << 20)
        size = args.mb * (1 << 20) / 1e9
        with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            two = pool.apply(scan_rates, (events, size, args.repeats, 2, ("ibb", "naive")))
            one = pool.apply(scan_rates, (events, size, args.repeats, 1, ("ibb",)))
        print(f"| scan, two cores | {two['ibb']:.2f} GB/s | 0.8 asked for | {two['ibb'] / 0.8:.2f} |")
        print(f"| scan, two cores | {two['ibb']:.2f} | one core {one['ibb']:.2f} | {two['ibb'] / one['ibb']:.2f} |")
        print(f"| scan, two cores | {two['ibb']:.2f} | tuples {two['naive']:.3f} | {two['ibb'] / two['naive']:.1f} |")
    finally:
        shutil.rmtree(base)


if __name__ == "__main__":
    sys.exit(main())
