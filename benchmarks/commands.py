"""Rows: commands as users type them, whole processes from their start to their end.

With kernels "on", and "off".
"""

from __future__ import annotations

import contextlib
import functools
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import google_crc32c
from lanes.primary import IbbPrimary, ibbmaster

from benchmarks.figures import Bench, Figure, Target, rows, spread, timed
from benchmarks.replica import Account, first_event_s
from benchmarks.workloads import WORKLOADS, prepare
from ibbmaster.kernel.loading import SWITCH

MIB = 1 << 20
REST_S = 3.0  # a virtual machine gives freed memory back to its host after 2 s: a writer shall not profit from it
SMALL_FILE = Path(__file__).parents[1] / "fixtures" / "classic" / "10.11" / "domains"
KINDS = ("on", "off")
CRC_BLOCK = 1 << 18
SMALL_SCALE = 0.06  # of W1: 10 MB
VERIFY_SPEED = Target(value=0.7, of="limit")
IMPORT_SPEED = Target(value=0.5, of="limit")


@contextlib.contextmanager
def kernels(kind: str, base: Path) -> Iterator[None]:
    """What processes that are started meanwhile go with."""
    with patch.dict(os.environ, {SWITCH: kind, "PYTHONPYCACHEPREFIX": str(base / "bytecode")}):
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # users' machines compile Python once, too
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


def copy_durably(source: Path, directory: Path) -> None:
    """A copy that survives a crash."""
    shutil.copyfile(source, directory / "copied")
    with (directory / "copied").open("rb") as file:
        os.fsync(file.fileno())


def crc_of(path: Path, size: int, crc: Callable[[int, bytes], int]) -> None:
    """Read so many bytes of a file and give them a checksum, the least that verifying does."""
    value = 0
    with path.open("rb", buffering=0) as file:
        while size > 0:
            data = file.read(min(size, CRC_BLOCK))
            value = crc(value, data)
            size -= len(data)


def crc32(value: int, data: bytes) -> int:
    """That of traditional files."""
    return zlib.crc32(data, value)


def cpu_seconds(*command: str) -> float:
    """Of a whole process and those it waits for; busy machines change it less than the time on a clock."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cpu_of(kind: str, base: Path, *arguments: str) -> float:
    """Seconds of the CPU that one command takes, with what it starts."""
    with kernels(kind, base):
        return cpu_seconds(*ibbmaster(*arguments))


def wanted(bench: Bench, name: str, target: Target) -> Target | None:
    """A speed that is asked of 1 GB: with less the start of the process counts."""
    return target if name == "W3" and not bench.is_quick else None


@rows("verify", is_further=True)
def verification(bench: Bench) -> Iterator[Figure]:
    """All of a log, of either kind; the peer is `mariadb-binlog`, which prints no rows of the traditional file."""
    for name in ("W1", "W3"):
        workload = WORKLOADS[name]
        primary, directory = prepare(workload, bench.peer, bench.base, bench.pick(1, workload.scales[1]))
        classic = primary.binlogs[0]
        tool = [*primary.programs.command("mariadb-binlog"), "--base64-output=NEVER", "-s", str(classic)]
        size = classic.stat().st_size
        logs = {
            ".ibb": (directory, directory / "binlog-000000.ibb", google_crc32c.extend, "CRC-32C"),
            "traditional": (classic, classic, crc32, "CRC-32"),
        }
        for what, (log, file, crc, limit_name) in logs.items():
            work = {kind: functools.partial(cpu_of, kind, bench.base, "verify", str(log)) for kind in KINDS}
            work["peer"] = functools.partial(cpu_seconds, *tool)
            work["limit"] = functools.partial(cpu_here, functools.partial(crc_of, file, size, crc))
            yield from rates(
                f"verify {name}, {what}", classic, bench.rounds(work), limit_name, wanted(bench, name, VERIFY_SPEED)
            )


@rows("import", is_further=True)
def importing(bench: Bench) -> Iterator[Figure]:
    """A traditional file into .ibb."""
    for name in ("W1", "W3"):
        workload = WORKLOADS[name]
        primary, _ = prepare(workload, bench.peer, bench.base, bench.pick(1, workload.scales[1]))
        classic = primary.binlogs[0]
        with tempfile.TemporaryDirectory(dir=bench.base) as scratch:
            target = Path(scratch) / "target"

            def bring_in(kind: str, to: Path, file: Path = classic) -> None:
                run(kind, bench.base, "convert", str(file), str(to))

            work = {kind: functools.partial(afresh, functools.partial(bring_in, kind), target) for kind in KINDS}
            work["limit"] = functools.partial(afresh, functools.partial(copy_durably, classic), target)
            found = bench.rounds(work)
        yield from rates(f"import {name}", classic, found, "copy + fsync", wanted(bench, name, IMPORT_SPEED))


@rows("small", is_further=True)
def small_logs(bench: Bench) -> Iterator[Figure]:
    """Commands on logs of 10 MB, whole processes, in seconds of a CPU; the limit is a command that does nothing."""
    primary, directory = prepare(WORKLOADS["W1"], bench.peer, bench.base, SMALL_SCALE)
    classic = primary.binlogs[0]
    tool = [*primary.programs.command("mariadb-binlog"), "--base64-output=NEVER", "-s", str(classic)]
    with tempfile.TemporaryDirectory(dir=bench.base) as name:
        target = Path(name) / "target"

        def bring_in(kind: str) -> float:
            shutil.rmtree(target, ignore_errors=True)
            return cpu_of(kind, bench.base, "convert", str(classic), str(target))

        work: dict[str, Callable[[], float]] = {
            "version": lambda: cpu_of("off", bench.base, "--version"),
            "peer": functools.partial(cpu_seconds, *tool),
        }
        for kind in KINDS:
            for what, log in (("verify of 10 MB, .ibb", directory), ("verify of 10 MB, traditional", classic)):
                work[f"{what}, kernels {kind}"] = functools.partial(cpu_of, kind, bench.base, "verify", str(log))
            work[f"import of 10 MB, kernels {kind}"] = functools.partial(bring_in, kind)
        found = bench.rounds(work)
    version, peer = (statistics.median(found.pop(name)) for name in ("version", "peer"))
    for what, values in found.items():
        target_s = Target(value=0.5 if what.endswith("on") else 1.0, is_ceiling=True)
        yield Figure(
            name=what,
            unit="CPU s",
            ours=statistics.median(values),
            spread=spread(values),
            peer=peer,
            limit=version,
            limit_name="--version",
            target=None if what.endswith("off") else target_s,
        )


def cpu_here(work: Callable[[], object]) -> float:
    """Seconds of the CPU that something takes in this process."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def rates(what: str, classic: Path, found: dict[str, list[float]], limit_name: str, target: Target) -> Iterator[Figure]:
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
            target=target if kind == "on" else None,
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
            return run(kind, bench.base, "convert", str(SMALL_FILE), str(target))

        work: dict[str, Callable[[], float]] = {
            "version": lambda: run("off", bench.base, "--version"),
            "import of little": functools.partial(little, "on"),
            "seek": lambda: run("on", bench.base, "seek", str(directory), "0-1-1000"),
            "serve to the first event": functools.partial(server_start_s, "on", bench.base, directory),
        }
        found = bench.rounds(work, 3)
    version = statistics.median(found.pop("version"))
    for what, values in found.items():
        ours = statistics.median(values)
        yield Figure(name=what, unit="s", ours=ours, spread=spread(values), limit=version, limit_name="--version")


def server_start_s(kind: str, base: Path, directory: Path) -> float:
    """Seconds from the command line to a replica's first event."""
    ours = IbbPrimary(directory, "--read-only")
    with kernels(kind, base):
        begun = time.perf_counter()
        ours.start()
        try:
            first_event_s(Account(ours.port, ours.user, ours.password), "")
            return time.perf_counter() - begun
        finally:
            ours.kill()
