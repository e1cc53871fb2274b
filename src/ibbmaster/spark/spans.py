"""A stream of spans: of each batch the GTID positions between which it lies, and nothing of what is there.

What reads a batch by itself, as `tables` does, learns so what it is: a batch is the same after a restart.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader

from ibbmaster.arrow.read_options import Granularity
from ibbmaster.errors import ConfigurationError
from ibbmaster.spark.partition import SPAN_COLUMNS
from ibbmaster.spark.source import IbbDataSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ibbmaster.spark.stream_reader import GroupStreamReader

FORMAT = "ibb_spans"


class SpanSource(IbbDataSource):
    """spark.readStream.format("ibb_spans"), with the options of a stream of groups."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__({**options, "granularity": Granularity.GROUPS.value})

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return ", ".join(f"{name} STRING" for name in SPAN_COLUMNS)

    def reader(self, schema: StructType) -> DataSourceReader:
        raise ConfigurationError(f"format {FORMAT} is for readStream")

    def streamReader(self, schema: StructType) -> GroupStreamReader:  # noqa: N802  # Spark's name
        found = super().streamReader(schema)
        found.gives_spans = True
        return found
