"""Definitions of a table's columns in result sets: type, length, decimals, flags, collation."""

import re
from collections.abc import Iterable

from ibbmaster.replication.event.column_types.registry import BY_NAME
from ibbmaster.replication.event.column_types.strings import LargeStrings
from ibbmaster.replication.event.rows.charset import BINARY_COLLATION, character_size
from ibbmaster.replication.wire.response import ColumnDefinition, ColumnFlag
from ibbmaster.schema.collations import sent_collation_number
from ibbmaster.schema.describing import index_parts
from ibbmaster.schema.indexing import row_key
from ibbmaster.schema.model import IndexKind, SqlType, TableColumn, TableVersion
from ibbmaster.storage.codec import lenenc

LENGTH_MAX = (1 << 32) - 1
TYPE_NAME, FORMAT_NAME = 0, 1  # pieces of the extended metadata
_JSON_CHECK = re.compile(r"json_valid\(`(?:[^`]|``)*`\)", re.IGNORECASE)


def column_definition(
    table: TableVersion, column: TableColumn, *, alias: str | None = None, charset: str | None, collation_id: int
) -> ColumnDefinition:
    """The definition of a column of a table, or of its alias; texts are sent in `charset` (None: as stored)."""
    kind = BY_NAME[column.type.word]
    result = kind.result(column.type)
    flags = _type_flags(column.type, result.flags) | _key_flags(table, column) | _default_flags(column)
    length, collation = result.length, BINARY_COLLATION
    if result.is_text:
        size = character_size((column.type.charset or "latin1") if charset is None else charset)
        length, collation = min(length * size, LENGTH_MAX), collation_id
        if charset is None:
            found = sent_collation_number(column.type.collation or "latin1_swedish_ci")
            collation = BINARY_COLLATION if found is None else found
            if isinstance(kind, LargeStrings):
                length = kind.bytes_max
            elif column.type.is_compressed:
                length = (column.type.length or 0) * size + 1
    return ColumnDefinition(
        name=column.name,
        column_type=result.type,
        length=length,
        collation_id=collation,
        flags=flags,
        decimals=result.decimals,
        original_name=column.name,
        schema=table.database,
        table=alias or table.name,
        original_table=table.name,
        extended_metadata=_extended_metadata(column),
    )


def _extended_metadata(column: TableColumn) -> bytes:
    """The name of a type without a number of its own, or of JSON. Source: MariaDB 11.8, sql_type.cc and
    sql_type_json.cc, make_send_field() and set_format_name()."""
    if BY_NAME[column.type.word].has_name:
        kind, name = TYPE_NAME, column.type.word
    elif column.check is not None and _JSON_CHECK.fullmatch(column.check):
        kind, name = FORMAT_NAME, "json"
    else:
        return b""
    return bytes([kind]) + lenenc.encode_bytes(name.encode())


def _type_flags(kind: SqlType, names: Iterable[str]) -> ColumnFlag:
    flags = ColumnFlag.UNSIGNED if kind.is_unsigned else ColumnFlag(0)
    flags |= ColumnFlag.ZEROFILL if kind.is_zerofill else ColumnFlag(0)
    if (kind.collation or "").endswith("_bin"):
        flags |= ColumnFlag.BINARY
    for name in names:
        flags |= ColumnFlag[name]
    return flags


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
    is_now = (column.default or "").lower().startswith(("current_timestamp", "now", "localtime"))
    if BY_NAME[column.type.word].is_zoned and (column.on_update is not None or is_now):
        flags |= ColumnFlag.TIMESTAMP
    return flags


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
