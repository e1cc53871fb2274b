"""How soon a group that is durable reaches those who wait for it: one replica, and a thousand of them.

`python -m benchmarks.follow [--groups 200] [--replicas 1000] [--seconds 20]`

"idle": one group at a time, first byte at one waiting replica; the peer is a MariaDB primary
with sync_binlog=1, measured from the answer to COMMIT. "paced": so many replicas, 100 KB/s in
ten groups a second, the whole group received.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import selectors
import socket
import statistics
import tempfile
import threading
import time
from pathlib import Path

import pymysql
from lanes.primary import IbbPrimary

from benchmarks.consumer import open_dump
from benchmarks.processes import Meter
from benchmarks.workloads import Primary
from ibbmaster.disk.local import RealDisk
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.loading import READY
from ibbmaster.store.writer import BinlogWriter
from ibbmaster.testing.crash import make_event, make_gtid_event

PACED_BYTES = 10_000
PACED_PERIOD_S = 0.1
PAUSE_S = 0.02  # between groups: the server is idle when the next one comes


def percentile(values: list[float], part: float) -> float:
    """The value below which so large a part of all lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def row(name: str, delays: list[float], rest: str = "") -> None:
    """Print one line of the table, in milliseconds."""
    middle, late = statistics.median(delays) * 1e3, percentile(delays, 0.99) * 1e3
    print(f"| {name} | {len(delays):,} | {middle:.2f} | {late:.2f} | {max(delays) * 1e3:.2f} | {rest} |", flush=True)


class Log:
    """A growing directory."""

    def __init__(self, directory: Path) -> None:
        self._writer = BinlogWriter(RealDisk(directory), max_file_bytes=1 << 30, is_sparse=True)
        self._seq_no = 0
        self.commit(100)

    def commit(self, size: int) -> None:
        """Write one group, durable when this returns."""
        self._seq_no += 1
        gtid = Gtid(domain_id=0, server_id=1, seq_no=self._seq_no)
        self._writer.write_group(gtid, make_gtid_event(gtid), [make_event(160, 1, bytes(size))])
        self._writer.flush()


def drain(one: socket.socket, seconds: float = 0.3) -> int:
    """Read until nothing comes for so long; returns the bytes."""
    one.settimeout(seconds)
    size = 0
    with contextlib.suppress(TimeoutError):
        while data := one.recv(1 << 16):
            size += len(data)
    one.settimeout(10)
    return size


def idle_delays(one: socket.socket, commit: object, groups: int) -> list[float]:
    """From the return of `commit` to the first byte, or 0 if that came before."""
    delays = []
    drain(one)
    arrived_at = 0.0

    def wait_for_byte() -> None:
        nonlocal arrived_at
        one.recv(1, socket.MSG_PEEK)
        arrived_at = time.perf_counter()

    for _ in range(groups):
        reader = threading.Thread(target=wait_for_byte)
        reader.start()
        time.sleep(PAUSE_S)
        commit()  # type: ignore[operator]
        durable_at = time.perf_counter()
        reader.join()
        delays.append(max(arrived_at - durable_at, 0.0))
        drain(one, 0.01)
    return delays


def waiting_socket(connection: pymysql.Connection, packet: bytes) -> socket.socket:
    """A dump that does not end."""
    one = connection._sock.dup()  # the connection closes its own
    one.sendall(packet[:9] + b"\x02\0" + packet[11:])  # without the flag that ends it
    return one


def paced(ours: IbbPrimary, log: Log, replicas: int, seconds: float) -> tuple[list[float], int]:
    """Delays of each group at each replica, and how many connections were lost."""
    sockets = [waiting_socket(*open_dump(ours.port, ours.user, ours.password, number)) for number in range(replicas)]
    with selectors.DefaultSelector() as selector:
        for one in sockets:
            one.setblocking(False)
            selector.register(one, selectors.EVENT_READ, [0])
        buffer = bytearray(1 << 20)
        until = time.perf_counter() + 3
        while time.perf_counter() < until:  # what there was before
            for key, _ in selector.select(0.1):
                key.fileobj.recv_into(buffer)  # type: ignore[union-attr]
        durable_at: list[float] = []
        is_over = threading.Event()

        def write() -> None:
            due = time.perf_counter()
            while time.perf_counter() < begun + seconds:
                log.commit(PACED_BYTES)
                durable_at.append(time.perf_counter())
                due += PACED_PERIOD_S
                time.sleep(max(0, due - time.perf_counter()))
            is_over.set()

        group_bytes = len(make_gtid_event(Gtid(domain_id=0, server_id=1, seq_no=1))) + PACED_BYTES + 19 + 10
        delays: list[float] = []
        lost = 0
        begun = time.perf_counter()
        writer = threading.Thread(target=write)
        writer.start()
        while not is_over.is_set() or selector.select(0.5):
            for key, _ in selector.select(0.1):
                size = key.fileobj.recv_into(buffer)  # type: ignore[union-attr]
                now = time.perf_counter()
                if not size:
                    lost += 1
                    selector.unregister(key.fileobj)
                before = key.data[0] // group_bytes
                key.data[0] += size
                whole = min(key.data[0] // group_bytes, len(durable_at))
                delays.extend(max(now - at, 0.0) for at in durable_at[before:whole])
        writer.join()
    return delays, lost


def main() -> None:
    """Print one table, in milliseconds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.follow", description=main.__doc__)
    parser.add_argument("--groups", type=int, default=200, help="one at a time (default: %(default)s)")
    parser.add_argument("--replicas", type=int, default=1000, help="paced ones (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=20, help="of them (default: %(default)s)")
    parser.add_argument("--peer", default="10.11", choices=("10.11", "11.8"), help="MariaDB (default: %(default)s)")
    args = parser.parse_args()
    print("| who | groups received | median ms | p99 ms | max ms | |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        base = Path(name)
        (base / "log").mkdir()
        log = Log(base / "log")
        ours = IbbPrimary(base / "log", "--read-only", "--max-connections", str(args.replicas + 10), "--verbose")
        ours.start()
        try:
            ours.wait_for_log(READY)
            one = waiting_socket(*open_dump(ours.port, ours.user, ours.password, 0))
            row("ibbmaster, idle", idle_delays(one, lambda: log.commit(100), args.groups))
            primary = Primary(args.peer, base / "peer")
            primary.start()
            primary.sql("SET GLOBAL sync_binlog=1")
            primary.sql("CREATE USER bench IDENTIFIED BY 'bench'")
            primary.sql("GRANT ALL ON *.* TO bench")
            primary.sql("CREATE DATABASE bench")
            primary.sql("CREATE TABLE bench.t (a int)")
            assert primary.port is not None
            peer = waiting_socket(*open_dump(primary.port, "bench", "bench", 1))
            insert = "INSERT INTO bench.t VALUES (1)"
            row(f"MariaDB {args.peer}, idle", idle_delays(peer, lambda: primary.sql(insert), args.groups))
            primary.kill()
            meter = Meter(ours.pid)
            delays, lost = paced(ours, log, args.replicas, args.seconds)
            cost = meter.cost()
            rest = json.dumps({"lost": lost, "peak RSS MiB": cost.peak_rss_bytes >> 20, "CPU s": round(cost.cpu_s, 1)})
            row(f"ibbmaster, {args.replicas:,} paced", delays, rest)
        finally:
            ours.kill()


if __name__ == "__main__":
    main()
