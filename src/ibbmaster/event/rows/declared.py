"""What a user knows of a table beyond its TABLE_MAP events: names, character sets, UUID, INET, VECTOR, digits.

A declaration gives column types as CREATE TABLE writes them, by column name. Without names in
the binlog (`binlog_row_metadata` below FULL) it names every column in order, or some as '@1',
'@2' and so on. What the event itself tells goes before it: a table may have been altered since,
and each event has it as it was.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from ibbmaster.errors import ConfigurationError
from ibbmaster.event.rows.charset import CODECS
from ibbmaster.event.rows.column import Column, ColumnType, TableSchema, ValueKind
from ibbmaster.event.rows.ddl import is_primary_key, is_unsigned, named_charset
from ibbmaster.event.rows.fixed_binary import INET4_SIZE, INET6_SIZE, UUID_SIZE

Declaration = Mapping[str, str]  # column name -> type

_TYPE = re.compile(
    r"\s*(?P<word>[a-z0-9]+)\s*(?:\((?P<inside>(?:[^()']|'(?:[^']|'')*')*)\))?.*", re.IGNORECASE | re.DOTALL
)
_LABEL = re.compile(r"\s*'((?:[^']|'')*)'\s*(?:,|$)")
_OLD_TEMPORAL = {"time": ColumnType.TIME, "datetime": ColumnType.DATETIME, "timestamp": ColumnType.TIMESTAMP}
_INTEGERS = {
    *("tinyint", "smallint", "mediumint", "int", "integer", "bigint", "serial", "boolean", "bool"),
    *("int1", "int2", "int3", "middleint", "int4", "int8"),
}
_TEXTS = {"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "json"}
_BINARIES = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
_FIXED = {
    "uuid": (ValueKind.UUID, UUID_SIZE),
    "inet4": (ValueKind.INET4, INET4_SIZE),
    "inet6": (ValueKind.INET6, INET6_SIZE),
}
_LABELLED = {"enum": ColumnType.ENUM, "set": ColumnType.SET}
_STRINGS = (
    ColumnType.STRING,
    ColumnType.VARCHAR,
    ColumnType.VAR_STRING,
    ColumnType.VARCHAR_COMPRESSED,
    ColumnType.BLOB,
    ColumnType.BLOB_COMPRESSED,
)


def declare(schema: TableSchema, declaration: Declaration) -> TableSchema:
    """The schema with a declaration applied. Declared columns the table does not have (yet) are passed over.

    Raises:
        ConfigurationError: a type cannot be read, or cannot be that of its column.
    """
    names = {column.name: number for number, column in enumerate(schema.columns)}
    gives_names = not schema.has_names and not any(name in names for name in declaration)
    if gives_names and len(declaration) != len(schema.columns):
        raise ConfigurationError(
            f"{schema.name} has {len(schema.columns)} columns without names, {len(declaration)} are declared"
        )
    columns = list(schema.columns)
    key = []
    for index, (name, text) in enumerate(declaration.items()):
        number = index if gives_names else names.get(name)
        if number is None:
            continue
        column = dataclasses.replace(columns[number], name=name) if gives_names else columns[number]
        if is_primary_key(text):
            key.append(number)
        columns[number] = dataclasses.replace(column, is_declared=True, **_changes(schema.name, column, text))
    return dataclasses.replace(
        schema,
        columns=tuple(columns),
        primary_key=schema.primary_key or tuple(key),
        has_names=schema.has_names or gives_names,
    )


def _changes(table: str, column: Column, text: str) -> dict[str, Any]:
    """What a declared type says of a column that its event does not."""
    match = _TYPE.fullmatch(text)
    if match is None:
        raise ConfigurationError(f"{table} column {column.name}: {text!r} is no column type")
    word, inside = match["word"].lower(), match["inside"]
    is_text = column.charset not in (None, "binary")  # as the event says, which goes first
    if word in _INTEGERS:
        return {"is_unsigned": is_unsigned(text)} if column.is_unsigned is None else {}
    if word in _OLD_TEMPORAL:
        return _digits(table, column, word, inside)
    if word in _FIXED:
        kind, size = _FIXED[word]
        _expect(column.type == ColumnType.STRING and column.size == size, table, column, text)
        return {"kind": kind}
    if word == "vector":
        _expect(column.type == ColumnType.VARCHAR, table, column, text)
        return {"kind": ValueKind.VECTOR}
    if word in _TEXTS:
        _expect(column.type in _STRINGS, table, column, text)
        name = _charset(column, text)
        if name not in CODECS:
            raise ConfigurationError(f"{table} column {column.name}: character set {name} is not known")
        return {"kind": ValueKind.BINARY if name == "binary" else ValueKind.TEXT, "charset": name}
    if word in _BINARIES:
        _expect(column.type in _STRINGS, table, column, text)
        return {} if is_text else {"kind": ValueKind.BINARY, "charset": "binary"}
    if word in _LABELLED:
        _expect(column.type == _LABELLED[word], table, column, text)
        if column.labels is not None and column.charset is not None:  # else nobody can read those of the event
            return {}
        return {"labels": tuple(label.replace("''", "'") for label in _LABEL.findall(inside or ""))}
    return {}


def _charset(column: Column, text: str) -> str:
    """The character set of a text column: the one the event names, else the declared one.

    The event goes first: the table may have been converted since. But what it has as binary, or
    in a collation that is not known here, is what the user says.
    """
    told = None if column.charset == "binary" else column.charset
    if told in CODECS:
        return told
    return named_charset(text) or told or "utf8mb4"


def _digits(table: str, column: Column, word: str, inside: str | None) -> dict[str, Any]:
    """The digits of a second: only the formats before 10.1 need them declared."""
    digits = int(inside) if inside and inside.strip().isdigit() else 0
    if column.type != _OLD_TEMPORAL[word]:
        return {}
    if digits > 6:
        raise ConfigurationError(f"{table} column {column.name}: {digits} digits of a second, at most 6")
    return {"scale": digits}


def _expect(is_possible: bool, table: str, column: Column, text: str) -> None:
    if not is_possible:
        problem = f"declared as {text!r}, but the binlog has it as {column.type_name}"
        raise ConfigurationError(f"{table} column {column.name}: {problem}")
