"""What a version of a table says of a TABLE_MAP that does not say it itself: names, types, labels, the key.

The event goes first: what it says is not changed, and what it contradicts is an error. With
`binlog_row_metadata=NO_LOG`, the default, it has the number of columns, their type codes and
the sizes after these, and which may be NULL.
"""

import dataclasses
import functools

from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.event.column_types.kind import read_declared
from ibbmaster.event.column_types.registry import BY_NAME, BY_TYPE
from ibbmaster.event.rows.column import COMPRESSED, Column, TableSchema
from ibbmaster.schema.column_text import type_text
from ibbmaster.schema.model import TableColumn, TableVersion, UnknownTable
from ibbmaster.schema.table_map import disagreement

COLUMNS_REMEMBERED = 1 << 13  # the same ones are asked for by every SELECT and every version of their table


def named(schema: TableSchema, table: TableVersion) -> TableSchema:
    """A TABLE_MAP's schema with what a version of its table says beyond it. Raises EventError: they contradict each
    other."""
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
    """A column as a TABLE_MAP with all its metadata would describe it. Raises ValueError: nothing is known of columns
    of its type."""
    sql = column.type
    known = BY_NAME.get(sql.word)
    if known is None:
        raise ValueError(f"columns of type {sql.word} are not known")
    codes = [code for code in known.codes if not sql.is_compressed or code in COMPRESSED]
    code = (codes or known.codes)[0]
    kind, size, scale = BY_TYPE[code].values[code], known.size_of(sql) or 0, sql.scale or 0 if known.has_scale else 0
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
    labels, kind = known.type.labels, BY_NAME.get(known.type.word)
    column = dataclasses.replace(column, name=known.name, is_nullable=known.is_nullable, is_internal=known.is_internal)
    if labels:
        is_told = column.labels is not None and column.charset is not None
        return column if is_told else dataclasses.replace(column, labels=labels)
    charset = f" character set {known.type.charset}" if known.type.charset else ""
    declared = read_declared(f"column {known.name}", type_text(known.type) + charset)
    return column if kind is None else dataclasses.replace(column, **kind.declare(column, declared))
