"""A TABLE_MAP event beside its table's DDL, and a table from such an event alone.

The event goes first: a contradiction is an error. With `binlog_row_metadata=NO_LOG`, the default, it has columns as
type codes, sizes and nullability; the version adds names, types, labels and the key."""

import dataclasses
import functools
from collections.abc import Callable

from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.replication.event.column_types.kind import read_declared
from ibbmaster.replication.event.column_types.registry import BY_CODE, BY_NAME, BY_TYPE
from ibbmaster.replication.event.rows.column import COMPRESSED, LETTERS, Column, TableSchema
from .collations import character_sets
from .column_text import type_text
from .model import IndexKind, IndexPart, SchemaPlace, SqlType, TableColumn, TableIndex, TableVersion, UnknownTable

COLUMNS_REMEMBERED = 1 << 13  # every SELECT and version asks for the same ones


def named(schema: TableSchema, table: TableVersion) -> TableSchema:
    """A TABLE_MAP's schema with what a version adds. Raises EventError: they contradict each other."""
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
    since = "" if table.gtid is None else f" since GTID {table.gtid}"
    return EventError(f"{table.full_name}: its columns are not known{since}: {table.reason}")


@functools.lru_cache(COLUMNS_REMEMBERED)
def column_of(column: TableColumn) -> Column:
    """As a TABLE_MAP with all metadata would describe it. Raises ValueError: an unknown type."""
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
    numbers = {column.id: number for number, column in enumerate(table.columns)}
    return () if table.primary_key is None else tuple(numbers[part.column_id] for part in table.primary_key.parts)


def _contradiction(table: TableVersion, problem: str) -> EventError:
    since = "since the log begins" if table.gtid is None else f"since GTID {table.gtid}"
    return EventError(f"{table.full_name}: {problem} {since}; declare the table with option schema")


def _described(column: Column, known: TableColumn) -> Column:
    labels, kind = known.type.labels, BY_NAME.get(known.type.word)
    column = dataclasses.replace(column, name=known.name, is_nullable=known.is_nullable, is_internal=known.is_internal)
    if labels:
        is_told = column.labels is not None and column.charset is not None
        return column if is_told else dataclasses.replace(column, labels=labels)
    charset = f" character set {known.type.charset}" if known.type.charset else ""
    declared = read_declared(f"column {known.name}", type_text(known.type) + charset)
    return column if kind is None else dataclasses.replace(column, **kind.declare(column, declared))


def disagreement(table: TableVersion, schema: TableSchema) -> str | None:
    """How a TABLE_MAP contradicts a version; None: it does not. Of a table that no statement defines only names are
    compared: ALTER TABLE may add types that depend on unknown settings."""
    if len(schema.columns) != len(table.columns):
        return f"rows of {len(schema.columns)} columns, by its DDL it has {len(table.columns)}"
    only_names = schema.has_names and bool(table.undefined_because)
    for number, (found, column) in enumerate(zip(schema.columns, table.columns, strict=True), start=1):
        if only_names and found.name == column.name:
            continue
        problem = _difference(found, column, has_names=schema.has_names)
        if problem is not None:
            return f"column {number} ({column.name[:64]}) is {problem} in its rows"
    return None


def _difference(found: Column, column: TableColumn, *, has_names: bool) -> str | None:
    type_ = column.type
    if has_names and found.name != column.name:
        return f"called {found.name[:64]!r}"
    kind = BY_NAME.get(type_.word)
    if kind is None or found.type not in kind.codes:
        return f"a {found.type_name} and not {type_.word}"
    size = kind.size_of(type_) if kind.compares_size else None
    if size is not None and found.size != size:
        return f"a {found.type_name} and not {type_.word} of {size} bytes or digits"
    if kind.has_scale and found.type == kind.codes[0] and found.scale != (type_.scale or 0):
        return f"a {found.type_name} and not {type_.word} with {type_.scale or 0} digits"
    if found.is_unsigned is not None and kind.is_integer and found.is_unsigned != type_.is_unsigned:
        return "signed" if type_.is_unsigned else "unsigned"
    if found.labels is not None and type_.labels and found.labels != type_.labels:
        return f"of other labels: {', '.join(found.labels)[:64]}"
    if found.charset is not None and type_.charset is not None and found.charset != type_.charset:
        return f"of character set {found.charset} and not {type_.charset}"
    return None


def derived_table(schema: TableSchema, place: SchemaPlace, gtid: str, new_id: Callable[[], int]) -> TableVersion:
    """The table of a TABLE_MAP with names. Defaults, widths and most indexes are missing; types are the commonest."""
    columns = tuple(
        TableColumn(
            id=new_id(),
            name=column.name,
            type=_type_of(column),
            is_nullable=column.is_nullable,
            is_hidden=column.is_internal,
        )
        for column in schema.columns
    )
    parts = tuple(IndexPart(column_id=columns[number].id) for number in schema.primary_key)
    return TableVersion(
        database=schema.database,
        name=schema.table,
        columns=columns,
        indexes=(TableIndex(name="PRIMARY", kind=IndexKind.PRIMARY, parts=parts),) if parts else (),
        since=place,
        gtid=gtid,
    )


def _type_of(column: Column) -> SqlType:
    kind = BY_CODE.get(column.type)
    charset = column.charset if column.kind in LETTERS else None
    charset = charset if charset in character_sets() else None
    collation = character_sets()[charset].old_default if charset is not None else None
    unit = None if charset is None else character_sets()[charset].size_max
    word, length, scale = ("longblob", None, column.scale or None) if kind is None else kind.derived(column, unit)
    return SqlType(
        word=word,
        length=length,
        scale=scale,
        is_unsigned=bool(column.is_unsigned),
        labels=column.labels or (),
        charset=charset,
        collation=collation,
        is_compressed=column.is_compressed,
    )
