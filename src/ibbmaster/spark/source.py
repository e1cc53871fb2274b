"""The data sources for Spark, which pickles them; they hold options alone.

SELECT hands a source in Python only a schema: that of a table in Spark's catalog keeps its options.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType

from ibbmaster.errors import ConfigurationError
from ibbmaster.tables.arrow.options import is_of_catalog, listed, parse_options, without_catalog
from ibbmaster.tables.arrow.plan import find_fields, plan_tasks
from ibbmaster.tables.arrow.read_options import Granularity, ReadOptions
from ibbmaster.tables.arrow.shape import ShapeField, arrow_schema, spark_ddl
from .partition import SPAN_COLUMNS, partitions_of, read_partition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceWriter

    from .stream_reader import GroupStreamReader

STREAMING = "pyspark.sql.streaming.datasource"
SPANS_FORMAT = "ibb_spans"
KEPT = "ibbmaster.options"


class IbbReader(DataSourceReader):
    """Reads a batch query. It takes no filters: Spark 4.1 to 4.3 keeps those of one query for the next one, and for the
    other side of a join."""

    def __init__(self, options: ReadOptions, fields: tuple[ShapeField, ...]) -> None:
        self._options = options
        self._fields = fields

    def partitions(self) -> Sequence[InputPartition]:
        if self._options.tables or self._options.stages:
            from ibbmaster.tables.arrow.many_tables import expect_tables

            expect_tables(self._options)
        return partitions_of(plan_tasks(self._options, self._fields))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(partition)


class IbbDataSource(DataSource):
    """`.ibb` files: spark.read.format("ibb").load(DIRECTORY)."""

    IS_CLASSIC = False

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._given = dict(options.items())

    @cached_property
    def _options(self) -> ReadOptions:
        return parse_options(self._given, is_classic=self.IS_CLASSIC)

    @cached_property
    def _fields(self) -> tuple[ShapeField, ...]:
        return find_fields(self._options)

    @classmethod
    def name(cls) -> str:
        return "ibb"

    def schema(self) -> str | StructType:
        given = {name.lower(): value for name, value in self._given.items()}
        if is_of_catalog(given):
            return with_options(self._fields, without_catalog(given))
        return spark_ddl(self._fields)

    def reader(self, schema: StructType) -> DataSourceReader:
        self._given = self._given or options_of(schema)
        return IbbReader(self._options, self._fields)

    def streamReader(self, schema: StructType) -> GroupStreamReader:  # noqa: N802  # Spark's name
        self._given = self._given or options_of(schema)
        return _stream_reader()(self._options, self._fields)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # Spark's signature
        from .write_options import parse_write_options
        from .writer import IbbWriter

        fields = {field.name: field.dataType.simpleString() for field in schema.fields}
        return IbbWriter(parse_write_options(self._given, fields, overwrites=overwrite))


def _stream_reader() -> type[GroupStreamReader]:
    try:
        from .stream import IbbStreamReader
    except ModuleNotFoundError as error:
        if error.name != STREAMING:
            raise
        from .stream_reader import PlainStreamReader

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


class SpanSource(IbbDataSource):
    """spark.readStream.format("ibb_spans"), with the options of a stream of groups."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__({**options, "granularity": Granularity.GROUPS.value})

    @classmethod
    def name(cls) -> str:
        return SPANS_FORMAT

    def schema(self) -> str:
        return ", ".join(f"{name} STRING" for name in SPAN_COLUMNS)

    def reader(self, schema: StructType) -> DataSourceReader:
        raise ConfigurationError(f"format {SPANS_FORMAT} is for readStream")

    def streamReader(self, schema: StructType) -> GroupStreamReader:  # noqa: N802  # Spark's name
        found = super().streamReader(schema)
        found.gives_spans = True
        return found


def with_options(fields: Sequence[ShapeField], given: Mapping[str, str]) -> StructType:
    """A new table's schema, with its options. Raises ConfigurationError: the catalog would show a password among
    them."""
    if "password" in given:
        raise ConfigurationError("CREATE TABLE would keep the password: set IBBMASTER_PASSWORD for driver and workers")
    first, *others = from_arrow_schema(arrow_schema(fields), prefer_timestamp_ntz=True).fields
    metadata = {KEPT: json.dumps(dict(given))}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *others])


def options_of(schema: StructType) -> dict[str, str]:
    """The options that a schema keeps, with its columns as one; none without any."""
    for field in schema.fields:
        if KEPT in field.metadata:
            given = json.loads(field.metadata[KEPT])
            given["columns"] = listed(schema.names)
            return dict(given)
    return {}
