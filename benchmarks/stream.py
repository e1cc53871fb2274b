"""Whole binlogs to 1, 4, 16 and 100 consumers: ours, a real MariaDB primary's, and the machine's limit.

`python -m benchmarks.stream [--repeats 5] [--consumers 1,4,16,100] [--workloads W1,W2,W3,W4] [--scale 1]`

All in one run, round by round. "limit" is pread and sendall of the .ibb files' bytes as they
are, a thread for each client; "sendfile" the same without a copy. Every consumer reads the
whole log, more than 4 of them one of a fifth; a row's rates are sums over its consumers,
which share one core. A server of one consumer keeps to the others, so that it does not
depend on luck whether the two meet on one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lanes.primary import IbbPrimary

from benchmarks.processes import Meter, keep_to
from benchmarks.workloads import WORKLOADS, Workload, prepare
from ibbmaster.kernel.loading import READY

CONGESTION = Path("/proc/sys/net/ipv4/tcp_congestion_control")
MAX_CONNECTIONS = 2000
CONSUMER_TIMEOUT_S = 900
MANY = 4  # more consumers than so many read a part of the workload
MANY_SCALE = 0.2


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one server."""

    mb_per_s: float
    events_per_s: float
    cpu_s_per_gb: float
    peak_rss_mib: float


@dataclass(frozen=True, slots=True)
class Contender:
    """A server that is running."""

    name: str
    pid: int
    port: int
    consumer_options: tuple[str, ...]


def one_run(contender: Contender, consumers: int) -> Run:
    """Let so many consumers read everything at once."""
    cpus = os.sched_getaffinity(0)
    keep_to(contender.pid, cpus - {max(cpus)} if consumers == 1 and len(cpus) > 1 else cpus)
    meter = Meter(contender.pid)
    command = [sys.executable, "-m", "benchmarks.consumer", str(contender.port), str(consumers)]
    done = subprocess.run(
        [*command, *contender.consumer_options], capture_output=True, text=True, timeout=CONSUMER_TIMEOUT_S, check=False
    )
    if done.returncode:
        raise SystemExit(f"{contender.name}: {done.stderr}")
    result = json.loads(done.stdout)
    cost = meter.cost()
    return Run(
        mb_per_s=result["bytes"] / result["seconds"] / 1e6,
        events_per_s=result["events"] / result["seconds"],
        cpu_s_per_gb=cost.cpu_s / (result["bytes"] / 1e9),
        peak_rss_mib=cost.peak_rss_bytes / 2**20,
    )


@contextlib.contextmanager
def plain_server(how: str, files: list[Path]) -> Iterator[Contender]:
    """A server of plain bytes."""
    command = [sys.executable, "-m", "benchmarks.limits", how, *map(str, files)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Contender(how, process.pid, int(process.stdout.readline()), ("--raw",))
        finally:
            process.kill()


@contextlib.contextmanager
def contenders(workload: Workload, args: argparse.Namespace, scale: float) -> Iterator[list[Contender]]:
    """All servers of one workload, running."""
    primary, directory = prepare(workload, args.peer, args.dir, scale)
    ours = IbbPrimary(directory, "--max-connections", str(MAX_CONNECTIONS), "--read-only", "--verbose")
    files = sorted(directory.glob("*.ibb"))
    with contextlib.ExitStack() as stack:
        stack.callback(primary.stop)
        primary.start()
        stack.callback(ours.kill)
        ours.start()
        ours.wait_for_log(READY)
        assert primary.port is not None
        yield [
            Contender("ibbmaster", ours.pid, ours.port, ("--user", ours.user, "--password", ours.password)),
            Contender(f"MariaDB {args.peer}", primary.pid, primary.port, ()),
            stack.enter_context(plain_server("sendall", files)),
            stack.enter_context(plain_server("sendfile", files)),
        ]


def table_rows(workload: Workload, consumers: int, runs: dict[str, list[Run]]) -> Iterator[str]:
    """One line for each server; ratios are of medians, the spread is half of largest - smallest over the median."""
    medians = {name: statistics.median(run.mb_per_s for run in of) for name, of in runs.items()}
    cpu = {name: statistics.median(run.cpu_s_per_gb for run in of) for name, of in runs.items()}
    ours, peer, limit, _ = medians
    for name, of in runs.items():
        rates = [run.mb_per_s for run in of]
        spread = (max(rates) - min(rates)) / medians[name] / 2
        events = statistics.median(run.events_per_s for run in of) / 1e6
        ratios = (
            f"{medians[ours] / medians[peer]:.2f} | {medians[ours] / medians[limit]:.2f} | {cpu[ours] / cpu[peer]:.2f}"
            if name == ours
            else " | | "
        )
        yield (
            f"| {workload.name} | {consumers} | {name} | {medians[name]:,.0f} ±{spread:.0%} | {events:.2f} "
            f"| {cpu[name]:.3f} | {max(run.peak_rss_mib for run in of):.0f} | {ratios} |"
        )


@contextlib.contextmanager
def congestion_control(name: str | None) -> Iterator[None]:
    """Use another congestion control on this machine for a while; needs root."""
    before = CONGESTION.read_text()
    if name is not None:
        CONGESTION.write_text(name)
    try:
        yield
    finally:
        if name is not None:
            CONGESTION.write_text(before)


def main() -> None:
    """Print one table: rates (medians), what they cost, and ours in relation to the peer and the limit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stream", description=main.__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="runs of each (default: %(default)s)")
    parser.add_argument("--consumers", default="1,4,16,100", help="at once (default: %(default)s)")
    parser.add_argument("--workloads", default="W1,W2,W3,W4", help="(default: %(default)s)")
    parser.add_argument("--scale", type=float, default=1.0, help="of the workloads (default: 174 MB to 1 GB each)")
    parser.add_argument("--peer", default="10.11", choices=("10.11", "11.8"), help="MariaDB (default: %(default)s)")
    parser.add_argument("--dir", type=Path, default=Path("/var/tmp/ibbmaster-benchmarks"), help="for the binlogs")
    parser.add_argument("--congestion", help="TCP congestion control to set meanwhile (as root); cubic suits loopback")
    args = parser.parse_args()
    names = args.workloads.split(",")
    with congestion_control(args.congestion):
        print(
            f"congestion control: {CONGESTION.read_text().strip()}; sums over all consumers, medians of {args.repeats}"
        )
        print()
        columns = ("load", "consumers", "server", "MB/s", "M events/s", "CPU s/GB", "RSS MiB")
        print("|", " | ".join([*columns, "x MariaDB", "x limit", "CPU x MariaDB"]), "|")
        print("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
        counts = [int(count) for count in args.consumers.split(",")]
        few, many = ([count for count in counts if (count > MANY) is is_many] for is_many in (False, True))
        for workload in (workload for workload in WORKLOADS if workload.name in names):
            for group, scale in ((few, args.scale), (many, args.scale * MANY_SCALE)):
                if not group:
                    continue
                with contenders(workload, args, scale) as running:
                    for consumers in group:
                        runs: dict[str, list[Run]] = {one.name: [] for one in running}
                        for _ in range(args.repeats):
                            for one in running:
                                runs[one.name].append(one_run(one, consumers))
                        for line in table_rows(workload, consumers, runs):
                            print(line, flush=True)


if __name__ == "__main__":
    main()
