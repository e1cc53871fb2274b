"""The common part of streaming readers; `tracking` and `live` decide."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from ibbmaster.errors import ConfigurationError
from ibbmaster.tables.arrow.live import decode_offset
from ibbmaster.tables.arrow.plan import OF_ROWS
from ibbmaster.tables.arrow.read_options import ReadOptions
from ibbmaster.tables.arrow.shape import ShapeField
from .live import LiveTracker
from .partition import SpanPartition, partitions_of, read_partition
from .tracking import Limits, OffsetTracker

if TYPE_CHECKING:
    import pyarrow as pa


COLUMNS = "columns"


class GroupStreamReader(DataSourceStreamReader):
    """Follows a growing directory of files of either kind, or a primary."""

    def __init__(self, options: ReadOptions, fields: tuple[ShapeField, ...]) -> None:
        self._options = options
        self._fields = fields
        self.gives_spans = False
        self._tracker: OffsetTracker | LiveTracker | None = None  # on the driver only: workers get this object

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_fields": self._fields, "gives_spans": self.gives_spans, "_tracker": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # the names are Spark's
        return self._with_shape(self._offsets().initial())

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return self._offsets().latest(now=time.time())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if self.gives_spans:
            return [SpanPartition(str(decode_offset(start)), str(decode_offset(end)))]
        self._expect_shape(start)
        return partitions_of(self._offsets().tasks(start, end, self._fields))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return partition.read() if isinstance(partition, SpanPartition) else read_partition(partition)

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

    def _next(self, start: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
        self._expect_shape(start)
        return self._with_shape(self._offsets().next(start, limits))

    def _shape(self) -> dict[str, str]:
        """One table's columns and types; other streams always have the same."""
        return {} if self._options.table is None else {field.name: str(field.type) for field in self._fields}

    def _with_shape(self, offset: Mapping[str, Any]) -> dict[str, Any]:
        shape = self._shape()
        return {**offset, COLUMNS: shape} if shape else dict(offset)

    def _expect_shape(self, start: Mapping[str, Any]) -> None:
        """Raises ConfigurationError: the table, or an option, has other columns than up to an offset: a sink would get
        rows of two shapes."""
        before, now = start.get(COLUMNS), self._shape()
        if before is None or before == now:
            return
        others = [f"{name} {kind}" for name, kind in dict(before).items() if now.get(name) != kind]
        others = others or [f"no {name}" for name in now if name not in before]
        keeps = f"go on with those by option schemaMode=at:{decode_offset(start)}, or "
        raise ConfigurationError(
            f"{self._options.table}: up to {decode_offset(start)} this stream had other columns ({', '.join(others)}): "
            f"{'' if self._options.host else keeps}begin a new stream, with a checkpoint and a sink of its own"
        )

    def _limits(self) -> Limits:
        options = self._options
        return Limits(
            bytes_max=options.bytes_per_trigger_max,
            groups_max=options.groups_per_trigger_max,
            files_max=options.files_per_trigger_max,
        )


class PlainStreamReader(GroupStreamReader):
    """For PySpark 4.0 and 4.1, which ask for the latest offset, and give neither the first one nor a limit. A stream
    that goes on is first asked for an empty batch at its last offset: from there on options limit each batch. A new one
    is asked for its first offset later, and with `availableNow` neither comes before: then the batch must be all there
    is."""

    def __init__(self, options: ReadOptions, fields: tuple[ShapeField, ...]) -> None:
        super().__init__(options, fields)
        self._reached: dict[str, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_reached": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        self._reached = super().initialOffset()
        return self._reached

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # noqa: N802
        if self._reached is not None:
            return self._next(self._reached, self._limits())
        if self._options.host is not None and self._options.granularity in OF_ROWS:
            raise ConfigurationError(
                "streams of rows of a primary need PySpark 4.2 or later: stream its files, or granularity events"
            )
        return self._with_shape(self._offsets().logged())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        found = super().partitions(start, end)
        self._reached = end
        return found
