"""TABLE_MAP events without names, as `binlog_row_metadata=NO_LOG` leaves them, and versions of tables."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import ibbmaster
from ibbmaster.disk.local import RealDisk
from ibbmaster.event.gtid_event import GTID_FLAGS_OFFSET, GtidFlag
from ibbmaster.event.header import EVENT_HEADER_SIZE, encode_event
from ibbmaster.event.rows.column import TableSchema
from ibbmaster.event.rows.encoding import encode_table_map, written_table
from ibbmaster.event.rows.table_schema import decode_table_schema
from ibbmaster.event.statement.logged import LoggedStatement
from ibbmaster.event.types import EventType
from ibbmaster.position import LogPosition
from ibbmaster.schema.model import IndexKind, IndexPart, SchemaPlace, SqlType, TableColumn, TableIndex, TableVersion
from ibbmaster.store.writer import BinlogWriter

INT = SqlType(word="int", length=11)
BIGINT = SqlType(word="bigint", length=20)
TEXT = SqlType(word="varchar", length=20, charset="utf8mb4")


def place(number: int, event_no: int = 0) -> SchemaPlace:
    """A place of the first file of a log."""
    return SchemaPlace(LogPosition(0, number), event_no)


def column(number: int, name: str, told: SqlType = INT, **more) -> TableColumn:
    return TableColumn(id=number, name=name, type=told, **more)


def version(*columns: TableColumn, since: SchemaPlace | None = None, key: int | None = 1, **more) -> TableVersion:
    """db.t with these columns; the one with the id `key` is its key."""
    indexes = ()
    if key is not None:
        indexes = (TableIndex(name="PRIMARY", kind=IndexKind.PRIMARY, parts=(IndexPart(column_id=key),)),)
    gtid = None if since is None else f"0-1-{since.position.offset}"
    return TableVersion(database="db", name="t", columns=columns, indexes=indexes, since=since, gtid=gtid, **more)


def nameless_map(columns: Mapping[str, str], *, table_id: int = 1) -> bytes:
    """The TABLE_MAP of db.t with these columns and types, without all that is optional."""
    table = written_table("db.t", columns, table_id=table_id)
    whole = encode_table_map(table, server_id=1)
    metadata = sum(len(one.metadata) for one in table.columns)
    count = len(table.columns)
    size = 6 + 2 + 4 + 3 + 1 + count + 1 + metadata + (count + 7) // 8
    body = whole[EVENT_HEADER_SIZE : EVENT_HEADER_SIZE + size]
    return encode_event(event_type=EventType.TABLE_MAP, body=body, server_id=1)


def nameless(columns: Mapping[str, str]) -> TableSchema:
    return decode_table_schema(nameless_map(columns))


def named_by_event(columns: Mapping[str, str]) -> TableSchema:
    """As FULL metadata has it."""
    return decode_table_schema(encode_table_map(written_table("db.t", columns, table_id=1), server_id=1))


def logged_statement(text: str, *, database: str = "db") -> LoggedStatement:
    return LoggedStatement(text, database, 1, 0, True)


def without_statements(source: Path, target: Path) -> Path:
    """A log with those groups of another that are no DDL: nothing tells what its tables are."""
    target.mkdir()
    disk = RealDisk(target)
    with closing(disk), BinlogWriter(disk, is_sparse=True) as writer, ibbmaster.open(source) as log:
        for group in log:
            head, *events = [event.data for event in group.events()]
            if not head[GTID_FLAGS_OFFSET] & GtidFlag.DDL:
                writer.write_group(group.gtid, head, events)
    return target
