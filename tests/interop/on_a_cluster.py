"""A query of many tasks on a cluster, as a program: tasks say where they are, and one worker waits to be killed."""

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from tests.spark_session import open_session

WAITED_SECONDS = 120  # for being killed


def main(master: str, log: str, place: Path) -> None:
    session = open_session(master, name="cluster", settings={"spark.task.maxFailures": "8"})
    changes = session.read.format("ibb").option("partitionBytes", "16k").load(log)

    def passed_on(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        worker = os.environ["WORKER_NAME"]
        (place / f"{worker} works").touch()
        end = time.monotonic() + WAITED_SECONDS
        while worker == "first" and time.monotonic() < end:
            time.sleep(0.05)
        yield from batches

    rows = changes.select("_gtid", "_change_no").mapInArrow(passed_on, "_gtid STRING, _change_no BIGINT")
    print(json.dumps({"tasks": changes.rdd.getNumPartitions(), "rows": [list(row) for row in rows.collect()]}))
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
