"""A soak: `python -m tests.machinery.soak --seconds 3600` writes, serves, reads, and checks what readers get.

One process writes a log and serves it: groups of all sizes, several at once, XA,
five domains. Twelve readers follow it here with heartbeats from 20 ms to 30 s, through
connections that are cut, stall, are killed, or lose to a newer one. Each must get every
group once, whole, and in the order of its domain. Real replicas may follow, too: it prints
where to, and with `--stay` it serves on until standard input ends.
"""

import argparse
import functools
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import trio

from ibbmaster.gtid import GtidPosition
from tests.machinery.soak_feeder import PASSWORD, USER
from tests.machinery.soak_reader import Reader

HEARTBEATS_S = (0.02, 0.02, 0.03, 0.05, 0.05, 0.1, 0.2, 0.35, 1.0, 5.0, 15.0, 30.0)
PROGRESS_PERIOD_S = 1.0
GRACE_S = 5.0  # after a fault: what comes late is not what is lost
CATCH_UP_S = 300.0  # without any progress of a reader, at the end
STOP_TIMEOUT_S = 60.0


class FeederProcess:
    """The process that writes and serves."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.group_count = 0
        self.byte_count = 0
        self.end: GtidPosition | None = None  # once nothing more is written
        command = [sys.executable, "-m", "tests.machinery.soak_feeder", str(directory), str(seed)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self._line().removeprefix("port "))

    async def watch(self) -> None:
        """Take note of what it says, until it has written everything."""
        while self.end is None:
            word, _, rest = (await trio.to_thread.run_sync(self._line, abandon_on_cancel=True)).partition(" ")
            if word == "fed":
                self.group_count, self.byte_count = map(int, rest.split())
            elif word == "end":
                self.end = GtidPosition.parse(rest)

    def stop_writing(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("stop\n")
        self._process.stdin.flush()

    def stop(self) -> int:
        """End it; returns its exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            return self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("the process that writes has ended: see above")
        return line.rstrip()


class Soak:
    """One run; `faults` is empty if all is well."""

    def __init__(self, feeder: FeederProcess, *, seed: int, seconds: float) -> None:
        self.feeder = feeder
        self.readers = [
            Reader(number, port=feeder.port, account=(USER, PASSWORD), heartbeat_s=period_s, seed=seed)
            for number, period_s in enumerate(HEARTBEATS_S)
        ]
        self._seconds = seconds
        self._begun = time.monotonic()

    @property
    def faults(self) -> list[str]:
        return [fault for reader in self.readers for fault in reader.checker.faults]

    async def run(self, show: Callable[[str], None]) -> None:
        """Write and read for the time that is set, until every reader has everything."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.feeder.watch)
            for reader in self.readers:
                nursery.start_soon(reader.run)
            while time.monotonic() < self._begun + self._seconds and not self.faults:
                await trio.sleep(PROGRESS_PERIOD_S)
                show(self._progress())
            if self.faults:
                await trio.sleep(GRACE_S)
            self.feeder.stop_writing()
            for reader in self.readers:
                reader.calm_down()
            await self._catch_up(show)
            nursery.cancel_scope.cancel()
        for reader in self.readers:
            reader.checker.finish()

    def summary(self) -> dict[str, object]:
        """What was done, and what was found."""
        interruptions: Counter[str] = sum((reader.interruptions for reader in self.readers), Counter())
        return {
            "groups": self.feeder.group_count,
            "bytes": self.feeder.byte_count,
            "position": str(self.feeder.end or ""),
            "readers": len(self.readers),
            "groups_read": sum(reader.checker.group_count for reader in self.readers),
            "heartbeats": sum(reader.heartbeat_count for reader in self.readers),
            "interruptions": dict(sorted(interruptions.items())),
            "seconds": round(time.monotonic() - self._begun, 1),
            "faults": self.faults,
        }

    async def _catch_up(self, show: Callable[[str], None]) -> None:
        """Wait until each reader has everything, as long as some of them get on."""
        progressed, read = time.monotonic(), -1
        while self.feeder.end is None or (waiting := self._behind()):
            await trio.sleep(PROGRESS_PERIOD_S / 4)
            show(self._progress())
            if self.faults and time.monotonic() > progressed + GRACE_S:
                return
            if (now_read := sum(reader.checker.group_count for reader in self.readers)) != read:
                progressed, read = time.monotonic(), now_read
            elif time.monotonic() > progressed + CATCH_UP_S:
                for reader in waiting:
                    reader.checker.note(
                        f"stays at [{reader.checker.position}], and the log ends at [{self.feeder.end}]"
                    )
                return

    def _behind(self) -> list[Reader]:
        end = str(self.feeder.end)
        return [reader for reader in self.readers if str(reader.checker.position) != end]

    def _progress(self) -> str:
        read = [reader.checker.group_count for reader in self.readers]
        connections = sum(reader.interruptions.total() for reader in self.readers)
        return (
            f"{time.monotonic() - self._begun:.0f} of {self._seconds:g} s: {self.feeder.group_count} groups, "
            f"{self.feeder.byte_count / 1e6:.0f} MB written; readers have {min(read)} to {max(read)}, "
            f"over {connections} connections"
        )


def main() -> int:
    """Soak, and say what was found; 1 if anything was."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.machinery.soak",
        description="Write a log, serve it, and check what twelve readers get of it in spite of every interruption.",
    )
    parser.add_argument("--seconds", type=float, default=120.0, help="how long to write (default: %(default)g)")
    parser.add_argument("--seed", type=int, default=None, help="of the groups and interruptions (default: a new one)")
    parser.add_argument("--stay", action="store_true", help="serve on afterwards, until standard input ends")
    parser.add_argument("--json", action="store_true", help="print lines of JSON: where it listens, what was found")
    args = parser.parse_args()
    seed = random.SystemRandom().randrange(2**32) if args.seed is None else args.seed
    with tempfile.TemporaryDirectory(prefix="soak-") as directory:
        feeder = FeederProcess(Path(directory), seed)
        try:
            return _soak(feeder, args, seed)
        finally:
            feeder.stop()


def _soak(feeder: FeederProcess, args: argparse.Namespace, seed: int) -> int:
    if args.json:
        facts = {"host": "127.0.0.1", "port": feeder.port, "user": USER, "password": PASSWORD, "seed": seed}
        print(json.dumps(facts), flush=True)
    else:
        print(f"seed {seed}; real replicas may follow {USER}:{PASSWORD}@127.0.0.1:{feeder.port}", flush=True)
    is_shown = sys.stderr.isatty()
    soak = Soak(feeder, seed=seed, seconds=args.seconds)
    trio.run(functools.partial(soak.run, _show if is_shown else lambda _: None))
    if is_shown:
        print(file=sys.stderr)
    summary = soak.summary()
    if args.json:
        print(json.dumps(summary), flush=True)
    else:
        _print_summary(summary, seed)
    if args.stay:
        sys.stdin.read()
    return 1 if soak.faults else 0


def _show(text: str) -> None:
    print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)


def _print_summary(summary: dict[str, object], seed: int) -> None:
    faults = summary.pop("faults")
    assert isinstance(faults, list)
    print(", ".join(f"{key} {value}" for key, value in summary.items()))
    for fault in faults:
        print(fault)
    print(
        f"{len(faults)} faults; --seed {seed} writes the same groups" if faults else "each reader got each group once"
    )


if __name__ == "__main__":
    sys.exit(main())
