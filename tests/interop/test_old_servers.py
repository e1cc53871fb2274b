"""Logs of servers without checksums and GTIDs are served as a real primary serves them: by file and position."""

import subprocess
from pathlib import Path

import pymysql
import pytest
from lanes.primary import login_of, login_options
from lanes.replica import Replica
from lanes.sql_file import sql_beside

import ibbmaster
from ibbmaster.testkit.mariadb_programs import MARIADB_VERSIONS, find_programs
from ibbmaster.testkit.mariadb_server import RealPrimary
from tests.machinery.old_log import old_log

STATEMENTS = sql_beside(__file__)["statements"]
ROWS = (((1, "c"), (2, "b")), ((7,),))
NAME = "binlog.000001"
TOOL_TIMEOUT_S = 300
STOP_SIZE = 19


def pulled(version: str, primary, target: Path) -> bytes:
    """The file as mariadb-binlog gets it."""
    command = [*find_programs(version).command("mariadb-binlog"), "--no-defaults", "--skip-ssl", "--raw"]
    target.mkdir()
    options = [*login_options(primary), "--read-from-remote-server", f"--result-file={target}/", NAME]
    subprocess.run([*command, *options], timeout=TOOL_TIMEOUT_S, check=True)
    return (target / NAME).read_bytes()


def told(primary) -> list[object]:
    """What statements say of the log."""
    with pymysql.connect(**login_of(primary)) as connection, connection.cursor() as cursor:
        answers = []
        for statement in (
            f"SHOW BINLOG EVENTS IN '{NAME}'",
            f"SELECT BINLOG_GTID_POS('{NAME}', 4)",
            "SELECT @@gtid_binlog_pos",
        ):
            cursor.execute(statement)
            answers.append(cursor.fetchall())
        return answers


def has_all(replica: Replica, primary, size: int) -> bool:
    """Whether it gets the tables of a file with this many bytes."""
    replica.follow_by_file(primary, NAME)
    replica.wait_until(lambda one: int(one.status()["Exec_Master_Log_Pos"]) >= size)
    found = replica.sql("SELECT * FROM d.t ORDER BY id"), replica.sql("SELECT * FROM d.m")
    replica.sql("STOP SLAVE")
    return found == ROWS


@pytest.mark.parametrize("version", MARIADB_VERSIONS)
@pytest.mark.parametrize("old", ["5.0.83-log", "5.1.42-MariaDB-log"])
def test_an_old_log_is_served_as_a_real_primary_serves_it(version, old, server_of, new_replica, tmp_path):
    data = old_log(old, STATEMENTS, database="d")
    directory = tmp_path / "log"
    directory.mkdir()
    (directory / NAME).write_bytes(data)
    real = server_of(RealPrimary, version, [directory / NAME])
    with real, ibbmaster.serve(directory, password="secret", tls="off") as ours:
        for number, primary in enumerate((real, ours)):
            assert pulled(version, primary, tmp_path / f"raw-{number}") == data
        assert told(ours) == told(real)
        assert has_all(new_replica(version), ours, len(data) - STOP_SIZE)
