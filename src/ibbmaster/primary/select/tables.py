"""Tables of the log in SQLite: only the columns that a query names, decoded once and kept for the next query."""

import functools
import math
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ibbmaster.replication.event.column_types.floating import Floating
from ibbmaster.replication.event.column_types.kind import TextSettings
from ibbmaster.replication.event.column_types.registry import BY_NAME, kind_of
from ibbmaster.replication.wire.refusal import not_supported, out_of_memory
from ibbmaster.replication.wire.response import ColumnDefinition, FieldType
from ibbmaster.rows.expr import kinds, values
from ibbmaster.rows.expr.comparing import cached
from ibbmaster.rows.expr.kinds import Family, ValueType
from ibbmaster.rows.expr.scalars import SqlValue
from ibbmaster.rows.expr.weights import key_of
from ibbmaster.schema.model import TableColumn, TableVersion
from ibbmaster.sqltext.moment import parse_duration
from ibbmaster.tables.fold.kept_rows import HEAD
from ibbmaster.tables.fold.row_conversion import first_value
from ibbmaster.tables.fold.stored import StoredColumn, StoredLayout, own_columns
from ibbmaster.work import check_wanted
from .table_reader import FoundRows

ROWS_BETWEEN_LOOKS = 1 << 10
WIDE_SIZE = 8  # bytes of an integer that SQLite may not hold
Decode = Callable[[bytes], Any]
CACHE_KIB = 8 << 10
VALUE_MAX = 64 << 20  # bytes of one value
KEPT_BYTES_MAX = 64 << 20
FREE_SHARE = 0.1  # of the file system of temporary files, for others: SQLite sorts there without a limit
FREE_BYTES = 1 << 30  # of a large one
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: VALUE_MAX,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 4 << 20,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 500,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_COLUMN: 2000,
}


def _column_type(column: TableColumn, definition: ColumnDefinition) -> ValueType:
    sql = column.type
    kind = BY_NAME[sql.word]
    family, digits = Family[kind.family], max(kind.digits(sql), 0)
    base: dict[str, Any] = {"is_nullable": column.is_nullable, "column": definition, "sql": sql}
    letters = {**base, "collation": sql.collation, "charset": sql.charset, "labels": sql.labels}
    match family:
        case Family.YEAR | Family.BIT:
            return ValueType(kind=family, length=sql.length or digits, digits=digits, is_unsigned=True, **base)
        case Family.INT | Family.DECIMAL | Family.DOUBLE | Family.FLOAT:
            field = FieldType(definition.column_type) if family is Family.INT else None
            base |= {"is_unsigned": sql.is_unsigned, "field": field, "decimals": definition.decimals}
            return ValueType(kind=family, length=definition.length, digits=digits, **base)
        case Family.DATE:
            return replace(kinds.date(), **base)
        case Family.DATETIME:
            return replace(kinds.moment(definition.decimals), field=FieldType(definition.column_type), **base)
        case Family.TIME:
            return replace(kinds.duration(definition.decimals), **base)
        case Family.ENUM | Family.SET:
            return ValueType(kind=family, length=digits, digits=digits, **letters)
        case Family.TEXT:
            field = FieldType.STRING if kind.is_string and not kind.is_varying else None
            return ValueType(kind=family, length=digits, field=field, is_blob=kind.is_large, **letters)
    return ValueType(kind=family, length=definition.length, is_blob=kind.is_large, **base)


@dataclass(frozen=True, slots=True)
class LoadedColumns:
    places: frozenset[int]
    keys: frozenset[tuple[int, str]]


class SqlTable:
    """A table of one query, which SQL calls `alias`; loaded once the slots that SQL names are known."""

    def __init__(self, name: str, alias: str) -> None:
        self.name = name
        self._alias = alias
        self._keys: dict[int, str] = {}  # collations of texts that are compared

    def slot_at(self, place: int, kind: ValueType) -> SqlValue:
        return SqlValue(f"{self._alias}.c{place}", kind, table=self.name)

    @staticmethod
    def place(slot: SqlValue) -> int:
        return int(slot.sql.partition(".")[2][1:])

    def key_column(self, slot: SqlValue) -> str:
        place, collation = self.place(slot), str(slot.type.collation)
        key_of(collation)
        self._keys[place] = collation
        return f"{self._alias}.k{place}"

    def used(self, sql: str) -> LoadedColumns:
        named = re.findall(rf"\b{self._alias}\.c(\d+)\b", sql)
        return LoadedColumns(frozenset(map(int, named)) | self._keys.keys(), frozenset(self._keys.items()))

    def statements(self, used: LoadedColumns) -> tuple[str, str]:
        names = [f"c{place}" for place in sorted(used.places)] + [f"k{place}" for place, _ in sorted(used.keys)]
        made = f"CREATE TABLE {self.name} ({', '.join(names) or 'none'})"
        return made, f"INSERT INTO {self.name} VALUES ({', '.join('?' * (len(names) or 1))})"


def key_makers(used: LoadedColumns) -> list[tuple[int, Callable[[str], bytes]]]:
    """The places in a row of texts with keys behind it, and what makes these."""
    order = sorted(used.places)
    return [(order.index(place), cached(key_of(collation))) for place, collation in sorted(used.keys)]


class LoadedTable(SqlTable):
    def __init__(self, alias: str, table: TableVersion) -> None:
        super().__init__("t", alias)
        self.table = table
        self.columns = [column for column in table.columns if not column.is_hidden]

    def slot(self, place: int, definition: ColumnDefinition) -> SqlValue:
        return self.slot_at(place, _column_type(self.columns[place], definition))

    def column(self, slot: SqlValue) -> TableColumn:
        return self.columns[self.place(slot)]

    def of_places(self, used: LoadedColumns) -> list[TableColumn]:
        return [self.columns[place] for place in sorted(used.places)]

    def rows(self, found: FoundRows, used: LoadedColumns, time_zone_s: int) -> Iterator[tuple[Any, ...]]:
        """Raises ValueError: a value cannot be read."""
        shown = TextSettings("utf8mb4", time_zone_s)
        own = {column.id: column for column in own_columns(self.table)}
        columns, keys = self.of_places(used), key_makers(used)
        plans: dict[int, list[tuple[int | None, Any]]] = {}
        data, layouts = found.data, found.contents.layouts
        for count, place in enumerate(found.places):
            if not count % ROWS_BETWEEN_LOOKS:
                check_wanted()
            size, layout_no = HEAD.unpack_from(data, place)
            image = bytes(data[place + HEAD.size : place + HEAD.size + size])
            layout = layouts[layout_no]
            plan = plans.get(layout_no)
            if plan is None:
                plan = plans[layout_no] = [step_of(column, own[column.id], layout, shown) for column in columns]
            spans, _ = layout.spans(image)
            row: list[Any] = []
            for at, decode in plan:
                if at is None:
                    row.append(decode)
                    continue
                span = spans[at]
                row.append(None if span is None else decode(image[span[0] : span[1]]))
            for index, key in keys:
                row.append(None if row[index] is None else key(row[index]))
            yield tuple(row) or (None,)  # a row without columns counts, too


def step_of(
    column: TableColumn, own: StoredColumn, layout: StoredLayout, shown: TextSettings
) -> tuple[int | None, Any]:
    """A value's place in an image and its decoder; or None and the value of all such images."""
    place = layout.places.get(column.id)
    if place is None:
        value = first_value(column, own)
        return None, None if value is None else _decoder(column, own, shown)(value)
    return place, _decoder(column, layout.columns[place], shown)


def _decoder(column: TableColumn, stored: StoredColumn, shown: TextSettings) -> Decode:
    kind, own = BY_NAME[column.type.word], kind_of(stored.column)
    family = Family[kind.family]
    match family:
        case Family.SET:
            return lambda data: int.from_bytes(data, "little") - values.WIDE
        case Family.ENUM:
            return lambda data: int.from_bytes(data, "little")
        case Family.YEAR:
            return own.convert(stored.column)
        case Family.DOUBLE | Family.FLOAT if isinstance(own, Floating):
            return own.convert(stored.column)
    text = own.shown(stored.column, column.type, shown)
    match family:
        case Family.BIT:
            return lambda data: int.from_bytes(text(data), "big") - values.WIDE
        case Family.DECIMAL:
            size = values.DECIMAL_BYTES
            return lambda data: (int(text(data).replace(b".", b"")) + values.BIAS).to_bytes(size, "big")
        case Family.DOUBLE | Family.FLOAT:
            return lambda data: float(text(data))
        case Family.TIME:
            return lambda data: _duration(text(data))
        case Family.INT:
            bias = values.WIDE if column.type.is_unsigned and kind.key_size == WIDE_SIZE else 0
            if own.is_integer:
                is_signed = not stored.column.is_unsigned
                return lambda data: int.from_bytes(data, "little", signed=is_signed) - bias
            return lambda data: int(text(data)) - bias
    is_text = column.type.charset is not None or family in (Family.DATE, Family.DATETIME) or kind.is_shown_as_text
    return (lambda data: text(data).decode("utf-8", "replace")) if is_text else text


def _duration(text: bytes) -> int:
    found = parse_duration(text.decode())
    if found is None:
        raise not_supported(f"the TIME {text.decode()!r}")
    return found


def new_database(pages_max: int) -> sqlite3.Connection:
    database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    database.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    database.execute("PRAGMA synchronous = OFF")
    database.execute("PRAGMA journal_mode = OFF")
    database.execute(f"PRAGMA max_page_count = {pages_max}")
    for category, most in _LIMITS.items():
        database.setlimit(category, most)
    return database


class KeptDatabase:
    """The table that was loaded last, for the next query with the same needs. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: tuple[object, sqlite3.Connection] | None = None

    def __del__(self) -> None:
        if self._kept is not None:
            self._kept[1].close()

    def take(self, key: object) -> sqlite3.Connection | None:
        with self._lock:
            if self._kept is None or self._kept[0] != key:
                return None
            (_, database), self._kept = self._kept, None
            return database

    def give(self, key: object, database: sqlite3.Connection) -> None:
        unwanted: sqlite3.Connection | None = database
        sizes = [database.execute(f"PRAGMA {part}").fetchone()[0] for part in ("page_count", "page_size")]
        if math.prod(sizes) <= KEPT_BYTES_MAX:
            with self._lock:
                unwanted = None if self._kept is None else self._kept[1]
                self._kept = key, database
        if unwanted is not None:
            unwanted.close()


def expect_free_space() -> None:
    """Raises RefusedError: the file system where SQLite sorts is almost full."""
    directory = _temporary_directory()
    system = os.statvfs(directory)
    free, all_bytes = system.f_bavail * system.f_frsize, system.f_blocks * system.f_frsize
    if free < min(FREE_SHARE * all_bytes, FREE_BYTES):
        raise out_of_memory(f"{free >> 20} MiB are left in {directory} for what queries sort")


@functools.cache
def _temporary_directory() -> str:
    """Source: SQLite's documentation, "Temporary Files Used By SQLite"."""
    named = (os.environ.get("SQLITE_TMPDIR"), os.environ.get("TMPDIR"), "/var/tmp", "/usr/tmp", "/tmp")
    return next((name for name in named if name and os.path.isdir(name) and os.access(name, os.W_OK | os.X_OK)), ".")
