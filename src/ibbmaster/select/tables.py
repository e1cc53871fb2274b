"""Rows of tables of the log as SQLite gets them: only the columns that a query names, decoded once."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from typing import Any

from ibbmaster.event.rows.column import ColumnType
from ibbmaster.expr import kinds, values
from ibbmaster.expr.comparing import cached
from ibbmaster.expr.kinds import Kind, Type
from ibbmaster.expr.scalars import Slot
from ibbmaster.expr.value_texts import TextSettings, text_of
from ibbmaster.expr.weights import key_of
from ibbmaster.fold.contents import first_value
from ibbmaster.fold.row_file import HEAD
from ibbmaster.fold.stored import StoredColumn, StoredLayout, own_columns
from ibbmaster.schema.indexing import row_key
from ibbmaster.schema.model import TableColumn, TableVersion
from ibbmaster.select.loaded import LoadedColumns
from ibbmaster.select.table_reader import FoundRows
from ibbmaster.sqltext.moment import parse_duration
from ibbmaster.wire.refusal import not_supported
from ibbmaster.wire.response import ColumnDefinition, FieldType
from ibbmaster.work import check_wanted

ROWS_BETWEEN_LOOKS = 1 << 10
INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "mediumint": 8, "int": 10, "bigint": 19}
_BINARY = frozenset(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"))
_BLOBS = frozenset(("tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob", "longblob"))
_TEXT_SIZES = {"tinytext": 255, "text": 65535, "mediumtext": 16777215, "longtext": (1 << 32) - 1}

Decode = Callable[[bytes], Any]


def column_type(column: TableColumn, definition: ColumnDefinition) -> Type:
    """The type of a column's values.

    Raises:
        RefusedError: there is none for it here.
    """
    kind = column.type
    word = kind.word
    base: dict[str, Any] = {"is_nullable": column.is_nullable, "column": definition, "sql": kind}
    length = kind.length
    if word in INTEGER_DIGITS:
        digits = (
            INTEGER_DIGITS[word] + (kind.is_unsigned and word == "bigint") + (word == "mediumint" and kind.is_unsigned)
        )
        return Type(
            kind=Kind.INT, length=definition.length, digits=digits, is_unsigned=kind.is_unsigned,
            field=FieldType(definition.column_type), **base,
        )  # fmt: skip
    match word:
        case "year":
            return Type(kind=Kind.YEAR, length=length or 4, digits=4, is_unsigned=True, **base)
        case "bit":
            return Type(kind=Kind.BIT, length=length or 1, digits=length or 1, is_unsigned=True, **base)
        case "decimal":
            return Type(
                kind=Kind.DECIMAL, length=definition.length, digits=length or 10, decimals=kind.scale or 0,
                is_unsigned=kind.is_unsigned, **base,
            )  # fmt: skip
        case "double" | "float":
            return Type(
                kind=Kind.DOUBLE if word == "double" else Kind.FLOAT, length=definition.length, digits=17,
                decimals=definition.decimals, is_unsigned=kind.is_unsigned, **base,
            )  # fmt: skip
        case "date":
            return kinds.changed(kinds.date(), **base)
        case "datetime" | "timestamp":
            found = kinds.moment(definition.decimals)
            return kinds.changed(found, field=FieldType(definition.column_type), **base)
        case "time":
            return kinds.changed(kinds.duration(definition.decimals), **base)
        case "enum" | "set":
            sizes = [len(label) for label in kind.labels]
            size = max(sizes, default=0) if word == "enum" else sum(sizes) + max(len(sizes) - 1, 0)
            return Type(
                kind=Kind.ENUM if word == "enum" else Kind.SET, length=size, digits=size, labels=kind.labels,
                collation=kind.collation, charset=kind.charset, **base,
            )  # fmt: skip
    if word in _BINARY:
        return Type(kind=Kind.BYTES, length=definition.length, is_blob=word in _BLOBS, **base)
    if word in ("char", "varchar") or word in _TEXT_SIZES:
        size = length or (0 if word != "char" or length == 0 else 1)
        if word in _TEXT_SIZES:
            size = min(_TEXT_SIZES[word] * 4, (1 << 32) - 1)
        return Type(
            kind=Kind.TEXT, length=size, collation=kind.collation, charset=kind.charset,
            is_blob=word in _BLOBS, field=FieldType.STRING if word == "char" else None, **base,
        )  # fmt: skip
    return Type(kind=Kind.OPAQUE, length=definition.length, **base)


class LoadedTable:
    """One table of one query. Columns are told before the rows are loaded, as slots name them."""

    def __init__(self, name: str, table: TableVersion) -> None:
        self.table = table
        self.name = name
        self._columns = [column for column in table.columns if not column.is_hidden]
        self._aliases: set[str] = set()
        self._keys: dict[int, str] = {}  # of texts that are compared: their collations

    def slots(self, alias: str, definitions: dict[int, ColumnDefinition]) -> Iterator[tuple[TableColumn, Slot]]:
        """Each column as SQL knows it."""
        self._aliases.add(alias)
        for place, column in enumerate(self._columns):
            kind = column_type(column, definitions[column.id])
            yield column, Slot(f"{alias}.c{place}", kind, table=self.name)

    def column(self, slot: Slot) -> TableColumn:
        """The column that a slot is."""
        return self._columns[int(slot.sql.partition(".")[2][1:])]

    def key_column(self, slot: Slot) -> str:
        """The column beside a text that compares as it does."""
        alias, _, name = slot.sql.partition(".")
        place = int(name[1:])
        assert slot.type.collation is not None
        key_of(slot.type.collation)
        self._keys[place] = slot.type.collation
        return f"{alias}.k{place}"

    @property
    def row_key(self) -> list[int]:
        """The ids of the columns of the primary key."""
        index = row_key(self.table)
        return [] if index is None else [part.column_id for part in index.parts]

    def used(self, sql: str) -> LoadedColumns:
        """What a statement names."""
        named = re.findall(rf"\b(?:{'|'.join(self._aliases)})\.c(\d+)\b", sql)
        return LoadedColumns(frozenset(map(int, named)) | self._keys.keys(), frozenset(self._keys.items()))

    def columns(self, used: LoadedColumns) -> list[TableColumn]:
        """The columns of these places, in their order."""
        return [self._columns[place] for place in sorted(used.places)]

    def create(self, used: LoadedColumns) -> str:
        """The statement that makes the table."""
        names = [f"c{place}" for place in sorted(used.places)] + [f"k{place}" for place, _ in sorted(used.keys)]
        return f"CREATE TABLE {self.name} ({', '.join(names) or 'none'})"

    def insert(self, used: LoadedColumns) -> str:
        count = len(used.places) + len(used.keys) or 1
        return f"INSERT INTO {self.name} VALUES ({', '.join('?' * count)})"

    def rows(self, found: FoundRows, used: LoadedColumns, time_zone_s: int) -> Iterator[tuple[Any, ...]]:
        """The rows for `insert`.

        Raises:
            ValueError: a value cannot be read.
        """
        shown = TextSettings("utf8mb4", time_zone_s)
        own = {column.id: column for column in own_columns(self.table)}
        columns, order = self.columns(used), sorted(used.places)
        keys = [(order.index(place), cached(key_of(collation))) for place, collation in sorted(used.keys)]
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
                text = row[index]
                row.append(None if text is None else key(text))
            yield tuple(row) or (None,)  # of no column: that it is there


def step_of(
    column: TableColumn, own: StoredColumn, layout: StoredLayout, shown: TextSettings
) -> tuple[int | None, Any]:
    """Where a value is in an image and what reads it; or the value that all such images have."""
    place = layout.places.get(column.id)
    if place is None:
        value = first_value(column, own)
        return None, None if value is None else _decoder(column, own, shown)(value)
    return place, _decoder(column, layout.columns[place], shown)


_REALS = {ColumnType.FLOAT: struct.Struct("<f"), ColumnType.DOUBLE: struct.Struct("<d")}


def _decoder(column: TableColumn, stored: StoredColumn, shown: TextSettings) -> Decode:
    """What makes a value for SQLite of its stored bytes."""
    word = column.type.word
    kind = stored.column.type
    if word in ("enum", "set"):
        if word == "set":
            return lambda data: int.from_bytes(data, "little") - values.WIDE
        return lambda data: int.from_bytes(data, "little")
    if word in ("double", "float") and kind in _REALS:
        unpack = _REALS[ColumnType(kind)].unpack
        return lambda data: unpack(data)[0]
    if word in INTEGER_DIGITS and kind in _WHOLE:
        is_signed = not stored.column.is_unsigned
        is_wide = word == "bigint" and column.type.is_unsigned
        bias = values.WIDE if is_wide else 0
        return lambda data: int.from_bytes(data, "little", signed=is_signed) - bias
    text = text_of(stored.column, column.type, shown)
    match word:
        case "bit":
            return lambda data: int.from_bytes(text(data), "big") - values.WIDE
        case "year":
            return lambda data: 1900 + data[0] if data[0] else 0
        case "decimal":
            return lambda data: (_digits_of(text(data)) + values._BIAS).to_bytes(values.DECIMAL_BYTES, "big")
        case "double" | "float":
            return lambda data: float(text(data))
        case "time":
            return lambda data: _duration(text(data))
        case _ if word in INTEGER_DIGITS:
            bias = values.WIDE if word == "bigint" and column.type.is_unsigned else 0
            return lambda data: int(text(data)) - bias
    if word in _BINARY or (
        column.type.charset is None and word not in ("date", "datetime", "timestamp", "uuid", "inet4", "inet6")
    ):
        return text
    return lambda data: text(data).decode("utf-8", "replace")


_WORDS = frozenset(("date", "datetime", "timestamp", "uuid", "inet4", "inet6"))  # whose values are shown as text
_WHOLE = (ColumnType.TINY, ColumnType.SHORT, ColumnType.INT24, ColumnType.LONG, ColumnType.LONGLONG)


def _digits_of(text: bytes) -> int:
    return int(text.replace(b".", b""))


def _duration(text: bytes) -> int:
    found = parse_duration(text.decode())
    if found is None:
        raise not_supported(f"the TIME {text.decode()!r}")
    return found
