"""What a Spark task reads: neighbours put together while they are small, and nothing else changed."""

import dataclasses
import pickle
from pathlib import Path

from ibbmaster.spark.partition import partitions_of, read_partition
from ibbmaster.tables.arrow.options import parse_options
from ibbmaster.tables.arrow.plan import find_fields, plan_tasks
from ibbmaster.tables.arrow.reading import read_task

IBB = Path(__file__).parents[2] / "fixtures" / "ibb"


def planned(**options):
    parsed = parse_options({"path": str(IBB / "large-groups"), "granularity": "groups", **options})
    return plan_tasks(parsed, find_fields(parsed))


def test_large_stretches_stay_apart():
    tasks = [
        dataclasses.replace(task, log_range=dataclasses.replace(task.log_range, end_offset=1 << 40))
        for task in planned()
    ]
    assert [list(partition.tasks) for partition in partitions_of(tasks)] == [[task] for task in tasks]


def test_small_stretches_are_one_partition_that_reads_in_another_process_what_its_tasks_give():
    tasks = planned()
    (partition,) = partitions_of(tasks)
    assert list(partition.tasks) == tasks != tasks[:1]
    partition = pickle.loads(pickle.dumps(partition))
    expected = [row for task in tasks for batch in read_task(task) for row in batch.to_pylist()]

    assert [row for batch in read_partition(partition) for row in batch.to_pylist()] == expected
    assert [row["_gtid"] for row in expected][-1] == "0-1-38"


def test_a_query_of_nothing_has_a_partition_all_the_same():
    """Spark reads a partition of its own where a reader has none."""
    (partition,) = pickle.loads(pickle.dumps(partitions_of([])))
    assert list(read_partition(partition)) == []
