"""What a Spark task reads: options and places, which are sent to a worker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from ibbmaster.tables.arrow.plan import ReadTask, bundled

if TYPE_CHECKING:
    import pyarrow as pa

SPAN_COLUMNS = ("startingGtid", "endingGtid")


class TaskPartition(InputPartition):
    """Some ranges of the log, in order."""

    def __init__(self, tasks: Sequence[ReadTask]) -> None:
        super().__init__(tasks)
        self.tasks = tasks


class SpanPartition(InputPartition):
    def __init__(self, start: str, end: str) -> None:
        super().__init__((start, end))
        self.positions = start, end

    def read(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        cells = [pa.array([position], pa.string()) for position in self.positions]
        yield pa.RecordBatch.from_arrays(cells, names=list(SPAN_COLUMNS))


def partitions_of(tasks: Sequence[ReadTask]) -> list[TaskPartition]:
    """Small ranges together: a Spark task costs more than to read them. Spark asks for at least one."""
    return [TaskPartition(bundle) for bundle in bundled(tasks)] or [TaskPartition(())]


def read_partition(partition: InputPartition) -> Iterator[pa.RecordBatch]:
    from ibbmaster.tables.arrow.reading import read_task  # here: who plans reads nothing

    assert isinstance(partition, TaskPartition)
    for task in partition.tasks:
        yield from read_task(task)
