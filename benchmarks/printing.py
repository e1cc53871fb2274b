"""Rows: how fast commands print the rows of traditional files, whole processes, beside MariaDB's tool and a library.

3.2 million rows of seven columns, 10,000 in each transaction, 214 MB that a real primary has written. Rates are rows
per second of the clock, process start included.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from lanes.primary import IbbPrimary, ibbmaster
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import WriteRowsEvent

from benchmarks.figures import Bench, Figure, Target, rows, spread, timed
from benchmarks.workloads import Primary, filled_primary
from ibbmaster.testkit.mariadb_programs import find_programs

IN_TRANSACTION = 10_000
LIBRARY_ROWS = 100_000  # the rate is the same for more
FORMATS = ("json", "debezium", "sql", "mariadb-binlog")
TABLE = (
    "CREATE TABLE bench.printed (id BIGINT PRIMARY KEY, name VARCHAR(40), price DECIMAL(10,2), made DATETIME, n INT, "
    "flag TINYINT UNSIGNED, note TEXT) CHARACTER SET utf8mb4"
)
INSERT = (
    "INSERT INTO bench.printed SELECT seq, CONCAT('name of ', seq), seq / 100, '2026-01-01' + INTERVAL seq SECOND, "
    "IF(seq % 7, seq * 3, NULL), seq % 250, CONCAT('some note about ', seq, ' é') FROM bench.seq_{}_to_{}"
)


def files_of(bench: Bench, count: int) -> Path:
    """A directory with the log of a primary; made if it is not there yet."""
    directory = bench.base / f"printed-{bench.peer}-{count}"

    def fill(primary: Primary) -> None:
        primary.sql(TABLE)
        for start in range(1, count, IN_TRANSACTION):
            primary.sql(INSERT.format(start, start + IN_TRANSACTION - 1))
        primary.sql("FLUSH BINARY LOGS")

    if not (directory / "done").exists():
        filled_primary(bench.peer, directory, "int", fill)
        (directory / "done").touch()
    return Primary(bench.peer, directory).classic_directory()


def read_with_library(directory: Path, wanted: int) -> None:
    """The first rows with python-mysql-replication, which reads no files."""
    primary = IbbPrimary(directory)
    primary.start()
    settings = {"host": "127.0.0.1", "port": primary.port, "user": primary.user, "passwd": primary.password}
    reader = BinLogStreamReader(
        connection_settings=settings, server_id=77, is_mariadb=True, auto_position="", only_events=[WriteRowsEvent]
    )
    try:
        with contextlib.closing(reader):
            count = 0
            for event in reader:
                count += len(event.rows)
                if count >= wanted:
                    return
    finally:
        primary.kill()


def run(*command: str) -> float:
    """Seconds of a command whose output is dropped."""
    return timed(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True))


@rows("printing")
def printing(bench: Bench) -> Iterator[Figure]:
    """Each format, and both peers, in turn."""
    count = int(bench.pick(3_200_000, 100_000))
    directory = files_of(bench, count)
    files = [str(path) for path in sorted(directory.iterdir())]
    tool = [*find_programs(bench.peer).command("mariadb-binlog"), "--no-defaults", "-v", *files]
    library_rows = min(count, LIBRARY_ROWS)
    work = {
        **{name: partial(run, *ibbmaster("cat", str(directory), "--format", name)) for name in FORMATS},
        "tool": partial(run, *tool),
        "library": lambda: timed(lambda: read_with_library(directory, library_rows)),
    }
    found = bench.rounds(work)
    tool_rate = count / statistics.median(found.pop("tool"))
    library_rate = library_rows / statistics.median(found.pop("library"))
    for name, seconds in found.items():
        yield Figure(
            name=f"cat --format {name}",
            unit="k rows/s",
            ours=count / statistics.median(seconds) / 1000,
            spread=spread(seconds),
            peer=library_rate / 1000,
            limit=tool_rate / 1000,
            limit_name="mariadb-binlog -v",
            target=Target(value=5, of="peer") if name == "json" else None,
            note="peer: python-mysql-replication",
        )
