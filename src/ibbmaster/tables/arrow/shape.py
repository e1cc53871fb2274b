"""Columns of the DataFrames: names, Spark types, and the Arrow types equal to them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.facts import rows_of
from ibbmaster.replication.event.column_types.registry import kind_of
from ibbmaster.replication.event.rows.column import Column
from ibbmaster.rows.shape import TableShape, has_every_value
from .read_options import Granularity, ZeroDates

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ShapeField:
    """One column; `type` is Spark's name of it."""

    name: str
    type: str


def _fields_of(what: str) -> tuple[ShapeField, ...]:
    return tuple(ShapeField(name, type_) for of, name, type_ in rows_of(__package__, "shape") if of == what)


GROUP_FIELDS = _fields_of("group")
CHANGE_FIELDS = _fields_of("change")
ABSENT_FIELD = ShapeField("_absent", "array<string>")
UNDECODABLE_FIELD = ShapeField("_undecodable", "map<string,binary>")
RESERVED = {field.name for field in (*GROUP_FIELDS, *CHANGE_FIELDS, ABSENT_FIELD, UNDECODABLE_FIELD)}
OF_JOBS = {"_date", "_valid_from", "_valid_to", "_gtid_from", "_gtid_to", "_is_current"}  # what these add to a table
TAKEN = RESERVED | OF_JOBS
_FIRST = {
    Granularity.EVENTS: GROUP_FIELDS,
    Granularity.GROUPS: GROUP_FIELDS,
    Granularity.ROWS: (*GROUP_FIELDS, *CHANGE_FIELDS),
}
SHAPES = {one: (*_FIRST.get(one, ()), *_fields_of(one.value)) for one in Granularity}


def field_name(column: str) -> str:
    """A column's name in a DataFrame: one named as ours gets one more underscore, and so does one with more of them, so
    that names stay different."""
    return "_" + column if _is_taken(column) else column


def own_name(field: str) -> str:
    return field[1:] if field.startswith("__") and _is_taken(field) else field


def _is_taken(name: str) -> bool:
    return name.startswith("_") and "_" + name.lstrip("_").lower() in TAKEN


def generic_shape(granularity: Granularity, columns: Sequence[str] = ()) -> tuple[ShapeField, ...]:
    """Raises ConfigurationError: there is no such column."""
    return pick(SHAPES[granularity], columns)


def pick(fields: Sequence[ShapeField], columns: Sequence[str]) -> tuple[ShapeField, ...]:
    """Some columns by name, in that order; all if none is named; errors as `generic_shape`."""
    if not columns:
        return tuple(fields)
    by_name = {field.name: field for field in fields}
    missing = [name for name in columns if name not in by_name]
    if missing:
        raise ConfigurationError(f"no column {', '.join(missing)}; there are {', '.join(by_name)}")
    return tuple(by_name[name] for name in columns)


class TableFields(tuple[ShapeField, ...]):
    shape: TableShape

    @classmethod
    def of(cls, fields: Iterable[ShapeField], shape: TableShape) -> TableFields:
        made = cls(fields)
        made.shape = shape
        return made


def table_fields(
    shape: TableShape, zero_dates: ZeroDates, columns: Sequence[str] = (), *, keeps_bytes: bool = False
) -> TableFields:
    """The columns of the group, of the change, and of the table; with `keeps_bytes` one more for undecodable values.
    Raises ConfigurationError: columns have no names, in the log or declared, or two differ only in their case."""
    schema = shape.schema
    if not schema.has_names:
        raise ConfigurationError(
            f"{schema.name}: its columns have no names in this binlog (binlog_row_metadata is not FULL); "
            "declare them with option schema"
        )
    own = tuple(ShapeField(field_name(column.name), column_type(column, zero_dates)) for column in shape.columns)
    fields = (*GROUP_FIELDS, *CHANGE_FIELDS[1:], *own, *([UNDECODABLE_FIELD] if keeps_bytes else []))
    names = [field.name.lower() for field in fields]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigurationError(f"{schema.name} has two columns that differ only in their case: {', '.join(twice)}")
    return TableFields.of(pick((*fields, ABSENT_FIELD), columns or [field.name for field in fields]), shape)


def expect_readable(table: str, column: Column, wanted: Column, field: ShapeField, zero_dates: ZeroDates) -> str:
    """The type of a column's own cells, which must become those of a field, that of `wanted`. Raises EventError: the
    DataFrame was made with another type."""
    found = column_type(column, zero_dates)
    if found != field.type and not has_every_value(column, wanted):
        raise EventError(f"{table} column {field.name} is {found} here, the DataFrame has {field.type}")
    return found


def column_type(column: Column, zero_dates: ZeroDates) -> str:
    return kind_of(column).frame_type(column, keeps_zeros=zero_dates is not ZeroDates.NULL)


def spark_ddl(fields: Sequence[ShapeField]) -> str:
    return ", ".join(f"`{field.name.replace('`', '``')}` {field.type}" for field in fields)


def arrow_schema(fields: Sequence[ShapeField]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([pa.field(field.name, arrow_type(field.type)) for field in fields])


@functools.cache
def arrow_type(name: str) -> pa.DataType:
    import pyarrow as pa

    if name.startswith("decimal("):
        digits, scale = name[8:-1].split(",")
        return pa.decimal128(int(digits), int(scale))
    plain = {
        "string": pa.string(),
        "binary": pa.binary(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestamp_ntz": pa.timestamp("us"),
        "array<string>": pa.list_(pa.string()),
        "array<float>": pa.list_(pa.float32()),
        "map<string,string>": pa.map_(pa.string(), pa.string()),
        "map<string,binary>": pa.map_(pa.string(), pa.binary()),
    }
    return plain[name]
