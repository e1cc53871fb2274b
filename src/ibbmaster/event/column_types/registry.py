"""Which kind each type is of. A new kind is one module of this folder, and one entry here."""

from __future__ import annotations

from ibbmaster.event.column_types.decimals import Decimals
from ibbmaster.event.column_types.floating import Floating
from ibbmaster.event.column_types.integer import Bit, Integer, Year
from ibbmaster.event.column_types.kind import ColumnKind
from ibbmaster.event.column_types.labels import Labels
from ibbmaster.event.column_types.strings import Strings
from ibbmaster.event.column_types.temporal import Date, DateTime, Time, Timestamp
from ibbmaster.event.rows.column import Column
from ibbmaster.event.rows.value import Reader, fixed, prefixed

KINDS: tuple[ColumnKind, ...] = (
    Integer(),
    Bit(),
    Year(),
    Floating(),
    Decimals(),
    Date(),
    Time(),
    DateTime(),
    Timestamp(),
    Labels(),
    Strings(),
)
BY_TYPE: dict[int, ColumnKind] = {int(column_type): kind for kind in KINDS for column_type in kind.values}
BY_WORD: dict[str, ColumnKind] = {word: kind for kind in KINDS for word in kind.words}


def kind_of(column: Column) -> ColumnKind:
    """The kind of a column. Raises ValueError: values of its type cannot be read at all."""
    kind = BY_TYPE.get(column.type)
    if kind is None:
        raise ValueError("values of this type cannot be read")
    return kind


def value_reader(column: Column) -> Reader:
    """How values of a column are read. Raises ValueError: values of this type cannot be read at all."""
    return kind_of(column).reader(column)


def bytes_reader(column: Column) -> Reader:
    """How values of a column are skipped: as they are stored, whether or not they can be read.

    Raises ValueError: the length of values of this type is not known.
    """
    kind = kind_of(column)
    size = kind.fixed_size(column)
    return prefixed(kind.length_size(column), bytes) if size is None else fixed(size, bytes)
