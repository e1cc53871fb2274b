"""The kind of each type. A new type is one module of this folder, and one entry here."""

from ..rows.column import Column
from ..rows.value import Reader, fixed, prefixed
from . import content, decimals, floating, geometry, integer, labels, strings, temporal, vector
from .kind import ColumnKind

MODULES = (integer, floating, decimals, temporal, labels, strings, geometry, content, vector)
KINDS: tuple[ColumnKind, ...] = tuple(kind for module in MODULES for kind in module.KINDS)
BY_TYPE: dict[int, ColumnKind] = {int(code): kind for kind in reversed(KINDS) for code in kind.values}
BY_CODE: dict[int, ColumnKind] = {int(code): kind for kind in reversed(KINDS) for code in kind.codes}
BY_NAME: dict[str, ColumnKind] = {kind.word: kind for kind in KINDS}
BY_WORD: dict[str, ColumnKind] = {word: kind for kind in KINDS for word in (kind.word, *kind.names)}
BY_DDL: dict[str, ColumnKind] = BY_WORD | {word: kind for kind in KINDS for word in kind.ddl_names}
_BY_CONTENT = {kind.content: kind for kind in KINDS if kind.content is not None}


def kind_of(column: Column) -> ColumnKind:
    """Raises ValueError: values of its type cannot be read at all."""
    kind = _BY_CONTENT.get(column.kind) or BY_TYPE.get(column.type)
    if kind is None:
        raise ValueError("values of this type cannot be read")
    return kind


def value_reader(column: Column) -> Reader:
    """Raises ValueError: values of its type cannot be read at all."""
    return kind_of(column).reader(column)


def bytes_reader(column: Column) -> Reader:
    """Reads values as stored, even unreadable ones. Raises ValueError: their length is not known."""
    kind = kind_of(column)
    size = kind.fixed_size(column)
    return prefixed(kind.length_size(column), bytes) if size is None else fixed(size, bytes)
