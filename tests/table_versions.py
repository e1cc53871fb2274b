"""TABLE_MAP events without names, as `binlog_row_metadata=NO_LOG` leaves them, and versions of tables."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import ibbmaster
from ibbmaster.gtid import Gtid
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.gtid_event import GTID_FLAGS_OFFSET, GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, encode_event
from ibbmaster.replication.event.query import Query, encode_query
from ibbmaster.replication.event.rows.column import TableSchema
from ibbmaster.replication.event.rows.encoding import encode_table_map, written_table
from ibbmaster.replication.event.rows.table_schema import decode_table_schema
from ibbmaster.replication.event.statement.logged import LoggedStatement
from ibbmaster.replication.event.types import EventType
from ibbmaster.schema.model import IndexKind, IndexPart, SchemaPlace, SqlType, TableColumn, TableIndex, TableVersion
from ibbmaster.schema.versions import TableVersions
from ibbmaster.storage.codec import lenenc
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.tables.arrow.plan import open_source, versions_in
from ibbmaster.tables.arrow.read_options import ReadOptions
from tests.machinery.events import make_event, make_gtid_event

INT = SqlType(word="int", length=11)
BIGINT = SqlType(word="bigint", length=20)
TEXT = SqlType(word="varchar", length=20, charset="utf8mb4")


def place(number: int, event_no: int = 0) -> SchemaPlace:
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


def rows_event(columns, images, *, present=None, table_id=1, kind=EventType.WRITE_ROWS_V1):
    """Inserts of rows; `present` are the numbers of the columns in their images."""
    table = written_table("db.t", columns, table_id=table_id)
    numbers = list(range(len(table.columns))) if present is None else present
    bits = sum(1 << number for number in numbers).to_bytes((len(table.columns) + 7) // 8, "little")
    rows = b""
    for image in images:
        nulls = sum((image[number] is None) << index for index, number in enumerate(numbers))
        rows += nulls.to_bytes((len(numbers) + 7) // 8, "little")
        rows += b"".join(table.columns[number].encode(image[number]) for number in numbers if image[number] is not None)
    body = table_id.to_bytes(6, "little") + (1).to_bytes(2, "little") + lenenc.encode_int(len(table.columns)) + bits
    return encode_event(event_type=kind, body=body + rows, server_id=1)


def inserts(columns, images, **more):
    return [nameless_map(columns), rows_event(columns, images, **more)]


def ddl(text: str) -> list[bytes]:
    value = Query(thread_id=1, seconds=0, error_code=0, status=b"", database=b"db", text=text.encode())
    return [encode_query(value, server_id=1)]


def write_log(directory: Path, *items: str | list[bytes], first: int = 1) -> Path:
    """Statements in db and groups of events, at the end of a log; `first` is the sequence number of the first."""
    with closing(RealDisk(directory)) as disk, BinlogWriter(disk, is_sparse=True) as writer:
        for number, item in enumerate(items, start=first):
            gtid = Gtid(domain_id=0, server_id=1, seq_no=number)
            if isinstance(item, str):
                head = encode_gtid_event(GtidEvent(gtid=gtid, flags=GtidFlag.STANDALONE | GtidFlag.DDL))
                writer.write_group(gtid, head, ddl(item))
            else:
                writer.write_group(gtid, make_gtid_event(gtid), [*item, make_event(16, 1, bytes(8))])
    return directory


def versions_of(options: ReadOptions) -> TableVersions:
    with closing(open_source(options)) as source:
        return versions_in(source, options)
