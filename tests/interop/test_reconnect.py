"""Connections that break and servers that die: a replica ends with the same tables as if nothing had happened.

Of connections that are cut at any byte, while groups span files, `--cuts N` makes N, spread over every kind of primary
and both replicas; a real primary with the same data shows that it is us who are tested, and not the replicas.
"""

import contextlib
import itertools
import math
import os
import random
import resource
import socket
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from lanes.capture import Capture, TableContent, contents
from lanes.primary import Primary
from lanes.proxy import Cut, CutPlan, CuttingProxy
from lanes.replica import Replica
from lanes.sql import copy_binlogs, position_of

from ibbmaster.testkit.mariadb_programs import installed_versions
from ibbmaster.testkit.mariadb_server import REPLICA_SERVER_ID, RealPrimary, RealServer

DIALOG_BYTES = 2000  # about what a primary sends before the first event
TIMEOUT_S = 600.0
DESCRIPTORS = 1200  # some more than select() takes


def test_the_proxy_moves_and_cuts_bytes_of_descriptors_beyond_1023():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < DESCRIPTORS:
        pytest.skip(f"no more than {hard} descriptors may be open here")
    with contextlib.ExitStack() as stack:
        if soft != resource.RLIM_INFINITY and soft < DESCRIPTORS:
            resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, hard))
            stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        while stack.enter_context(open(os.devnull, "rb")).fileno() < 1024:
            pass
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        proxy = stack.enter_context(CuttingProxy(*listener.getsockname(), [Cut(after_bytes=3)]))
        client = stack.enter_context(socket.create_connection((proxy.host, proxy.port), timeout=30))
        listener.settimeout(30)
        server = stack.enter_context(listener.accept()[0])
        server.sendall(b"abcdef")

        assert b"".join(iter(lambda: client.recv(9), b"")) == b"abc"


# As mysql-test/suite/binlog_in_engine/crash_safe_slave.test
@pytest.mark.parametrize("name", ["10.11/types-minimal-none", "11.8/large-commit"])
def test_a_primary_killed_in_mid_stream_is_followed_on_after_its_restart(
    name, version, seed, captures, new_ibb_primary, new_replica
):
    capture = captures[name]
    rng = random.Random(f"{seed} {name} {version}")
    cut = Cut(after_bytes=rng.randrange(DIALOG_BYTES, capture.size), waits=True)
    replica = new_replica(version)
    primary = new_ibb_primary(capture, "--tls", "off", *version_options(capture))

    with CuttingProxy(primary.host, primary.port, [cut]) as proxy:
        replica.follow(proxy)
        assert cut.reached.wait(TIMEOUT_S)
        primary.kill()
        cut.proceed.set()
        primary.start()
        replica.expect_end(capture, tolerates_lost_connections=True)


def test_a_replica_stopped_and_started_goes_on_where_it_was(version, captures, new_primary, new_replica):
    capture = captures["11.8/ddl-trx-xa"]
    replica = new_replica(version)
    replica.follow(new_primary(capture, "--tls", "off"), start=False)

    for seq_no in (1, 20, 47, 48, 93):
        replica.follow_until(f"0-1-{seq_no}")
        replica.sql("STOP SLAVE")
        assert replica.position == {f"0-1-{seq_no}"}

    replica.expect_end(capture)


def test_a_killed_replica_goes_on_where_it_was(version, captures, new_primary, new_replica):
    capture = captures["10.11/domains"]
    replica = new_replica(version, "--innodb-flush-log-at-trx-commit=1")
    replica.follow(new_primary(capture, "--tls", "off"), start=False)
    replica.follow_until("0-1-3")

    replica.kill()
    replica.start()
    replica.sql("START SLAVE")
    replica.expect_end(capture, tolerates_lost_connections=True)


# As mysql-test/suite/binlog_in_engine/rpl_master_stop.test
def test_a_directory_that_grows_is_followed(
    version, tmp_path, captures, classic_files, import_files, new_ibb_primary, new_replica
):
    capture = captures["10.11/domains"]
    files = classic_files(capture)
    import_files(files[:2], tmp_path / "ibb", "--max-file-size", "64K")
    primary = new_ibb_primary(tmp_path / "ibb", "--tls", "off")
    replica = new_replica(version)
    replica.follow(primary)

    for file in files[2:5]:  # while it is followed
        import_files([file], tmp_path / "ibb", "--append")
    primary.stop()  # while the primary is down
    import_files(files[5:7], tmp_path / "ibb", "--append")
    primary.start()
    import_files(files[7:], tmp_path / "ibb", "--append")

    replica.expect_end(capture, tolerates_lost_connections=True)


def version_options(capture: Capture) -> list[str]:
    """A stream of an old primary has the old primary's version; see test_replica."""
    return ["--server-version", capture.facts["server"]] if capture.version == "10.11" else []


DOMAIN_COUNT = 3
ROWS_MAX = 300  # of a transaction
NOTE_COUNT = 200
PAD_SIZES = (5, 40, 400, 900)
DATABASES = [f"shop{domain_id}" for domain_id in range(DOMAIN_COUNT)]  # a domain does not need another one
ORDERS = [f"{database}.orders" for database in DATABASES]
NOTES = [f"{database}.notes" for database in DATABASES]
TABLES = ORDERS + NOTES
PROFILES = ["engine", "compat", "classic-10.11", "classic-11.8"]
SOURCES = ["real", *PROFILES, "traditional files"]
TRANSACTIONS = 80
FILE_SIZE = "64K"


class Log(NamedTuple):
    """One history: as a real primary has it, in its files, and imported into files that its groups span."""

    primary: RealPrimary
    files: Path
    ibb: Path
    position: str
    tables: dict[str, TableContent | None]


@pytest.fixture(scope="module")
def log(server_of, tmp_path_factory, import_files) -> Iterator[Log]:
    primary = server_of(RealPrimary, "10.11", [], "--max-binlog-size=64K", "--binlog-format=ROW")
    with primary:
        work(primary, random.Random(11))
        files = sorted(copy_binlogs(primary, tmp_path_factory.mktemp("work")).iterdir())
        ibb = tmp_path_factory.mktemp("ibb") / "binlog"
        import_files(files, ibb, "--max-file-size", FILE_SIZE)
        yield Log(primary, files[0].parent, ibb, position_of(primary), contents(primary, TABLES))


def work(server: RealServer, rng: random.Random) -> None:
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
        for _ in range(TRANSACTIONS):
            domain_id = rng.randrange(DOMAIN_COUNT)
            cursor.execute(f"SET SESSION gtid_domain_id = {domain_id}")
            if rng.random() < 0.05:
                cursor.execute(f"ALTER TABLE {ORDERS[domain_id]} COMMENT = '{rng.randrange(1000)}'")
                continue
            if rng.random() < 0.2:  # a statement of many rows takes several row events
                version, pad = rng.randrange(1000), "x" * rng.choice(PAD_SIZES)
                notes = ", ".join(f"({row_id}, {version}, '{pad}')" for row_id in range(NOTE_COUNT))
                cursor.execute(f"REPLACE INTO {NOTES[domain_id]} VALUES {notes}")
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


@pytest.fixture(scope="module")
def replicas(server_of) -> Iterator[dict[str, Replica]]:
    """One replica of each version that is on this machine, for all tests, with its whole log kept."""
    if not (versions := installed_versions()):
        pytest.skip("no MariaDB replica is on this machine: run `sh .ci/prepare tests`")
    with contextlib.ExitStack() as stack:
        started = {}
        for number, version in enumerate(versions):
            replica = server_of(Replica, version, "--slave-net-timeout=2", server_id=REPLICA_SERVER_ID + number)
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
                replica.begin_anew()
                replica.sql(f"SET GLOBAL slave_parallel_threads = {rng.choice((0, 4))}")
                plans[version] = CutPlan(rng, left[version])
                proxy = stack.enter_context(CuttingProxy(primary.host, primary.port, plans[version]))
                replica.follow(proxy, heartbeat_period_s=0.5)
            for replica in replicas.values():
                replica.wait_for_gtid(log.position, timeout_s=TIMEOUT_S, tolerates_lost_connections=True)
                replica.sql("STOP SLAVE")
        for version, replica in replicas.items():
            replica.expect_no_fallback()
            assert replica.tables(TABLES) == log.tables
            left[version] -= plans[version].done
        if max(left.values()) <= 0:
            break


def start_primary(source: str, log: Log, new_ibb_primary: Callable[..., Primary]) -> Primary:
    if source == "real":
        return log.primary
    if source in PROFILES:
        return new_ibb_primary(log.ibb, "--profile", source, "--server-version", "10.11.19-MariaDB-log", "--tls", "off")
    return new_ibb_primary(log.files, "--tls", "off")
