"""Servers that are measured, each a process of its own, and what they cost as the kernel counts it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lanes.primary import IbbPrimary
from OpenSSL import SSL

from benchmarks.replica import Account
from benchmarks.workloads import Primary
from ibbmaster.primary.server.certificate import self_signed_pem

CPUCLOCK_SCHED = 2  # with the process in the bits above: its clock
MAX_CONNECTIONS = 5000  # a primary keeps those whose replica is gone until it has something to send


def process_cpu_s(pid: int) -> float:
    """Seconds of CPU of a process so far, of all its threads, also those that have ended."""
    return time.clock_gettime((~pid << 3) | CPUCLOCK_SCHED)


@dataclass(frozen=True, slots=True)
class Contender:
    """A server that is running."""

    name: str
    pid: int
    account: Account
    is_plain: bool = False  # sends bytes as they are to whoever connects
    openssl: str = ""  # what encrypts: 3.5 does that twice as fast as 3.0 where a CPU has VAES

    def cpu_s(self) -> float:
        """Seconds of CPU so far, of all its threads, also those that have ended."""
        return process_cpu_s(self.pid)

    def keep_to(self, cpus: set[int]) -> None:
        """Let all its threads, and those they start, run on these CPUs alone."""
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                os.sched_setaffinity(int(task.name), cpus)


@contextlib.contextmanager
def ibbmaster(directory: Path, *options: str) -> Iterator[Contender]:
    """`ibbmaster serve`, its kernels loaded."""
    ours = IbbPrimary(directory, "--max-connections", str(MAX_CONNECTIONS), "--read-only", *options)
    try:
        ours.start()
        account = Account(ours.port, ours.user, ours.password)
        yield Contender("ibbmaster", ours.pid, account, openssl=SSL.SSLeay_version(SSL.SSLEAY_VERSION).decode())
    finally:
        ours.kill()


@contextlib.contextmanager
def mariadb(primary: Primary) -> Iterator[Contender]:
    """A real primary."""
    try:
        primary.start()
        assert primary.port is not None
        library = primary.sql("SELECT @@version_ssl_library")[0][0]
        yield Contender(f"MariaDB {primary.programs.version}", primary.pid, Account(primary.port), openssl=library)
    finally:
        primary.stop()


def certificate_options(base: Path) -> list[str]:
    """What a primary before 11.4 needs for TLS."""
    pem = base / "peer.pem"
    pem.write_bytes(self_signed_pem(datetime.now(UTC)))
    return [f"--ssl-cert={pem}", f"--ssl-key={pem}"]


@contextlib.contextmanager
def plain_server(files: Sequence[Path]) -> Iterator[Contender]:
    """The machine's limit: see benchmarks/limits.py."""
    with _program("limits", *files) as (pid, port):
        yield Contender("sendall", pid, Account(port), is_plain=True)


@contextlib.contextmanager
def plain_loop(clients: int, size: int) -> Iterator[Contender]:
    """As many clients as one loop of writes can serve: see benchmarks/limits.py."""
    with _program("limits", "--clients", str(clients), "--bytes", str(size)) as (pid, port):
        yield Contender("bare writes", pid, Account(port), is_plain=True)


@contextlib.contextmanager
def staged(directory: Path, stage: str) -> Iterator[Contender]:
    """A log through a stage: see benchmarks/staged.py."""
    with _program("staged", directory, stage) as (pid, port):
        yield Contender(stage, pid, Account(port))


@contextlib.contextmanager
def _program(name: str, *arguments: Path | str) -> Iterator[tuple[int, int]]:
    """A program of ours that prints its port: its process id, and the port."""
    command = [sys.executable, "-m", f"benchmarks.{name}", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.pid, int(process.stdout.readline())
        finally:
            process.kill()
