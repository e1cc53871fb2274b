"""What a Spark task reads. Sent to a worker; it holds options and places and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from ibbmaster.arrow.plan import ReadTask, bundled
from ibbmaster.arrow.reading import read_task

if TYPE_CHECKING:
    import pyarrow as pa


class TaskPartition(InputPartition):
    """What one Spark task reads: some ranges of the log, one after the other."""

    def __init__(self, tasks: Sequence[ReadTask]) -> None:
        super().__init__(tasks)
        self.tasks = tasks


def partitions_of(tasks: Sequence[ReadTask]) -> list[TaskPartition]:
    """Small ranges put together: a Spark task costs more than to read them."""
    return [TaskPartition(bundle) for bundle in bundled(tasks)]


def read_partition(partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
    """The record batches of all its ranges; of a query without partitions Spark reads None."""
    assert partition is None or isinstance(partition, TaskPartition)
    for task in () if partition is None else partition.tasks:
        yield from read_task(task)
