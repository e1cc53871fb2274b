"""The table that a job has made, with Spark or without, as the command shows and writes it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Result = dict[str, object]
SHOWN_ROWS = 20


class TableRows(Protocol):
    """A table that a job has made."""

    names: list[str]

    def write(self, place: Path) -> int: ...

    def __iter__(self) -> Iterator[Result]: ...

    def some(self) -> list[tuple[object, ...]]: ...


class SparkRows:
    """One of Spark."""

    def __init__(self, frame: DataFrame) -> None:
        self.names = list(frame.columns)
        self._frame = frame

    def write(self, place: Path) -> int:
        from ibbmaster.lake.placing import write_whole

        return write_whole(self._frame, place)

    def __iter__(self) -> Iterator[Result]:
        for row in self._frame.toLocalIterator():
            yield row.asDict(recursive=True)

    def some(self) -> list[tuple[object, ...]]:
        return [tuple(row) for row in self._frame.limit(SHOWN_ROWS).collect()]


class ArrowRows:
    """One of Arrow; its moments are in UTC, and do not say so, as those that Spark gives."""

    def __init__(self, table: pa.Table) -> None:
        self.names = list(table.column_names)
        self._table = table

    def write(self, place: Path) -> int:
        from ibbmaster.lake.placing import write_arrow

        return write_arrow(self._table, place)

    def __iter__(self) -> Iterator[Result]:
        for batch in self._table.to_batches(max_chunksize=10_000):
            for row in batch.to_pylist():
                yield {name: without_zone(value) for name, value in row.items()}

    def some(self) -> list[tuple[object, ...]]:
        return [tuple(row.values()) for row in ArrowRows(self._table.slice(0, SHOWN_ROWS))]


def without_zone(value: object) -> object:
    """A moment in UTC without the zone."""
    return value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value
