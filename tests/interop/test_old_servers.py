"""Logs of servers without checksums and GTIDs are served as a real primary serves them: by file and position."""

import subprocess
from collections.abc import Iterable
from pathlib import Path

import pymysql
import pytest
from lanes.primary import login_of, login_options
from lanes.replica import Replica
from lanes.sql_file import sql_beside

import ibbmaster
from ibbmaster.logs.classic.series import MAGIC
from ibbmaster.replication.event.format_description import describe_format, encode_format_description
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, encode_event
from ibbmaster.replication.event.query import Query, encode_query
from ibbmaster.replication.event.types import EventType
from ibbmaster.testkit.mariadb_programs import MARIADB_VERSIONS, find_programs
from ibbmaster.testkit.mariadb_server import RealPrimary

COMMIT = "COMMIT"
TYPE_COUNT = 27  # of MySQL 5.1
TRAILER_SIZE = 5  # of what servers with checksums have behind the types


def old_log(version: str, statements: Iterable[str], *, database: str, timestamp: int = 1_200_000_000) -> bytes:
    """A file that its server has closed; COMMIT is that of a transactional table."""
    description = describe_format(version, type_count=TYPE_COUNT, created=timestamp)
    body = encode_format_description(description, server_id=1)[EVENT_HEADER_SIZE:-TRAILER_SIZE]
    parts: list[tuple[EventType, bytes]] = [(EventType.FORMAT_DESCRIPTION, body)]
    for number, text in enumerate(statements):
        if text == COMMIT:
            parts.append((EventType.XID, number.to_bytes(8, "little")))
            continue
        query = Query(thread_id=5, seconds=0, error_code=0, status=b"", database=database.encode(), text=text.encode())
        parts.append((EventType.QUERY, encode_query(query, server_id=1)[EVENT_HEADER_SIZE:]))
    data = MAGIC
    for event_type, body in (*parts, (EventType.STOP, b"")):
        log_pos = len(data) + EVENT_HEADER_SIZE + len(body)
        data += encode_event(event_type=event_type, body=body, server_id=1, timestamp=timestamp, log_pos=log_pos)
    return data


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
