"""A stream into Parquet whose driver and workers are killed again and again: no row is lost, none is doubled.

`pytest tests/simulation/test_stream_kills.py --stream-kills 200` is the long campaign.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from pyarrow import parquet

from ibbmaster.logs.store.store_options import StoreOptions
from tests.machinery.events import XID_EVENT, make_event, new_group
from tests.machinery.stores import new_store
from tests.slow_workers import SLOW_WORKER
from tests.spark_server import ENDS_WITHIN_SECONDS, SLOW_STARTS_MAX

ERRORS = "driver.log"
REFUSED_CHECKPOINT = "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY"
WORKERS_S = 30  # the longest a driver takes until its workers run
DRIVER = """
import sys
from tests.spark_session import open_session
log, out, checkpoint, mode = sys.argv[1:]
session = open_session("local[2, 100]", name="kills")
reader = session.readStream.format("ibb").option("granularity", "events").option("maxGroupsPerTrigger", "40")
frame = reader.option("partitionBytes", "64k").option("columns", "_gtid,event_no,bytes").load(log)
writer = frame.writeStream.format("parquet").option("path", out).option("checkpointLocation", checkpoint)
writer = writer.trigger(availableNow=True) if mode == "rest" else writer.trigger(processingTime="0 seconds")
print("started", flush=True)
writer.start().awaitTermination()
"""


class Log:
    def __init__(self, directory):
        directory.mkdir()
        options = StoreOptions(max_file_bytes=1 << 20, state_interval_bytes=32 << 10, redo_bytes=1 << 20)
        self._store = new_store(directory, options)
        self._rng = random.Random(1)
        self._seq_no = 0

    def grow(self, groups):
        for _ in range(groups):
            self._seq_no += 1
            sizes = [self._rng.choice([10, 300, 20_000]) for _ in range(self._rng.randrange(1, 6))]
            body = [make_event(23, 1, bytes(size)) for size in sizes]
            self._store.write_direct(*new_group(self._seq_no, *body, XID_EVENT, domain_id=self._seq_no % 3))

    def close(self):
        self._store.close()


def start(tmp_path, mode):
    """A driver that has begun; one for which Spark does not wait until its Python has done so is started anew."""
    command = [sys.executable, "-c", DRIVER, *(str(tmp_path / name) for name in ("log", "out", "checkpoint")), mode]
    if is_refused(tmp_path):
        forget_checkpoint(tmp_path)
    for _ in range(SLOW_STARTS_MAX):
        with (tmp_path / ERRORS).open("w") as errors:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
            )
        assert process.stdout is not None
        with process.stdout as lines:
            if lines.readline() == "started\n":
                return process
        process.wait()
        expect_slow_start(tmp_path)
    raise AssertionError(f"{SLOW_STARTS_MAX} drivers did not start in time")


def finish(tmp_path):
    while start(tmp_path, "rest").wait(ENDS_WITHIN_SECONDS) != 0:
        if not is_refused(tmp_path):
            expect_slow_start(tmp_path)


def is_refused(tmp_path):
    """Whether Spark does not take the checkpoint: a driver was killed while it wrote the first batch there."""
    errors = tmp_path / ERRORS
    return errors.exists() and REFUSED_CHECKPOINT in errors.read_text()


def forget_checkpoint(tmp_path):
    checkpoint = tmp_path / "checkpoint"
    for batches in (checkpoint / "commits", tmp_path / "out" / "_spark_metadata"):
        assert not [path for path in batches.glob("*") if path.name.isdigit()], "a batch was written"
    shutil.rmtree(checkpoint)


def expect_slow_start(tmp_path):
    said = (tmp_path / ERRORS).read_text()
    assert SLOW_WORKER in said, said[-4000:]


def workers_of(process):
    found = []
    for path in Path("/proc").iterdir():
        if not path.name.isdigit():
            continue
        try:
            command = (path / "cmdline").read_bytes().replace(b"\0", b" ")
            session = int((path / "stat").read_text().rpartition(")")[2].split()[3])
        except (OSError, ValueError, IndexError):
            continue
        if b"pyspark" in command and b"daemon" in command and session == process.pid:
            found.append(int(path.name))
    return found


def wait_for_workers(process):
    deadline = time.monotonic() + WORKERS_S
    while process.poll() is None and time.monotonic() < deadline:
        if workers := workers_of(process):
            return workers
        time.sleep(0.02)  # nothing tells that they are there
    return []


def kill_all(process):
    with contextlib.suppress(ProcessLookupError):  # it has ended by itself
        os.killpg(process.pid, signal.SIGKILL)
    for pid in workers_of(process):  # they are in groups of their own
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


@pytest.mark.timeout(3600)
def test_every_row_arrives_once_whoever_is_killed(spark, tmp_path, request):
    rng = random.Random(random.randrange(2**32))
    log = Log(tmp_path / "log")
    log.grow(100)
    process = start(tmp_path, "on")
    kills = request.config.getoption("--stream-kills")
    driver_kills = worker_kills = 0
    try:
        while driver_kills + worker_kills < kills:
            log.grow(rng.randrange(1, 60))
            workers = wait_for_workers(process)
            time.sleep(rng.random() * 1.5)  # nothing to wait for: a kill may come at any moment
            if not workers or rng.random() < 0.25 or (not driver_kills and worker_kills):
                if process.poll() is None:
                    kill_all(process)
                driver_kills += 1
                process = start(tmp_path, "on")
            elif workers := workers_of(process):
                with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
                    os.kill(rng.choice(workers), signal.SIGKILL)
                    worker_kills += 1
        print(f"{driver_kills} drivers and {worker_kills} workers killed")
    finally:
        kill_all(process)
    log.close()
    finish(tmp_path)
    assert driver_kills
    names = ["_gtid", "event_no", "bytes"]
    expected = spark.read.format("ibb").option("granularity", "events").load(str(tmp_path / "log")).select(names)
    arrived = spark.read.parquet(str(tmp_path / "out")).select(names)
    rows = sorted(map(tuple, expected.collect()))
    assert sorted(map(tuple, arrived.collect())) == rows
    counted = {unquote(urlsplit(name).path) for name in arrived.inputFiles()}
    left = [path for path in (tmp_path / "out").rglob("*.parquet") if str(path) not in counted]
    print(f"{len(left)} files left by kills")
    for path in left:
        path.unlink()
    found = [row for path in (tmp_path / "out").glob("*.parquet") for row in parquet.read_table(path).to_pylist()]
    assert sorted(tuple(row[name] for name in names) for row in found) == rows
