"""A log that follows real primaries has each of their transactions once, whatever ends, and serves all to replicas."""

import contextlib
import json
import random
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lanes.following import Following, Server, follow_once, follow_until, purge, source_of
from lanes.primary import Primary, ibbmaster, login_of

import ibbmaster as package
from ibbmaster.errors import ConfigurationError, SourceError
from ibbmaster.logs.capture.client import (
    PrimaryAddress,
    begin_dump,
    connected,
    dumped,
    receive,
    stream_of,
)
from ibbmaster.testkit.mariadb_server import PASSWORD, USER
from ibbmaster_scorecard.adapter import build, read_adapters
from ibbmaster_scorecard.consumer import Consumer

pytestmark = pytest.mark.interop
PATIENCE_S = 120.0
ONE_JAVA_AT_A_TIME = pytest.mark.xdist_group("java-consumers")
ROWS = "CREATE TABLE shop.t (id INT PRIMARY KEY, note VARCHAR(200)) ENGINE=InnoDB"
SEMI_SYNC = ("--rpl-semi-sync-master-enabled=1", "--rpl-semi-sync-master-timeout=600000")


@contextlib.contextmanager
def writing(server: Server, table: str = "shop.t", pause_s: float = 0) -> Iterator[list[int]]:
    """Insert rows one after the other meanwhile; those whose commit has returned are in the list."""
    committed: list[int] = []
    is_over = threading.Event()

    def write() -> None:
        connection = server.connect()
        with contextlib.closing(connection), connection.cursor() as cursor:
            number = 0
            while not is_over.is_set():
                number += 1
                cursor.execute(f"INSERT INTO {table} VALUES (%s, %s)", (number, "x" * (number % 200)))
                committed.append(number)
                if pause_s:
                    cursor.execute("DO SLEEP(%s)", (pause_s,))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield committed
    finally:
        is_over.set()
        thread.join()


def expect_equal(log: Path, server: Server, *options: str) -> None:
    """Both have the same transactions, event by event."""
    address = f"{server.host}:{server.port}"
    login = ("--user", USER, "--password", PASSWORD, "--json", *options)
    done = subprocess.run(ibbmaster("diff", str(log), address, *login), capture_output=True, text=True, check=False)
    assert (done.returncode, json.loads(done.stdout)["different"]) == (0, 0), done.stdout + done.stderr
    verified = subprocess.run(ibbmaster("verify", "--strict", str(log)), capture_output=True, text=True, check=False)
    assert verified.returncode == 0, verified.stdout


def test_killed_at_any_moment_it_has_each_transaction_once(new_primary_of, tmp_path, seed):
    random_of = random.Random(seed)
    server = new_primary_of()
    server.sql("CREATE DATABASE shop")
    server.sql(ROWS)
    server.sql("CREATE TABLE shop.large (id INT PRIMARY KEY, data LONGBLOB)")
    to = tmp_path / "log"
    with writing(server) as committed:
        following = Following(source_of(server), to)
        for number in range(8):
            before = len(committed)
            server.sql("INSERT INTO shop.large VALUES (%s, REPEAT('x', %s))", (number, 3_000_000))
            while len(committed) < before + random_of.randrange(20, 200):
                server.sql("DO SLEEP(0.01)")
            following.kill()
            following.start()
        following.stop()
    done = follow_once(source_of(server), to)
    assert done.returncode == 0, done.stderr
    expect_equal(to, server)


def test_what_the_primary_has_purged_reaches_a_replica_from_the_first_transaction_on(
    new_primary_of, new_replica, version, tmp_path, new_ibb_primary
):
    server = new_primary_of()
    server.sql("CREATE DATABASE shop")
    server.sql(ROWS)
    relay = new_ibb_primary(tmp_path / "log", "--from", source_of(server), "--tls", "off")
    with writing(server) as committed:
        while len(committed) < 50:
            server.sql("DO SLEEP(0.01)")
        follow_until(tmp_path / "log", server)
        purge(server)
        replica = new_replica(version, "--gtid-strict-mode=1", "--slave-parallel-threads=4")
        replica.follow(relay)
        while len(committed) < 200:
            server.sql("DO SLEEP(0.01)")
    (position,) = server.sql("SELECT @@gtid_binlog_pos")[0]
    replica.wait_for_gtid(position)
    assert replica.tables(["shop.t"]) == server.tables(["shop.t"])


def test_what_the_relay_has_purged_too_reaches_a_replica_from_the_archive(
    new_primary_of, new_replica, version, tmp_path, new_ibb_primary
):
    server = new_primary_of()
    server.sql("CREATE DATABASE shop")
    server.sql(ROWS)
    to, archive = tmp_path / "log", tmp_path / "archive"
    with writing(server) as committed:
        while len(committed) < 50:
            server.sql("DO SLEEP(0.01)")
        assert follow_once(source_of(server), to, "--archive", str(archive)).returncode == 0
        for command in (("flush", to), ("purge", to, "--to", "binlog-000001.ibb")):
            assert subprocess.run(ibbmaster(*map(str, command)), check=False).returncode == 0
        relay = new_ibb_primary(to, "--from", source_of(server), "--archive", str(archive), "--tls", "off")
        replica = new_replica(version, "--gtid-strict-mode=1", "--slave-parallel-threads=4")
        replica.follow(relay)
        while len(committed) < 150:
            server.sql("DO SLEEP(0.01)")
    replica.wait_for_gtid(server.sql("SELECT @@gtid_binlog_pos")[0][0])
    assert replica.tables(["shop.t"]) == server.tables(["shop.t"])


def test_after_a_failover_it_goes_on_with_the_new_primary_and_refuses_the_old_one(new_primary_of, tmp_path):
    first, second = new_primary_of(1), new_primary_of(2)
    first.sql("CREATE DATABASE shop")
    first.sql(ROWS)
    second.follow(first)
    to = tmp_path / "log"
    following = Following(source_of(first, second), to)
    with writing(first) as committed:
        while len(committed) < 30:
            first.sql("DO SLEEP(0.01)")
    second.wait_for_gtid(first.sql("SELECT @@gtid_binlog_pos")[0][0])
    follow_until(to, first)
    second.sql("STOP SLAVE")
    second.sql("RESET SLAVE ALL")
    first.kill()
    second.sql("INSERT INTO shop.t VALUES (100000, 'of the new primary')")
    follow_until(to, second)
    first.start()
    first.sql("INSERT INTO shop.t VALUES (100001, 'of nobody'), (100002, 'lost')")
    following.stop()
    expect_equal(to, second, "--ignore", "replica")  # which logs again what it has of the first

    refused = follow_once(source_of(first), to)
    assert refused.returncode == 2
    assert "It is another history" in refused.stderr
    assert "0-2-" in refused.stderr
    assert "0-1-" in refused.stderr
    assert follow_once(source_of(first, second), to).returncode == 0


def test_of_two_primaries_that_write_in_one_domain_it_has_the_log_of_the_one_it_follows(
    new_primary_of, new_replica, version, tmp_path, new_ibb_primary
):
    """Without gtid_strict_mode numbers of both cross; those of each server do not."""
    first, second = (new_primary_of(number, "--gtid-strict-mode=0") for number in (1, 2))
    first.sql("CREATE DATABASE shop")
    first.sql(ROWS)
    first.sql(ROWS.replace("shop.t", "shop.u"))
    second.follow(first)
    second.wait_for_gtid(first.sql("SELECT @@gtid_binlog_pos")[0][0])
    first.follow(second)
    to = tmp_path / "log"
    following = Following(source_of(first), to)
    with writing(first) as committed, writing(second, "shop.u") as others:
        for _ in range(2):
            before = len(committed), len(others)
            while len(committed) < before[0] + 30 or len(others) < before[1] + 30:
                first.sql("DO SLEEP(0.01)")
            following.kill()
            following.start()
    second.wait_for_gtid(first.sql("SELECT @@gtid_binlog_pos")[0][0])
    first.sql("STOP SLAVE")
    following.stop()
    assert follow_once(source_of(first), to).returncode == 0
    expect_equal(to, first)
    with package.open(to) as log:
        numbers = [group.gtid.seq_no for group in log]
    assert numbers != sorted(numbers), "numbers have not crossed"
    replica = new_replica(version, "--gtid-strict-mode=0", "--slave-parallel-threads=4")
    replica.follow(new_ibb_primary(to, "--tls", "off"))
    replica.wait_for_gtid(first.sql("SELECT @@gtid_binlog_pos")[0][0])
    assert replica.tables(["shop.t", "shop.u"]) == first.tables(["shop.t", "shop.u"])


def dump_after(address: PrimaryAddress, position: str) -> None:
    """Read to the end of what is logged after a position."""
    with connected(address) as connection:
        begin_dump(connection, address.server_id, package.GtidPosition.parse(position))
        stream = stream_of(connection)
        for _ in dumped(lambda: receive(stream)):
            pass


def test_a_server_that_goes_back_in_its_numbers_does_not_know_what_comes_next_and_is_left(new_primary_of, tmp_path):
    server = new_primary_of(1, "--gtid-strict-mode=0")
    server.sql("CREATE DATABASE shop")
    server.sql(ROWS)
    assert follow_once(source_of(server), tmp_path / "log").returncode == 0
    with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
        for number in (7, 8, 4, 5):
            cursor.execute(f"SET gtid_seq_no={number}")
            cursor.execute(f"INSERT INTO shop.t VALUES ({number}, '')")
    ended = follow_once(source_of(server), tmp_path / "log")
    assert (ended.returncode, "before 0-1-5: numbers go back in its log" in ended.stderr) == (2, True)
    following = Following(source_of(server), tmp_path / "log")
    _, said = following.process.communicate(timeout=100)
    assert following.process.returncode == 2
    assert "the primary sends 0-1-4, and this log has 0-1-8 already" in said
    with package.open(tmp_path / "log") as log:
        assert [group.gtid.seq_no for group in log] == [1, 2, 7, 8]

    address = PrimaryAddress(
        host=server.host, port=server.port, user=USER, password=PASSWORD, uses_tls=False, server_id=99
    )
    denied = "is missing the GTID 0-1-4 requested by the slave"  # though it is logged: the first number from 4 on is 7
    with pytest.raises(SourceError, match=denied):
        dump_after(address, "0-1-4")


def test_a_commit_that_waited_for_it_is_here_whatever_is_killed(new_primary_of, tmp_path, seed):
    random_of = random.Random(seed)
    server = new_primary_of(1, *SEMI_SYNC)
    server.sql("SET GLOBAL rpl_semi_sync_master_enabled=0")
    server.sql("CREATE DATABASE shop")
    server.sql(ROWS)
    server.sql("SET GLOBAL rpl_semi_sync_master_enabled=1")
    to = tmp_path / "log"
    following = Following(source_of(server), to, "--semi-sync")
    unconfirmed = server.sql("SHOW STATUS LIKE 'Rpl_semi_sync_master_no_tx'")
    with writing(server) as committed:
        for _ in range(4):
            before = len(committed)
            while len(committed) < before + random_of.randrange(5, 50):
                server.sql("DO SLEEP(0.01)")
            following.kill()
            known = committed[-1]
            subprocess.run(ibbmaster("recover", str(to)), check=True, capture_output=True)
            with package.open(to) as log:
                rows = {row["id"] for row in log.snapshot("shop.t").to_pylist()}
            assert known in rows
            following.start()
    following.stop()
    assert server.sql("SHOW STATUS LIKE 'Rpl_semi_sync_master_no_tx'") == unconfirmed
    assert int(server.sql("SHOW STATUS LIKE 'Rpl_semi_sync_master_yes_tx'")[0][1]) >= len(committed)


def test_with_an_end_no_commit_waits_for_it(new_primary_of, tmp_path):
    server = new_primary_of()
    server.sql("CREATE DATABASE shop")
    server.sql("SET GLOBAL rpl_semi_sync_master_enabled=1")
    done = follow_once(source_of(server), tmp_path / "log", "--semi-sync")
    assert done.returncode == 0, done.stderr
    assert server.sql("SHOW STATUS LIKE 'Rpl_semi_sync_master_get_ack'")[0][1] == "0"
    expect_equal(tmp_path / "log", server)


CONSUMERS = ["python-mysql-replication", "go-mysql", pytest.param("debezium", marks=ONE_JAVA_AT_A_TIME)]


@pytest.mark.parametrize("name", CONSUMERS)
def test_a_consumer_goes_on_through_a_relay_where_its_primary_has_purged(
    new_primary_of, new_ibb_primary, version, tmp_path, request, name
):
    if name != CONSUMERS[0] and not request.config.getoption("--interop-all"):
        pytest.skip("--interop-all runs all consumers")
    server = new_primary_of(1, "--binlog-row-metadata=FULL")
    server.sql("CREATE DATABASE shop")
    server.sql(ROWS)
    relay = new_ibb_primary(tmp_path / "log", "--from", source_of(server), "--tls", "off", "--profile", "compat")
    with writing(server, pause_s=0.02) as committed:  # no faster than any of them reads
        with consuming(name, relay, tmp_path, start="0-1-2") as consumer:
            first, position = rows_of(consumer)
        while len(committed) < first[-1] + 20:
            server.sql("DO SLEEP(0.01)")
        follow_until(tmp_path / "log", server)
        purge(server)
        with consuming(name, relay, tmp_path, start="0-1-2", resume=position) as consumer:
            rest, _ = rows_of(consumer, up_to=len(committed) + 20)
    assert first + rest == [*range(first[0], rest[-1] + 1)]


@contextlib.contextmanager
def consuming(name: str, primary: Primary, directory: Path, **given: object) -> Iterator[Consumer]:
    try:
        command = build(read_adapters()[name])
    except ConfigurationError as error:
        pytest.skip(f"{name} cannot be built here: {error}")
    asked = {"server_id": 4001, "tls": False, "directory": str(directory), "resume": None, "delay_ms": 0}
    with contextlib.closing(Consumer(command, login_of(primary) | asked | given, directory=directory)) as consumer:
        yield consumer


def rows_of(consumer: Consumer, up_to: int | None = None) -> tuple[list[int], object]:
    """The keys of the rows that it tells up to one, or up to its first position after 20 of them; and that."""
    rows: list[int] = []
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        for event in consumer.events(0.2):
            if event.what == "change":
                rows.append(int(event.after["id"]))
            is_position = event.what == "position" and up_to is None and len(rows) >= 20
            if is_position or (up_to is not None and rows and rows[-1] >= up_to):
                return rows, event.position
        assert not consumer.has_ended, consumer.log
    raise AssertionError(f"{rows[-20:]}: {consumer.log}")


@pytest.mark.parametrize("start", ["now", "oldest"])
def test_it_begins_where_it_is_told_to(new_primary_of, tmp_path, start):
    server = new_primary_of()
    server.sql("CREATE DATABASE shop")
    purge(server)
    server.sql(ROWS)
    done = follow_once(source_of(server), tmp_path / "log", "--start", start)
    assert done.returncode == 0, done.stderr
    with package.open(tmp_path / "log") as log:
        assert [str(group.gtid) for group in log] == {"now": [], "oldest": ["0-1-2"]}[start]
        assert str(log.state) == "0-1-2"


def test_its_primary_lists_it_among_the_replicas(new_primary_of, tmp_path):
    server = new_primary_of(1)
    following = Following(source_of(server), tmp_path / "log", "--source-server-id", "77")
    server.sql("CREATE DATABASE shop")
    follow_until(tmp_path / "log", server)
    assert [row[:2] for row in server.sql("SHOW SLAVE HOSTS")] == [(77, socket.gethostname()[:60])]
    following.stop()


def test_what_was_purged_before_it_came_is_named(new_primary_of, tmp_path):
    server = new_primary_of()
    server.sql("CREATE DATABASE shop")
    purge(server)
    server.sql(ROWS)
    done = follow_once(source_of(server), tmp_path / "log", "--start", "")
    assert done.returncode == 2
    assert "purged" in done.stderr
