"""The streaming reader as Spark wants it; what it decides is in `offsets`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from ibbmaster.arrow.read_options import ReadOptions
from ibbmaster.arrow.shape import ShapeField
from ibbmaster.spark.live import LiveTracker
from ibbmaster.spark.partition import partitions_of, read_partition
from ibbmaster.spark.tracking import Limits, OffsetTracker

if TYPE_CHECKING:
    import pyarrow as pa


class IbbStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows a directory of files that grows, of either kind, or a primary."""

    def __init__(self, options: ReadOptions, fields: tuple[ShapeField, ...]) -> None:
        self._options = options
        self._fields = fields
        self._tracker: OffsetTracker | LiveTracker | None = None  # on the driver only: this object is sent to workers

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_fields": self._fields, "_tracker": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # the names are Spark's
        return self._offsets().initial()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        return self._offsets().next(start, self._limits(limit))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Spark returns this as the limit of each batch; one of several is enough for all."""
        options = self._options
        if options.bytes_per_trigger_max is not None:
            return ReadMaxBytes(options.bytes_per_trigger_max)
        if options.groups_per_trigger_max is not None:
            return ReadMaxRows(options.groups_per_trigger_max)
        if options.files_per_trigger_max is not None:
            return ReadMaxFiles(options.files_per_trigger_max)
        return ReadAllAvailable()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return self._offsets().latest(now=time.time())

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._offsets().freeze()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return partitions_of(self._offsets().tasks(start, end, self._fields))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing is kept for a batch that is done."""

    def stop(self) -> None:
        if self._tracker is not None:
            self._tracker.close()
        self._tracker = None

    def _offsets(self) -> OffsetTracker | LiveTracker:
        if self._tracker is None:
            is_live = self._options.host is not None
            self._tracker = LiveTracker(self._options) if is_live else OffsetTracker(self._options)
        return self._tracker

    def _limits(self, limit: ReadLimit) -> Limits:
        """What a batch may take: all there is if Spark says so, else what the options say."""
        if isinstance(limit, ReadAllAvailable):
            return Limits()
        options = self._options
        return Limits(
            bytes_max=options.bytes_per_trigger_max,
            groups_max=options.groups_per_trigger_max,
            files_max=options.files_per_trigger_max,
        )
