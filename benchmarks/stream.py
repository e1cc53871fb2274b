"""Rows: whole logs to one consumer and to sixteen, in clear and over TLS.

Every consumer reads the whole log; a rate is the sum over all, which share one core. A server of
one consumer keeps to the others, so that it does not depend on luck whether the two meet on
one. "sendall" is pread and sendall of the files' bytes as they are, a thread for each client.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import Bench, Figure, Target, rows, spread
from benchmarks.servers import Contender, certificate_options, ibbmaster, mariadb, plain_server, staged
from benchmarks.staged import GROUP_STAGES, STAGES
from benchmarks.workloads import WORKLOADS, prepare

CONSUMER_TIMEOUT_S = 900
SLOW_S = (4.0, 2.0)  # a rate is known after so long, for the table and for a quick one
MANY = 16


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one server; `bytes` is what each consumer got."""

    mb_per_s: float
    cpu_s_per_gb: float
    bytes: int


def one_run(contender: Contender, consumers: int, *, seconds: float = CONSUMER_TIMEOUT_S, tls_bytes: int = 0) -> Run:
    """Let so many consumers read everything at once, or so long; over TLS each so many bytes."""
    cpus = os.sched_getaffinity(0)
    contender.keep_to(cpus - {max(cpus)} if consumers == 1 and len(cpus) > 1 else cpus)
    account = contender.account
    command = [sys.executable, "-m", "benchmarks.consumer", str(account.port), str(consumers)]
    command += ["--raw"] if contender.is_plain else ["--user", account.user, "--password", account.password]
    command += ["--seconds", str(seconds), "--tls", str(tls_bytes)]
    begun = contender.cpu_s()
    done = subprocess.run(command, capture_output=True, text=True, timeout=CONSUMER_TIMEOUT_S, check=False)
    if done.returncode:
        raise SystemExit(f"{contender.name}: {done.stderr}")
    result = json.loads(done.stdout)
    return Run(
        mb_per_s=result["bytes"] / result["seconds"] / 1e6,
        cpu_s_per_gb=(contender.cpu_s() - begun) / (result["bytes"] / 1e9),
        bytes=result["bytes"] // consumers,
    )


def whole_logs(
    bench: Bench, name: str, consumers: int, target: float | None, is_classic: bool = False
) -> Iterator[Figure]:
    """One workload to so many consumers; the log is the peer's own files, or the same as .ibb."""
    workload = WORKLOADS[name]
    primary, directory = prepare(workload, bench.peer, bench.base, bench.pick(*workload.scales))
    if is_classic:
        directory = primary.classic_directory()
    with mariadb(primary) as peer_server, ibbmaster(directory) as our_server, plain_server(primary.binlogs) as sendall:
        running = [our_server, peer_server, sendall]
        work = {one.name: lambda one=one: one_run(one, consumers, seconds=bench.pick(*SLOW_S)) for one in running}
        found = list(bench.rounds(work).values())
    speed = [[run.mb_per_s for run in runs] for runs in found]
    ours, peer, limit = map(statistics.median, speed)
    costs = [statistics.median(run.cpu_s_per_gb for run in runs) for runs in found]
    what = f"{'traditional' if is_classic else '.ibb'} {name}, {consumers} consumer{'s' * (consumers > 1)}"
    yield Figure(
        name=what,
        unit="MB/s",
        ours=ours,
        spread=spread(speed[0]),
        peer=peer,
        limit=limit,
        limit_name="sendall",
        target=None if target is None else Target(value=target, of="peer"),
        note=f"peer ±{spread(speed[1]):.0%}; the best of both {max(speed[0]) / max(speed[1]):.2f}",
    )
    yield Figure(
        name=f"{what}: CPU",
        unit="s/GB",
        ours=costs[0],
        peer=costs[1],
        limit=costs[2],
        limit_name="sendall",
        target=Target(value=1.0, of="peer", is_ceiling=True) if name == "W4" else None,
    )


for _name, _target in (("W1", 1.5), ("W2", 1.0), ("W3", 1.0)):
    rows(f"classic-{_name}", _name, 1, _target, True)(whole_logs)
for _name in ("W1", "W2", "W3"):
    rows(f"ibb-{_name}", _name, 1, None)(whole_logs)
    rows(f"ibb-{_name}-16", _name, MANY, 1.2 if _name == "W3" else None)(whole_logs)
rows("large-1", "W4", 1, 1.0)(whole_logs)
rows("large-16", "W4", MANY, 1.0)(whole_logs)


@rows("after-16", is_further=True)
def after_many(bench: Bench) -> Iterator[Figure]:
    """One consumer of W1 behind sixteen: those who were there must not slow down who comes later."""
    workload = WORKLOADS["W1"]
    _, directory = prepare(workload, bench.peer, bench.base, bench.pick(*workload.scales))
    with ibbmaster(directory) as ours:
        before, after = [], []
        for _ in range(bench.repeats):
            before.append(one_run(ours, 1).mb_per_s)
            one_run(ours, MANY)
            after.append(one_run(ours, 1).mb_per_s)
    yield Figure(
        name=f".ibb W1, 1 consumer after {MANY}",
        unit="MB/s",
        ours=statistics.median(after),
        limit=statistics.median(before),
        limit_name="before them",
    )


def beside_none(bench: Bench, directory: Path, stages: Iterable[str]) -> tuple[str, dict[str, list[Run]]]:
    """Runs of primaries with a stage each, and of one without; the name of that one first."""
    with contextlib.ExitStack() as stack:
        bare = stack.enter_context(ibbmaster(directory))
        others = [stack.enter_context(staged(directory, name)) for name in stages]
        work = {one.name: lambda one=one: one_run(one, 1, seconds=bench.pick(*SLOW_S)) for one in (bare, *others)}
        return bare.name, bench.rounds(work)


@rows("stage", is_further=True)
def through_a_stage(bench: Bench) -> Iterator[Figure]:
    """W1 through stages, beside a primary without one; nothing is planned, so that only one of tests reads."""
    workload = WORKLOADS["W1"]
    _, directory = prepare(workload, bench.peer, bench.base, bench.pick(*workload.scales))
    bare, found = beside_none(bench, directory, STAGES)
    speed = {name: statistics.median(run.mb_per_s for run in runs) for name, runs in found.items()}
    cost = {name: statistics.median(run.cpu_s_per_gb for run in runs) for name, runs in found.items()}
    for name, what in STAGES.items():
        yield Figure(
            name=f".ibb W1, 1 consumer, {what}: CPU",
            unit="s/GB",
            ours=cost[name],
            spread=spread([run.cpu_s_per_gb for run in found[name]]),
            limit=cost[bare],
            limit_name="no stage",
            target=None if name == "witness" else Target(value=1.15, of="limit", is_ceiling=True),
            note=f"{speed[name]:,.0f} MB/s, without {speed[bare]:,.0f}",
        )


@rows("group-stage", is_further=True)
def through_a_group_stage(bench: Bench) -> Iterator[Figure]:
    """W1 through each stage of groups alone, which takes the reference way, beside a primary without one."""
    _, directory = prepare(WORKLOADS["W1"], bench.peer, bench.base, bench.pick(*WORKLOADS["W1"].scales))
    bare, found = beside_none(bench, directory, GROUP_STAGES)
    speed = {name: statistics.median(run.mb_per_s for run in runs) for name, runs in found.items()}
    for name, what in GROUP_STAGES.items():
        yield Figure(
            name=f".ibb W1, 1 consumer, {what}",
            unit="MB/s",
            ours=speed[name],
            spread=spread([run.mb_per_s for run in found[name]]),
            limit=speed[bare],
            limit_name="no stage",
        )


@rows("tls-4", 4, 1.0)
@rows("tls", 1, 0.8)
def over_tls(bench: Bench, consumers: int, target: float) -> Iterator[Figure]:
    """W3 over TLS, beside the same in clear and the peer's."""
    workload = WORKLOADS["W3"]
    options = certificate_options(bench.base)
    primary, directory = prepare(workload, bench.peer, bench.base, bench.pick(*workload.scales), options)
    with mariadb(primary) as peer, ibbmaster(directory) as ours:
        size = {one.name: one_run(one, 1).bytes for one in (ours, peer)}
        found = bench.rounds(
            {
                "ours": lambda: one_run(ours, consumers, tls_bytes=size[ours.name]),
                "peer": lambda: one_run(peer, consumers, tls_bytes=size[peer.name]),
                "plain": lambda: one_run(ours, consumers),
                "peer, plain": lambda: one_run(peer, consumers),
            }
        )
    median = {name: statistics.median(run.mb_per_s for run in runs) for name, runs in found.items()}
    cost = {name: statistics.median(run.cpu_s_per_gb for run in runs) for name, runs in found.items()}
    what = f".ibb W3 over TLS, {consumers} consumer{'s' * (consumers > 1)}"
    yield Figure(
        name=f"{what}: CPU",
        unit="s/GB",
        ours=cost["ours"],
        peer=cost["peer"],
        limit=cost["plain"],
        limit_name="in clear",
    )
    yield Figure(
        name=what,
        unit="MB/s",
        ours=median["ours"],
        spread=spread([run.mb_per_s for run in found["ours"]]),
        peer=median["peer"],
        limit=median["plain"],
        limit_name="in clear",
        target=Target(value=target, of="peer"),
        note=f"the peer in clear {median['peer, plain']:,.0f}; it has {peer.openssl}, we {ours.openssl}",
    )
