"""Connections cut at any byte, while groups span files: a replica goes on where it was, and never falls back.

`--cuts N` makes N cuts, spread over every kind of primary and both replicas; a real
primary with the same data shows that it is us who are tested, and not the replicas.
"""

import contextlib
import itertools
import math
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from lanes.binlogs import copy_binlogs
from lanes.content import TableContent, table_content
from lanes.primary import Primary
from lanes.proxy import CutPlan, CuttingProxy
from lanes.replica import Replica

from ibbmaster.testkit.mariadb_programs import installed_versions
from ibbmaster.testkit.mariadb_server import REPLICA_SERVER_ID, RealPrimary, RealServer

DOMAIN_COUNT = 3
ROWS_MAX = 300  # of a transaction
NOTE_COUNT = 200
PAD_SIZES = (5, 40, 400, 900)
DATABASES = [f"shop{domain_id}" for domain_id in range(DOMAIN_COUNT)]  # a domain does not need another one
ORDERS = [f"{database}.orders" for database in DATABASES]
NOTES = [f"{database}.notes" for database in DATABASES]
TABLES = ORDERS + NOTES


def work(server: RealServer, rng: random.Random, *, transactions: int) -> None:
    """Run seeded transactions.

    Rows are inserted, changed and deleted one statement each, so that large groups have many
    events; and since later changes meet rows that earlier ones left, a replica that misses a
    group stops with an error, or ends with other rows. Notes are kept by an engine without
    transactions: a replica that gives a group up keeps the rows it had of it, and fails when
    it applies them again.
    """
    with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
        rows: list[dict[int, int]] = [{} for _ in ORDERS]
        for domain_id, database in enumerate(DATABASES):
            cursor.execute(f"SET SESSION gtid_domain_id = {domain_id}")
            cursor.execute(f"CREATE DATABASE {database}")
            for table, engine in ((ORDERS[domain_id], "InnoDB"), (NOTES[domain_id], "MyISAM")):
                cursor.execute(
                    f"CREATE TABLE {table} (id INT PRIMARY KEY, version INT NOT NULL, pad TEXT) ENGINE={engine}"
                )
        for _ in range(transactions):
            domain_id = rng.randrange(DOMAIN_COUNT)
            cursor.execute(f"SET SESSION gtid_domain_id = {domain_id}")
            if rng.random() < 0.05:
                cursor.execute(f"ALTER TABLE {ORDERS[domain_id]} COMMENT = '{rng.randrange(1000)}'")
                continue
            if rng.random() < 0.2:
                cursor.execute(_replace_notes(rng, NOTES[domain_id]))
                cursor.execute(f"DELETE FROM {NOTES[domain_id]} WHERE id % 3 = {rng.randrange(3)}")
                continue
            cursor.execute("START TRANSACTION")
            for _ in range(rng.choice((1, 1, 2, 5, 40, ROWS_MAX))):
                cursor.execute(_change(rng, ORDERS[domain_id], rows[domain_id]))
            cursor.execute("COMMIT")


def _change(rng: random.Random, table: str, rows: dict[int, int]) -> str:
    """A statement that changes one row; `rows` are the versions of those there are."""
    pad = "x" * rng.choice(PAD_SIZES)
    if not rows or rng.random() < 0.4:
        row_id = max(rows, default=0) + 1
        rows[row_id] = 0
        return f"INSERT INTO {table} VALUES ({row_id}, 0, '{pad}')"
    row_id = rng.choice(sorted(rows))
    if rng.random() < 0.2:
        del rows[row_id]
        return f"DELETE FROM {table} WHERE id = {row_id}"
    rows[row_id] += 1
    return f"UPDATE {table} SET version = {rows[row_id]}, pad = '{pad}' WHERE id = {row_id}"


def _replace_notes(rng: random.Random, table: str) -> str:
    """One statement of many rows, which takes several row events."""
    version, pad = rng.randrange(1000), "x" * rng.choice(PAD_SIZES)
    rows = ", ".join(f"({row_id}, {version}, '{pad}')" for row_id in range(NOTE_COUNT))
    return f"REPLACE INTO {table} VALUES {rows}"


PROFILES = ["engine", "compat", "classic-10.11", "classic-11.8"]
SOURCES = ["real", *PROFILES, "traditional files"]
TRANSACTIONS = 80
FILE_SIZE = "64K"
FALLBACKS = ("Unexpected change", "olling back")
TIMEOUT_S = 240.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """One history: as a real primary has it, in its files, and imported into files that its groups span."""

    primary: RealPrimary
    files: list[Path]
    ibb: Path
    position: str
    tables: dict[str, TableContent | None]


@pytest.fixture(scope="module")
def log(server_of, tmp_path_factory, import_files) -> Iterator[Log]:
    primary = server_of(RealPrimary, "10.11", [], "--max-binlog-size=64K", "--binlog-format=ROW")
    with primary:
        work(primary, random.Random(11), transactions=TRANSACTIONS)
        files = sorted(copy_binlogs(primary, tmp_path_factory.mktemp("work")).iterdir())
        ibb = tmp_path_factory.mktemp("ibb") / "binlog"
        import_files(files, ibb, "--max-file-size", FILE_SIZE)
        with contextlib.closing(primary.connect()) as connection:
            tables = {name: table_content(connection, name) for name in TABLES}
        position = str(primary.sql("SELECT @@GLOBAL.gtid_binlog_pos")[0][0])
        yield Log(primary=primary, files=files, ibb=ibb, position=position, tables=tables)


@pytest.fixture(scope="module")
def replicas(server_of) -> Iterator[dict[str, Replica]]:
    """One replica of each version that is on this machine, for all tests, with its whole log kept."""
    if not (versions := installed_versions()):
        pytest.skip("no MariaDB replica is on this machine: run `sh .ci/prepare tests`")
    with contextlib.ExitStack() as stack:
        started = {}
        for number, version in enumerate(versions):
            options = ("--slave-net-timeout=2",)
            replica = server_of(Replica, version, *options, server_id=REPLICA_SERVER_ID + number)
            replica.log = deque()
            started[version] = stack.enter_context(replica)
        yield started


@pytest.mark.timeout(0)  # as long as --cuts asks for; each wait has a limit of its own
@pytest.mark.xdist_group("cuts")  # one log and one pair of replicas, whatever -n says
@pytest.mark.parametrize("source", SOURCES)
def test_replicas_whose_connections_are_cut_anywhere_go_on_where_they_were(
    source, seed, request, log, replicas, new_ibb_primary, watch_log
):
    for version, replica in replicas.items():
        watch_log(f"log of replica {version}", replica.log_text)
    primary = start_primary(source, log, new_ibb_primary)
    left = dict.fromkeys(replicas, math.ceil(request.config.getoption("--cuts") / len(SOURCES) / len(replicas)))
    for number in itertools.count():
        with contextlib.ExitStack() as stack:
            plans = {}
            for version, replica in replicas.items():
                rng = random.Random(f"{seed} {source} {version} {number}")
                begin_anew(replica, rng)
                plans[version] = CutPlan(rng, left[version])
                proxy = stack.enter_context(CuttingProxy(primary.host, primary.port, plans[version]))
                replica.follow(proxy, heartbeat_period_s=0.5)
            for replica in replicas.values():
                replica.wait_for_gtid(log.position, timeout_s=TIMEOUT_S, tolerates_lost_connections=True)
                replica.sql("STOP SLAVE")
        for version, replica in replicas.items():
            assert [line for line in replica.log if any(text in line for text in FALLBACKS)] == []
            assert replica.tables(TABLES) == log.tables
            left[version] -= plans[version].done
        if max(left.values()) <= 0:
            break


def start_primary(source: str, log: Log, new_ibb_primary: Callable[..., Primary]) -> Primary:
    if source == "real":
        return log.primary
    if source in PROFILES:
        return new_ibb_primary(log.ibb, "--profile", source, "--server-version", "10.11.19-MariaDB-log", "--tls", "off")
    return new_ibb_primary(log.files[0].parent, "--tls", "off")


def begin_anew(replica: Replica, rng: random.Random) -> None:
    """Make an empty replica of one that has followed before."""
    replica.log.clear()
    replica.sql("RESET SLAVE ALL")
    replica.sql("SET GLOBAL gtid_slave_pos = ''")
    for database in DATABASES:
        replica.sql(f"DROP DATABASE IF EXISTS {database}")
    replica.sql(f"SET GLOBAL slave_parallel_threads = {rng.choice((0, 4))}")
