"""python-mysql-replication sees the same stream from us as from a real primary that serves the capture's own files."""

import importlib.metadata
import itertools
import logging
import warnings
from typing import Any

import pymysql
import pytest
from lanes.primary import Primary, login_of
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import BinLogEvent, HeartbeatLogEvent, MariadbGtidEvent, QueryEvent, XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, TableMapEvent, UpdateRowsEvent, WriteRowsEvent

from tests.case_table import rows_of

ABOUT_FILES = {
    *("RotateEvent", "FormatDescriptionEvent", "MariadbGtidListEvent", "MariadbBinLogCheckPointEvent", "StopEvent")
}
HEARTBEAT_PERIOD_S = 0.5
CONNECTIONS_MAX = 2  # one for the stream, one to ask about tables
EVERYTHING = "4294967294-1-1"  # a position in a domain nobody writes: all other domains come from their beginning


def read_stream(primary: Primary, *, uses_tls: bool, waits: bool) -> tuple[list[str], str | None]:
    """Read everything a primary has, to the end or to the first heartbeat if it `waits`.

    Returns what the client makes of it: one line an event, and the error that ended it, if any.
    """
    logging.getLogger("pymysqlreplication").setLevel(logging.ERROR)
    events, failure = [], None
    connections = itertools.count(1)

    def connect(**settings: Any) -> pymysql.Connection:
        if next(connections) > CONNECTIONS_MAX:  # left to itself it connects again and begins anew, without end
            raise ConnectionError("the client lost its connection")
        return pymysql.connect(**settings)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stream = BinLogStreamReader(
            connection_settings=login_of(primary) | ({} if uses_tls else {"ssl_disabled": True}),
            server_id=4711,
            is_mariadb=True,
            auto_position=EVERYTHING,
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
                    events.append(describe(event))
        except Exception as error:  # whatever the client dies of is what is to be compared
            failure = f"{type(error).__name__}: {error}"
        finally:
            stream.close()
    return events, failure


def describe(event: BinLogEvent) -> str:
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


# What this version of the client dies of, with every primary.
KNOWN_VERSION = "1.0.17"
KNOWN_FAILURES = dict(rows_of(__file__, "python_client_failures"))


@pytest.mark.parametrize("client", ["python"])
def test_the_client_sees_what_it_sees_of_a_real_primary(served_capture, new_primary, new_real_primary, primary_is_real):
    # This client sends one byte too much. A real primary closes at the end of a stream nobody waits at, and because
    # of that unread byte with a reset, which may cost the client the last events: so wait for the heartbeat instead.
    expected = read_stream(new_real_primary(served_capture), uses_tls=False, waits=True)
    # It also takes it that there are checksums when it looks for the names of columns: have them as the file has.
    has_checksums = served_capture.facts["options"]["binlog-checksum"] == "CRC32"
    profile = f"classic-{served_capture.version}" if has_checksums else "engine"
    primary = new_primary(served_capture, "--tls", "off", "--profile", profile)
    seen = read_stream(primary, uses_tls=False, waits=primary_is_real)

    if importlib.metadata.version("mysql-replication") == KNOWN_VERSION:
        assert str(expected[1]).startswith(KNOWN_FAILURES.get(served_capture.id, "None"))
    assert seen == expected


@pytest.mark.parametrize("waits", [False, True], ids=["to the end", "to the first heartbeat"])
@pytest.mark.parametrize("uses_tls", [False, True], ids=["in clear", "TLS"])
@pytest.mark.parametrize("profile", ["engine", "compat"])
def test_the_client_reads_to_the_end(profile, uses_tls, waits, captures, new_ibb_primary):
    capture = captures["10.11/domains"]

    events, error = read_stream(new_ibb_primary(capture, "--profile", profile), uses_tls=uses_tls, waits=waits)

    assert error is None
    assert sum("MariadbGtidEvent" in event for event in events) == capture.facts["event_groups"]
    assert sum("WriteRowsEvent" in event for event in events) == capture.facts["events"]["WRITE_ROWS_V1"]
