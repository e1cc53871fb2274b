"""Values of SQL as the bytes that a column stores: what a default gives to a row, what a condition compares with."""

from __future__ import annotations

from ibbmaster.event.column_types.registry import kind_of
from ibbmaster.event.rows.column import Column
from ibbmaster.schema.model import SqlType
from ibbmaster.sqltext.literals import Value


def stored_value(column: Column, kind: SqlType, value: Value) -> bytes | None:
    """The bytes of a constant in a column, without what tells their length. Raises ValueError: the column cannot hold
    it as it is."""
    if value is None:
        return None
    if column.has_old_format:
        raise ValueError("columns in the format of before 10.1 take no constants here")
    data = kind_of(column).stored(column, kind, value)
    return b"\0" + data if column.is_compressed and data else data  # not compressed, which takes a byte to say


def key_literal(column: Column, kind: SqlType, value: Value, time_zone_s: int) -> bytes:
    """What a column stores where it is equal to a literal; less and greater are those of the bytes of its key. Raises
    ValueError: it is not compared with such a literal by what is stored."""
    alike = kind_of(column).key_value(column, kind, value, time_zone_s)
    found = None if alike is None else stored_value(column, kind, alike)
    if found is None:
        raise ValueError(f"{value!r} beside column {column.name}")
    return found
