"""How many groups a store commits in a second, beside plain writes and syncs of the same bytes; and its restarts.

`python -m benchmarks.store [--seconds 1] [--repeats 5] [--size 500] [--dir .] [--no-restarts]`
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import restart
from ibbmaster.disk.local import RealDisk
from ibbmaster.gtid import Gtid
from ibbmaster.store.background import Background
from ibbmaster.store.binlog_store import BinlogStore
from ibbmaster.store.store_options import Durability, StoreOptions
from ibbmaster.testing.crash import make_event, make_gtid_event

COMMITTERS = (1, 8, 64)
MB = 1 << 20


def rate(commit: Callable[[int, int], object], committers: int, seconds: float) -> float:
    """Commits in a second by so many threads; `commit` gets the thread's number and that of its commit."""
    counts = [0] * committers
    start = threading.Barrier(committers + 1)
    is_over = threading.Event()

    def work(number: int) -> None:
        start.wait()
        while not is_over.is_set():
            commit(number, counts[number])
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(committers)]
    for thread in threads:
        thread.start()
    start.wait()
    begun = time.perf_counter()
    time.sleep(seconds)
    is_over.set()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - begun)


def store_rate(base: Path, durability: Durability, committers: int, size: int, seconds: float) -> float:
    """Groups of one event of `size` bytes, each thread in a domain of its own."""
    with tempfile.TemporaryDirectory(dir=base) as name:
        options = StoreOptions(durability=durability, max_file_bytes=64 * MB)
        body = [make_event(160, 1, bytes(size))]
        with BinlogStore(RealDisk(Path(name)), options) as store, Background(store):

            def commit(thread: int, number: int) -> None:
                gtid = Gtid(domain_id=thread, server_id=1, seq_no=number + 1)
                store.write_direct(gtid, make_gtid_event(gtid), body)

            return rate(commit, committers, seconds)


def plain_rate(base: Path, committers: int, size: int, seconds: float, *, is_synced: bool) -> float:
    """The same bytes, appended to one allocated file, each with an fdatasync of its own or with none."""
    gtid = Gtid(domain_id=0, server_id=1, seq_no=1)
    data = bytes(make_gtid_event(gtid)) + bytes(make_event(160, 1, bytes(size)))
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
            if is_synced:
                os.fdatasync(descriptor)

        return rate(commit, committers, seconds)


def main() -> None:
    """Print two tables, medians; the spread is (largest - smallest) / median."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.store", description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each run (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each (default: %(default)s)")
    parser.add_argument("--size", type=int, default=500, help="bytes of an event (default: %(default)s)")
    parser.add_argument("--dir", type=Path, default=Path(), help="on which disk (default: here)")
    parser.add_argument("--no-restarts", action="store_true", help="only the first table")
    args = parser.parse_args()

    def median(measure: Callable[..., float], *what: object, **options: object) -> tuple[float, str]:
        rates = [measure(args.dir, *what, args.size, args.seconds, **options) for _ in range(args.repeats)]
        middle = statistics.median(rates)
        return middle, f"{middle:,.0f} ±{(max(rates) - min(rates)) / middle / 2:.0%}"

    print("| durability | committers | commits/s | plain write | ratio | write + fdatasync | ratio |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for committers in COMMITTERS:
        written, written_text = median(plain_rate, committers, is_synced=False)
        synced, synced_text = median(plain_rate, committers, is_synced=True)
        for durability in (Durability.SYNC, Durability.WRITE, Durability.LATER):
            ours, text = median(store_rate, durability, committers)
            print(
                f"| {durability.value} | {committers} | {text} | {written_text} | {ours / written:.2f} "
                f"| {synced_text} | {ours / synced:.2f} |",
                flush=True,
            )
    if not args.no_restarts:
        print()
        restart.print_table((1, 100, 1000))


if __name__ == "__main__":
    main()
