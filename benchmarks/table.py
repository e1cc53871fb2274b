"""The table of what is fast, a real MariaDB primary and the machine's limits beside it, all in one run.

`python -m benchmarks.table [--quick] [--rows NAME…] [--json]`; NAME may be a pattern, as 'ibb-*'.

Servers are processes of their own, `ibbmaster serve` as one types it, with compiled kernels, and take turns
round by round; figures are medians. The peer is asked by the same clients. Logs of the peer are made once, and
kept in `--dir`.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dataclasses
import fcntl
import fnmatch
import importlib
import json
import os
import resource
import socket
import struct
import sys
import time
from pathlib import Path

from benchmarks.figures import FURTHER, ROWS, Bench

for _module in (
    "stream",
    "latency",
    "store",
    "restart",
    "commands",
    "printing",
    "arrows",
    "planning",
    "maintaining",
    "frames",
    "answers",
    "schema",
):  # each adds its rows; those of DataFrames are left out where there is no Spark
    try:
        importlib.import_module(f"benchmarks.{_module}")
    except ModuleNotFoundError as _missing:
        if (_missing.name or "").partition(".")[0] not in ("pyspark", "pyarrow"):
            raise
        print(f"benchmarks.{_module} is left out: {_missing.name} is not installed", file=sys.stderr)

CONGESTION = Path("/proc/sys/net/ipv4/tcp_congestion_control")
COLUMNS = ("figure", "unit", "ibbmaster", "MariaDB", "ratio", "limit (of it)", "target", "met", "")
CLONE_NEWNET = 0x40000000
GET_FLAGS, SET_FLAGS, IS_UP = 0x8913, 0x8914, 1  # SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP


def use_congestion_control(name: str) -> None:
    """Have a loopback of our own with this congestion control, if the system lets us: that takes root.

    A namespace takes those that harm nobody: "reno", and what the machine has. On loopback "cubic" is as "reno".
    """
    if ctypes.CDLL(None).unshare(CLONE_NEWNET):
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack_from("h", fcntl.ioctl(one, GET_FLAGS, request), 16)[0]
        fcntl.ioctl(one, SET_FLAGS, struct.pack("16sh14x", b"lo", flags | IS_UP))
    with contextlib.suppress(OSError):
        CONGESTION.write_text(name)


def known() -> str:
    """The names of all rows."""
    return f"{', '.join(name for name in ROWS if name not in FURTHER)}, and {', '.join(sorted(FURTHER))}"


def selected(patterns: list[str]) -> list[str]:
    """The names of the rows that are wanted, in the order of the table."""
    for pattern in patterns:
        if not fnmatch.filter(ROWS, pattern):
            raise SystemExit(f"--rows {pattern}: there are {known()}")
    return [name for name in ROWS if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]


def main() -> None:
    """Measure, and print each row as it is known."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table", description=main.__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller logs and fewer rounds: minutes")
    parser.add_argument("--rows", nargs="+", metavar="NAME", help=f"of {known()} (default: those before 'and')")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each row")
    parser.add_argument("--repeats", type=int, help="rounds (default: 5, quick 3)")
    parser.add_argument("--peer", default="11.8", choices=("10.11", "11.8"), help="MariaDB (default: %(default)s)")
    parser.add_argument("--dir", type=Path, default=Path("/var/tmp/ibbmaster-benchmarks"), help="for the logs")
    parser.add_argument("--congestion", default="reno", help="TCP congestion control (default: %(default)s)")
    args = parser.parse_args()
    names = selected(args.rows) if args.rows else [name for name in ROWS if name not in FURTHER]
    use_congestion_control(args.congestion)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    args.dir.mkdir(exist_ok=True)
    lock = os.open(args.dir, os.O_RDONLY)  # to the end of this process
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SystemExit(f"{args.dir} is used by another run: wait for it, or choose another --dir") from None
    repeats = args.repeats or (3 if args.quick else 5)
    bench = Bench(base=args.dir, peer=args.peer, repeats=repeats, is_quick=args.quick)
    begun = time.monotonic()
    if not args.json:
        load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
        print(f"MariaDB {args.peer}, {CONGESTION.read_text().strip()}, {load}, medians of {repeats} rounds\n")
        print(f"| {' | '.join(COLUMNS)} |")
        print("| --- | --- | ---: | ---: | ---: | ---: | --- | --- | --- |", flush=True)
    for name in names:
        for figure in ROWS[name](bench):
            as_json = json.dumps({**dataclasses.asdict(figure), "is_met": figure.is_met})
            print(as_json if args.json else f"| {' | '.join(figure.cells())} |", flush=True)
    if not args.json:
        print(f"\n{time.monotonic() - begun:.0f} s, load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
