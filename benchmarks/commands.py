"""Commands as users type them: whole processes, timed from their start to their end.

`python -m benchmarks.commands [--repeats 3] [--workload W1] [--scale 0.3]`

"cold" begins with an empty cache of compiled kernels, as the first time on a machine, "warm"
with a full one, "off" goes without. After the commands: a server from its start, one reader
before and after sixteen, and a live log of large and small groups whose reader wants
heartbeats. Each line has its limit beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from lanes.primary import IbbPrimary, ibbmaster

from benchmarks.consumer import DUMP_FLAGS, open_dump
from benchmarks.follow import Log
from benchmarks.scan import copy_durably, first_event_s, read_files, timed
from benchmarks.stream import Contender, one_run, plain_server
from benchmarks.workloads import WORKLOADS, prepare
from ibbmaster.event.types import EventType
from ibbmaster.kernel.cache import ENVIRONMENT
from ibbmaster.kernel.loading import READY, SWITCH

MANY = 16
LIVE_PERIOD_S = 0.05
LIVE_SIZES = (100, 600_000)  # of groups in turn
HEARTBEAT_NS = 20_000_000
SMALL_FILE = Path(__file__).parents[1] / "fixtures" / "classic" / "10.11" / "domains"


class Bench:
    """Runs what is asked for several times, and prints medians."""

    def __init__(self, repeats: int, scratch: Path) -> None:
        self._repeats = repeats
        self._scratch = scratch
        self._caches = 0

    def median(self, work: Callable[[], float]) -> float:
        """Of several runs."""
        return statistics.median(work() for _ in range(self._repeats))

    def line(self, what: str, value: float, beside: str, limit: float) -> None:
        """Print one line of the table."""
        print(f"| {what} | {value:,.2f} | {beside} {limit:,.2f} | {value / limit:.2f} |", flush=True)

    def new_cache(self) -> Path:
        """An empty directory for kernels."""
        self._caches += 1
        return self._scratch / f"kernels-{self._caches}"

    def command_s(self, *arguments: str, kernels: Path | None) -> float:
        """Seconds of a whole process; without a cache it goes without kernels."""
        environment = {**os.environ, ENVIRONMENT: str(kernels)} if kernels else {**os.environ, SWITCH: "off"}
        return timed(
            lambda: subprocess.run(ibbmaster(*arguments), env=environment, stdout=subprocess.DEVNULL, check=True)
        )

    def import_s(self, source: Path, kernels: Path | None) -> float:
        """Seconds of an import into a new directory."""
        target = self._scratch / "imported"
        shutil.rmtree(target, ignore_errors=True)
        return self.command_s("import", str(source), "--to", str(target), kernels=kernels)


def measure_commands(bench: Bench, classic: Path, directory: Path, warm: Path) -> None:
    """Import, verify and seek."""
    size = classic.stat().st_size / 1e6
    copied = bench.median(lambda: timed(lambda: copy_durably(classic, warm.parent / "copied")))
    read = bench.median(lambda: timed(lambda: read_files(sorted(directory.glob("*.ibb")))))
    for name, kernels in (("cold", None), ("warm", warm), ("off", None)):

        def cache(name: str = name, kernels: Path | None = kernels) -> Path | None:
            return bench.new_cache() if name == "cold" else kernels

        seconds = bench.median(lambda cache=cache: bench.import_s(classic, cache()))  # type: ignore[misc]
        bench.line(f"import, {name}, MB/s", size / seconds, "copy + fsync", size / copied)
        seconds = bench.median(lambda cache=cache: bench.command_s("verify", str(directory), kernels=cache()))  # type: ignore[misc]
        bench.line(f"verify, {name}, MB/s", size / seconds, "read", size / read)
        if name != "off":
            small = bench.median(lambda cache=cache: bench.import_s(SMALL_FILE, cache()))  # type: ignore[misc]
            start = bench.median(lambda: bench.command_s("--version", kernels=None))
            bench.line(f"import of little, {name}, s", small, "--version", start)
    seek = bench.median(lambda: bench.command_s("seek", str(directory), "0-1-1000", kernels=warm))
    bench.line("seek, s", seek, "--version", bench.median(lambda: bench.command_s("--version", kernels=None)))


def measure_starts(bench: Bench, directory: Path, warm: Path) -> None:
    """From the command line to the first event, and to the kernels."""
    interpreter = bench.median(lambda: bench.command_s("--version", kernels=None))
    for name in ("cold", "warm"):
        first, ready = [], []
        for _ in range(2):
            with environment(ENVIRONMENT, str(bench.new_cache() if name == "cold" else warm)):
                begun = time.perf_counter()
                ours = IbbPrimary(directory, "--read-only", "--verbose")
                ours.start()
            try:
                first_event_s(ours.port, ours.user, ours.password, "")
                first.append(time.perf_counter() - begun)
                ours.wait_for_log(READY)
                ready.append(time.perf_counter() - begun)
            finally:
                ours.kill()
        bench.line(f"serve, {name}: first event, s", statistics.median(first), "--version", interpreter)
        bench.line(f"serve, {name}: kernels, s", statistics.median(ready), "--version", interpreter)


def measure_sequence(bench: Bench, directory: Path, warm: Path) -> None:
    """One reader, sixteen, and one again: what was there before must not slow down who comes later."""
    with environment(ENVIRONMENT, str(warm)):
        ours = IbbPrimary(directory, "--read-only", "--verbose")
        ours.start()
    try:
        ours.wait_for_log(READY)
        server = Contender("ibbmaster", ours.pid, ours.port, ("--user", ours.user, "--password", ours.password))
        before = bench.median(lambda: one_run(server, 1).mb_per_s)
        many = bench.median(lambda: one_run(server, MANY).mb_per_s)
        after = bench.median(lambda: one_run(server, 1).mb_per_s)
    finally:
        ours.kill()
    with plain_server("sendall", sorted(directory.glob("*.ibb"))) as plain:
        limits = {count: bench.median(lambda count=count: one_run(plain, count).mb_per_s) for count in (1, MANY)}  # type: ignore[misc]
    bench.line("one reader, MB/s", before, "sendall", limits[1])
    bench.line(f"{MANY} readers, MB/s", many, "sendall", limits[MANY])
    bench.line(f"one reader after {MANY}, MB/s", after, "before them", before)


def gtids(one: socket.socket, count: int) -> Iterator[tuple[int, float]]:
    """The sequence number of each group as it arrives, and when."""
    data, event_left = bytearray(), 0
    while count:
        data += one.recv(1 << 20)
        offset = 0
        while offset + 4 <= len(data):
            size = int.from_bytes(data[offset : offset + 3], "little")
            if offset + 4 + size > len(data):
                break
            if not event_left and data[offset + 9] == EventType.GTID:
                yield int.from_bytes(data[offset + 24 : offset + 32], "little"), time.perf_counter()
                count -= 1
            event_left = event_left or int.from_bytes(data[offset + 14 : offset + 18], "little") + 1  # the OK byte
            event_left -= size
            offset += 4 + size
        del data[:offset]


def measure_live(bench: Bench, scratch: Path, warm: Path, groups: int) -> None:
    """A log of small and large groups in turn, which is written while it is read with heartbeats."""
    (scratch / "live").mkdir()
    log = Log(scratch / "live")
    with environment(ENVIRONMENT, str(warm)):
        ours = IbbPrimary(scratch / "live", "--read-only", "--verbose")
        ours.start()
    try:
        ours.wait_for_log(READY)
        connection, packet = open_dump(ours.port, ours.user, ours.password, 0)
        with connection.cursor() as cursor:
            cursor.execute(f"SET @master_heartbeat_period={HEARTBEAT_NS}")
        one: socket.socket = connection._sock
        flags = (DUMP_FLAGS & ~1).to_bytes(2, "little")
        one.sendall(packet[:9] + flags + packet[11:])
        durable_at: dict[int, float] = {}

        def write() -> None:
            for number in range(groups):
                log.commit(LIVE_SIZES[number % len(LIVE_SIZES)])
                durable_at[number + 2] = time.perf_counter()
                time.sleep(LIVE_PERIOD_S)

        writer = threading.Thread(target=write)
        writer.start()
        arrived = list(gtids(one, groups + 1))
        writer.join()
    finally:
        ours.kill()
    if [seq_no for seq_no, _ in arrived] != list(range(1, groups + 2)):
        raise SystemExit(f"groups came out of order, or not at all: {[seq_no for seq_no, _ in arrived]}")
    delays = [max(0.0, at - durable_at[seq_no]) * 1e3 for seq_no, at in arrived[1:]]
    name = f"live log, heartbeats each {HEARTBEAT_NS // 1_000_000} ms"
    bench.line(f"{name}: group is there, ms", statistics.median(delays), "period", LIVE_PERIOD_S * 1e3)


@contextlib.contextmanager
def environment(name: str, value: str) -> Iterator[None]:
    """Set a variable for processes that are started meanwhile."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def main() -> None:
    """Print one line for each command: medians, with their limits."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.commands", description=main.__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each (default: %(default)s)")
    parser.add_argument("--workload", default="W1", choices=[one.name for one in WORKLOADS])
    parser.add_argument("--scale", type=float, default=0.3, help="of the workload (default: %(default)s)")
    parser.add_argument("--groups", type=int, default=200, help="of the live log (default: %(default)s)")
    parser.add_argument("--peer", default="10.11", choices=("10.11", "11.8"), help="who writes (default: %(default)s)")
    parser.add_argument("--dir", type=Path, default=Path("/var/tmp/ibbmaster-benchmarks"), help="for the binlogs")
    args = parser.parse_args()
    workload = next(one for one in WORKLOADS if one.name == args.workload)
    primary, directory = prepare(workload, args.peer, args.dir, args.scale)
    print("| command | value | beside | ratio |")
    print("| --- | ---: | --- | ---: |")
    with tempfile.TemporaryDirectory(dir=args.dir) as name:
        scratch = Path(name)
        bench = Bench(args.repeats, scratch)
        warm = bench.new_cache()
        bench.line(
            "warm-up, s",
            bench.command_s("warm-up", kernels=warm),
            "--version",
            bench.command_s("--version", kernels=None),
        )
        measure_commands(bench, primary.binlogs[0], directory, warm)
        measure_starts(bench, directory, warm)
        measure_sequence(bench, directory, warm)
        measure_live(bench, scratch, warm, args.groups)


if __name__ == "__main__":
    sys.exit(main())
