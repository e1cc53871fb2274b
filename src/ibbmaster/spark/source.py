"""The data sources as Spark wants them. Spark pickles them; they hold options and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from ibbmaster.arrow.plan import find_fields, plan_tasks
from ibbmaster.arrow.read_options import ReadOptions
from ibbmaster.arrow.shape import ShapeField, spark_ddl
from ibbmaster.errors import ConfigurationError
from ibbmaster.spark.kept_options import options_of, with_options
from ibbmaster.spark.options import is_of_catalog, parse_options, without_catalog
from ibbmaster.spark.partition import partitions_of, read_partition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceWriter
    from pyspark.sql.types import StructType

    from ibbmaster.spark.stream_reader import GroupStreamReader

STREAMING = "pyspark.sql.streaming.datasource"  # what 4.0 and 4.1 do not have: limits of a batch


class IbbReader(DataSourceReader):
    """Reads a batch query.

    It takes no filters of queries: Spark 4.1 to 4.3 keeps what one query of a DataFrame has pushed for the
    next one, and for the other side of a join, so that these would lack rows.
    """

    def __init__(self, options: ReadOptions, fields: tuple[ShapeField, ...]) -> None:
        self._options = options
        self._fields = fields

    def partitions(self) -> Sequence[InputPartition]:
        if self._options.tables or self._options.stages:
            from ibbmaster.arrow.many_tables import expect_tables

            expect_tables(self._options)
        return partitions_of(plan_tasks(self._options, self._fields))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(partition)


class IbbDataSource(DataSource):
    """`.ibb` files: spark.read.format("ibb").load(DIRECTORY)."""

    IS_CLASSIC = False

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._given = dict(options.items())  # a reader and a writer take others
        self._read_options: ReadOptions | None = None
        self._fields: tuple[ShapeField, ...] | None = None

    @property
    def _options(self) -> ReadOptions:
        if self._read_options is None:
            self._read_options = parse_options(self._given, is_classic=self.IS_CLASSIC)
        return self._read_options

    @classmethod
    def name(cls) -> str:
        return "ibb"

    def schema(self) -> str | StructType:
        given = {name.lower(): value for name, value in self._given.items()}
        if is_of_catalog(given):
            return with_options(self._all_fields(), without_catalog(given))
        return spark_ddl(self._all_fields())

    def reader(self, schema: StructType) -> DataSourceReader:
        self._given = self._given or options_of(schema)
        return IbbReader(self._options, self._all_fields())

    def streamReader(self, schema: StructType) -> GroupStreamReader:  # noqa: N802  # Spark's name
        self._given = self._given or options_of(schema)
        return _stream_reader()(self._options, self._all_fields())

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # Spark's signature
        from ibbmaster.spark.write_options import parse_write_options
        from ibbmaster.spark.writer import IbbWriter

        fields = {field.name: field.dataType.simpleString() for field in schema.fields}
        return IbbWriter(parse_write_options(self._given, fields, overwrites=overwrite))

    def _all_fields(self) -> tuple[ShapeField, ...]:
        if self._fields is None:
            self._fields = find_fields(self._options)
        return self._fields


def _stream_reader() -> type[GroupStreamReader]:
    """What this PySpark wants."""
    try:
        from ibbmaster.spark.stream import IbbStreamReader
    except ModuleNotFoundError as error:
        if error.name != STREAMING:
            raise
        from ibbmaster.spark.stream_reader import PlainStreamReader

        return PlainStreamReader
    return IbbStreamReader


class MariadbBinlogDataSource(IbbDataSource):
    """Traditional binlog files: spark.read.format("mariadb_binlog").load(FILE_OR_DIRECTORY)."""

    IS_CLASSIC = True

    @classmethod
    def name(cls) -> str:
        return "mariadb_binlog"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # Spark's signature
        raise ConfigurationError("format mariadb_binlog cannot be written: write format ibb")
