"""Rows: commands as users type them, whole processes from their start to their end.

"cold" begins with an empty cache of compiled kernels, as the first time on a machine, "warm" with a full one,
"off" goes without.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

from lanes.primary import IbbPrimary, ibbmaster

from benchmarks.figures import Bench, Figure, rows, spread, timed
from benchmarks.replica import Account, first_event_s
from benchmarks.workloads import WORKLOADS, prepare
from ibbmaster.kernel.cache import ENVIRONMENT
from ibbmaster.kernel.loading import READY, SWITCH

MIB = 1 << 20
REST_S = 3.0  # a virtual machine gives freed memory back to its host after 2 s: a writer shall not profit from it
SMALL_FILE = Path(__file__).parents[1] / "fixtures" / "classic" / "10.11" / "domains"
KINDS = ("warm", "cold", "off")


@contextlib.contextmanager
def kernels(kind: str, base: Path) -> Iterator[None]:
    """What processes that are started meanwhile find compiled."""
    with tempfile.TemporaryDirectory(dir=base) as empty:
        changed = {"warm": {}, "cold": {ENVIRONMENT: empty}, "off": {SWITCH: "off"}}[kind]
        with patch.dict(os.environ, changed):
            yield


def run(kind: str, base: Path, *arguments: str) -> float:
    """Seconds of one command."""
    with kernels(kind, base):
        return timed(lambda: subprocess.run(ibbmaster(*arguments), stdout=subprocess.DEVNULL, check=True))


def afresh(work: Callable[[Path], object], target: Path) -> float:
    """Seconds of what fills a directory."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    time.sleep(REST_S)
    return timed(lambda: work(target))


def read_file(path: Path) -> None:
    """Read everything into one buffer."""
    buffer = bytearray(MIB)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def copy_durably(source: Path, directory: Path) -> None:
    """A copy that survives a crash."""
    shutil.copyfile(source, directory / "copied")
    with (directory / "copied").open("rb") as file:
        os.fsync(file.fileno())


@rows("verify", "W1", is_further=True)
def verification(bench: Bench, name: str) -> Iterator[Figure]:
    """All of an archive; the peer is `mariadb-binlog`, which prints no rows of the traditional file."""
    workload = WORKLOADS[name]
    primary, directory = prepare(workload, bench.peer, bench.base, bench.pick(*workload.scales))
    classic = primary.binlogs[0]
    tool = [*primary.programs.command("mariadb-binlog"), "--base64-output=NEVER", "-s", str(classic)]
    work: dict[str, Callable[[], float]] = {
        kind: functools.partial(run, kind, bench.base, "verify", str(directory)) for kind in KINDS
    }
    work["peer"] = lambda: timed(lambda: subprocess.run(tool, stdout=subprocess.DEVNULL, check=True))
    work["limit"] = lambda: timed(lambda: read_file(classic))
    yield from rates(f"verify {name}", classic, bench.rounds(work), "read")


@rows("import", "W1", is_further=True)
def importing(bench: Bench, name: str) -> Iterator[Figure]:
    """A traditional file into .ibb."""
    workload = WORKLOADS[name]
    primary, _ = prepare(workload, bench.peer, bench.base, bench.pick(*workload.scales))
    classic = primary.binlogs[0]
    with tempfile.TemporaryDirectory(dir=bench.base) as scratch:
        target = Path(scratch) / "target"

        def bring_in(kind: str, to: Path) -> None:
            run(kind, bench.base, "import", str(classic), "--to", str(to))

        work = {kind: functools.partial(afresh, functools.partial(bring_in, kind), target) for kind in KINDS}
        work["limit"] = functools.partial(afresh, functools.partial(copy_durably, classic), target)
        found = bench.rounds(work)
    yield from rates(f"import {name}", classic, found, "copy + fsync")


def rates(what: str, classic: Path, found: dict[str, list[float]], limit_name: str) -> Iterator[Figure]:
    """One row for each kind of cache, in MB of events."""
    size = classic.stat().st_size / 1e6
    median = {name: size / statistics.median(values) for name, values in found.items()}
    for kind in KINDS:
        yield Figure(
            name=f"{what}, kernels {kind}",
            unit="MB/s",
            ours=median[kind],
            spread=spread(found[kind]),
            peer=median.get("peer"),
            limit=median["limit"],
            limit_name=limit_name,
        )


@rows("starts", is_further=True)
def starts(bench: Bench) -> Iterator[Figure]:
    """What a command costs that has little to do, and how soon a server is there."""
    workload = WORKLOADS["W1"]
    _, directory = prepare(workload, bench.peer, bench.base, bench.pick(*workload.scales))
    with tempfile.TemporaryDirectory(dir=bench.base) as name:
        target = Path(name) / "target"

        def little(kind: str) -> float:
            shutil.rmtree(target, ignore_errors=True)
            return run(kind, bench.base, "import", str(SMALL_FILE), "--to", str(target))

        work: dict[str, Callable[[], float]] = {
            "version": lambda: run("off", bench.base, "--version"),
            "import of little, kernels warm": functools.partial(little, "warm"),
            "import of little, kernels cold": functools.partial(little, "cold"),
            "seek": lambda: run("warm", bench.base, "seek", str(directory), "0-1-1000"),
            "warm-up, kernels cold": lambda: run("cold", bench.base, "warm-up"),
        }
        for what, is_ready in (("the first event", False), ("its kernels", True)):
            for kind in ("warm", "cold"):
                work[f"serve to {what}, kernels {kind}"] = functools.partial(
                    server_start_s, kind, bench.base, directory, is_ready=is_ready
                )
        found = bench.rounds(work, 3)
    version = statistics.median(found.pop("version"))
    for what, values in found.items():
        ours = statistics.median(values)
        yield Figure(name=what, unit="s", ours=ours, spread=spread(values), limit=version, limit_name="--version")


def server_start_s(kind: str, base: Path, directory: Path, *, is_ready: bool) -> float:
    """Seconds from the command line to a replica's first event, or to compiled kernels."""
    ours = IbbPrimary(directory, "--read-only")
    with kernels(kind, base):
        begun = time.perf_counter()
        ours.start()
        try:
            if is_ready:
                ours.wait_for_log(READY)
            else:
                first_event_s(Account(ours.port, ours.user, ours.password), "")
            return time.perf_counter() - begun
        finally:
            ours.kill()
