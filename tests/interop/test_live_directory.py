"""The log directory of a real server that runs, and that of a copier: served while they do what they do."""

import random
import subprocess
import time
from pathlib import Path

import pymysql
import pytest
from lanes.primary import login_of, login_options, tool_command
from lanes.replica import Replica
from lanes.sql import run

from ibbmaster.testkit.mariadb_server import RealPrimary, problem_of

VERSION = "10.11"
TIMEOUT_S = 600.0  # ends what hangs; a machine may be busy
QUESTIONS = ("SHOW MASTER STATUS", "SELECT @@GLOBAL.gtid_binlog_pos", "SHOW BINARY LOGS")
DDL = ("CREATE DATABASE test", "CREATE TABLE test.t (id INT PRIMARY KEY, n INT)")


@pytest.fixture
def server(new_server) -> RealPrimary:
    server = new_server(VERSION)
    run(server, "SET sql_log_bin = 0", *DDL)
    return server


@pytest.fixture
def replica(new_replica) -> Replica:
    replica = new_replica(VERSION)
    run(replica, *DDL)
    return replica


def answers(connection: pymysql.Connection) -> list[object]:
    with connection.cursor() as cursor:
        found = []
        for question in QUESTIONS:
            cursor.execute(question)
            found.append(cursor.fetchall())
        return found


def check_same(ours: pymysql.Connection, theirs: pymysql.Connection) -> None:
    """Both say the same of the log; a look may be a moment old."""
    deadline = time.monotonic() + TIMEOUT_S
    while (found := answers(ours)) != (expected := answers(theirs)):
        assert time.monotonic() < deadline, (found, expected)


def insert(server: RealPrimary, number: int) -> None:
    server.sql("REPLACE INTO test.t VALUES (%s, %s)", (number % 7, number))


def wait_for_row(replica: Replica, number: int) -> None:
    """Nothing that a server and a copier do is an error for a replica, not for a moment."""

    def is_there(replica: Replica) -> bool:
        assert problem_of(replica.status(), tolerates_lost_connections=False) is None
        return replica.sql("SELECT n FROM test.t WHERE id = %s", (number % 7,)) == ((number,),)

    replica.wait_until(is_there)


def test_a_server_is_reset_again_and_again_and_statements_come_at_once(
    server, replica, new_ibb_primary, pytestconfig, seed
):
    """Under a dump that has nothing yet, too: it ends in order, and its replica comes back by itself."""
    rng = random.Random(seed)
    primary = new_ibb_primary(server.data)
    replica.follow(primary)
    with pymysql.connect(**login_of(primary)) as ours, server.connect() as theirs:
        for number in range(pytestconfig.getoption("--live-changes")):
            replica.sql("STOP SLAVE")
            replica.sql("SET GLOBAL gtid_slave_pos = ''")
            server.sql("RESET MASTER")
            replica.sql("START SLAVE")
            if rng.randrange(2):
                check_same(ours, theirs)
                replica.wait_until(lambda replica: replica.status()["Slave_IO_Running"] == "Yes")
            server.sql("RESET MASTER")
            for more in range(rng.choice((1, 1, 20))):
                insert(server, number * 100 + more)
            check_same(ours, theirs)
            wait_for_row(replica, number * 100 + more)
    assert not replica.status()["Last_IO_Errno"]


def test_a_server_flushes_and_purges_again_and_again(server, replica, new_ibb_primary, pytestconfig):
    primary = new_ibb_primary(server.data)
    replica.follow(primary)
    with pymysql.connect(**login_of(primary)) as ours, server.connect() as theirs:
        for number in range(0, 2 * pytestconfig.getoption("--live-changes"), 2):
            insert(server, number)
            server.sql("FLUSH BINARY LOGS")
            server.sql(f"PURGE BINARY LOGS TO '{server.sql('SHOW MASTER STATUS')[0][0]}'")
            insert(server, number + 1)
            check_same(ours, theirs)
            wait_for_row(replica, number + 1)
    assert not replica.status()["Last_IO_Errno"]


def copying(server: RealPrimary, directory: Path) -> subprocess.Popen[bytes]:
    """A copier of a server's log, from the last file on that is there, which it begins again."""
    first = max((path.name for path in directory.iterdir()), default="binlog.000001")
    options = ["--read-from-remote-server", "--raw", "--stop-never", "--verify-binlog-checksum"]
    options += [f"--result-file={directory}/", "--stop-never-slave-server-id=77", first]
    return subprocess.Popen(tool_command(VERSION, "mariadb-binlog", "--skip-ssl", *login_options(server), *options))


def test_a_copier_is_killed_and_begun_again_in_front_of_a_replica(
    server, replica, new_ibb_primary, pytestconfig, tmp_path, seed
):
    rng = random.Random(seed)
    insert(server, 0)
    size = server.sql("SHOW MASTER STATUS")[0][1]
    copier = copying(server, tmp_path)
    copied = tmp_path / "binlog.000001"
    try:
        replica.wait_until(lambda _: copied.exists() and copied.stat().st_size >= size)
        replica.follow(new_ibb_primary(tmp_path))
        for number in range(1, pytestconfig.getoption("--copier-kills") + 1):
            for more in range(rng.randrange(30)):
                insert(server, number * 100 + more)
            if not rng.randrange(3):
                server.sql("FLUSH BINARY LOGS")
            if rng.randrange(2):
                insert(server, number * 100)
                wait_for_row(replica, number * 100)
            end(copier)
            insert(server, number * 100 + 50)
            copier = copying(server, tmp_path)
        wait_for_row(replica, number * 100 + 50)
        assert replica.sql("SELECT * FROM test.t ORDER BY id") == server.sql("SELECT * FROM test.t ORDER BY id")
        assert not replica.status()["Last_IO_Errno"]
    finally:
        end(copier)


def end(copier: subprocess.Popen[bytes]) -> None:
    copier.kill()
    copier.wait()
