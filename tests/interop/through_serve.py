"""A plugin for python-mysql-replication's own tests: their streams come from `serve`, all else from a real server.

A relay has files of its own, and takes a connection once it has what is logged (lanes/relays.py): where a stream would
begin with the file that is written, it begins after no GTID, which is the same after the RESET MASTER before each test.
"""

from __future__ import annotations

import os
import time
from typing import Any

import pymysql
import pytest
from pymysql.connections import Connection
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.tests import base

TIMEOUT_S = 120.0  # ends what hangs; a machine may be busy
DATABASE = "pymysqlreplication_test"
CONNECT = "_BinLogStreamReader__connect_to_stream"
SETTINGS = "_BinLogStreamReader__connection_settings"

account = {"host": "127.0.0.1", "user": os.environ["ACCOUNT"], "passwd": os.environ["ACCOUNT_PASSWORD"]}
server_port, stream_port = int(os.environ["SERVER_PORT"]), int(os.environ["STREAM_PORT"])
stream_host = os.environ["STREAM_HOST"]
is_relayed = stream_host != account["host"]


def status_at(port: int) -> Any:
    with pymysql.connect(**account, port=port) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW MASTER STATUS")
        return cursor.fetchone()


def databases() -> dict[str, dict[str, Any]]:
    settings = {"use_unicode": True, "charset": "utf8", "db": DATABASE}
    return {"mariadb-10": {**account, **settings, "port": server_port}}


@pytest.fixture(autouse=True)
def streams_from_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    connect, kill = getattr(BinLogStreamReader, CONNECT), Connection.kill
    streams = set()

    def connect_there(stream: BinLogStreamReader) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not is_relayed and (found := status_at(stream_port)) != (expected := status_at(server_port)):
            assert time.monotonic() < deadline, (found, expected)
        settings = getattr(stream, SETTINGS)
        setattr(stream, SETTINGS, {**settings, "host": stream_host, "port": stream_port})
        begins_by_gtid = is_relayed and not stream.auto_position and stream.log_file is None
        was = stream.is_mariadb, stream.auto_position
        if begins_by_gtid:
            stream.is_mariadb, stream.auto_position = True, ""
        try:
            connect(stream)
        finally:
            setattr(stream, SETTINGS, settings)
            stream.is_mariadb, stream.auto_position = was
        streams.add(stream._stream_connection.thread_id())

    def kill_there(connection: Connection[Any], thread_id: int) -> None:
        if thread_id not in streams:
            kill(connection, thread_id)
            return
        with pymysql.connect(**account | {"host": stream_host}, port=stream_port) as other, other.cursor() as cursor:
            cursor.execute(f"KILL {thread_id}")

    monkeypatch.setattr(base, "get_databases", databases)
    if stream_port != server_port:
        monkeypatch.setattr(BinLogStreamReader, CONNECT, connect_there)
        monkeypatch.setattr(Connection, "kill", kill_there)
