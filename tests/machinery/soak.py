"""A relay at steady work, for so long that what grows shows: `python -m tests.machinery.soak --minutes 60`.

A real primary commits small transactions; `ibbmaster serve --from` follows it, puts all into an archive, and serves
four readers and a real replica. Its memory, descriptors, threads, and how long a commit takes to a reader, are looked
at meanwhile. It fails if one of them grows, if a reader misses a transaction or has one twice, or if the replica or
the archive lacks one in the end.
"""

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import ibbmaster
from ibbmaster.gtid import GtidPosition
from ibbmaster.logs.capture.client import PrimaryAddress, begin_dump, connected, dumped, receive, stream_of
from ibbmaster.replication.event.gtid_event import decode_gtid
from ibbmaster.replication.event.header import EventHeader
from ibbmaster.replication.event.types import EventType
from ibbmaster.testkit.mariadb_programs import find_programs, installed_versions
from ibbmaster.testkit.mariadb_server import PASSWORD, USER, RealPrimary, RealReplica, ServerTemplate
from tests.machinery.memory import resident_bytes

READERS = 4
WARM_UP = 3 / 4  # of the time: at 50 commits a second it takes 40 minutes until the caches for tails are full
SAMPLES = 360  # in the whole time, but no oftener than one a second
FLUSHES = 30  # of the primary's log, in the whole time
END_S = 300.0  # for all to come to the end
OPTIONS = ("--binlog-format=ROW", "--gtid-strict-mode=1")


class Sample(NamedTuple):
    at_s: float
    memory_mb: float
    descriptors: float
    threads: float
    median_ms: float  # of all readers since the sample before
    p99_ms: float


#: How much each may grow from warm to the end. On a busy machine more threads of trio's pool wait for work at a time.
GROWTH_MAX = Sample(0, memory_mb=12, descriptors=4, threads=16, median_ms=5, p99_ms=50)


def growth(at: Sequence[float], values: Sequence[float]) -> float:
    """By how much values have grown, by the median of the slopes between any two: a peak does not count."""
    pairs = range(len(at))
    slopes = [(values[j] - values[i]) / (at[j] - at[i]) for i in pairs for j in pairs[i + 1 :]]
    return statistics.median(slopes) * (at[-1] - at[0])


def grown(samples: Sequence[Sample], judged: Sequence[str], warm_up: float = WARM_UP) -> list[str]:
    """What has grown by more than it may, after the time to get warm."""
    warm = [sample for sample in samples if sample.at_s >= samples[-1].at_s * warm_up]
    at = [sample.at_s for sample in warm]
    found = {name: growth(at, [getattr(sample, name) for sample in warm]) for name in judged}
    for name, more in found.items():
        print(f"{name} has grown by {more:+.2f}; it may by {getattr(GROWTH_MAX, name)}")
    return [name for name, more in found.items() if more > getattr(GROWTH_MAX, name)]


class _Writer(threading.Thread):
    """Commits a row, so many times a second."""

    def __init__(self, primary: RealPrimary, commits_per_s: float, rng: random.Random) -> None:
        super().__init__(name="writer")
        self.committed_at: list[float] = []
        self.is_over = threading.Event()
        self._connection, self._period_s, self._random = primary.connect(), 1 / commits_per_s, rng

    def run(self) -> None:
        due = time.monotonic()
        with contextlib.closing(self._connection), self._connection.cursor() as cursor:
            while not self.is_over.wait(max(0.0, due - time.monotonic())):
                due = max(due + self._period_s, time.monotonic() - 1)
                note = f"{len(self.committed_at)} " + "x" * self._random.randrange(
                    200
                )  # what changes nothing has no GTID
                cursor.execute("REPLACE INTO soak.t VALUES (%s, %s)", (self._random.randrange(10_000), note))
                self.committed_at.append(time.perf_counter())


class _Reader(threading.Thread):
    """Reads a dump as a replica does, to a transaction."""

    def __init__(self, primary: PrimaryAddress, first_seq_no: int, writer: _Writer) -> None:
        super().__init__(name=f"reader {primary.server_id}")
        self.arrived_at: list[float] = []  # of each transaction
        self.problem = ""
        self._primary, self._first, self._writer = primary, first_seq_no, writer

    def run(self) -> None:
        try:
            with connected(self._primary) as connection:
                begin_dump(connection, self._primary.server_id, GtidPosition.parse(f"0-1-{self._first - 1}"))
                stream = stream_of(connection)
                self._read(dumped(lambda: receive(stream)))
        except Exception as error:
            self.problem = f"{self.name}: {error!r}"

    def _read(self, events: Iterator[tuple[EventHeader, bytes, bool]]) -> None:
        for header, event, _ in events:
            now = time.perf_counter()
            if header.event_type == EventType.GTID:
                gtid, _ = decode_gtid(header, event)
                expected = self._first + len(self.arrived_at)
                assert gtid.seq_no == expected, f"{gtid} came where {expected} was next"
                self.arrived_at.append(now)
            if self._writer.is_over.is_set() and len(self.arrived_at) == len(self._writer.committed_at):
                return  # heartbeats come to those who wait

    def delays_ms(self, first: int, end: int) -> list[float]:
        """From commits to their arrival; one that is there before its commit returns took no time."""
        pairs = zip(self._writer.committed_at[first:end], self.arrived_at[first:end], strict=False)
        return [max(0.0, arrived - committed) * 1e3 for committed, arrived in pairs]


def sample(pid: int, begun: float, readers: Sequence[_Reader], first: int) -> tuple[Sample, int]:
    """How the process is now, and the number of the next transaction that nobody has looked at."""
    place = Path(f"/proc/{pid}")
    resident = resident_bytes(pid) / (1 << 20)
    descriptors, threads = (len(os.listdir(place / name)) for name in ("fd", "task"))
    end = min(len(reader.arrived_at) for reader in readers)
    delays = sorted(delay for reader in readers for delay in reader.delays_ms(first, end)) or [0.0]
    places = (delays[len(delays) // 2], delays[len(delays) * 99 // 100])
    return Sample(time.monotonic() - begun, resident, descriptors, threads, *places), end


@contextlib.contextmanager
def relay(directory: Path, primary: RealPrimary) -> Iterator[tuple[int, int]]:
    """`ibbmaster serve --from`, as one types it: its process id and its port. It ends in order."""
    source = f"mysql://{USER}:{PASSWORD}@{primary.host}:{primary.port}"
    command = [sys.executable, "-m", "ibbmaster", "serve", str(directory / "log"), "--from", source]
    command += ["--archive", str(directory / "archive"), "--listen", "127.0.0.1:0", "--json", "--tls", "off"]
    errors = directory / "relay.log"
    with errors.open("w") as log:
        process = subprocess.Popen(
            [*command, "--user", USER, "--password", PASSWORD], stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, errors.read_text()
        yield process.pid, json.loads(line)["port"]
        process.terminate()
        assert process.wait(60) == 0, errors.read_text()[-4000:]
        assert "Traceback" not in errors.read_text(), errors.read_text()[-4000:]
    finally:
        process.kill()
        process.wait()


def look(samples: list[Sample], pid: int, readers: Sequence[_Reader], minutes: float, primary: RealPrimary) -> None:
    """Look at all until the time is over, and print every sixth look."""
    begun, looked_at = time.monotonic(), 0
    period_s = max(1.0, minutes * 60 / SAMPLES)
    flushed = 0
    print("  ".join(f"{name:>11}" for name in Sample._fields), flush=True)
    while (now := time.monotonic() - begun) < minutes * 60:
        time.sleep(period_s)
        one, looked_at = sample(pid, begun, readers, looked_at)
        samples.append(one)
        if len(samples) % 6 == 0:
            print("  ".join(f"{value:>11.2f}" for value in one), flush=True)
        assert not any(reader.problem for reader in readers), [reader.problem for reader in readers]
        if now > flushed * minutes * 60 / FLUSHES:
            flushed += 1
            primary.sql("FLUSH BINARY LOGS")


def soak(directory: Path, minutes: float, commits_per_s: float) -> list[Sample]:
    """Raises AssertionError: not all is everywhere in the end."""
    template = ServerTemplate.of_user(find_programs(installed_versions()[0]))
    samples: list[Sample] = []
    with (
        RealPrimary(template, directory / "primary", [], *OPTIONS) as primary,
        RealReplica(template, directory / "replica") as replica,
    ):
        primary.sql("CREATE DATABASE soak")
        primary.sql("CREATE TABLE soak.t (id INT PRIMARY KEY, note VARCHAR(250)) ENGINE=InnoDB")
        (last,) = primary.sql("SELECT @@gtid_binlog_pos")[0]
        with relay(directory, primary) as (pid, port):
            with ibbmaster.open(directory / "log") as log:  # a reader that is ahead of it is refused
                while str(log.position) != last:
                    log.engine.wait_for_growth(1.0)
            replica.follow_at("127.0.0.1", port, user=USER, password=PASSWORD)
            login = PrimaryAddress(
                host="127.0.0.1", port=port, user=USER, password=PASSWORD, uses_tls=False, server_id=0
            )
            writer = _Writer(primary, commits_per_s, random.Random(1))
            first = int(str(last).rpartition("-")[2]) + 1
            readers = [_Reader(replace(login, server_id=3000 + number), first, writer) for number in range(READERS)]
            for thread in (*readers, writer):
                thread.start()
            try:
                look(samples, pid, readers, minutes, primary)
            finally:
                writer.is_over.set()
                writer.join()
            for reader in readers:
                reader.join(END_S)
                count = len(reader.arrived_at), len(writer.committed_at)
                assert count[0] == count[1], (
                    f"{reader.name} has {count[0]} of {count[1]} transactions: {reader.problem}"
                )
            (end,) = primary.sql("SELECT @@gtid_binlog_pos")[0]
            assert replica.sql("SELECT MASTER_GTID_WAIT(%s, %s)", (end, END_S)) == ((0,),), replica.status()
            assert replica.sql("CHECKSUM TABLE soak.t") == primary.sql("CHECKSUM TABLE soak.t")
            print(f"{len(writer.committed_at):,} transactions, each once at {READERS} readers and a replica")
        expect_archived(directory / "archive", str(end))
    return samples


def expect_archived(archive: Path, end: str) -> None:
    """All is there, and whole."""
    subprocess.run([sys.executable, "-m", "ibbmaster", "archive", "verify", str(archive)], check=True)
    with ibbmaster.open(archive) as log:
        assert str(log.state.position()) == end


def main() -> None:
    """Soak, and print what was seen."""
    parser = argparse.ArgumentParser(prog="python -m tests.machinery.soak", description=main.__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="for how long (default: %(default)s)")
    parser.add_argument("--commits", type=float, default=50.0, help="in a second (default: %(default)s)")
    parser.add_argument(
        "--warm-up", type=float, default=WARM_UP, help="part of the time that is not judged (default: %(default)s)"
    )
    parser.add_argument("--delays", action="store_true", help="fail if delays grow, too: for a quiet machine")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ibbmaster-soak-") as directory:
        samples = soak(Path(directory), arguments.minutes, arguments.commits)
    warm = samples[int(len(samples) * arguments.warm_up) :]
    for name in Sample._fields[1:]:
        values = [getattr(one, name) for one in warm]
        print(f"{name}: {min(values):.2f} to {max(values):.2f}, median {statistics.median(values):.2f}")
    judged = Sample._fields[1:] if arguments.delays else Sample._fields[1:4]
    if more := grown(samples, judged, arguments.warm_up):
        sys.exit(f"what grows: {', '.join(more)}")


if __name__ == "__main__":
    main()
