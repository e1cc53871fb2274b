"""python-mysql-replication as its README uses it with MariaDB: `is_mariadb`, and a GTID position to begin behind."""

import datetime
import decimal
import importlib.metadata
import json
import os
import sys
import threading
import time

import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import MariadbGtidEvent, QueryEvent, XAPrepareEvent, XidEvent
from pymysqlreplication.exceptions import (
    BinLogNotEnabled,
    MalformedBinLogEvent,
    StatusVariableMismatch,
    TableMetadataUnavailableError,
)
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

DOCUMENTED = (
    pymysql.MySQLError,
    BinLogNotEnabled,
    MalformedBinLogEvent,
    StatusVariableMismatch,
    TableMetadataUnavailableError,
)
READ_TIMEOUT_S = 5  # five heartbeats
STANDALONE = 1  # flag of a GTID event: one statement, and no event that ends the group
KINDS = {WriteRowsEvent: "insert", UpdateRowsEvent: "update", DeleteRowsEvent: "delete"}


def tell(event, **keys):
    sys.stdout.write(json.dumps({"event": event, **keys}) + "\n")
    sys.stdout.flush()


def value(given):
    if isinstance(given, bytes):
        try:
            return given.decode()
        except UnicodeDecodeError:
            return "0x" + given.hex()
    if isinstance(given, datetime.timedelta):
        micros = abs(given) // datetime.timedelta(microseconds=1)
        sign = "-" if given < datetime.timedelta(0) else ""
        seconds, micros = divmod(micros, 1_000_000)
        return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}"
    if isinstance(given, set):
        return ",".join(sorted(given))
    if isinstance(given, dict | list):
        return json.dumps(given, default=str)
    if isinstance(given, decimal.Decimal | datetime.date | datetime.datetime):
        return str(given)
    return given


def image(row):
    return {name: value(one) for name, one in row.items()}


def follow(asked):
    position = asked["start"] if asked["resume"] is None else asked["resume"]
    login = {name: asked[name] for name in ("host", "port", "user")}
    login |= {"passwd": asked["password"], "read_timeout": READ_TIMEOUT_S, "connect_timeout": READ_TIMEOUT_S}
    if asked["tls"]:
        login["ssl"] = {"check_hostname": False, "verify_mode": "none"}
    stream = BinLogStreamReader(
        connection_settings=login,
        server_id=asked["server_id"],
        blocking=True,
        resume_stream=True,
        auto_position=position,
        is_mariadb=True,
        slave_heartbeat=1,
        verify_checksum=True,
        only_events=[MariadbGtidEvent, QueryEvent, XidEvent, XAPrepareEvent, *KINDS],
    )
    # After a lost connection it begins where it began, unless it is told what came meanwhile.
    done = dict(one.split("-", 1) for one in position.split(",") if one)
    gtid, is_standalone = None, False
    for event in stream:
        time.sleep(asked["delay_ms"] / 1000)
        if isinstance(event, MariadbGtidEvent):
            gtid, is_standalone = event.gtid, event.flags & STANDALONE
            tell("begin", gtid=gtid)
        elif type(event) in KINDS:
            if asked.get("tables"):
                key = event.primary_key or []
                tell(
                    "table",
                    table=f"{event.schema}.{event.table}",
                    columns=[column.name for column in event.columns],
                    key=[key] if isinstance(key, str) else list(key),
                    types=[column.type for column in event.columns],
                )
            for row in event.rows:
                before, after = row.get("before_values"), row.get("after_values", row.get("values"))
                if isinstance(event, DeleteRowsEvent):
                    before, after = after, None
                tell(
                    "change",
                    table=f"{event.schema}.{event.table}",
                    kind=KINDS[type(event)],
                    before=None if before is None else image(before),
                    after=None if after is None else image(after),
                )
        elif isinstance(event, QueryEvent) and event.query not in ("BEGIN", "COMMIT", "ROLLBACK"):
            tell("statement", sql=event.query)
        ends = isinstance(event, QueryEvent) and (is_standalone or event.query in ("COMMIT", "ROLLBACK"))
        if gtid is not None and (ends or isinstance(event, XidEvent | XAPrepareEvent)):
            tell("commit", gtid=gtid)
            domain, rest = gtid.split("-", 1)
            done[domain] = rest
            tell("position", position=",".join(f"{domain}-{rest}" for domain, rest in done.items()))
            gtid = None
    tell("error", text="the stream has ended", is_fatal=True)


def end_when_asked():
    sys.stdin.read()
    os._exit(0)


def main():
    asked = json.loads(sys.stdin.readline())
    threading.Thread(target=end_when_asked, daemon=True).start()
    package = importlib.metadata.version("mysql-replication")
    tell("version", text=f"python-mysql-replication {package}, Python {sys.version.split()[0]}")
    try:
        follow(asked)
    except DOCUMENTED as error:
        tell("error", text=f"{type(error).__name__}: {error}", is_fatal=True)
    except Exception as error:
        tell("error", text=f"{type(error).__name__}: {error}", is_fatal=True, is_internal=True)
    sys.exit(1)


if __name__ == "__main__":
    main()
