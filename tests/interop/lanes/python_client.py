"""python-mysql-replication as its users run it: what it sees of a primary's stream."""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass, field

from lanes.primary import Primary
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import BinLogEvent, MariadbGtidEvent, QueryEvent, XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, TableMapEvent, UpdateRowsEvent, WriteRowsEvent

ABOUT_FILES = {
    "RotateEvent",
    "FormatDescriptionEvent",
    "MariadbGtidListEvent",
    "MariadbBinLogCheckPointEvent",
    "StopEvent",
    "HeartbeatLogEvent",
}
EVERYTHING = "4294967294-1-1"  # a position in a domain nobody writes: all other domains come from their beginning


@dataclass(slots=True, kw_only=True)
class SeenStream:
    """What the client made of a stream: one line an event, and the error that ended it, if any."""

    events: list[str] = field(default_factory=list)
    error: str | None = None


def read_stream(primary: Primary, *, position: str = EVERYTHING, uses_tls: bool = True) -> SeenStream:
    """Read everything a primary has behind a GTID position; never waits for more."""
    logging.getLogger("pymysqlreplication").setLevel(logging.ERROR)
    seen = SeenStream()
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
            blocking=False,
            annotate_rows_event=True,
        )
        try:
            for event in stream:
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
