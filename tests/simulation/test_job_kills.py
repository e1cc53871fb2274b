"""Exports and snapshots that are killed again and again: what a finished run leaves is whole, and nothing is twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from ibbmaster.lake.exporting import export
from ibbmaster.lake.failure import SLOW_WORKER
from ibbmaster.lake.placing import write_whole
from ibbmaster.lake.snapshots import snapshot

START_S = 300  # the longest a job takes until it writes


def run_until(target: Path, rng: random.Random, arguments: list[str]) -> None:
    """Run a job, and kill it a random moment after it has begun to write, if it is not faster."""
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
        time.sleep(rng.random() * 6)  # nothing to wait for: a kill may come at any moment
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    has_ended = process.wait() in (0, -signal.SIGKILL)
    assert has_ended or SLOW_WORKER in errors.read_text(), errors.read_text()[-4000:]


@pytest.mark.timeout(3600)
def test_an_export_that_was_killed_ends_with_every_row_once(
    spark, grow: Callable[[int], Path], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    target = tmp_path / "out" / "parquet"
    target.parent.mkdir()
    files = 2
    for _ in range(request.config.getoption("--stream-kills") // 4):
        log = grow(files)
        run_until(target, rng, ["export", str(log), "--to", str(target), "--format", "delta"])
        files = min(files + 1, 9)
    log = grow(9)
    export(spark, str(log), str(target), as_delta=True)

    groups = spark.read.format("ibb").option("granularity", "groups").load(str(log)).select("_gtid").collect()
    assert sorted(spark.read.parquet(str(target / "_groups")).select("_gtid").collect()) == sorted(groups)
    for path in target.glob("dom_*"):
        own = spark.read.format("ibb").option("table", path.name).load(str(log))
        names = ["_gtid", "_change_no", "_change_type"]
        written = DeltaTable(str(path)).to_pyarrow_table(columns=names).to_pylist()
        assert sorted(map(str, written)) == sorted(str(row.asDict()) for row in own.select(names).collect())


@pytest.mark.timeout(3600)
def test_a_snapshot_that_was_killed_leaves_the_one_before(
    spark, fixtures: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    target = tmp_path / "out" / "parent"
    target.parent.mkdir()
    arguments = ["snapshot", str(fixtures / "ibb/xa-and-ddl"), "shop.parent", "--to", str(target)]
    write_whole(snapshot(spark, str(fixtures / "ibb/xa-and-ddl"), "shop.parent"), target)
    rows = sorted(map(str, spark.read.parquet(str(target)).collect()))
    for _ in range(request.config.getoption("--stream-kills") // 4):
        run_until(target, rng, arguments)
        if target.exists():  # else it was killed between two renames, and the next run puts it back
            assert sorted(map(str, spark.read.parquet(str(target)).collect())) == rows
    write_whole(snapshot(spark, str(fixtures / "ibb/xa-and-ddl"), "shop.parent"), target)
    assert sorted(map(str, spark.read.parquet(str(target)).collect())) == rows
    assert [path.name for path in target.parent.iterdir()] == ["parent"]
