"""How fast archives are verified, imported and searched.

`python -m benchmarks.scan [--repeats 5] [--workloads W1,W2,W3,W4] [--scale 1]`

Verify: MB/s of events beside plain CRC-32C of the same pages in memory, plain reading of the
files, and `mariadb-binlog` over the classic file. Import: beside a copy with fsync. Seek: the
time to the first event for a GTID near the end of the last file, beside a MariaDB primary's.
"""

from __future__ import annotations

import argparse
import functools
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pymysql
from lanes.primary import IbbPrimary

from benchmarks.workloads import WORKLOADS, Workload, prepare
from ibbmaster.disk.local import RealDisk
from ibbmaster.kernel import loading
from ibbmaster.log.fault import Totals
from ibbmaster.log.verify import verify

PAGE = 16384
MIB = 1 << 20
SEEKS = 200
REST_S = 3.0  # a virtual machine gives freed memory back to its host after 2 s


def timed(work: Callable[[], object]) -> float:
    """Seconds."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


@functools.cache
def page_checker() -> Callable[[np.ndarray, int], bool]:
    """Says whether so many pages of an array are all good; compiled."""
    from numba import njit

    from ibbmaster.kernel.crc32c import is_page_good

    @njit(nogil=True)  # type: ignore[untyped-decorator]
    def are_good(block, count):  # type: ignore[no-untyped-def]
        for index in range(count):  # noqa: SIM110 (Numba knows no generators here)
            if not is_page_good(block, index * PAGE):
                return False
        return True

    are_good(np.zeros(PAGE, dtype=np.uint8), 1)
    return are_good


def timed_afresh(work: Callable[[], object], directory: Path) -> float:
    """Seconds of what fills a directory; memory that was freed lately, which is faster to get, helps nobody."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    time.sleep(REST_S)
    return timed(work)


def crc_of_pages(files: list[Path]) -> float:
    """Seconds for the checksums of all pages with data, from memory."""
    kernels = loading.load()
    assert kernels is not None
    seconds = 0.0
    check = page_checker()
    for path in files:
        data = np.fromfile(path, dtype=np.uint8)
        used = len(data) // PAGE
        while used and not data[(used - 1) * PAGE : used * PAGE].any():
            used -= 1
        seconds += timed(lambda data=data, used=used: check(data, used))  # type: ignore[misc]
    return seconds


def read_files(files: list[Path]) -> None:
    """Read everything into one buffer."""
    buffer = bytearray(MIB)
    for path in files:
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def copy_durably(source: Path, target: Path) -> None:
    """A copy that survives a crash."""
    shutil.copyfile(source, target)
    with target.open("rb") as file:
        os.fsync(file.fileno())


def import_file(source: Path, target: Path) -> None:
    """`ibbmaster import`, without the start of the interpreter."""
    from ibbmaster.classic.convert import import_classic

    import_classic([source], RealDisk(target))


def first_event_s(port: int, user: str, password: str, position: str) -> float:
    """From the dump command to the first GTID event."""
    connection = pymysql.connect(host="127.0.0.1", port=port, user=user, password=password, ssl_disabled=True)
    with connection.cursor() as cursor:
        cursor.execute("SET @mariadb_slave_capability=4")
        cursor.execute("SET @master_binlog_checksum='NONE'")
        cursor.execute(f"SET @slave_connect_state='{position}'")
    one: socket.socket = connection._sock
    begun = time.perf_counter()
    one.sendall(bytes.fromhex("0b0000001204000000010063000000"))
    received = b""
    while True:
        received += one.recv(1 << 16)
        offset = 0
        while offset + 24 <= len(received):
            if received[offset + 9] == 162:  # GTID
                seconds = time.perf_counter() - begun
                connection.close()
                return seconds
            offset += 4 + int.from_bytes(received[offset : offset + 3], "little")


def measure(workload: Workload, args: argparse.Namespace) -> None:
    """Print the lines of one workload."""
    primary, directory = prepare(workload, args.peer, args.dir, args.scale)
    files = sorted(directory.glob("*.ibb"))
    classic = primary.binlogs[0]
    size = classic.stat().st_size / 1e6

    def median(work: Callable[[], float]) -> float:
        return statistics.median(work() for _ in range(args.repeats))

    def line(what: str, value: float, beside: str, ratio: float, name: str = workload.name) -> None:
        print(f"| {name} | {what} | {value:,.1f} | {beside} | {ratio:.2f} |", flush=True)

    disk = RealDisk(directory)
    verified = size / median(lambda: timed(lambda: list(verify(disk, Totals()))))
    crc = size / median(lambda: crc_of_pages(files))
    plain = size / median(lambda: timed(lambda: read_files(files)))
    command = [*primary.lane.command("mariadb-binlog"), "--base64-output=NEVER", "-s", str(classic)]
    tool = size / median(lambda: timed(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True)))
    line("verify", verified, f"CRC-32C in memory {crc:,.0f}", verified / crc)
    line("verify", verified, f"read {plain:,.0f}", verified / plain)
    line("verify", verified, f"mariadb-binlog {tool:,.0f}", verified / tool)
    target = args.dir / "imported"
    imported = size / median(lambda: timed_afresh(lambda: import_file(classic, target), target))
    copied = size / median(lambda: timed_afresh(lambda: copy_durably(classic, target / "copied"), target))
    line("import", imported, f"copy + fsync {copied:,.0f}", imported / copied)
    shutil.rmtree(target)
    position = f"0-1-{round(workload.groups * args.scale * 0.95)}"
    ours = IbbPrimary(directory, "--read-only", "--verbose")
    ours.start()
    primary.start()
    try:
        assert primary.port is not None
        ours.wait_for_log(loading.READY)
        first_event_s(ours.port, ours.user, ours.password, position)  # warm
        seeks = [1e3 * first_event_s(ours.port, ours.user, ours.password, position) for _ in range(SEEKS)]
        mine, slow = statistics.median(seeks), statistics.quantiles(seeks, n=100)[98]
        theirs = median(lambda: first_event_s(primary.port or 0, "bench", "bench", position)) * 1e3
        line("seek, ms", mine, f"MariaDB {args.peer} {theirs:,.1f}", mine / theirs)
        line("seek, p99 ms", slow, "5.0 asked for", slow / 5)
    finally:
        ours.kill()
        primary.stop()


def main() -> None:
    """Print one line for each measurement: medians, with ratios."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scan", description=main.__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="runs of each (default: %(default)s)")
    parser.add_argument("--workloads", default="W1,W2,W3,W4", help="(default: %(default)s)")
    parser.add_argument("--scale", type=float, default=1.0, help="of the workloads (default: 174 MB to 1 GB each)")
    parser.add_argument("--peer", default="10.11", choices=("10.11", "11.8"), help="MariaDB (default: %(default)s)")
    parser.add_argument("--dir", type=Path, default=Path("/var/tmp/ibbmaster-benchmarks"), help="for the binlogs")
    args = parser.parse_args()
    loading.load()
    print("| load | what | MB/s or ms | beside | ratio |")
    print("| --- | --- | ---: | --- | ---: |")
    for workload in WORKLOADS:
        if workload.name in args.workloads.split(","):
            measure(workload, args)


if __name__ == "__main__":
    sys.exit(main())
