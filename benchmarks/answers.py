"""Rows: SELECT of all rows of a table, over a socket that throws them away."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pymysql

from benchmarks.figures import Bench, Figure, Target, rows, spread
from benchmarks.servers import Contender, ibbmaster
from ibbmaster.testkit.mariadb_programs import find_programs
from ibbmaster.testkit.mariadb_server import NetworkServer, ServerTemplate

ROWS = 1_000_000
COM_QUERY = 3
END_SIZE = 9  # bytes of an EOF packet
QUERY = "SELECT id, name, amount, at, flag, note FROM bench.m"
STATEMENTS = (
    "CREATE DATABASE bench",
    "CREATE TABLE bench.m (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(40) NOT NULL, amount DECIMAL(20, 2) NOT NULL, "
    "at DATETIME(6) NOT NULL, flag TINYINT NOT NULL, note VARCHAR(40))",
    "INSERT INTO bench.m SELECT seq, CONCAT('customer number ', seq), seq * 1.37, "
    "'2024-01-01' + INTERVAL seq * 1000017 MICROSECOND, seq % 2, IF(seq % 3 = 0, NULL, CONCAT('n', seq % 1000)) "
    "FROM bench.seq_1_to_{count}",
    "FLUSH BINARY LOGS",
)


def drained_s(connection: Any) -> float:
    """Seconds from a query to the last byte of its answer."""
    begun = time.perf_counter()
    connection._execute_command(COM_QUERY, QUERY)
    buffer, size, tail = bytearray(1 << 20), 0, b""
    while size < 1 << 16 or tail[:3] != b"\5\0\0" or tail[4] != 0xFE:
        count = connection._sock.recv_into(buffer)
        assert count, "the server has closed the connection"
        size += count
        tail = (tail + bytes(buffer[max(0, count - END_SIZE) : count]))[-END_SIZE:]
    return time.perf_counter() - begun


def with_cpu(connection: Any, server: Contender) -> tuple[float, float]:
    """Seconds, and seconds of the server's CPU."""
    before = server.cpu_s()
    return drained_s(connection), server.cpu_s() - before


@rows("select", is_further=True)
def selection(bench: Bench) -> Iterator[Figure]:
    """All rows of a table, at the end of a log that has inserted them; the peer is the primary that wrote it."""
    count = int(bench.pick(ROWS, ROWS // 4))
    with tempfile.TemporaryDirectory(dir=bench.base) as scratch:
        directory = Path(scratch)
        options = ("--log-bin=binlog", "--binlog-format=ROW", "--server-id=1", "--innodb-buffer-pool-size=1G")
        template = ServerTemplate.of_user(find_programs(bench.peer))
        with NetworkServer(template, directory / "r", *options) as primary:
            with primary.connect().cursor() as cursor:
                for statement in STATEMENTS:
                    cursor.execute(statement.format(count=count))
            log = directory / "log"
            log.mkdir()
            shutil.copy(primary.data / "binlog.000001", log)
            with ibbmaster(log) as ours:
                yield from compared(bench, count, primary, ours)


def compared(bench: Bench, count: int, primary: NetworkServer, ours: Contender) -> Iterator[Figure]:
    """What both give, in turns."""
    account = ours.account
    mine = pymysql.connect(host="127.0.0.1", port=account.port, user=account.user, password=account.password)
    theirs = pymysql.connect(host="127.0.0.1", port=primary.port or 0, user="root")
    peer = Contender("MariaDB", primary.pid, account)
    folded_s = drained_s(mine)  # which has to read the log
    work: dict[str, Callable[[], tuple[float, float]]] = {
        "ours": lambda: with_cpu(mine, ours),
        "peer": lambda: with_cpu(theirs, peer),
    }
    work["ours"]()  # kernels may not have been there yet
    found = bench.rounds(work, max(bench.repeats, 5))
    peak = next(line for line in Path(f"/proc/{ours.pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    wall = {name: [count / seconds / 1e3 for seconds, _ in values] for name, values in found.items()}
    cpu = {name: [count / seconds / 1e3 for _, seconds in values] for name, values in found.items()}
    for what, rates, note in (
        ("SELECT of all rows", wall, f"the first one, which reads the log: {folded_s:.1f} s"),
        (
            "SELECT of all rows, for a second of CPU",
            cpu,
            f"{int(peak.split()[1]) // 1024} MiB at the peak, files included",
        ),
    ):
        yield Figure(
            name=what,
            unit="thousand rows/s",
            ours=statistics.median(rates["ours"]),
            spread=spread(rates["ours"]),
            peer=statistics.median(rates["peer"]),
            target=Target(value=1.5, of="peer"),
            note=note,
        )


SHAPES = {"1": 1, "10": 10, "1,000": 1000}  # rows of a transaction
FILL = """CREATE PROCEDURE bench.fill() BEGIN DECLARE i INT DEFAULT 0; WHILE i < {count} DO
INSERT INTO bench.m SELECT i + seq, CONCAT('customer number ', i + seq), seq * 1.37,
'2024-01-01' + INTERVAL (i + seq) * 1000017 MICROSECOND, seq % 2, IF(seq % 3 = 0, NULL, CONCAT('n', seq))
FROM bench.seq_1_to_{rows}; SET i = i + {rows}; END WHILE; END"""
UNSAFE = ("--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0")  # of the primary that writes the log


@rows("select-first", is_further=True)
def first_selection(bench: Bench) -> Iterator[Figure]:
    """The first SELECT of a log that has inserted a million rows; the limit is mariadb-binlog, which reads it alone."""
    count = int(bench.pick(ROWS, ROWS // 4))
    programs = find_programs(bench.peer)
    for shape, size in SHAPES.items():
        with tempfile.TemporaryDirectory(dir=bench.base) as scratch:
            directory = Path(scratch)
            options = ("--log-bin=binlog", "--binlog-format=ROW", "--server-id=1", "--max-binlog-size=1G", *UNSAFE)
            with NetworkServer(ServerTemplate.of_user(programs), directory / "r", *options) as primary:
                with primary.connect().cursor() as cursor:
                    cursor.execute("SET autocommit = 1")
                    for statement in (*STATEMENTS[:2], FILL, "CALL bench.fill()", "FLUSH BINARY LOGS"):
                        cursor.execute(statement.format(count=count, rows=size))
                log = directory / "log"
                log.mkdir()
                file = Path(shutil.copy(primary.data / "binlog.000001", log))
                theirs = pymysql.connect(host="127.0.0.1", port=primary.port or 0, user="root")
                peer_s = statistics.median(drained_s(theirs) for _ in range(bench.repeats))
            begun = time.perf_counter()
            subprocess.run(
                [*programs.command("mariadb-binlog"), "-v", str(file)], stdout=subprocess.DEVNULL, check=True
            )
            limit_s = time.perf_counter() - begun
            firsts, laters, cpu = [], [], []
            for _ in range(bench.repeats):
                with ibbmaster(log) as ours:
                    account = ours.account
                    mine = pymysql.connect(
                        host="127.0.0.1", port=account.port, user=account.user, password=account.password
                    )
                    seconds, cpu_s = with_cpu(mine, ours)
                    firsts.append(count / seconds / 1e3)
                    cpu.append(cpu_s)
                    laters.append(count / drained_s(mine) / 1e3)
            note = f"{statistics.median(cpu):.2f} s of CPU; a later one {statistics.median(laters):.0f}"
            yield Figure(
                name=f"first SELECT, {shape} row{'s' if size > 1 else ''} a transaction",
                unit="thousand rows/s",
                ours=statistics.median(firsts),
                spread=spread(firsts),
                peer=count / peer_s / 1e3,
                limit=count / limit_s / 1e3,
                limit_name="mariadb-binlog -v",
                target=Target(value=1, of="limit"),
                note=note,
            )
