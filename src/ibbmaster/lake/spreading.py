"""A function over many tasks, each in a worker of Spark: by DataFrames alone, as Spark Connect has them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

Task = TypeVar("Task")
Result = TypeVar("Result")


def spread(session: SparkSession, run: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
    """What a function at the top of a module makes of each task, in the order of the tasks."""
    if not tasks:
        return []
    numbers = session.range(0, len(tasks), 1, len(tasks))
    made = numbers.mapInArrow(partial(_run_each, run, tasks), "number BIGINT, result BINARY").collect()
    results = {row["number"]: row["result"] for row in made}
    return [pickle.loads(results[number]) for number in range(len(tasks))]  # our own workers made them


def _run_each(run: Callable[[Any], Any], tasks: Sequence[Any], batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    import pyarrow as pa

    for batch in batches:
        for number in batch.column(0).to_pylist():
            result = pa.array([pickle.dumps(run(tasks[number]))], pa.binary())
            yield pa.RecordBatch.from_arrays([pa.array([number], pa.int64()), result], names=["number", "result"])
