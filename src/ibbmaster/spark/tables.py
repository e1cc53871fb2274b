"""Many tables as DataFrames out of one scan.

A data source of Spark has one schema. So the scan has a row for each record batch, with the name of its table and the
batch in Arrow's stream format; Spark keeps these, and each table's DataFrame unpacks its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from ibbmaster.errors import ConfigurationError
from ibbmaster.tables.arrow.many_tables import TablesTask, find_tables, plan_tables, read_tables
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import bundled, ended, open_log
from ibbmaster.tables.arrow.read_options import Granularity, ReadOptions
from ibbmaster.tables.arrow.shape import TableFields, spark_ddl

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

PACKED = "name STRING, batch BINARY"
AS_WRITTEN = "asWritten"
OF_BATCHES = ("startinggtid", "endinggtid", "startingtimestamp", "endingtimestamp", "host")
PARTITION_BYTES = "64m"  # of a scan: Spark may hold all that a task has read of a table


class LoggedTables(Mapping[str, "DataFrame"]):
    """By table, as database.table, its changes, as `option("table", …)` gives them. The log is read once, when one of
    them is first needed. Spark keeps the result, in memory or on its workers' disks, until this is closed."""

    def __init__(self, session: SparkSession, options: ReadOptions, *, only_changed: bool = False) -> None:
        options = _with_end(options)
        self.end = options.ending_gtid or ""  # read up to this GTID position
        self._fields = find_tables(options, only_changed=only_changed)
        self._packed = _packed(session, bundled(plan_tables(options, self._fields)))
        self._frames = {name: _unpacked(self._packed, name, fields) for name, fields in self._fields.items()}

    def __getitem__(self, name: str) -> DataFrame:
        return self._frames[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._frames)

    def __len__(self) -> int:
        return len(self._frames)

    def close(self) -> None:
        """A DataFrame that is used afterwards reads the log again."""
        self._packed.unpersist()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def tables(session: SparkSession, path: str | None = None, **options: str) -> LoggedTables:
    """The changes of a log's tables, those of option `tables` or all, from one scan. `path` and `options` are those of
    a reader, but for `table`, `granularity` and `columns`. Raises ConfigurationError: an option cannot be used; a
    pattern matches no table, or the columns of one are unknown; PositionError, SourceError: as a reader."""
    return LoggedTables(session, _parsed({**options, **({} if path is None else {"path": path})}))


def each_batch(
    session: SparkSession, function: Callable[[LoggedTables, int], object], path: str, **options: str
) -> DataStreamWriter:
    """A stream that gives a function, batch by batch, the tables with changes in it, from one scan, and its number.

    The caller names checkpoint and trigger, and starts it. After a restart an unfinished batch comes again, with the
    same changes and number. Tables are names (`schemaMode=asWritten`): each row is in that under which it was written,
    even if its batch ends with the table gone or renamed. `path` and `options` are those of a stream of files, but for
    `table`, `granularity` and `columns`.

    Raises ConfigurationError: an option cannot be used.
    """
    given = {**options, "path": path}
    if not any(name.lower() == "schemamode" for name in options):
        given["schemaMode"] = AS_WRITTEN
    unfit = next((name for name in options if name.lower() in OF_BATCHES), None)
    if unfit is not None:
        raise ConfigurationError(
            f"option {unfit} is not for streams of many tables, which are of files from an offset on"
        )
    parsed = _parsed(given)

    def take(spans: DataFrame, number: int) -> None:
        for start, end in spans.collect():
            span = replace(parsed, starting_gtid=start or None, ending_gtid=end)
            with LoggedTables(spans.sparkSession, span, only_changed=True) as found:
                function(found, number)

    from .source import SPANS_FORMAT, SpanSource

    session.dataSource.register(SpanSource)
    return session.readStream.format(SPANS_FORMAT).options(**given).load().writeStream.foreachBatch(take)


def _parsed(given: Mapping[str, str]) -> ReadOptions:
    names = {name.lower() for name in given}
    parsed = parse_options(given if "partitionbytes" in names else {**given, "partitionBytes": PARTITION_BYTES})
    if parsed.table is not None or parsed.columns or parsed.granularity is not Granularity.ROWS:
        raise ConfigurationError("many tables are read whole: leave out the options table, columns and granularity")
    return parsed


def _with_end(options: ReadOptions) -> ReadOptions:
    if options.ending_gtid is not None or options.host is not None:
        return ended(options)
    with closing(open_log(options)) as log:
        return replace(options, ending_gtid=str(log.state().position()))


def _packed(session: SparkSession, bundles: Sequence[Sequence[TablesTask]]) -> DataFrame:
    from pyspark import StorageLevel

    numbers = session.range(0, max(len(bundles), 1), 1, max(len(bundles), 1))
    return numbers.mapInArrow(partial(_pack, bundles), PACKED).persist(StorageLevel.MEMORY_AND_DISK)


def _pack(bundles: Sequence[Sequence[TablesTask]], numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for task in bundles[number] if bundles else ():
                for name, found in read_tables(task):
                    if len(found):
                        cells = [pa.array([name], pa.string()), pa.array([_stream(found)], pa.binary())]
                        yield pa.RecordBatch.from_arrays(cells, names=["name", "batch"])


def _stream(batch: pa.RecordBatch) -> Any:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def _unpacked(packed: DataFrame, name: str, fields: TableFields) -> DataFrame:
    from pyspark.sql import functions as f

    return packed.where(f.col("name") == f.lit(name)).select("batch").mapInArrow(_unpack, spark_ddl(fields))


def _unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        for cell in batch.column(0):
            with pa.ipc.open_stream(cell.as_buffer()) as reader:
                yield from reader
