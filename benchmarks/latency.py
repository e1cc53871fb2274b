"""Rows: how soon a replica has its first event, and a new group when it is durable.

Logs of 1 GB files are described at `LargeLog`; the peer has as many files, each with 20 groups
and the GTID index that it wrote itself. New groups are small and come one at a time to an idle
server, unless "paced": 100 KB/s in ten groups a second, until the whole group is there. A group
can be there before its commit returns: then it took no time.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import random
import selectors
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np

from benchmarks.consumer import Records
from benchmarks.figures import Bench, Figure, Target, percentile, rows
from benchmarks.replica import Account, first_event_s, log_in, packet, reconnect_s, waiting
from benchmarks.servers import Contender, certificate_options, ibbmaster, mariadb, plain_loop
from benchmarks.workloads import (
    GROUPS_IN_SMALL_FILE,
    WORKLOADS,
    Primary,
    large_log,
    prepare,
    prepare_files,
    small_group,
)
from ibbmaster.logs.store.background import Background
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import StoreOptions
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.storage.disk.local import RealDisk

FILLED = (384 << 20, 32 << 20)
SEEKS = (200, 40)
REPLICAS = (1000, 200)
SECRET_REPLICAS = (300, 60)
GROUPS = (200, 30)
IDLE_REPLICAS = 100
IDLE_S = 5.0
PACED_S = (10.0, 3.0)
PACED_BYTES = 10_000
PACED_PERIOD_S = 0.1
PAUSE_S = 0.02  # between groups: the server is idle when the next one comes
ENOUGH_S = 30.0  # of small groups, however late they are
LOST_S = 60.0  # a group that is later has not been sent
SETTLED_S = 1.0  # when so long nothing came to any of many, all is there
QUIET_S = 0.01  # when so long nothing came, a group is there
PING = packet(0, b"\x0e")

Commit = Callable[[int], object]  # a group of about so many bytes; durable when it returns
Growing = dict[str, tuple[Contender, Commit]]


def latencies(
    what: str,
    ours: list[float],
    peer: list[float],
    *,
    median_ms: float | None,
    p99_ms: float | None,
    bare: Sequence[float] = (),
    **rest: object,
) -> Iterator[Figure]:
    """Two rows, of values in seconds; `bare` are those of the limit, where it has more than one."""
    for name, value_of, target in (
        ("median", statistics.median, median_ms),
        ("p99", lambda values: percentile(values, 0.99), p99_ms),
    ):
        yield Figure(
            name=f"{what}, {name}",
            unit="ms",
            ours=value_of(ours) * 1e3,
            peer=value_of(peer) * 1e3 if peer else None,
            target=None if target is None else Target(value=target, is_ceiling=True),
            **({"limit": value_of(bare) * 1e3} if bare else {}),
            **rest,  # type: ignore[arg-type]
        )


def ping_s(contender: Contender) -> float:
    """Seconds of the shortest question and answer there are."""
    line = log_in(contender.account)
    with line.socket:
        begun = time.perf_counter()
        line.send(PING)
        line.next_packet()
        return time.perf_counter() - begun


# The first event -----------------------------------------------------------------------------


@rows("first-event-1000", 1000)
@rows("first-event-1", 1)
def first_events(bench: Bench, files: int) -> Iterator[Figure]:
    """From the dump command to the first GTID event, at positions anywhere in the log."""
    log = large_log(bench.base, files, round(bench.pick(*FILLED)))
    rng = random.Random(1)
    with ibbmaster(log.log) as ours, mariadb(prepare_files(bench.peer, bench.base, files)) as peer:
        found = bench.rounds(
            {
                "ours": lambda: first_event_s(ours.account, log.some_position(rng)),
                "peer": lambda: first_event_s(peer.account, f"0-1-{rng.randrange(1, files * GROUPS_IN_SMALL_FILE)}"),
                "ping": lambda: ping_s(peer),
            },
            round(bench.pick(*SEEKS)),
        )
    ping_ms = statistics.median(found["ping"]) * 1e3
    what = f"first event, {files:,} file{'s' * (files > 1)} of 1 GB"
    limits = {"limit": ping_ms, "limit_name": "a ping"}
    yield from latencies(what, found["ours"], found["peer"], median_ms=1.0, p99_ms=5.0, **limits)


@rows("first-event-classic-1000", 1000)
def first_events_of_many_files(bench: Bench, files: int) -> Iterator[Figure]:
    """The same of many traditional files, those of the peer."""
    primary = prepare_files(bench.peer, bench.base, files)
    rng = random.Random(1)

    def ask(account: Account) -> float:
        return first_event_s(account, f"0-1-{rng.randrange(1, files * GROUPS_IN_SMALL_FILE)}")

    with tempfile.TemporaryDirectory(dir=bench.base) as name, contextlib.ExitStack() as stack:
        for file in primary.binlogs:
            os.link(file, Path(name) / file.name)
        ours, peer = stack.enter_context(ibbmaster(Path(name))), stack.enter_context(mariadb(primary))
        found = bench.rounds(
            {"ours": lambda: ask(ours.account), "peer": lambda: ask(peer.account), "ping": lambda: ping_s(peer)},
            round(bench.pick(*SEEKS)),
        )
    limits = {"limit": statistics.median(found["ping"]) * 1e3, "limit_name": "a ping"}
    what = f"first event, {files:,} traditional files"
    yield from latencies(what, found["ours"], found["peer"], median_ms=1.0, p99_ms=5.0, **limits)


@rows("first-event-classic")
def first_events_of_files(bench: Bench) -> Iterator[Figure]:
    """The same of one traditional file, that of the peer itself."""
    workload = WORKLOADS["W1"]
    primary, _ = prepare(workload, bench.peer, bench.base, bench.pick(*workload.scales))
    groups = round(workload.groups * bench.pick(*workload.scales))
    rng = random.Random(1)

    def ask(account: Account) -> float:
        return first_event_s(account, f"0-1-{rng.randrange(1, groups)}")

    with tempfile.TemporaryDirectory(dir=bench.base) as name, contextlib.ExitStack() as stack:
        os.link(primary.binlogs[0], Path(name) / primary.binlogs[0].name)
        ours, peer = stack.enter_context(ibbmaster(Path(name))), stack.enter_context(mariadb(primary))
        found = bench.rounds(
            {"ours": lambda: ask(ours.account), "peer": lambda: ask(peer.account), "ping": lambda: ping_s(peer)},
            round(bench.pick(*SEEKS)),
        )
    limits = {"limit": statistics.median(found["ping"]) * 1e3, "limit_name": "a ping"}
    yield from latencies(
        "first event, a traditional file", found["ours"], found["peer"], median_ms=1.0, p99_ms=5.0, **limits
    )


@rows("reconnect")
def reconnects(bench: Bench) -> Iterator[Figure]:
    """A thousand replicas at once, which lack one group."""
    log = large_log(bench.base, 1, round(bench.pick(*FILLED)))
    count = round(bench.pick(*REPLICAS))
    with ibbmaster(log.log) as ours, mariadb(prepare_files(bench.peer, bench.base, 1)) as peer:
        found = bench.rounds(
            {
                "ours": lambda: reconnect_s(ours.account, f"0-1-{log.last_group() - 1}", count),
                "peer": lambda: reconnect_s(peer.account, f"0-1-{GROUPS_IN_SMALL_FILE - 1}", count),
            },
            3,
        )
    yield Figure(
        name=f"{count:,} replicas reconnect: login and first event",
        unit="s",
        ours=statistics.median(found["ours"]),
        peer=statistics.median(found["peer"]),
        target=Target(value=1.0, of="peer", is_ceiling=True),
        note="16 steps each",
    )


# New groups ----------------------------------------------------------------------------------


@contextlib.contextmanager
def growing_files(directory: Path) -> Iterator[Commit]:
    """A log whose files are written and synced by this process."""
    with BinlogWriter(RealDisk(directory), max_file_bytes=1 << 30, is_sparse=True) as writer:
        numbers = itertools.count(1)

        def commit(size: int) -> None:
            writer.write_group(*small_group(next(numbers), size))
            writer.flush()

        yield commit


@contextlib.contextmanager
def growing_store(directory: Path) -> Iterator[Commit]:
    """A store that this process owns: what it commits is in its redo log first."""
    options = StoreOptions(max_file_bytes=1 << 30, is_sparse=True)
    with BinlogStore(RealDisk(directory), options) as store, Background(store):
        numbers = itertools.count(1)
        yield lambda size: store.write_direct(*small_group(next(numbers), size))


@contextlib.contextmanager
def growing_primary(version: str, directory: Path, *options: str) -> Iterator[tuple[Contender, Commit]]:
    """A MariaDB primary that syncs its log at each commit."""
    primary = Primary(version, directory, "--sync-binlog=1", *options)
    primary.start()
    primary.begin("longblob")
    primary.stop()
    with mariadb(primary) as peer:
        yield peer, lambda size: primary.sql("INSERT INTO bench.t VALUES (1, repeat('x', %s))", (size,))


def drain(one: socket.socket, seconds: float = QUIET_S) -> int:
    """Read until nothing comes for so long; returns the bytes."""
    one.settimeout(seconds)
    size = 0
    with contextlib.suppress(TimeoutError):
        while data := one.recv(1 << 16):
            size += len(data)
    one.settimeout(60)
    return size


def delay(one: socket.socket, commit: Commit) -> float:
    """Seconds from a durable group to its first byte at a waiting replica; next to none if that came before."""
    drain(one)
    time.sleep(PAUSE_S)
    commit(100)
    durable_at = time.perf_counter()
    one.recv(1)
    return time.perf_counter() - durable_at


@contextlib.contextmanager
def followed(
    bench: Bench, growing: Callable[[Path], AbstractContextManager[Commit]], *options: str
) -> Iterator[Growing]:
    """A growing log, `ibbmaster serve` beside its writer, and a growing primary with these options."""
    with tempfile.TemporaryDirectory(dir=bench.base) as name, contextlib.ExitStack() as stack:
        directory = Path(name) / "log"
        directory.mkdir()
        commit = stack.enter_context(growing(directory))
        commit(100)
        ours = stack.enter_context(ibbmaster(directory))
        peer, peer_commit = stack.enter_context(growing_primary(bench.peer, Path(name) / "peer", *options))
        yield {"ours": (ours, commit), "peer": (peer, peer_commit)}


@rows("other-process", growing_store, "of another process, in its redo log", None, 20.0)
@rows("notify-1", growing_files, "of another process, synced to its file", 0.3, None)
def to_one(
    bench: Bench,
    growing: Callable[[Path], AbstractContextManager[Commit]],
    where: str,
    median_ms: float | None,
    p99_ms: float | None,
) -> Iterator[Figure]:
    """One replica waits for small groups."""
    with followed(bench, growing) as servers:
        lines = {name: waiting(server.account) for name, (server, _) in servers.items()}
        found = bench.rounds(
            {name: lambda name=name: delay(lines[name], servers[name][1]) for name in servers},  # type: ignore[misc]
            round(bench.pick(*GROUPS)),
            seconds=ENOUGH_S,
        )
    what = f"a durable group {where}, reaches 1 replica"
    yield from latencies(what, found["ours"], found["peer"], median_ms=median_ms, p99_ms=p99_ms)


@rows("notify-1000")
def to_many(bench: Bench) -> Iterator[Figure]:
    """A thousand replicas wait, paced."""
    count, seconds = round(bench.pick(*REPLICAS)), bench.pick(*PACED_S)
    with followed(bench, growing_files) as servers:
        found = {name: sent(*one, count, seconds) for name, one in servers.items()}
    found["limit"] = written(bench, count, seconds)
    what = f"a durable group reaches {count:,} replicas, paced"
    yield from reached(what, found, "bare writes", p99_ms=20.0, cpu=Target(value=20, is_ceiling=True))


@rows("notify-tls")
def to_many_over_tls(bench: Bench) -> Iterator[Figure]:
    """Three hundred wait over TLS, paced; beside as many of ours in clear."""
    count, seconds = round(bench.pick(*SECRET_REPLICAS)), bench.pick(*PACED_S)
    with followed(bench, growing_files, *certificate_options(bench.base)) as servers:
        found = {name: sent(*one, count, seconds, is_secret=True) for name, one in servers.items()}
        found["limit"] = sent(*servers["ours"], count, seconds)
        note = f"the peer has {servers['peer'][0].openssl}, we {servers['ours'][0].openssl}"
    what = f"a durable group reaches {count:,} replicas over TLS, paced"
    cpu = Target(value=1.0, of="peer", is_ceiling=True)
    yield from reached(what, found, "in clear", p99_ms=20.0, cpu=cpu, note=note)


def reached(
    what: str,
    found: dict[str, tuple[list[float], float]],
    limit_name: str,
    *,
    p99_ms: float,
    cpu: Target,
    note: str = "",
) -> Iterator[Figure]:
    """The rows of delays and seconds of CPU of a group; those of the limit are there, too."""
    delays = {name: one for name, (one, _) in found.items()}
    yield from latencies(
        what,
        delays["ours"],
        delays["peer"],
        median_ms=None,
        p99_ms=p99_ms,
        bare=delays["limit"],
        limit_name=limit_name,
    )
    yield Figure(
        name=f"{what}: CPU of a group",
        unit="ms",
        **{name: cost * 1e3 for name, (_, cost) in found.items()},
        limit_name=limit_name,
        target=cpu,
        note=note,
    )


def sent(
    server: Contender, commit: Commit, count: int, seconds: float, *, is_secret: bool = False
) -> tuple[list[float], float]:
    """As `paced`, of so many that wait; and the server's seconds of CPU of a group."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(waiting(server.account, is_secret=is_secret)) for _ in range(count)]
        begun = server.cpu_s()
        delays = paced(sockets, commit, seconds, is_secret=is_secret)
        return delays, (server.cpu_s() - begun) / (len(delays) / count)


def written(bench: Bench, count: int, seconds: float) -> tuple[list[float], float]:
    """As `sent`, of a loop that does nothing but write to all."""
    with tempfile.TemporaryDirectory(dir=bench.base) as name, contextlib.ExitStack() as stack:
        commit = stack.enter_context(growing_files(Path(name)))
        server = stack.enter_context(plain_loop(count, PACED_BYTES))
        connect = functools.partial(socket.create_connection, ("127.0.0.1", server.account.port))
        sockets = [stack.enter_context(connect()) for _ in range(count)]
        asking = stack.enter_context(connect())

        def commit_and_ask(size: int) -> None:
            commit(size)
            asking.send(b"x")

        begun = server.cpu_s()
        delays = paced(sockets, commit_and_ask, seconds)
        return delays, (server.cpu_s() - begun) / (len(delays) / count)


def paced(sockets: list[socket.socket], commit: Commit, seconds: float, *, is_secret: bool = False) -> list[float]:
    """Seconds from each durable group to its last byte, at each replica; over TLS records are skipped unread."""
    durable_at: list[float] = []
    is_over = threading.Event()

    def write() -> None:
        begun = time.perf_counter()
        for number in range(round(seconds / PACED_PERIOD_S)):
            time.sleep(max(0.0, begun + number * PACED_PERIOD_S - time.perf_counter()))
            commit(PACED_BYTES)
            durable_at.append(time.perf_counter())
        is_over.set()

    buffer = bytearray(1 << 20)
    data = np.frombuffer(buffer, dtype=np.uint8)
    records = [Records() for _ in sockets]
    received = [0] * len(sockets)
    delays: list[float] = []
    with selectors.DefaultSelector() as selector:
        for number, one in enumerate(sockets):
            one.setblocking(False)
            selector.register(one, selectors.EVENT_READ, number)

        def receive(wait_s: float) -> Iterator[tuple[int, int]]:
            """The replicas that got something, and how many bytes they had before."""
            for key, _ in selector.select(wait_s):
                size = key.fileobj.recv_into(buffer)  # type: ignore[union-attr]
                if not size:
                    raise SystemExit("a waiting replica lost its connection")
                before = received[key.data]
                received[key.data] += records[key.data].skip(data, size) if is_secret else size
                yield key.data, before

        def settle() -> int:
            """Wait until all is there; bytes that the first replica got."""
            before = received[0]
            while list(receive(SETTLED_S)):
                pass
            return received[0] - before

        settle()
        commit(PACED_BYTES)
        group_bytes = settle()
        received[:] = [0] * len(sockets)
        writer = threading.Thread(target=write)
        writer.start()
        until = time.perf_counter() + seconds + LOST_S
        while not is_over.is_set() or len(delays) < len(durable_at) * len(sockets):
            if time.perf_counter() > until:
                raise SystemExit(f"{len(delays)} groups came of {len(durable_at)} for each of {len(sockets)} replicas")
            for replica, before in receive(1.0):
                now = time.perf_counter()
                whole = range(before // group_bytes, received[replica] // group_bytes)
                delays += [now - durable_at[group] if group < len(durable_at) else 0.0 for group in whole]
        writer.join()
    return delays


@rows("idle")
def idle(bench: Bench) -> Iterator[Figure]:
    """CPU of a server whose replicas wait for what does not come."""
    costs = {}
    with followed(bench, growing_files) as servers:
        for name, (server, _) in servers.items():
            with contextlib.ExitStack() as stack:
                for _ in range(IDLE_REPLICAS):
                    drain(stack.enter_context(waiting(server.account)))
                begun = server.cpu_s()
                time.sleep(IDLE_S)
                costs[name] = server.cpu_s() - begun
    yield Figure(
        name=f"{IDLE_REPLICAS} idle replicas for {IDLE_S:.0f} s: CPU",
        unit="ms",
        ours=costs["ours"] * 1e3,
        peer=costs["peer"] * 1e3,
        target=Target(value=25, is_ceiling=True),
    )
