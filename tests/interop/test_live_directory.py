"""The log directory of a real server that runs, and that of a copier: served while they do what they do."""

import random
import subprocess
import time
from pathlib import Path

import pymysql
import pytest
from lanes.primary import IbbPrimary, login_options
from lanes.replica import Replica, ReplicationError

from ibbmaster.testkit.mariadb_server import PASSWORD, USER, RealPrimary, problem_of

VERSION = "10.11"
TIMEOUT_S = 600.0  # ends what hangs; a machine may be busy
QUESTIONS = ("SHOW MASTER STATUS", "SELECT @@GLOBAL.gtid_binlog_pos", "SHOW BINARY LOGS")
RAW = "read-from-remote-server raw stop-never verify-binlog-checksum"


@pytest.fixture
def server(new_server) -> RealPrimary:
    server = new_server(VERSION)
    server.sql("SET sql_log_bin = 0")
    server.sql("CREATE DATABASE test")
    server.sql("CREATE TABLE test.t (id INT PRIMARY KEY, n INT)")
    server.sql("SET sql_log_bin = 1")
    return server


@pytest.fixture
def replica(new_replica) -> Replica:
    replica = new_replica(VERSION)
    replica.sql("CREATE DATABASE test")
    replica.sql("CREATE TABLE test.t (id INT PRIMARY KEY, n INT)")
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


def connected(primary: IbbPrimary) -> pymysql.Connection:
    return pymysql.connect(host=primary.host, port=primary.port, user=USER, password=PASSWORD)


def insert(server: RealPrimary, number: int) -> None:
    server.sql("REPLACE INTO test.t VALUES (%s, %s)", (number % 7, number))


def wait_for_row(replica: Replica, number: int) -> None:
    """Nothing that a server and a copier do is an error for a replica, not for a moment."""

    def is_there(replica: Replica) -> bool:
        if problem := problem_of(replica.status(), tolerates_lost_connections=False):
            raise ReplicationError(problem, replica.status())
        return replica.sql("SELECT n FROM test.t WHERE id = %s", (number % 7,)) == ((number,),)

    replica.wait_until(is_there, timeout_s=TIMEOUT_S)


def test_a_server_is_reset_again_and_again_and_statements_come_at_once(
    server, replica, new_ibb_primary, pytestconfig, seed
):
    """Under a dump that has nothing yet, too: it ends in order, and its replica comes back by itself."""
    rng = random.Random(seed)
    primary = new_ibb_primary(server.data)
    replica.follow(primary)
    with connected(primary) as ours, server.connect() as theirs:
        for number in range(pytestconfig.getoption("--live-changes")):
            replica.sql("STOP SLAVE")
            replica.sql("SET GLOBAL gtid_slave_pos = ''")
            server.sql("RESET MASTER")
            replica.sql("START SLAVE")
            if rng.randrange(2):
                check_same(ours, theirs)
                replica.wait_until(lambda replica: replica.status()["Slave_IO_Running"] == "Yes", timeout_s=TIMEOUT_S)
            server.sql("RESET MASTER")
            for more in range(rng.choice((1, 1, 20))):
                insert(server, number * 100 + more)
            check_same(ours, theirs)
            wait_for_row(replica, number * 100 + more)
    assert not replica.status()["Last_IO_Errno"]


def test_a_server_flushes_and_purges_again_and_again(server, replica, new_ibb_primary, pytestconfig):
    primary = new_ibb_primary(server.data)
    replica.follow(primary)
    with connected(primary) as ours, server.connect() as theirs:
        for number in range(0, 2 * pytestconfig.getoption("--live-changes"), 2):
            insert(server, number)
            server.sql("FLUSH BINARY LOGS")
            server.sql(f"PURGE BINARY LOGS TO '{server.sql('SHOW MASTER STATUS')[0][0]}'")
            insert(server, number + 1)
            check_same(ours, theirs)
            wait_for_row(replica, number + 1)
    assert not replica.status()["Last_IO_Errno"]


class Copier:
    """`mariadb-binlog --raw --stop-never`, as somebody starts it who keeps a copy of a server's log."""

    def __init__(self, server: RealPrimary, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        command = server.programs.command("mariadb-binlog")
        self._command = [*command, "--no-defaults", *login_options(server), *(f"--{word}" for word in RAW.split())]
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """From the last file on that is there, which is begun again."""
        first = max((path.name for path in self.directory.iterdir()), default="binlog.000001")
        result = f"--result-file={self.directory}/"
        self._process = subprocess.Popen([*self._command, result, "--stop-never-slave-server-id=77", first])

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()


def test_a_copier_is_killed_and_begun_again_in_front_of_a_replica(
    server, replica, new_ibb_primary, pytestconfig, tmp_path, seed
):
    rng = random.Random(seed)
    copier = Copier(server, tmp_path / "copy")
    insert(server, 0)
    size = server.sql("SHOW MASTER STATUS")[0][1]
    copier.begin()
    try:
        copied = copier.directory / "binlog.000001"
        deadline = time.monotonic() + TIMEOUT_S
        while not copied.exists() or copied.stat().st_size < size:
            assert time.monotonic() < deadline
            replica.pause()
        replica.follow(new_ibb_primary(copier.directory))
        for number in range(1, pytestconfig.getoption("--copier-kills") + 1):
            for more in range(rng.randrange(30)):
                insert(server, number * 100 + more)
            if not rng.randrange(3):
                server.sql("FLUSH BINARY LOGS")
            if rng.randrange(2):
                insert(server, number * 100)
                wait_for_row(replica, number * 100)
            copier.kill()
            insert(server, number * 100 + 50)
            copier.begin()
        wait_for_row(replica, number * 100 + 50)
        assert replica.sql("SELECT * FROM test.t ORDER BY id") == server.sql("SELECT * FROM test.t ORDER BY id")
        assert not replica.status()["Last_IO_Errno"]
    finally:
        copier.kill()
