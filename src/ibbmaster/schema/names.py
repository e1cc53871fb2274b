"""What a version of a table says of a TABLE_MAP that does not say it itself: names, types, labels, the key.

The event goes first: what it says is not changed, and what it contradicts is an error. With
`binlog_row_metadata=NO_LOG`, the default, it has the number of columns, their type codes and
the sizes after these, and which may be NULL.
"""

import dataclasses
import functools

from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.event.column_types.kind import read_declared
from ibbmaster.event.column_types.registry import BY_TYPE, BY_WORD
from ibbmaster.event.rows.column import Column, ColumnType, TableSchema
from ibbmaster.schema.model import SqlType, TableColumn, TableVersion, UnknownTable
from ibbmaster.schema.table_map import CODES, disagreement, expected_size

_COMPRESSED = {ColumnType.VARCHAR: ColumnType.VARCHAR_COMPRESSED, ColumnType.BLOB: ColumnType.BLOB_COMPRESSED}
_SCALED = ("decimal", "time", "datetime", "timestamp")
_VECTOR_NUMBER_BYTES = 4
COLUMNS_REMEMBERED = 1 << 13  # the same ones are asked for by every SELECT and every version of their table
ENUM_LABELS_SHORT = 256  # from here on the number of a label takes two bytes


def named(schema: TableSchema, table: TableVersion) -> TableSchema:
    """A TABLE_MAP's schema with what a version of its table says beyond it.

    Raises:
        EventError: they contradict each other.
    """
    problem = disagreement(table, schema)
    if problem is not None:
        raise _contradiction(table, problem)
    if schema.has_names and table.undefined_because:
        return schema
    try:
        pairs = zip(schema.columns, table.columns, strict=True)
        columns = tuple(_described(column, known) for column, known in pairs)
    except ConfigurationError as error:
        raise _contradiction(table, str(error)) from None
    return dataclasses.replace(
        schema, columns=columns, primary_key=schema.primary_key or key_numbers(table), has_names=True
    )


def unknown_names(table: UnknownTable) -> EventError:
    """Why rows of a table cannot be read by name."""
    since = "" if table.gtid is None else f" since GTID {table.gtid}"
    return EventError(f"{table.full_name}: its columns are not known{since}: {table.reason}")


@functools.lru_cache(COLUMNS_REMEMBERED)
def column_of(column: TableColumn) -> Column:
    """A column as a TABLE_MAP with all its metadata would describe it.

    Raises:
        ValueError: nothing is known of columns of its type.
    """
    code, size, scale = _layout(column.type)
    kind = BY_TYPE[code].values[code]
    plain = Column(name=column.name, type=code, metadata=0, kind=kind, size=size, scale=scale)
    return _described(plain, column)


def key_numbers(table: TableVersion) -> tuple[int, ...]:
    """The columns of the primary key, counted from 0."""
    numbers = {column.id: number for number, column in enumerate(table.columns)}
    return () if table.primary_key is None else tuple(numbers[part.column_id] for part in table.primary_key.parts)


def _contradiction(table: TableVersion, problem: str) -> EventError:
    since = "since the log begins" if table.gtid is None else f"since GTID {table.gtid}"
    return EventError(f"{table.full_name}: {problem} {since}; declare the table with option schema")


def _described(column: Column, known: TableColumn) -> Column:
    """A column with what only a definition says."""
    labels, kind = known.type.labels, BY_WORD.get(known.type.word)
    column = dataclasses.replace(column, name=known.name, is_nullable=known.is_nullable, is_internal=known.is_internal)
    if labels:
        is_told = column.labels is not None and column.charset is not None
        return column if is_told else dataclasses.replace(column, labels=labels)
    declared = read_declared(f"column {known.name}", _written(known.type))
    return column if kind is None else dataclasses.replace(column, **kind.declare(column, declared))


def _written(told: SqlType) -> str:
    """A type for people, and for what reads declarations."""
    if told.labels:
        inside = "(" + ",".join("'" + label.replace("'", "''") + "'" for label in told.labels) + ")"
    elif told.length is not None:
        inside = f"({told.length})" if told.scale is None else f"({told.length},{told.scale})"
    else:
        inside = "" if told.scale is None else f"({told.scale})"
    sign = " unsigned" * (told.is_unsigned or told.is_zerofill)
    return f"{told.word}{inside}{sign}" + (f" character set {told.charset}" if told.charset else "")


def _layout(told: SqlType) -> tuple[ColumnType, int, int]:
    """Type code, and `Column.size` and `Column.scale`.

    Raises:
        ValueError: nothing is known of this type.
    """
    if told.word not in CODES:
        raise ValueError(f"columns of type {told.word} are not known")
    code = ColumnType(CODES[told.word][0])
    if told.is_compressed:
        code = _COMPRESSED.get(code, code)
    size = expected_size(told)
    if size is None:
        size = _other_size(told, code)
    return code, size, told.scale or 0 if told.word in _SCALED else 0


def _other_size(told: SqlType, code: ColumnType) -> int:
    """Sizes that are not compared."""
    match told.word:
        case "enum":
            return 1 if len(told.labels) < ENUM_LABELS_SHORT else 2
        case "set":
            size = (len(told.labels) + 7) // 8
            return size if size <= 4 else 8
        case "vector":
            return _VECTOR_NUMBER_BYTES * (told.length or 0)
    return 4 if code in (ColumnType.GEOMETRY, ColumnType.BLOB) else 0
