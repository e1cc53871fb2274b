"""Tables of the log in SQLite: only the columns that a query names, decoded once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ibbmaster.event.column_types.floating import Floating
from ibbmaster.event.column_types.kind import TextSettings
from ibbmaster.event.column_types.registry import BY_NAME, kind_of
from ibbmaster.expr import kinds, values
from ibbmaster.expr.comparing import cached
from ibbmaster.expr.kinds import Kind, Type
from ibbmaster.expr.scalars import Slot
from ibbmaster.expr.weights import key_of
from ibbmaster.fold.row_conversion import first_value
from ibbmaster.fold.row_file import HEAD
from ibbmaster.fold.stored import StoredColumn, StoredLayout, own_columns
from ibbmaster.schema.model import TableColumn, TableVersion
from ibbmaster.select.table_reader import FoundRows
from ibbmaster.sqltext.moment import parse_duration
from ibbmaster.wire.refusal import not_supported
from ibbmaster.wire.response import ColumnDefinition, FieldType
from ibbmaster.work import check_wanted

ROWS_BETWEEN_LOOKS = 1 << 10
WIDE_SIZE = 8  # bytes of an integer that SQLite may not hold
Decode = Callable[[bytes], Any]


def column_type(column: TableColumn, definition: ColumnDefinition) -> Type:
    """The type of a column's values. Raises RefusedError: there is none for it here."""
    sql = column.type
    kind = BY_NAME[sql.word]
    family, digits = Kind[kind.family], max(kind.digits(sql), 0)
    base: dict[str, Any] = {"is_nullable": column.is_nullable, "column": definition, "sql": sql}
    letters = {**base, "collation": sql.collation, "charset": sql.charset, "labels": sql.labels}
    match family:
        case Kind.YEAR | Kind.BIT:
            return Type(kind=family, length=sql.length or digits, digits=digits, is_unsigned=True, **base)
        case Kind.INT | Kind.DECIMAL | Kind.DOUBLE | Kind.FLOAT:
            return Type(
                kind=family, length=definition.length, digits=digits, decimals=definition.decimals,
                is_unsigned=sql.is_unsigned,
                field=FieldType(definition.column_type) if family is Kind.INT else None, **base,
            )  # fmt: skip
        case Kind.DATE:
            return kinds.changed(kinds.date(), **base)
        case Kind.DATETIME:
            found = kinds.moment(definition.decimals)
            return kinds.changed(found, field=FieldType(definition.column_type), **base)
        case Kind.TIME:
            return kinds.changed(kinds.duration(definition.decimals), **base)
        case Kind.ENUM | Kind.SET:
            return Type(kind=family, length=digits, digits=digits, **letters)
        case Kind.TEXT:
            is_fixed = kind.is_string and not kind.is_varying
            field = FieldType.STRING if is_fixed else None
            return Type(kind=family, length=digits, field=field, is_blob=kind.is_large, **letters)
    return Type(kind=family, length=definition.length, is_blob=kind.is_large, **base)


@dataclass(frozen=True, slots=True)
class LoadedColumns:
    """The columns of a table that are loaded: their places, and the collations of texts with keys beside them."""

    places: frozenset[int]
    keys: frozenset[tuple[int, str]]


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
        """The rows for `insert`. Raises ValueError: a value cannot be read."""
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


def _decoder(column: TableColumn, stored: StoredColumn, shown: TextSettings) -> Decode:
    """What makes a value for SQLite of its stored bytes."""
    kind, own = BY_NAME[column.type.word], kind_of(stored.column)
    family = Kind[kind.family]
    match family:
        case Kind.SET:
            return lambda data: int.from_bytes(data, "little") - values.WIDE
        case Kind.ENUM:
            return lambda data: int.from_bytes(data, "little")
        case Kind.YEAR:
            return own.convert(stored.column)
        case Kind.DOUBLE | Kind.FLOAT if isinstance(own, Floating):
            return own.convert(stored.column)
    text = own.shown(stored.column, column.type, shown)
    match family:
        case Kind.BIT:
            return lambda data: int.from_bytes(text(data), "big") - values.WIDE
        case Kind.DECIMAL:
            size = values.DECIMAL_BYTES
            return lambda data: (int(text(data).replace(b".", b"")) + values._BIAS).to_bytes(size, "big")
        case Kind.DOUBLE | Kind.FLOAT:
            return lambda data: float(text(data))
        case Kind.TIME:
            return lambda data: _duration(text(data))
        case Kind.INT:
            bias = values.WIDE if column.type.is_unsigned and kind.key_size == WIDE_SIZE else 0
            if own.is_integer:
                is_signed = not stored.column.is_unsigned
                return lambda data: int.from_bytes(data, "little", signed=is_signed) - bias
            return lambda data: int(text(data)) - bias
    is_text = column.type.charset is not None or family in (Kind.DATE, Kind.DATETIME) or kind.is_shown_as_text
    return (lambda data: text(data).decode("utf-8", "replace")) if is_text else text


def _duration(text: bytes) -> int:
    found = parse_duration(text.decode())
    if found is None:
        raise not_supported(f"the TIME {text.decode()!r}")
    return found
