"""TABLE_MAP events in full, with the metadata of `binlog_row_metadata`. Layout: protocol/event/rows.md."""

import dataclasses
import enum
from collections.abc import Collection, Iterator
from typing import Any

from ibbmaster.errors import EventError
from ibbmaster.storage.codec.buffer import Buffer
from ..column_types.kind import Layout
from ..column_types.registry import BY_TYPE, KINDS
from ..fields import Fields
from ..table_map import decode_table_map
from .charset import BINARY_COLLATION, CODECS, charset_of, decode_label
from .column import LABELLED, Column, ColumnType, TableSchema, ValueKind

COLUMN_COUNT_MAX = 4096  # MariaDB's own limit


class MetadataField(enum.IntEnum):
    """Optional, after the NULL bits of a TABLE_MAP event, each with its length."""

    SIGNEDNESS = 1
    DEFAULT_CHARSET = 2
    COLUMN_CHARSET = 3
    COLUMN_NAME = 4
    SET_STR_VALUE = 5
    ENUM_STR_VALUE = 6
    GEOMETRY_TYPE = 7
    SIMPLE_PRIMARY_KEY = 8
    PRIMARY_KEY_WITH_PREFIX = 9
    ENUM_AND_SET_DEFAULT_CHARSET = 10
    ENUM_AND_SET_COLUMN_CHARSET = 11


METADATA_SIZES = {column_type: size for kind in KINDS for column_type, size in kind.metadata_sizes.items()}
NUMERIC = frozenset(code for kind in KINDS if kind.has_sign for code in kind.codes)  # those with a bit in SIGNEDNESS
LABEL_FIELDS = dict(zip((MetadataField.SET_STR_VALUE, MetadataField.ENUM_STR_VALUE), LABELLED, strict=True))
CHARACTER = frozenset(  # those with a collation in DEFAULT_CHARSET or COLUMN_CHARSET
    column_type for kind in KINDS if kind.has_collation for column_type in kind.values
)


def decode_table_schema(event: Buffer) -> TableSchema:
    """A whole TABLE_MAP event without checksum. Raises EventError: another type, a part runs over the end, or parts
    contradict each other. Source: MariaDB 12.3, log_event.cc, Table_map_log_event and Optional_metadata_fields."""
    head = decode_table_map(event)
    types = head.column_types
    if len(types) > COLUMN_COUNT_MAX:
        raise EventError(f"TABLE_MAP of a table with {len(types)} columns, at most {COLUMN_COUNT_MAX}")
    fields = Fields(event, "TABLE_MAP", head.types_end)
    metadata = Fields(fields.take(fields.take_lenenc()), "TABLE_MAP")
    null_bits = fields.take((len(types) + 7) // 8)
    columns = [
        _column(number, type_code, metadata, is_nullable=bool(null_bits[number // 8] >> number % 8 & 1))
        for number, type_code in enumerate(types)
    ]
    if metadata.left:
        raise EventError(f"TABLE_MAP has {metadata.left} bytes of metadata more than its columns take")
    schema = TableSchema(
        table_id=head.table_id, database=_name(head.database), table=_name(head.table), columns=tuple(columns)
    )
    while fields.left:
        field = fields.take(1)[0]
        schema = _with_field(schema, field, Fields(fields.take(fields.take_lenenc()), "TABLE_MAP"))
    return schema


def _column(number: int, type_code: int, fields: Fields, *, is_nullable: bool) -> Column:
    kind = BY_TYPE.get(type_code)
    layout, metadata = Layout(type_code), 0
    if kind is not None:
        column_type = ColumnType(type_code)
        raw = fields.take(kind.metadata_sizes.get(column_type, 0))
        metadata = int.from_bytes(raw, "big" if column_type in kind.big_endian else "little")
        layout = kind.layout(f"TABLE_MAP column {number}", column_type, metadata, raw)
    real = BY_TYPE.get(layout.type)
    return Column(
        name=f"@{number + 1}",
        type=layout.type,
        metadata=metadata,
        kind=ValueKind.BINARY if real is None else real.values[ColumnType(layout.type)],
        size=layout.size,
        scale=layout.scale,
        is_nullable=is_nullable,
    )


def _with_field(schema: TableSchema, field: int, value: Fields) -> TableSchema:
    """Unknown fields are skipped, as replicas do."""
    columns = schema.columns

    def _of(types: Collection[int]) -> list[int]:
        return [number for number, column in enumerate(columns) if column.type in types]

    match field:
        case MetadataField.SIGNEDNESS:
            return _replaced(schema, {n: {"is_unsigned": bit} for n, bit in _signedness(columns, value)})
        case MetadataField.DEFAULT_CHARSET | MetadataField.COLUMN_CHARSET:
            read = _default_collations if field == MetadataField.DEFAULT_CHARSET else _collations
            return _replaced(schema, {n: _charset_change(columns[n], c) for n, c in read(_of(CHARACTER), value)})
        case MetadataField.COLUMN_NAME:
            names = [_name(value.take(value.take_lenenc())) for _ in columns]
            changed = _replaced(schema, {n: {"name": name} for n, name in enumerate(names)})
            value.expect_end("column names")
            return dataclasses.replace(changed, has_names=True).with_internal()
        case MetadataField.SET_STR_VALUE | MetadataField.ENUM_STR_VALUE:
            return _replaced(schema, dict(_labels(columns, LABEL_FIELDS[MetadataField(field)], value)))
        case MetadataField.GEOMETRY_TYPE:
            return _replaced(schema, {n: {"geometry_type": value.take_lenenc()} for n in _of((ColumnType.GEOMETRY,))})
        case MetadataField.SIMPLE_PRIMARY_KEY | MetadataField.PRIMARY_KEY_WITH_PREFIX:
            return dataclasses.replace(schema, primary_key=tuple(_key(field, len(columns), value)))
        case MetadataField.ENUM_AND_SET_DEFAULT_CHARSET | MetadataField.ENUM_AND_SET_COLUMN_CHARSET:
            is_default = field == MetadataField.ENUM_AND_SET_DEFAULT_CHARSET
            read = _default_collations if is_default else _collations
            return _replaced(schema, {n: _label_charset(columns[n], c) for n, c in read(_of(LABELLED), value)})
    return schema


def _replaced(schema: TableSchema, changes: dict[int, dict[str, Any]]) -> TableSchema:
    columns = tuple(
        dataclasses.replace(column, **changes[number]) if number in changes else column
        for number, column in enumerate(schema.columns)
    )
    return dataclasses.replace(schema, columns=columns)


def _signedness(columns: tuple[Column, ...], value: Fields) -> Iterator[tuple[int, bool]]:
    """Whether columns are unsigned, by number: a bit per numeric column, the highest bit first."""
    numbers = [n for n, column in enumerate(columns) if column.type in NUMERIC]
    bits = value.take((len(numbers) + 7) // 8)
    for index, number in enumerate(numbers):
        yield number, bool(bits[index // 8] << index % 8 & 0x80)


def _default_collations(numbers: list[int], value: Fields) -> Iterator[tuple[int, int]]:
    default = value.take_lenenc()
    others = {}
    while value.left:
        index = value.take_lenenc()
        others[index] = value.take_lenenc()
    if any(index >= len(numbers) for index in others):
        raise EventError(f"TABLE_MAP gives a collation to text column {max(others)}, it has {len(numbers)}")
    for index, number in enumerate(numbers):
        yield number, others.get(index, default)


def _collations(numbers: list[int], value: Fields) -> Iterator[tuple[int, int]]:
    for number in numbers:
        yield number, value.take_lenenc()
    value.expect_end("collations")


def _charset_change(column: Column, collation: int) -> dict[str, Any]:
    if collation == BINARY_COLLATION:
        return {"charset": "binary"}
    charset = charset_of(collation) or f"collation {collation}"
    return {"charset": charset, "kind": ValueKind.TEXT if column.kind == ValueKind.BINARY else column.kind}


def _labels(columns: tuple[Column, ...], wanted: int, value: Fields) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, column in enumerate(columns):
        if column.type == wanted:
            count = value.take_lenenc()
            if count > value.left:
                raise EventError(f"TABLE_MAP has {count} labels in {value.left} bytes")
            labels = tuple(value.take(value.take_lenenc()) for _ in range(count))
            yield number, {"labels": _label_texts(labels, column.charset)}
    value.expect_end("labels")


def _label_texts(labels: tuple[bytes, ...], charset: str | None) -> tuple[str, ...]:
    """Latin-1, which keeps every byte, while their character set is unknown."""
    if charset is None or CODECS.get(charset) is None:
        return tuple(label.decode("latin-1") for label in labels)
    return tuple(decode_label(label, charset) for label in labels)


def _label_charset(column: Column, collation: int) -> dict[str, Any]:
    """With the labels, if they came before it: MariaDB writes the character set first."""
    charset = charset_of(collation)
    if column.labels is None or column.charset is not None:
        return {"charset": charset}
    return {
        "charset": charset,
        "labels": _label_texts(tuple(label.encode("latin-1") for label in column.labels), charset),
    }


def _key(field: int, column_count: int, value: Fields) -> Iterator[int]:
    while value.left:
        number = value.take_lenenc()
        if field == MetadataField.PRIMARY_KEY_WITH_PREFIX:
            value.take_lenenc()  # how much of the column is in the key
        if number >= column_count:
            raise EventError(f"TABLE_MAP has column {number} in its key, but {column_count} columns")
        yield number


def _name(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
