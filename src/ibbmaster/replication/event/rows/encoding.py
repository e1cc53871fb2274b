"""Writes TABLE_MAP and row events, with all that binlog_row_metadata=FULL adds. Layout: protocol/event/rows.md."""

import enum
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ibbmaster.errors import ConfigurationError
from ibbmaster.sqltext.quoting import quoted_name
from ibbmaster.sqltext.table_name import TableName, parse_table_name, printed_table
from ibbmaster.storage.codec import lenenc
from ..column_types.kind import StoredText, WrittenType, read_declared
from ..column_types.registry import BY_WORD
from ..header import encode_event
from ..query import compress
from ..table_map import FLAG_STATEMENT_END, TABLE_ID_SIZE
from ..types import EventType
from .attributes import KEY_MARK, attributes_of, is_nullable, is_primary_key, named_charset
from .changes import ChangeKind
from .column import ColumnType
from .table_schema import CHARACTER, LABEL_FIELDS, MetadataField

ROW_EVENT_BYTES = 8192  # MariaDB's binlog_row_event_max_size
TABLE_MAP_FLAGS = 1
BLOBS = (ColumnType.BLOB, ColumnType.BLOB_COMPRESSED)
UTF8 = "utf8mb4"
EVENT_TYPES = {
    ChangeKind.INSERT: EventType.WRITE_ROWS_V1,
    ChangeKind.UPDATE: EventType.UPDATE_ROWS_V1,
    ChangeKind.DELETE: EventType.DELETE_ROWS_V1,
}
COMPRESSED_TYPES = {
    ChangeKind.INSERT: EventType.WRITE_ROWS_COMPRESSED_V1,
    ChangeKind.UPDATE: EventType.UPDATE_ROWS_COMPRESSED_V1,
    ChangeKind.DELETE: EventType.DELETE_ROWS_COMPRESSED_V1,
}
NO_NOT_NULL = {"null", "check", "references"}  # attributes that NOT NULL contradicts, or may not follow
Row = Sequence[object]  # a value a column; None is NULL
Columns = Sequence[int]  # numbers of columns, in order


class RowMetadata(enum.Enum):
    NO_LOG = "NO_LOG"
    MINIMAL = "MINIMAL"  # signs, and character sets of texts
    FULL = "FULL"  # and names, labels, the primary key


@dataclass(frozen=True, kw_only=True)
class WrittenColumn(WrittenType):
    name: str
    declared: str  # the type as CREATE TABLE has it
    is_nullable: bool = True


def written_column(
    name: str, declared: str, *, storage: StoredText | None = None, is_compressed: bool = False
) -> WrittenColumn:
    """Without `storage` text is utf8mb4. Raises ConfigurationError: the type is unknown, or cannot be written."""
    taken = read_declared(f"column {name}", declared)
    charset = named_charset(declared) if storage is None else None
    if charset not in (None, UTF8):  # also utf8mb3: a replica's column would have other lengths
        raise ConfigurationError(f"column {name}: {declared!r} is text in {charset}, only {UTF8} can be written")
    is_compressed |= "compressed" in attributes_of(declared)
    taken = taken._replace(storage=storage or StoredText(), is_compressed=is_compressed)
    kind = BY_WORD.get(taken.word)
    written = None if kind is None else kind.write(taken)
    if written is None:
        raise ConfigurationError(f"column {name}: columns of type {declared!r} cannot be written")
    return WrittenColumn(name=name, declared=declared.strip(), is_nullable=is_nullable(declared), **vars(written))


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTable:
    table_id: int
    database: str
    table: str
    columns: tuple[WrittenColumn, ...]
    primary_key: tuple[int, ...] = ()
    key_prefixes: tuple[int, ...] = ()  # characters of each column in the key, 0: all; none: all of each

    @property
    def name(self) -> str:
        return printed_table(self.database, self.table)

    def image(self, row: Row, columns: Columns | None = None) -> bytes:
        """Some or all columns of a row. Raises ValueError: a value does not fit its column, which the text names."""
        numbers = range(len(self.columns)) if columns is None else columns
        if len(row) != len(self.columns):
            raise ValueError(f"{self.name} has {len(self.columns)} columns, and the row {len(row)} values")
        size = (len(numbers) + 7) // 8
        nulls = (1 << 8 * size) - (1 << len(numbers))  # a server sets the unused bits
        parts = []
        for place, number in enumerate(numbers):
            column, value = self.columns[number], row[number]
            if value is None:
                if not column.is_nullable:
                    raise ValueError(f"{self.name} column {column.name} ({column.declared}): NULL")
                nulls |= 1 << place
                continue
            try:
                parts.append(column.encode(value))
            except ValueError as error:
                raise ValueError(f"{self.name} column {column.name} ({column.declared}): {error}") from None
        return nulls.to_bytes(size, "little") + b"".join(parts)

    @property
    def statements(self) -> tuple[str, str]:
        parts = [f"{quoted_name(column.name)} {column.declared}" for column in self.columns]
        if self.primary_key and not any(is_primary_key(column.declared) for column in self.columns):
            key = ", ".join(quoted_name(self.columns[number].name) for number in self.primary_key)
            parts.append(f"PRIMARY KEY ({key})")
        table = f"{TableName(self.database, self.table).sql} ({', '.join(parts)})"
        return (
            f"CREATE DATABASE IF NOT EXISTS {quoted_name(self.database)}",
            f"CREATE TABLE IF NOT EXISTS {table} CHARSET utf8mb4 COLLATE utf8mb4_general_ci",
        )


def written_table(
    name: str, declaration: Mapping[str, str], *, table_id: int, primary_key: Sequence[str] = ()
) -> WrittenTable:
    """From `database.table` and columns as in CREATE TABLE; key columns are NOT NULL. Raises ConfigurationError: a
    column cannot be written, or the key names a missing one, or contradicts the declared one."""
    database, table = parse_table_name(name)
    if max(len(database.encode()), len(table.encode())) > 255:
        raise ConfigurationError(f"{name!r} has a name of more than 255 bytes")
    columns = tuple(written_column(column, declared) for column, declared in declaration.items())
    if not columns:
        raise ConfigurationError(f"{name} has no columns")
    names = [column.name for column in columns]
    missing = [column for column in primary_key if column not in names]
    if missing:
        raise ConfigurationError(f"{name} has no column {missing[0]}; it has {', '.join(names)}")
    declared_key = tuple(number for number, column in enumerate(columns) if is_primary_key(column.declared))
    key = tuple(names.index(column) for column in primary_key) or declared_key
    if declared_key and set(declared_key) != set(key):
        raise ConfigurationError(f"{name} declares {names[declared_key[0]]} its key, not {', '.join(primary_key)}")
    for column in (columns[number] for number in key):
        if column.type == ColumnType.BLOB:  # only its first bytes can be in a key
            raise ConfigurationError(f"{name} column {column.name}: {column.declared} as key, declare varchar(LENGTH)")
    columns = tuple(_not_null(column) if number in key else column for number, column in enumerate(columns))
    return WrittenTable(table_id=table_id, database=database, table=table, columns=columns, primary_key=key)


def _not_null(column: WrittenColumn) -> WrittenColumn:
    declared = column.declared.removesuffix(KEY_MARK)
    attributes = attributes_of(declared)
    if is_nullable(declared) and NO_NOT_NULL.isdisjoint(attributes):
        declared += " NOT NULL"
    return replace(column, is_nullable=False, declared=declared)


class RowImage(enum.Enum):
    FULL = "FULL"
    MINIMAL = "MINIMAL"  # before: the key; after: what the statement gave
    NOBLOB = "NOBLOB"  # no BLOB or TEXT that did not change
    FULL_NODUP = "FULL_NODUP"  # after an update only what the statement wrote


def image_columns(
    table: WrittenTable, image: RowImage, kind: ChangeKind, given: Collection[int]
) -> tuple[Columns, Columns]:
    """The columns of the images before and after a change, in order; `given`: those that the statement wrote. Rows of a
    table without a key are whole. Source: MariaDB 12.3, sql_class.cc, THD::binlog_prepare_row_images(), and what 11.8
    writes."""
    everything = tuple(range(len(table.columns)))
    blobs = {number for number in everything if table.columns[number].type in BLOBS}
    if not table.primary_key:
        return everything, everything
    match image:
        case RowImage.MINIMAL:
            return tuple(sorted(table.primary_key)), tuple(sorted(given))
        case RowImage.NOBLOB:
            kept = tuple(number for number in everything if number not in blobs or number in table.primary_key)
            return kept, tuple(number for number in everything if number in kept or number in given)
        case RowImage.FULL_NODUP if kind is ChangeKind.UPDATE:
            return everything, tuple(sorted(given))
        case _:
            return everything, everything


def encode_table_map(
    table: WrittenTable, *, server_id: int, timestamp: int = 0, metadata: RowMetadata = RowMetadata.FULL
) -> bytes:
    columns = table.columns
    block = b"".join(column.metadata for column in columns)
    nulls = sum(column.is_nullable << number for number, column in enumerate(columns))
    body = b"".join(
        (
            table.table_id.to_bytes(TABLE_ID_SIZE, "little"),
            TABLE_MAP_FLAGS.to_bytes(2, "little"),
            _short_name(table.database),
            _short_name(table.table),
            lenenc.encode_int(len(columns)),
            bytes(column.type for column in columns),
            lenenc.encode_int(len(block)),
            block,
            nulls.to_bytes((len(columns) + 7) // 8, "little"),
            *_optional_fields(table, metadata),
        )
    )
    return encode_event(event_type=EventType.TABLE_MAP, body=body, server_id=server_id, timestamp=timestamp)


def _optional_fields(table: WrittenTable, metadata: RowMetadata) -> Iterator[bytes]:
    if metadata is RowMetadata.NO_LOG:
        return
    signs = [column.is_unsigned for column in table.columns if column.is_unsigned is not None]
    if signs:
        bits = bytearray((len(signs) + 7) // 8)
        for number, is_unsigned in enumerate(signs):
            bits[number // 8] |= is_unsigned << (7 - number % 8)
        yield _field(MetadataField.SIGNEDNESS, bytes(bits))
    collations = [column.collation or 0 for column in table.columns if column.type in CHARACTER and not column.labels]
    if collations:
        yield _collations(collations, MetadataField.DEFAULT_CHARSET, MetadataField.COLUMN_CHARSET)
    geometries = [column.geometry_type for column in table.columns if column.geometry_type is not None]
    if geometries:
        yield _field(MetadataField.GEOMETRY_TYPE, b"".join(map(lenenc.encode_int, geometries)))
    if metadata is RowMetadata.MINIMAL:
        return
    names = [lenenc.encode_bytes(column.name.encode()) for column in table.columns]
    yield _field(MetadataField.COLUMN_NAME, b"".join(names))
    labelled = [column for column in table.columns if column.labels]
    if labelled:
        yield _collations(
            [column.collation or 0 for column in labelled],
            MetadataField.ENUM_AND_SET_DEFAULT_CHARSET,
            MetadataField.ENUM_AND_SET_COLUMN_CHARSET,
        )
    for field, flag in LABEL_FIELDS.items():
        texts = b"".join(_label_list(column.labels) for column in labelled if column.metadata[0] == flag)
        if texts:
            yield _field(field, texts)
    if any(table.key_prefixes):
        pairs = zip(table.primary_key, table.key_prefixes, strict=True)
        yield _field(MetadataField.PRIMARY_KEY_WITH_PREFIX, b"".join(map(lenenc.encode_int, itertools.chain(*pairs))))
    elif table.primary_key:
        yield _field(MetadataField.SIMPLE_PRIMARY_KEY, b"".join(map(lenenc.encode_int, table.primary_key)))


def _collations(collations: Sequence[int], default: MetadataField, each: MetadataField) -> bytes:
    """The commonest and the exceptions, or all if shorter. Source: MariaDB 12.3,
    Table_map_log_event::init_charset_field()."""
    commonest = max(sorted(set(collations)), key=collations.count)
    others = [(number, collation) for number, collation in enumerate(collations) if collation != commonest]
    if len(collations) < 1 + 2 * len(others):
        return _field(each, b"".join(map(lenenc.encode_int, collations)))
    return _field(default, b"".join(map(lenenc.encode_int, (commonest, *itertools.chain(*others)))))


def _label_list(labels: Sequence[bytes]) -> bytes:
    return lenenc.encode_int(len(labels)) + b"".join(map(lenenc.encode_bytes, labels))


def encode_rows(
    table: WrittenTable,
    kind: ChangeKind,
    changes: Iterable[tuple[bytes | None, bytes | None]],
    *,
    server_id: int,
    timestamp: int = 0,
    size_max: int = ROW_EVENT_BYTES,
    columns: tuple[Columns, Columns] | None = None,
    is_compressed: bool = False,
) -> Iterator[bytes]:
    """The row events of changes of one kind, each the images before and after; the last event ends the statement.
    `columns`: those in the images, before and after; None: all."""

    def event(rows: list[bytes], flags: int) -> bytes:
        body = _rows_body(table, kind, rows, flags, columns, is_compressed=is_compressed)
        types = COMPRESSED_TYPES if is_compressed else EVENT_TYPES
        return encode_event(event_type=types[kind], body=body, server_id=server_id, timestamp=timestamp)

    pending: list[bytes] = []
    size = 0
    for before, after in changes:
        rows = b"".join(image for image in (before, after) if image is not None)
        if pending and size + len(rows) > size_max:
            yield event(pending, 0)
            pending, size = [], 0
        pending.append(rows)
        size += len(rows)
    if pending:
        yield event(pending, FLAG_STATEMENT_END)


def _rows_body(
    table: WrittenTable,
    kind: ChangeKind,
    rows: list[bytes],
    flags: int,
    columns: tuple[Columns, Columns] | None,
    *,
    is_compressed: bool,
) -> bytes:
    count = len(table.columns)
    before, after = columns or (range(count), range(count))
    bitmaps = {ChangeKind.INSERT: (after,), ChangeKind.DELETE: (before,), ChangeKind.UPDATE: (before, after)}[kind]
    data = b"".join(rows)
    return b"".join(
        (
            table.table_id.to_bytes(TABLE_ID_SIZE, "little"),
            flags.to_bytes(2, "little"),
            lenenc.encode_int(count),
            *(sum(1 << number for number in numbers).to_bytes((count + 7) // 8, "little") for numbers in bitmaps),
            compress(data) if is_compressed else data,
        )
    )


def _field(kind: MetadataField, value: bytes) -> bytes:
    return bytes([kind]) + lenenc.encode_bytes(value)


def _short_name(name: str) -> bytes:
    data = name.encode()
    return bytes([len(data)]) + data + b"\0"
