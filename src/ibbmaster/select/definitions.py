"""Columns of result sets as a primary defines those of its tables: type, length, decimals, flags, collation."""

from __future__ import annotations

import re

from ibbmaster.codec import lenenc
from ibbmaster.event.rows.charset import BINARY_COLLATION, character_size
from ibbmaster.schema.collations import sent_collation_number
from ibbmaster.schema.describing import index_parts
from ibbmaster.schema.indexing import row_key
from ibbmaster.schema.model import IndexKind, SqlType, TableColumn, TableVersion
from ibbmaster.wire.response import ColumnDefinition, ColumnFlag

LENGTH_MAX = (1 << 32) - 1
TYPE_NAME, FORMAT_NAME = 0, 1  # what a piece of the extended metadata is
_JSON_CHECK = re.compile(r"json_valid\(`(?:[^`]|``)*`\)", re.IGNORECASE)
BINARY_CHARSET = "binary"
ANY_DECIMALS = 31  # of floating numbers without a fixed scale


#: type on the wire, and how wide its values are where the type has no length of its own
_INTEGERS = {
    "tinyint": (1, 4),
    "smallint": (2, 6),
    "mediumint": (9, 9),
    "int": (3, 11),
    "bigint": (8, 20),
}
_BLOBS = {"tinyblob": 255, "blob": 65535, "mediumblob": 16777215, "longblob": LENGTH_MAX}
_TEXTS = {"tinytext": 255, "text": 65535, "mediumtext": 16777215, "longtext": LENGTH_MAX}
_NET = {"uuid": 36, "inet6": 39, "inet4": 15}
_GEOMETRY = frozenset(
    (
        *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"),
        "geometrycollection",
    )
)
NAMED_TYPES = frozenset((*_NET, *_GEOMETRY)) - {"geometry"}  # whose numbers on the wire other types have, too
_CLOCKS = {"time": (11, 10), "datetime": (12, 19), "timestamp": (7, 19)}


def column_definition(
    table: TableVersion,
    column: TableColumn,
    name: str,
    *,
    alias: str | None = None,
    text_charset: str | None,
    text_collation_id: int,
) -> ColumnDefinition:
    """The definition of a column that a query calls `name`; texts are sent in `text_charset`, or as stored."""
    kind, length, decimals, flags, is_text = _form(column)
    flags |= _key_flags(table, column)
    flags |= _default_flags(column)
    collation = BINARY_COLLATION
    if is_text:
        target = (column.type.charset or "latin1") if text_charset is None else text_charset
        length = min(length * character_size(target), LENGTH_MAX)
        if text_charset is None and column.type.word in _TEXTS:
            length = _TEXTS[column.type.word]
        elif text_charset is None and column.type.is_compressed:
            length = (column.type.length or 0) * character_size(target) + 1
        collation = text_collation_id if text_charset is not None else _own_collation(column.type)
    return ColumnDefinition(
        name=name,
        column_type=kind,
        length=length,
        collation_id=collation,
        flags=flags,
        decimals=decimals,
        original_name=column.name,
        schema=table.database,
        table=alias or table.name,
        original_table=table.name,
        extended_metadata=_extended_metadata(column),
    )


def _extended_metadata(column: TableColumn) -> bytes:
    """The name of a type that its number does not tell, or of the format of a text that is JSON.

    Source: MariaDB 11.8, sql_type.cc and sql_type_json.cc, make_send_field() and set_format_name().
    """
    if column.type.word in NAMED_TYPES:
        kind, name = TYPE_NAME, column.type.word
    elif column.check is not None and _JSON_CHECK.fullmatch(column.check):
        kind, name = FORMAT_NAME, "json"
    else:
        return b""
    return bytes([kind]) + lenenc.encode_bytes(name.encode())


def _form(column: TableColumn) -> tuple[int, int, int, ColumnFlag, bool]:
    """Type, length, decimals, flags of the type, and whether the length is in characters that are converted."""
    kind = column.type
    word = kind.word
    flags = ColumnFlag.UNSIGNED if kind.is_unsigned else ColumnFlag(0)
    flags |= ColumnFlag.ZEROFILL if kind.is_zerofill else ColumnFlag(0)
    if kind.collation is not None and kind.collation.endswith("_bin"):
        flags |= ColumnFlag.BINARY
    if word in _INTEGERS:
        code, width = _INTEGERS[word]
        return code, kind.length or width - (kind.is_unsigned and word != "bigint"), 0, flags, False
    if word in ("float", "double"):
        code, width = (4, 12) if word == "float" else (5, 22)
        return (
            (code, width, ANY_DECIMALS, flags, False) if kind.scale is None
            else (code, kind.length or width, kind.scale, flags, False)
        )  # fmt: skip
    if word == "decimal":
        scale = kind.scale or 0
        return 246, (kind.length or 10) + bool(scale) + (not kind.is_unsigned), scale, flags, False
    if word == "bit":
        return 16, kind.length or 1, 0, flags | ColumnFlag.UNSIGNED, False
    if word == "year":
        return 13, kind.length or 4, 0, flags | ColumnFlag.UNSIGNED | ColumnFlag.ZEROFILL, False
    if word == "date":
        return 10, 10, 0, flags | ColumnFlag.BINARY, False
    if word in _CLOCKS:
        code, width = _CLOCKS[word]
        digits = kind.scale or kind.length or 0
        flags |= ColumnFlag.BINARY | (ColumnFlag.UNSIGNED if word == "timestamp" else ColumnFlag(0))
        return code, width + (digits + 1 if digits else 0), digits, flags, False
    if word in _NET:
        return 254, _NET[word], 0, flags | ColumnFlag.BINARY | ColumnFlag.UNSIGNED, True
    if word == "vector":
        return 253, 4 * (kind.length or 0), 0, flags | ColumnFlag.BINARY, False
    if word in _GEOMETRY:
        return 255, LENGTH_MAX, 0, flags | ColumnFlag.BINARY | ColumnFlag.BLOB, False
    if word in _BLOBS:
        return 252, _BLOBS[word], 0, flags | ColumnFlag.BINARY | ColumnFlag.BLOB, False
    if word in ("binary", "varbinary"):
        code = 254 if word == "binary" else 253
        return (
            code,
            (1 if kind.length is None else kind.length) + kind.is_compressed,
            0,
            flags | ColumnFlag.BINARY,
            False,
        )
    return _text_form(column, flags)


def _text_form(column: TableColumn, flags: ColumnFlag) -> tuple[int, int, int, ColumnFlag, bool]:
    kind = column.type
    size_max = character_size(kind.charset or "utf8mb4")
    match kind.word:
        case "enum" | "set":
            sizes = [len(label) for label in kind.labels]
            is_text = kind.charset != BINARY_CHARSET
            flags |= ColumnFlag(0) if is_text else ColumnFlag.BINARY
            if kind.word == "enum":
                return 254, max(sizes, default=0), 0, flags | ColumnFlag.ENUM, is_text
            return 254, sum(sizes) + len(sizes) - 1, 0, flags | ColumnFlag.SET, is_text
        case word if word in _TEXTS:
            size_min = 2 if kind.charset in ("ucs2", "utf16", "utf16le") else 4 if kind.charset == "utf32" else 1
            return 252, _TEXTS[word] // size_min, 0, flags | ColumnFlag.BLOB, True
        case "char":
            return 254, 1 if kind.length is None else kind.length, 0, flags, True
    characters = (kind.length or 0) * size_max + kind.is_compressed  # the byte that says how it is compressed
    return 253, characters // size_max, 0, flags, True


def _default_flags(column: TableColumn) -> ColumnFlag:
    flags = ColumnFlag(0)
    if not column.is_nullable:
        flags |= ColumnFlag.NOT_NULL
    if column.is_auto_increment:
        flags |= ColumnFlag.AUTO_INCREMENT
    elif column.default is None and not column.is_nullable and column.expression is None:
        flags |= ColumnFlag.NO_DEFAULT
    if column.on_update is not None:
        flags |= ColumnFlag.ON_UPDATE_NOW
    if column.type.word == "timestamp" and (column.on_update is not None or _is_now(column.default)):
        flags |= ColumnFlag.TIMESTAMP
    return flags


def _is_now(default: str | None) -> bool:
    return default is not None and default.lower().startswith(("current_timestamp", "now", "localtime"))


def _key_flags(table: TableVersion, column: TableColumn) -> ColumnFlag:
    flags = ColumnFlag(0)
    primary = row_key(table)
    for index in table.indexes:
        ids = [part.id for part, _, _ in index_parts(table, index)]
        if column.id not in ids:
            continue
        flags |= ColumnFlag.PART_OF_KEY
        if primary is not None and index.name == primary.name:
            flags |= ColumnFlag.PRIMARY_KEY
        elif ids[0] == column.id:
            is_single = len(ids) == 1 and index.kind is IndexKind.UNIQUE
            flags |= ColumnFlag.UNIQUE_KEY if is_single else ColumnFlag.MULTIPLE_KEY
    return flags


def _own_collation(kind: SqlType) -> int:
    """The number of a column's collation; latin1's where it has letters and no collation."""
    found = sent_collation_number(kind.collation or "latin1_swedish_ci")
    return BINARY_COLLATION if found is None else found
