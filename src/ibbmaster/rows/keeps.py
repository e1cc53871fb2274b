"""Whether ALTER TABLE, which gives a column another type, leaves every value what it is."""

from __future__ import annotations

from ibbmaster.event.rows.column import Column
from ibbmaster.event.rows.kinds.registry import kind_of
from ibbmaster.event.rows.kinds.strings import GEOMETRIES
from ibbmaster.schema.model import SqlType, TableColumn
from ibbmaster.schema.names import column_of


def keeps_values(old: SqlType, new: SqlType) -> bool:
    """Whether every value of one type is the same value in the other, as a server converts it."""
    if old == new:
        return True
    if old.word in GEOMETRIES:
        return new.word in (old.word, "geometry")
    try:
        columns = [column_of(TableColumn(id=0, name="", type=one)) for one in (old, new)]
        return has_every_value(*columns)
    except ValueError:
        return False  # of types of which nothing is known


def has_every_value(old: Column, new: Column) -> bool:
    """Whether every value of one column is the same value in the other."""
    return kind_of(old).keeps_values(old, new)
