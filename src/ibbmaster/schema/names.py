"""What a version of a table says of a TABLE_MAP that does not say it itself: names, types, labels, the key.

The event goes first: what it tells is not changed, and what it contradicts is an error. With
`binlog_row_metadata=NO_LOG`, the default, it tells the number of columns, their type codes and
the sizes behind these, and which may be NULL.
"""

from __future__ import annotations

import dataclasses

from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.event.rows.column import Column, ColumnType, TableSchema, ValueKind
from ibbmaster.event.rows.kinds.kind import read_declared
from ibbmaster.event.rows.kinds.registry import BY_TYPE, BY_WORD
from ibbmaster.schema.model import SqlType, TableColumn, TableVersion, UnknownTable

_BLOB_SIZES = {  # bytes of the length before a value
    **dict.fromkeys(("tinytext", "tinyblob"), 1),
    **dict.fromkeys(("text", "blob"), 2),
    **dict.fromkeys(("mediumtext", "mediumblob"), 3),
    **dict.fromkeys(("longtext", "longblob"), 4),
}
_GEOMETRIES = ("point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon")
_TYPES: dict[str, ColumnType] = {
    "tinyint": ColumnType.TINY,
    "smallint": ColumnType.SHORT,
    "mediumint": ColumnType.INT24,
    "int": ColumnType.LONG,
    "bigint": ColumnType.LONGLONG,
    "float": ColumnType.FLOAT,
    "double": ColumnType.DOUBLE,
    "decimal": ColumnType.NEWDECIMAL,
    "bit": ColumnType.BIT,
    "year": ColumnType.YEAR,
    "date": ColumnType.DATE,
    "time": ColumnType.TIME2,
    "datetime": ColumnType.DATETIME2,
    "timestamp": ColumnType.TIMESTAMP2,
    "char": ColumnType.STRING,
    "binary": ColumnType.STRING,
    "varchar": ColumnType.VARCHAR,
    "varbinary": ColumnType.VARCHAR,
    **dict.fromkeys(_BLOB_SIZES, ColumnType.BLOB),
    "enum": ColumnType.ENUM,
    "set": ColumnType.SET,
    "uuid": ColumnType.STRING,
    "inet4": ColumnType.STRING,
    "inet6": ColumnType.STRING,
    "vector": ColumnType.VARCHAR,
    **dict.fromkeys(("geometry", "geometrycollection", "geomcollection", *_GEOMETRIES), ColumnType.GEOMETRY),
}
_OTHERS: dict[int, ColumnType] = {  # formats of other times, whose sizes tell nothing
    ColumnType.NEWDATE: ColumnType.DATE,
    ColumnType.TIME: ColumnType.TIME2,
    ColumnType.DATETIME: ColumnType.DATETIME2,
    ColumnType.TIMESTAMP: ColumnType.TIMESTAMP2,
    ColumnType.VAR_STRING: ColumnType.VARCHAR,
}
_COMPRESSED = {ColumnType.VARCHAR: ColumnType.VARCHAR_COMPRESSED, ColumnType.BLOB: ColumnType.BLOB_COMPRESSED}
_SIZES = {"uuid": 16, "inet4": 4, "inet6": 16}
CHARACTER_BYTES = {  # at most; others have one
    **dict.fromkeys(("big5", "sjis", "gbk", "euckr", "gb2312", "cp932", "ucs2"), 2),
    **dict.fromkeys(("ujis", "eucjpms", "utf8mb3"), 3),
    **dict.fromkeys(("utf8mb4", "utf16", "utf16le", "utf32"), 4),
}
_VECTOR_NUMBER_BYTES = 4


def named(schema: TableSchema, table: TableVersion) -> TableSchema:
    """A TABLE_MAP's schema with what a version of its table says beyond it.

    Raises:
        EventError: they contradict each other.
    """
    if len(schema.columns) != len(table.columns):
        found, known = len(schema.columns), len(table.columns)
        raise _contradiction(schema, table, f"its TABLE_MAP has {found} columns, the statements of the log {known}")
    columns = []
    for index, (column, known_column) in enumerate(zip(schema.columns, table.columns, strict=True)):
        if schema.has_names and column.name != known_column.name:
            problem = f"its TABLE_MAP calls column {index + 1} {column.name}, the statements of the log"
            raise _contradiction(schema, table, f"{problem} {known_column.name}")
        try:
            columns.append(_told(column, known_column))
        except (ValueError, ConfigurationError) as error:
            raise _contradiction(schema, table, str(error)) from None
    return dataclasses.replace(
        schema, columns=tuple(columns), primary_key=schema.primary_key or key_numbers(table), has_names=True
    )


def unknown_names(table: UnknownTable) -> EventError:
    """Why rows of a table cannot be read by name."""
    since = "" if table.gtid is None else f" since GTID {table.gtid}"
    return EventError(f"{table.full_name}: its columns are not known{since}: {table.reason}")


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


def _contradiction(schema: TableSchema, table: TableVersion, problem: str) -> EventError:
    since = "since the log begins" if table.gtid is None else f"since GTID {table.gtid}"
    return EventError(f"{schema.name}: {problem} {since}; declare the table with option schema")


def _told(column: Column, known: TableColumn) -> Column:
    """A column of a TABLE_MAP with what is known of it.

    Raises:
        ValueError: it cannot be that column.
    """
    code, size, scale = _layout(known.type)
    has_sizes = column.type not in _OTHERS and not known.type.is_compressed
    if _OTHERS.get(column.type, column.type) != code or (has_sizes and (column.size, column.scale) != (size, scale)):
        raise ValueError(f"its TABLE_MAP has column {known.name} as {column.type_name}, not {_written(known.type)}")
    if column.labels is not None and column.charset is not None and column.labels != known.type.labels:
        raise ValueError(f"its TABLE_MAP has other labels of column {known.name} than {_written(known.type)}")
    is_unsigned = known.type.is_unsigned or known.type.is_zerofill
    if column.kind is ValueKind.INTEGER and column.is_unsigned not in (None, is_unsigned):
        raise ValueError(f"its TABLE_MAP has column {known.name} with another sign than {_written(known.type)}")
    return _described(column, known)


def _described(column: Column, known: TableColumn) -> Column:
    """A column with what only a definition says."""
    labels, kind = known.type.labels, BY_WORD.get(known.type.word)
    column = dataclasses.replace(column, name=known.name, is_nullable=known.is_nullable)
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
    word, length = told.word, told.length
    code = _TYPES.get(word)
    if code is None:
        raise ValueError(f"columns of type {word} are not known")
    if told.is_compressed:
        code = _COMPRESSED.get(code, code)
    match word:
        case "decimal":
            return code, 10 if length is None else length, told.scale or 0
        case "bit":
            return code, 1 if length is None else length, 0
        case "time" | "datetime" | "timestamp":
            return code, 0, (told.scale if length is None else length) or 0
        case "char" | "varchar":
            unit = CHARACTER_BYTES.get(told.charset or "utf8mb4", 1)
            return code, (1 if length is None else length) * unit, 0
        case "binary" | "varbinary":
            return code, 1 if length is None else length, 0
        case "vector":
            return code, _VECTOR_NUMBER_BYTES * (length or 0), 0
        case "enum":
            return code, 1 if len(told.labels) < 256 else 2, 0
        case "set":
            size = (len(told.labels) + 7) // 8
            return code, size if size <= 4 else 8, 0
    if code in (ColumnType.BLOB, ColumnType.BLOB_COMPRESSED):
        return code, _BLOB_SIZES[word], 0
    return code, 4 if code == ColumnType.GEOMETRY else _SIZES.get(word, 0), 0
