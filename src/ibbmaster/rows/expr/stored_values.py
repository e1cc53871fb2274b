"""Values of SQL as the bytes that a column stores, for defaults and conditions."""

from ibbmaster.replication.event.column_types.registry import kind_of
from ibbmaster.replication.event.rows.column import Column
from ibbmaster.schema.model import SqlType
from ibbmaster.sqltext.literals import Value


def stored_value(column: Column, kind: SqlType, value: Value) -> bytes | None:
    """A constant as a column stores it, without its length. Raises ValueError: it cannot hold it as it is."""
    if value is None:
        return None
    if column.has_old_format:
        raise ValueError("columns in the format of before 10.1 take no constants here")
    data = kind_of(column).stored(column, kind, value)
    return b"\0" + data if column.is_compressed and data else data  # not compressed, which takes a byte to say


def key_literal(column: Column, kind: SqlType, value: Value, time_zone_s: int) -> bytes:
    """The bytes of a column that equals a literal, in the order of its key. Raises ValueError: undecided by bytes."""
    alike = kind_of(column).key_value(column, kind, value, time_zone_s)
    found = None if alike is None else stored_value(column, kind, alike)
    if found is None:
        raise ValueError(f"{value!r} beside column {column.name}")
    return found
