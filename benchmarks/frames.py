"""Rows: how fast archives become DataFrames.

Rows: one process decodes inserts of (bigint, int, varchar(50), decimal(10,2), datetime(6)), 100 rows an
event, into Arrow, beside python-mysql-replication and `mariadb-binlog -v`, which read the same log from a
server. Scan: Spark takes the columns of all events (its sink `noop` reads every one), with all its processes
on one core and on two, beside a source that yields tuples; then the rows of a table, beside the same rows as
Parquet. Memory: what the largest of Spark's workers had at most, for a log and for one eight times as large.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

from lanes.primary import IbbPrimary
from pyarrow.dataset import dataset
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import WriteRowsEvent
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from benchmarks.figures import Bench, Figure, Target, rows, timed
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.loading import load
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.replication.event.control import encode_xid
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.replication.event.rows.changes import ChangeKind
from ibbmaster.replication.event.rows.encoding import WrittenTable, encode_rows, encode_table_map, written_table
from ibbmaster.spark.partition import partitions_of
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.tables.arrow.fast_reading import fast_batches
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import ReadTask, find_fields, plan_tasks
from ibbmaster.tables.arrow.reading import rows_of
from ibbmaster.tables.arrow.shape import spark_ddl
from ibbmaster.testkit.mariadb_programs import find_programs
from tests.machinery.events import make_event, make_gtid_event
from tests.spark_session import open_session

COLUMNS = {
    "id": "bigint",
    "n": "int",
    "word": "varchar(50)",
    "price": "decimal(10,2)",
    "moment": "datetime(6)",
}
ROWS_IN_EVENT = 100
ROWS = (4_000_000, 200_000)
SCANNED_BYTES = (1 << 30, 64 << 20)
PEER_ROWS = 200_000  # as many as python-mysql-replication reads: the rate is the same for more
WARM_RUNS = {"ibb": 3, "naive": 1, "rows": 3, "parquet": 3, "ready": 3}  # until Java has compiled what it runs
MEMORY_BYTES = (1 << 30, 64 << 20)  # and eight times as many
EVENT_BODY = 131  # bytes: events of 150
SCANNED = "_file_no,_offset,event_type,event_ts,server_id,bytes"


def make_rows(directory: Path, count: int) -> None:
    """A log of inserts, 100 rows in each event."""
    table: WrittenTable = written_table("bench.t", COLUMNS, table_id=1)
    rng = random.Random(1)
    images = [
        table.image(
            [
                None if rng.random() < 0.05 and name != "id" else value
                for name, value in {
                    "id": number,
                    "n": rng.randrange(1 << 31),
                    "word": "x" * rng.randrange(10, 30),
                    "price": f"{rng.randrange(10**9) / 100:.2f}",
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


def read_with_library(primary: IbbPrimary, wanted: int) -> None:
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
            if count >= wanted:
                return


def print_with_tool(primary: IbbPrimary) -> None:
    """All rows with mariadb-binlog."""
    command = [
        *find_programs("10.11").command("mariadb-binlog"),
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


class ReadyReader(DataSourceReader):
    """Yields one batch of the table, decoded once, until all rows were yielded: nothing but Spark's own cost."""

    def __init__(self, path: str) -> None:
        self._tasks = tasks_of(Path(path))
        self._share = dataset(str(Path(path) / "parquet")).count_rows() // len(self._tasks)

    def partitions(self) -> list[InputPartition]:
        return list(partitions_of(self._tasks))

    def read(self, partition: Any) -> Iterator[Any]:
        kernels = load()
        assert kernels is not None
        batch = next(iter(fast_batches(partition.tasks[0], kernels)))
        for _ in range(round(self._share / batch.num_rows)):
            yield batch


class ReadySource(DataSource):
    """The rows of the table, nearly all of them copies of the first ones."""

    @classmethod
    def name(cls) -> str:
        return "ready"

    def schema(self) -> str:
        given = {"path": self.options["path"], "table": "bench.t", "columns": ",".join(COLUMNS)}
        return spark_ddl(find_fields(parse_options(given)))

    def reader(self, schema: Any) -> DataSourceReader:
        return ReadyReader(self.options["path"])


def events_frame(session: SparkSession, source: str, directory: Path) -> DataFrame:
    """Every event, by a source."""
    reader = session.read.format(source)
    if source == "ibb":
        reader = reader.option("granularity", "events").option("columns", SCANNED)
    return reader.load(str(directory))


def rows_frame(session: SparkSession, source: str, directory: Path) -> DataFrame:
    """Every row of the table, from the log or from Parquet in the directory of that name in it."""
    if source == "parquet":
        return session.read.parquet(str(directory / "parquet"))
    return (
        session.read.format("ibb").option("table", "bench.t").option("columns", ",".join(COLUMNS)).load(str(directory))
    )


def scan(frame: DataFrame) -> None:
    """Have Spark look at everything."""
    frame.write.format("noop").mode("overwrite").save()


@contextlib.contextmanager
def session_on(cores: int) -> Iterator[SparkSession]:
    """For a process of its own: Spark and its workers stay on the cores that this chooses."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    session = open_session(f"local[{cores}]", name="bench")
    module = importlib.import_module("benchmarks.frames")  # workers find it under that name
    session.dataSource.register(module.NaiveSource)
    session.dataSource.register(module.ReadySource)
    try:
        yield session
    finally:
        session.stop()


def scan_rates(directory: Path, amount: float, repeats: int, cores: int, sources: tuple[str, ...]) -> dict[str, float]:
    """The amount a second of each source."""
    found = {}
    with session_on(cores) as session:
        for source in sources:
            frame_of = events_frame if source in ("ibb", "naive") else rows_frame
            for _ in range(WARM_RUNS[source]):
                scan(frame_of(session, source, directory))
            times = [
                timed(lambda source=source, frame_of=frame_of: scan(frame_of(session, source, directory)))  # type: ignore[misc]
                for _ in range(repeats)
            ]
            found[source] = amount / statistics.median(times)
    return found


def write_parquet(directory: Path) -> None:
    """The rows of the table, by Spark, as its defaults are."""
    with session_on(2) as session:
        rows_frame(session, "rows", directory).write.parquet(str(directory / "parquet"))


def memory_of_workers(directory: Path) -> float:
    """MB that the largest Python process of Spark had at most, after one scan."""
    with session_on(1) as session:
        scan(events_frame(session, "ibb", directory))
        found = 0
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it ended
                if b"pyspark.daemon" in (process / "cmdline").read_bytes():
                    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
                    found = max(found, int(status["VmHWM"].split()[0]))
    return found * 1024 / 1e6


def in_processes(count: int, work: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> tuple[list[Any], float]:
    """What some calls return in processes of their own, and how long the second round of them took."""
    with get_context("spawn").Pool(count) as pool:
        pool.starmap(work, arguments, chunksize=1)  # warm
        begun = time.perf_counter()
        found = pool.starmap(work, arguments, chunksize=1)
        return found, time.perf_counter() - begun


@rows("rows-to-arrow", is_further=True)
def rows_to_arrow(bench: Bench) -> Iterator[Figure]:
    """On one core and on two, in M rows/s; peers read the same log from `ibbmaster serve`."""
    count = round(bench.pick(*ROWS))
    with tempfile.TemporaryDirectory(dir=bench.base) as name, importable():
        directory = Path(name)
        make_rows(directory, count)
        tasks = tasks_of(directory)
        assert decode(tasks) == count  # and warm
        one = count / statistics.median(timed(lambda: decode(tasks)) for _ in range(bench.repeats)) / 1e6
        _, took = in_processes(2, decode, [(tasks[0::2],), (tasks[1::2],)])
        primary = IbbPrimary(directory, "--read-only", "--profile", "classic-10.11")
        primary.start()
        try:
            tool = count / timed(lambda: print_with_tool(primary)) / 1e6
            library = min(PEER_ROWS, count) / timed(lambda: read_with_library(primary, min(PEER_ROWS, count))) / 1e6
        finally:
            primary.kill()
    for cores, ours in (("one core", one), ("two cores", count / took / 1e6)):
        yield Figure(
            name=f"rows into Arrow, {cores}; peer: mariadb-binlog -v",
            unit="M rows/s",
            ours=ours,
            peer=tool,
            limit=library,
            limit_name="python-mysql-replication",
            target=Target(value=8) if cores == "one core" else None,
        )


@rows("spark-scan", is_further=True)
def spark_scan(bench: Bench) -> Iterator[Figure]:
    """The columns of all events, in GB/s; the peer is a source that yields tuples."""
    size = round(bench.pick(*SCANNED_BYTES))
    with (
        tempfile.TemporaryDirectory(dir=bench.base) as name,
        importable(),
        get_context("spawn").Pool(1, maxtasksperchild=1) as pool,
    ):
        directory = Path(name)
        make_events(directory, size)
        two = pool.apply(scan_rates, (directory, size / 1e9, bench.repeats, 2, ("ibb", "naive")))
        one = pool.apply(scan_rates, (directory, size / 1e9, bench.repeats, 1, ("ibb",)))
    yield Figure(
        name="Spark scans events, two cores; peer: a source of tuples",
        unit="GB/s",
        ours=two["ibb"],
        peer=two["naive"],
        limit=one["ibb"],
        limit_name="one core",
        target=Target(value=0.8),
    )


@rows("spark-rows", is_further=True)
def spark_rows(bench: Bench) -> Iterator[Figure]:
    """The rows of a table, in M rows/s; the peer is the same as Parquet, the limit a source of ready batches."""
    count = round(bench.pick(*ROWS))
    sources = ("rows", "parquet", "ready")
    with (
        tempfile.TemporaryDirectory(dir=bench.base) as name,
        importable(),
        get_context("spawn").Pool(1, maxtasksperchild=1) as pool,
    ):
        directory = Path(name)
        make_rows(directory, count)
        pool.apply(write_parquet, (directory,))
        two = pool.apply(scan_rates, (directory, count / 1e6, bench.repeats, 2, sources))
        one = pool.apply(scan_rates, (directory, count / 1e6, bench.repeats, 1, sources))
    for cores, rate in (("one core", one), ("two cores", two)):
        yield Figure(
            name=f"Spark scans rows, {cores}; peer: the same rows as Parquet",
            unit="M rows/s",
            ours=rate["rows"],
            peer=rate["parquet"],
            limit=rate["ready"],
            limit_name="ready batches",
            target=Target(value=0.8, of="peer"),
        )


@rows("spark-memory", is_further=True)
def spark_memory(bench: Bench) -> Iterator[Figure]:
    """Of a worker that scans a log, in MB; the peer is the same for an eighth of the log."""
    size = round(bench.pick(*MEMORY_BYTES))
    found = []
    for times in (1, 8):
        with (
            tempfile.TemporaryDirectory(dir=bench.base) as name,
            importable(),
            get_context("spawn").Pool(1, maxtasksperchild=1) as pool,
        ):
            make_events(Path(name), times * size)
            found.append(pool.apply(memory_of_workers, (Path(name),)))
    yield Figure(
        name="memory of a worker of Spark; peer: for an eighth of the log",
        unit="MB",
        ours=found[1],
        peer=found[0],
        target=Target(value=1.1, is_ceiling=True, of="peer"),
    )


def importable() -> contextlib.AbstractContextManager[object]:
    """Let Spark's workers find this module."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return patch.dict(os.environ, {"PYTHONPATH": path})
