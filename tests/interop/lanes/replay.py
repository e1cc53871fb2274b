"""Changes of rows replayed into tables, whose content is compared with what the server had."""

import datetime
import hashlib
import ipaddress
import json
import lzma
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from ibbmaster.kernel.loading import load
from ibbmaster.replication.event.query import decode_query
from ibbmaster.replication.event.rows.changes import ABSENT, RowChange, RowDecoder
from ibbmaster.replication.event.rows.charset import CODECS
from ibbmaster.replication.event.rows.column import Column, TableSchema, ValueKind
from ibbmaster.replication.event.rows.declared import declare
from ibbmaster.replication.event.rows.table_schema import decode_table_schema
from ibbmaster.replication.event.table_map import ROW_EVENT_TYPES, decode_rows_header
from ibbmaster.replication.event.types import EventType
from ibbmaster.schema.declarations import parse_declarations
from ibbmaster.tables.arrow.fast_reading import fast_batches
from ibbmaster.tables.arrow.plan import find_fields, plan_tasks
from ibbmaster.tables.arrow.read_options import ReadOptions
from ibbmaster.tables.arrow.reading import batches, read_task, rows_of

CLASSIC = Path(__file__).parents[3] / "fixtures" / "classic"
ABOUT_FILES = {3, 4, 15, 161, 163}  # STOP, ROTATE, FORMAT_DESCRIPTION, BINLOG_CHECKPOINT, GTID_LIST


def readable_captures() -> list[str]:
    """Every capture that is not encrypted."""
    folders = (path for path in CLASSIC.glob("*/*") if path.is_dir() and path.name != "encrypted")
    return sorted(f"{path.parent.name}/{path.name}" for path in folders)


class Table:
    """A table as the changes of a binlog leave it."""

    def __init__(self) -> None:
        self.schema: TableSchema | None = None
        self.rows: list[list[object]] = []

    def apply(self, schema: TableSchema, change: RowChange) -> None:
        self.schema = schema
        if change.before is not None:
            row = next(row for row in self.rows if matches(row, change.before))
            if change.after is None:
                self.rows.remove(row)
                return
            for number, value in enumerate(change.after):
                if value is not ABSENT:
                    row[number] = value
            return
        assert change.after is not None
        self.rows.append([None if value is ABSENT else value for value in change.after])

    def content(self) -> str:
        assert self.schema is not None
        names = [column.name for column in self.schema.columns]
        visible = [column for column in self.schema.columns if column.name not in ("row_start", "row_end")]
        current = [row for row in self.rows if "row_end" not in names or str(row[names.index("row_end")]) > "2030"]
        rows = sorted(tuple(map(as_sql, visible, row)) for row in current)  # the hidden columns are the last
        return hashlib.sha256("\n".join(repr(row) for row in rows).encode()).hexdigest()[:16]


def matches(row: list[object], image: tuple[object, ...]) -> bool:
    return all(value is ABSENT or value == mine for mine, value in zip(row, image, strict=True))


def as_sql(column: Column, value: object) -> str | None:
    """What HEX(CAST(column AS BINARY)) gives."""
    if value is None:
        return None
    if column.kind is ValueKind.BIT:
        return int(value).to_bytes((column.size + 7) // 8, "big").hex().upper()
    if column.kind is ValueKind.UUID:
        return str(value).replace("-", "").upper()
    if column.kind in (ValueKind.INET4, ValueKind.INET6):
        return ipaddress.ip_address(str(value)).packed.hex().upper()
    if column.kind is ValueKind.VECTOR:
        return struct.pack(f"<{len(value)}f", *value).hex().upper()
    if column.name.endswith("zf"):
        return f"{value:07}".encode().hex().upper()  # INT(7) ZEROFILL
    if isinstance(value, bytes | bytearray):
        return value.hex().upper()
    if isinstance(value, datetime.datetime):
        fraction = f".{value.microsecond:06}"[: 1 + column.scale] if column.scale else ""
        return f"{value:%Y-%m-%d %H:%M:%S}{fraction}".encode().hex().upper()
    if isinstance(value, Decimal):
        return f"{value:.{column.scale}f}".encode().hex().upper()
    if column.kind is ValueKind.YEAR:
        return f"{value:04}".encode().hex().upper()
    if column.kind is ValueKind.FLOAT:
        return float_text(column, float(value)).encode().hex().upper()
    if column.kind in (ValueKind.TEXT, ValueKind.ENUM, ValueKind.SET):
        return encode(str(value), column.charset or "utf8mb4").hex().upper()
    return str(value).encode().hex().upper()


def cells_of(rows: Iterable[Mapping[str, object]], columns: Iterable[Column]) -> list[tuple[str | None, ...]]:
    """Rows as `content_of` has those of a server, of some columns."""
    kinds = list(columns)
    return sorted((tuple(as_sql(kind, row[kind.name]) for kind in kinds) for row in rows), key=repr)


def encode(text: str, charset: str) -> bytes:
    codec = CODECS[charset] or "latin-1"
    if charset == "latin1":
        return b"".join(
            bytes((ord(letter),)) if 0x80 <= ord(letter) < 0xA0 else letter.encode(codec) for letter in text
        )
    return text.encode(codec)


def float_text(column: Column, value: float) -> str:
    """As the server shows it: FLOAT with 6 digits, DOUBLE with as many as it takes; some are declared with a scale."""
    scale = {"f73": 3, "d20_5": 5}.get(column.name)
    if scale is not None:
        return f"{value:.{scale}f}"
    number = Decimal(f"{value:.6g}" if column.metadata == 4 else repr(value)).normalize()
    if -15 < number.adjusted() < 15 or not number:
        return f"{number:f}"
    digits = "".join(map(str, number.as_tuple().digits))
    point = "." if len(digits) > 1 else ""
    return f"{'-' if number < 0 else ''}{digits[0]}{point}{digits[1:]}e{number.adjusted()}"


def created_table(event: bytes) -> tuple[str, dict[str, str]] | None:
    """Name and columns of the table that an event creates, if it does."""
    if event[4] not in (EventType.QUERY, EventType.QUERY_COMPRESSED):
        return None
    query = decode_query(event)
    text = query.text.decode("utf-8", "replace")
    return next(parse_declarations(f"USE `{query.database.decode()}`;\n{text}"), None)


def changes_of(
    capture: str, *, with_ddl: bool = True, without: str | None = None
) -> Iterator[tuple[TableSchema, RowChange]]:
    """Every change of a capture with its table; CREATE TABLE statements before it say what the binlog does not.

    The changes of the table `without` are left out.
    """
    declarations: dict[str, dict[str, str]] = {}
    decoders: dict[int, RowDecoder] = {}
    for event in raw_events(CLASSIC / capture):
        if (created := created_table(event)) is not None and with_ddl:
            declarations[created[0]] = created[1]
        elif event[4] == EventType.TABLE_MAP:
            schema = decode_table_schema(event)
            if schema.name in declarations:
                schema = declare(schema, declarations[schema.name])
            decoders[schema.table_id] = RowDecoder(schema)
        elif event[4] in ROW_EVENT_TYPES:
            decoder = decoders[decode_rows_header(event).table_id]
            for change in decoder.changes(event) if decoder.schema.name != without else ():
                yield decoder.schema, change


def replay(capture: str) -> dict[str, Table]:
    tables: dict[str, Table] = {}
    for schema, change in changes_of(capture):
        tables.setdefault(schema.name, Table()).apply(schema, change)
    return tables


def expected_tables(capture: str) -> dict[str, dict[str, object]]:
    tables: dict[str, dict[str, object]] = json.loads((CLASSIC / capture / "expected.json").read_text())["tables"]
    return tables


def raw_events(folder: Path) -> Iterator[bytes]:
    """Every event of a capture's files without its checksum, cut by a walker of our own."""
    for path in sorted(folder.glob("binlog.0*")):
        if path.suffix != ".idx":
            yield from events_in(path)


def events_in(path: Path) -> Iterator[bytes]:
    """The events of a file without their checksums, which are right."""
    checksum_size = 0
    with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as file:  # 222 MB of some
        assert file.read(4) == b"\xfebin", f"{path} is no binlog file"
        while len(head := file.read(19)) == 19:
            (size,) = struct.unpack_from("<I", head, 9)
            event = head + file.read(size - 19)
            assert len(event) == size, f"{path} ends inside an event"
            if event[4] == EventType.FORMAT_DESCRIPTION:
                checksum_size = 4 if event[-5] else 0
            elif checksum_size:
                assert zlib.crc32(event[:-4]) == int.from_bytes(event[-4:], "little"), f"{path}: {head.hex()}"
                event = event[:9] + struct.pack("<I", size - 4) + event[13:-4]
            yield event


def changing_events(paths: Iterable[Path]) -> list[bytes]:
    """The events of files that change something, in order, without the places where they end."""
    found = [event for path in paths for event in events_in(path) if event[4] not in ABOUT_FILES]
    return [event[:13] + event[17:] for event in found]


def rows_read(options: ReadOptions, fields: Any) -> Iterator[dict[str, Any]]:
    for task in plan_tasks(options, fields):
        for batch in read_task(task):
            yield from batch.to_pylist()


def read_by_both(options: ReadOptions) -> list[Any]:
    """The rows that the kernels and the careful path read alike; of a task that they cannot read the error of both."""
    found = []
    for task in plan_tasks(options, find_fields(options)):
        both = []
        for read in (lambda task: batches(task.fields, rows_of(task)), lambda task: fast_batches(task, load())):
            try:
                both.append(pa.Table.from_batches(read(task)).combine_chunks().to_pylist())
            except Exception as error:  # what they say must be the same, whatever it is
                both.append([str(error)])
        for careful, fast in zip(*both, strict=True):
            assert repr(careful) == repr(fast), options
        found += both[0]
    return found
