"""The events of real binlogs, cut by a walker that shares no code with the package."""

import json
from pathlib import Path

import pytest
from lanes.replay import raw_events

from ibbmaster.replication.event.column_types.kind import read_declared
from ibbmaster.replication.event.column_types.registry import BY_WORD
from ibbmaster.replication.event.header import encode_event
from ibbmaster.replication.event.query import Query, encode_query
from ibbmaster.replication.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.replication.event.rows.encoding import encode_table_map
from ibbmaster.replication.event.rows.table_schema import decode_table_schema
from tests.built_logs import captures

CLASSIC = Path(__file__).parents[3] / "fixtures" / "classic"
CAPTURES = captures("encrypted", "big", "big-none")


def event_of(event_type: int, body: bytes = b"") -> bytes:
    return encode_event(event_type=event_type, body=body, server_id=1)


def query(text: bytes, database: bytes = b"", status: bytes = b"") -> bytes:
    value = Query(thread_id=1, seconds=0, error_code=0, status=status, database=database, text=text)
    return encode_query(value, server_id=1)


def written(declared: str):
    found = read_declared("column a", declared)
    return BY_WORD[found.word].write(found)


def column_of(kind: ColumnType, value_kind: ValueKind = ValueKind.BINARY, **given) -> Column:
    return Column(**{"name": "a", "type": kind, "metadata": 0, "kind": value_kind} | given)


def schema_of(table, **given):
    return decode_table_schema(encode_table_map(table, server_id=1, **given))


def events_of(capture: str) -> list[bytes]:
    """Every event of a capture, checksums cut off but that of FORMAT_DESCRIPTION."""
    return list(raw_events(CLASSIC / capture))


@pytest.fixture(params=CAPTURES)
def capture(request):
    return request.param


@pytest.fixture
def events(capture):
    return events_of(capture)


@pytest.fixture
def expected(capture):
    return json.loads((CLASSIC / capture / "expected.json").read_text())


@pytest.fixture(scope="session")
def sample_events():
    """One event of each type and size class, of all captures."""
    found: dict[tuple[int, int], bytes] = {}
    for capture in CAPTURES:
        for event in events_of(capture):
            found.setdefault((event[4], len(event) // 40), event)
    return [event for event in found.values() if len(event) < 1000]
