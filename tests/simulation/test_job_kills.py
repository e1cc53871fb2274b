"""Snapshots that are killed again and again: a table is whole, the one before or the new one."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest
from pyarrow import parquet

import ibbmaster
from ibbmaster.lake.placing import write_whole

START_S = 300  # the longest a job takes until it writes


def run_until(target, rng, arguments):
    errors = target.parent.parent / "errors"
    before = {path.name for path in target.parent.iterdir()}
    with errors.open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "ibbmaster", "lake", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_S
    try:
        while process.poll() is None and {path.name for path in target.parent.iterdir()} == before:
            assert time.monotonic() < deadline
            time.sleep(0.01)  # nothing tells that it has begun
        time.sleep(rng.random() / 20)  # nothing to wait for: a kill may come at any moment
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() in (0, -signal.SIGKILL), errors.read_text()[-4000:]


@pytest.mark.timeout(3600)
def test_a_snapshot_that_was_killed_leaves_the_one_before(fixtures, tmp_path, request):
    rng = random.Random(random.randrange(2**32))
    target = tmp_path / "out" / "parent"
    target.parent.mkdir()
    arguments = ["snapshot", str(fixtures / "ibb/xa-and-ddl"), "shop.parent", "--to", str(target)]
    with ibbmaster.open(fixtures / "ibb/xa-and-ddl") as log:
        rows = log.snapshot("shop.parent")
    write_whole(rows, target)
    for _ in range(request.config.getoption("--stream-kills") // 4):
        run_until(target, rng, arguments)
        if target.exists():  # else it was killed between two renames, and the next run puts it back
            assert parquet.read_table(target).equals(rows)
    write_whole(rows, target)
    assert parquet.read_table(target).equals(rows)
    assert [path.name for path in target.parent.iterdir()] == ["parent"]
