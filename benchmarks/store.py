"""Rows: how many groups a store commits in a second, what beginning a file costs, and how soon a store is up again.

Each commit is synced, alone or with others that wait. The peer commits from a procedure of its own, without a
client; it syncs its binlog at each commit and InnoDB's log never, so that both sync once.
"""

from __future__ import annotations

import contextlib
import functools
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import ibbmaster
from benchmarks.figures import Bench, Figure, Target, rows, spread, timed
from benchmarks.servers import process_cpu_s
from benchmarks.workloads import HastyDisk, Primary, prepare_files, small_group
from ibbmaster.logs.store.background import Background
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import StoreOptions
from ibbmaster.storage.disk.local import RealDisk

MB = 1 << 20
SIZE = 500  # bytes of an event
SECONDS = (1.5, 0.5)
BEGINNINGS = 50
FILES = (1000, 100)
MANY_FILES = (10_000, 1000)
COMMIT = (
    "CREATE PROCEDURE bench.commit_for(seconds double, size int) BEGIN "
    "DECLARE n int DEFAULT 0; DECLARE row_value longblob DEFAULT repeat('x', size); "
    "DECLARE until datetime(6) DEFAULT SYSDATE(6) + INTERVAL seconds SECOND; "
    "WHILE SYSDATE(6) < until DO INSERT INTO bench.t VALUES (n, row_value); SET n = n + 1; END WHILE; SELECT n; END"
)


Commit = Callable[[int, int], object]  # the number of a thread, and of its commit


class Rate(NamedTuple):
    """Commits in a second, and microseconds of CPU for each, of all threads."""

    per_s: float
    cpu_us: float


def rate(commit: Callable[[int, int], object], committers: int, seconds: float) -> Rate:
    """Of so many threads; `commit` gets the thread's number and that of its commit."""
    counts = [0] * committers
    start = threading.Barrier(committers + 1)
    is_over = threading.Event()

    def work(number: int) -> None:
        start.wait()
        while not is_over.is_set():
            counts[number] += 1
            commit(number, counts[number])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(committers)]
    for thread in threads:
        thread.start()
    cpu = time.process_time()
    start.wait()
    begun = time.perf_counter()
    time.sleep(seconds)
    is_over.set()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begun
    return Rate(sum(counts) / took, (time.process_time() - cpu) / sum(counts) * 1e6)


@contextlib.contextmanager
def committing(base: Path) -> Iterator[Callable[[int, int], object]]:
    """A store; to commit groups of one event to it, each thread in a domain of its own."""
    with tempfile.TemporaryDirectory(dir=base) as name:
        options = StoreOptions(max_file_bytes=64 * MB)
        with BinlogStore(RealDisk(Path(name)), options) as store, Background(store):
            latest: dict[int, int] = {}

            def commit(thread: int, number: int) -> None:
                latest[thread] = seq_no = latest.get(thread, 0) + 1
                store.write_direct(*small_group(seq_no, SIZE, domain_id=thread))

            yield commit


@contextlib.contextmanager
def appending(base: Path) -> Iterator[Callable[[int, int], object]]:
    """As `committing`, by `append` of a log that was opened, of the same events."""
    with (
        tempfile.TemporaryDirectory(dir=base) as name,
        ibbmaster.create(name, max_file_bytes=64 * MB) as log,
    ):
        latest: dict[int, int] = {}

        def commit(thread: int, number: int) -> None:
            latest[thread] = seq_no = latest.get(thread, 0) + 1
            gtid, event, body = small_group(seq_no, SIZE, domain_id=thread)
            log.append(gtid, [event, *body])

        yield commit


def sync_rate(base: Path, committers: int, seconds: float) -> Rate:
    """The same bytes, appended to one allocated file, each with an fdatasync of its own."""
    _, event, body = small_group(1, SIZE)
    data = event + body[0]
    file_bytes = 64 * MB
    with tempfile.NamedTemporaryFile(dir=base) as file:
        descriptor = file.fileno()
        os.posix_fallocate(descriptor, 0, file_bytes)
        os.fsync(descriptor)
        lock, end = threading.Lock(), 0

        def commit(thread: int, number: int) -> None:
            nonlocal end
            with lock:
                offset, end = end, (end + len(data)) % (file_bytes - len(data))
            os.pwrite(descriptor, data, offset)
            os.fdatasync(descriptor)

        return rate(commit, committers, seconds)


def primary_rate(primary: Primary, committers: int, seconds: float) -> Rate:
    """Transactions of one row in a table without keys, each thread on a connection of its own."""
    connections = [primary.connect() for _ in range(committers)]
    counts = [0] * committers

    def work(number: int) -> None:
        with connections[number].cursor() as cursor:
            cursor.execute(f"CALL bench.commit_for({seconds}, {SIZE})")
            counts[number] = cursor.fetchall()[0][0]
        connections[number].close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(committers)]

    def work_all() -> None:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    cpu = process_cpu_s(primary.pid)
    took = timed(work_all)
    return Rate(sum(counts) / took, (process_cpu_s(primary.pid) - cpu) / sum(counts) * 1e6)


@rows("commit-append", appending, "log.append")
@rows("commit", committing, "group commit")
def commits(bench: Bench, opened: Callable[[Path], AbstractContextManager[Commit]], what: str) -> Iterator[Figure]:
    """Group commit, by the store itself and by a log."""
    seconds = bench.pick(*SECONDS)
    with tempfile.TemporaryDirectory(dir=bench.base) as name:
        primary = Primary(bench.peer, Path(name), "--sync-binlog=1")
        primary.start()
        try:
            primary.begin("longblob")
            primary.sql(COMMIT)
            for committers in (1, 8, 64):
                with opened(bench.base) as commit:
                    work = {
                        "ours": functools.partial(rate, commit, committers, seconds),
                        "peer": functools.partial(primary_rate, primary, committers, seconds),
                        "limit": functools.partial(sync_rate, bench.base, committers, seconds),
                    }
                    found = bench.rounds(work)
                name = f"{what}, {committers} thread{'s' * (committers > 1)}"
                rates = {who: [run.per_s for run in runs] for who, runs in found.items()}
                yield Figure(
                    name=name,
                    unit="commits/s",
                    ours=statistics.median(rates["ours"]),
                    spread=spread(rates["ours"]),
                    peer=statistics.median(rates["peer"]),
                    limit=statistics.median(rates["limit"]),
                    limit_name="write + fdatasync each",
                    target=None if committers == 1 else Target(value=1.0, of="peer"),
                    note=f"peer ±{spread(rates['peer']):.0%}",
                )
                cpu = {who: statistics.median(run.cpu_us for run in runs) for who, runs in found.items()}
                yield Figure(
                    name=f"{name}: CPU",
                    unit="us/commit",
                    ours=cpu["ours"],
                    peer=cpu["peer"],
                    limit=cpu["limit"],
                    limit_name="write + fdatasync each",
                )
        finally:
            primary.kill()


# Files ---------------------------------------------------------------------------------------


@rows("begin-file")
def beginnings(bench: Bench) -> Iterator[Figure]:
    """Ending a file and beginning the next, synced, with so many files in the directory; the peer not with most."""
    counts = (1, round(bench.pick(*FILES)), round(bench.pick(*MANY_FILES)))
    work: dict[tuple[str, int], Callable[[], tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory(dir=bench.base) as name, contextlib.ExitStack() as stack:
        for files in counts:
            directory = Path(name) / str(files)
            directory.mkdir()
            options = StoreOptions(max_file_bytes=MB, is_sparse=True)
            with BinlogStore(HastyDisk(directory), options) as store:
                for _ in range(-(-files // 2)):
                    begin_file(store)
            store = stack.enter_context(BinlogStore(RealDisk(directory), options))
            work["ours", files] = functools.partial(begin_file, store)
            if files < counts[-1]:
                primary = prepare_files(bench.peer, bench.base, files)
                primary.start()
                stack.callback(primary.stop)
                work["peer", files] = functools.partial(flush_binlogs, primary)
        found = bench.rounds(work, BEGINNINGS)
    for part, what in enumerate(("", ": CPU")):
        median = {key: statistics.median(run[part] for run in runs) * 1e3 for key, runs in found.items()}
        for files in counts:
            yield Figure(
                name=f"beginning a file beside {files:,}{what}",
                unit="ms",
                ours=median["ours", files],
                peer=None if what else median.get(("peer", files)),
                limit=median["ours", counts[0]],
                limit_name="beside 1",
                target=Target(value=1.2, of="limit", is_ceiling=True) if what and files > 1 else None,
            )


def begin_file(store: BinlogStore) -> tuple[float, float]:
    """Seconds of ending a file with a group in it and making the one to come next, and of CPU for that.

    The latter is done in the background otherwise, by a thread whose CPU would not be counted. The first of two
    brings code and data back into the caches of a CPU that did something else.
    """
    took = cpu = 0.0
    for _ in range(2):
        latest = store.state().latest(0)
        store.write_direct(*small_group(1 + (0 if latest is None else latest.seq_no)))
        begun = time.thread_time()
        took = timed(lambda: (store.flush(), store.prepare_next_file()))
        cpu = time.thread_time() - begun
    return took, cpu


def flush_binlogs(primary: Primary) -> tuple[float, float]:
    """The same of the peer, whose CPU is not known."""
    return timed(lambda: primary.sql("FLUSH BINARY LOGS")), 0.0
