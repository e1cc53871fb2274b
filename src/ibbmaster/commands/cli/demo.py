"""`ibbmaster demo`: serve a directory and watch real clients follow it."""

import argparse
import contextlib
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ibbmaster
from ibbmaster.api.serving import RunningPrimary
from ibbmaster.errors import IbbMasterError
from ibbmaster.sqltext.quoting import quoted_name
from ibbmaster.storage.codec.printable import address
from ibbmaster.testkit.mariadb_programs import find_programs, installed_versions
from ibbmaster.testkit.mariadb_server import RealReplica, ServerTemplate, problem_of
from .progress import signalled

USER, PASSWORD = "repl", "demo"
CHANGES_SHOWN = 12
REPLICA_TIMEOUT_S = 60


def run(args: argparse.Namespace) -> int:
    with ibbmaster.serve(args.directory, user=USER, password=PASSWORD) as primary:
        print(f"ibbmaster serves {args.directory} on {address(primary.host, primary.port)}\n")
        show_changes(primary.port)
        if args.no_replica:
            return 0
        versions = installed_versions()
        if not versions:
            print("\nno mariadbd on this machine: install mariadb-server to see a real replica follow")
            return 0
        with replica(versions[-1]) as follower:
            show_replica(follower, primary)
    return 0


@contextlib.contextmanager
def replica(version: str) -> Iterator[RealReplica]:
    """A private replica that ends with us, also by a signal, and leaves nothing."""
    programs = find_programs(version)
    with (
        signalled(signal.default_int_handler, signal.SIGTERM),
        tempfile.TemporaryDirectory(prefix="ibbmaster-demo-") as directory,
        RealReplica(ServerTemplate(programs, Path(directory) / "template"), Path(directory) / "replica") as found,
    ):
        yield found


def show_changes(port: int) -> None:
    from pymysqlreplication import BinLogStreamReader
    from pymysqlreplication.event import MariadbGtidEvent
    from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

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


def show_replica(follower: RealReplica, primary: RunningPrimary) -> None:
    print("\na real MariaDB replica follows with MASTER_USE_GTID=slave_pos:")
    follower.follow_at(primary.host, primary.port, user=USER, password=PASSWORD)
    end = primary.log.position
    if follower.sql("SELECT MASTER_GTID_WAIT(%s, %s)", (str(end), REPLICA_TIMEOUT_S)) != ((0,),):
        problem = problem_of(follower.status(), tolerates_lost_connections=False) or "it is too slow"
        raise IbbMasterError(f"the replica did not reach {end}: {problem}")
    for schema, table in follower.sql(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND "
        "table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') ORDER BY 1, 2"
    ):
        ((count,),) = follower.sql(f"SELECT COUNT(*) FROM {quoted_name(str(schema))}.{quoted_name(str(table))}")
        print(f"  {schema}.{table}: {count} rows")
    print(f"  gtid_slave_pos = {follower.sql('SELECT @@gtid_slave_pos')[0][0]}")
