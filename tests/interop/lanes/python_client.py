"""python-mysql-replication as its users run it: what it sees of a primary's stream."""

from __future__ import annotations

import itertools
import logging
import warnings
from dataclasses import dataclass, field
from typing import Any

import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import BinLogEvent, HeartbeatLogEvent, MariadbGtidEvent, QueryEvent, XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, TableMapEvent, UpdateRowsEvent, WriteRowsEvent

from lanes.primary import Primary

ABOUT_FILES = {
    "RotateEvent",
    "FormatDescriptionEvent",
    "MariadbGtidListEvent",
    "MariadbBinLogCheckPointEvent",
    "StopEvent",
}
HEARTBEAT_PERIOD_S = 0.5
CONNECTIONS_MAX = 2  # one for the stream, one to ask about tables
EVERYTHING = "4294967294-1-1"  # a position in a domain nobody writes: all other domains come from their beginning


@dataclass(slots=True, kw_only=True)
class SeenStream:
    """What the client made of a stream: one line an event, and the error that ended it, if any."""

    events: list[str] = field(default_factory=list)
    error: str | None = None


def read_stream(
    primary: Primary, *, position: str = EVERYTHING, uses_tls: bool = True, waits: bool = False
) -> SeenStream:
    """Read everything a primary has behind a GTID position, to the end or to the first heartbeat if it `waits`."""
    logging.getLogger("pymysqlreplication").setLevel(logging.ERROR)
    seen = SeenStream()
    connections = itertools.count(1)

    def connect(**settings: Any) -> pymysql.Connection[Any]:
        if next(connections) > CONNECTIONS_MAX:  # left to itself it connects again and begins anew, without end
            raise ConnectionError("the client lost its connection")
        return pymysql.connect(**settings)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stream = BinLogStreamReader(
            connection_settings={
                "host": primary.host,
                "port": primary.port,
                "user": primary.user,
                "passwd": primary.password,
                **({} if uses_tls else {"ssl_disabled": True}),
            },
            server_id=4711,
            is_mariadb=True,
            auto_position=position,
            blocking=waits,
            slave_heartbeat=HEARTBEAT_PERIOD_S if waits else None,
            annotate_rows_event=True,
            pymysql_wrapper=connect,
        )
        try:
            for event in stream:
                if isinstance(event, HeartbeatLogEvent):
                    break
                if type(event).__name__ not in ABOUT_FILES:
                    seen.events.append(describe(event))
        except Exception as error:  # whatever the client dies of is what is to be compared
            seen.error = f"{type(error).__name__}: {error}"
        finally:
            stream.close()
    return seen


def describe(event: BinLogEvent) -> str:
    """An event and its values as one line."""
    name = f"{type(event).__name__} at {event.timestamp}"
    match event:
        case MariadbGtidEvent():
            return f"{name} {event.gtid} flags {event.flags}"
        case QueryEvent():
            return f"{name} in {event.schema!r}: {event.query}"
        case WriteRowsEvent() | UpdateRowsEvent() | DeleteRowsEvent():
            return f"{name} {event.schema}.{event.table} {event.rows!r}"
        case TableMapEvent():
            return f"{name} {event.schema}.{event.table} of {event.column_count} columns"
        case XidEvent():
            return f"{name} {event.xid}"
    return name
