"""`ibbmaster demo`: serve a directory and watch real clients follow it."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ibbmaster.cli.arguments import add_log
from ibbmaster.errors import ConfigurationError, IbbMasterError

USER, PASSWORD = "repl", "demo"
CHANGES_SHOWN = 12
REPLICA_TIMEOUT_S = 60


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `demo` to the command line."""
    parser = subparsers.add_parser(
        "demo",
        help="serve a directory and show real clients following it",
        description="Serve DIR on a free port of this machine, read it with python-mysql-replication, and where "
        "mariadbd is installed let a private, temporary MariaDB replica follow it. Everything it starts ends with it.",
    )
    add_log(parser)
    parser.add_argument("--no-replica", action="store_true", help="show the CDC client only")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve, follow, print what arrived."""
    import ibbmaster

    with ibbmaster.serve(args.directory, user=USER, password=PASSWORD) as primary:
        print(f"ibbmaster serves {args.directory} on {primary.host}:{primary.port}\n")
        show_changes(primary.port)
        if args.no_replica:
            return 0
        if shutil.which("mariadbd") is None:
            print("\nno mariadbd on this machine: install mariadb-server to see a real replica follow")
            return 0
        with tempfile.TemporaryDirectory(prefix="ibbmaster-demo-") as directory:
            show_replica(Path(directory), primary.port)
    return 0


def show_changes(port: int) -> None:
    """Read the whole log with python-mysql-replication and print its first row changes."""
    try:
        from pymysqlreplication import BinLogStreamReader
        from pymysqlreplication.event import MariadbGtidEvent
        from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent
    except ImportError as error:
        raise ConfigurationError("the demo needs its clients: pip install 'ibbmaster[demo]'") from error

    stream = BinLogStreamReader(
        connection_settings={"host": "127.0.0.1", "port": port, "user": USER, "passwd": PASSWORD},
        server_id=4711,
        is_mariadb=True,
        auto_position="",
        blocking=False,
        only_events=[MariadbGtidEvent, WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent],
    )
    verbs = {WriteRowsEvent: "insert", UpdateRowsEvent: "update", DeleteRowsEvent: "delete"}
    print("python-mysql-replication reads from the very first GTID:")
    gtid, groups, changes = "", 0, 0
    try:
        for event in stream:
            if isinstance(event, MariadbGtidEvent):
                gtid, groups = event.gtid, groups + 1
                continue
            for row in event.rows:
                changes += 1
                if changes <= CHANGES_SHOWN:
                    print(f"  {gtid:<10} {verbs[type(event)]} {event.schema}.{event.table} {_shown(row)}")
    except (ValueError, LookupError, TypeError, AttributeError, AssertionError) as error:
        print(f"  (python-mysql-replication cannot read group {gtid}, nor could it from another primary: {error!r})")
    stream.close()
    if changes > CHANGES_SHOWN:
        print(f"  … and {changes - CHANGES_SHOWN} more")
    print(f"  {groups} event groups, {changes} row changes, up to {gtid}")


def _shown(row: dict[str, Any]) -> str:
    values = row.get("after_values", row.get("values", {}))
    text = ", ".join(f"{name}={value!r}" for name, value in values.items())
    return text if len(text) <= 70 else text[:69] + "…"


def show_replica(directory: Path, port: int) -> None:
    """Let a private MariaDB replica replay the log, and print what it then holds."""
    import pymysql

    print("\na real MariaDB replica follows with MASTER_USE_GTID=slave_pos:")
    with private_mariadb(directory) as socket:
        connection = pymysql.connect(unix_socket=str(socket), user="root", autocommit=True)
        with connection, connection.cursor() as cursor:

            def rows(sql: str) -> tuple[tuple[Any, ...], ...]:
                cursor.execute(sql)
                return tuple(cursor.fetchall())

            rows(
                f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='{USER}', "
                f"MASTER_PASSWORD='{PASSWORD}', MASTER_USE_GTID=slave_pos"
            )
            rows("START SLAVE")
            end = _end_of_log(port)
            if rows(f"SELECT MASTER_GTID_WAIT('{end}', {REPLICA_TIMEOUT_S})") != ((0,),):
                status = connection.cursor(pymysql.cursors.DictCursor)
                status.execute("SHOW SLAVE STATUS")
                answer = status.fetchone() or {}
                problem = answer.get("Last_IO_Error") or answer.get("Last_SQL_Error") or "it is too slow"
                raise IbbMasterError(f"the replica did not reach {end}: {problem}")
            for schema, table in rows(
                "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND "
                "table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') ORDER BY 1, 2"
            ):
                ((count,),) = rows(f"SELECT COUNT(*) FROM `{schema}`.`{table}`")
                print(f"  {schema}.{table}: {count} rows")
            print(f"  gtid_slave_pos = {rows('SELECT @@gtid_slave_pos')[0][0]}")


def _end_of_log(port: int) -> str:
    import pymysql

    connection = pymysql.connect(host="127.0.0.1", port=port, user=USER, password=PASSWORD)
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@gtid_binlog_pos")
        row = cursor.fetchone()
    return str(row[0]) if row else ""


@contextlib.contextmanager
def private_mariadb(directory: Path) -> Iterator[Path]:
    """A MariaDB server of our own in `directory`, reached by the socket this gives; ended by its pid."""
    data, socket = directory / "data", directory / "mariadb.sock"
    user = _server_user()
    if user is not None:
        shutil.chown(directory, user)
        directory.chmod(0o700)
    as_user = [f"--user={user}"] if user is not None else []
    small = ["--innodb-log-file-size=8M", "--innodb-buffer-pool-size=32M"]
    install = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal"]
    install.append("--force")  # it would look up the name of this machine, and stop without one
    made = subprocess.run([*install, *as_user, *small], capture_output=True, text=True, check=False)
    if made.returncode:
        raise IbbMasterError(f"mariadb-install-db failed: {(made.stderr or made.stdout)[-400:].strip()}")
    server_command = ["mariadbd", "--no-defaults", f"--datadir={data}"]
    with (directory / "error.log").open("w") as errors:
        server = subprocess.Popen(
            [*server_command, f"--socket={socket}", "--skip-networking", "--server-id=4712", *as_user, *small],
            stdout=errors,
            stderr=errors,
        )
    try:
        _wait_until_ready(server, socket, directory / "error.log")
        yield socket
    finally:
        server.terminate()
        server.wait(timeout=REPLICA_TIMEOUT_S)


def _server_user() -> str | None:
    """mariadbd refuses to run as root unless it is given a user; its own account is better."""
    import os
    import pwd

    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("mysql").pw_name
    except KeyError:
        return "root"


def _wait_until_ready(server: subprocess.Popen[bytes], socket: Path, log: Path) -> None:
    import time

    deadline = time.monotonic() + REPLICA_TIMEOUT_S
    while not socket.exists():
        if server.poll() is not None or time.monotonic() > deadline:
            raise IbbMasterError(f"mariadbd did not start: {log.read_text()[-400:].strip()}")
        time.sleep(0.05)
