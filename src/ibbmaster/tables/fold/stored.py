"""Rows as they are kept: images with every column, and the keys made of them."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ibbmaster.errors import EventError, IbbMasterError
from ibbmaster.kernel.fields import KeyOp
from ibbmaster.replication.event.column_types.registry import BY_NAME, kind_of
from ibbmaster.replication.event.rows.changes import Span, spans_of
from ibbmaster.replication.event.rows.column import Column, TableSchema, ValueKind
from ibbmaster.schema.indexing import row_key
from ibbmaster.schema.model import SqlType, TableColumn, TableVersion
from ibbmaster.schema.names import COLUMNS_REMEMBERED, column_of, named

LAYOUTS_MAX = 1 << 16

StoredRow = tuple[bytes, list[Span]]  # an image, and where its values are


class InexactRowsError(IbbMasterError, ValueError):
    """The log does not tell what became of a table's rows; the text says why."""


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column of an image: its id and type in the version, and the bytes of values, or of the length before them."""

    id: int
    column: Column
    type: SqlType
    fixed: int | None
    prefix: int


class StoredLayout:
    """The columns of a version of a table in the order of its row events."""

    def __init__(self, columns: tuple[StoredColumn, ...], number: int) -> None:
        self.columns = columns
        self.number = number
        self.null_size = (len(self.columns) + 7) // 8
        self.places = {column.id: place for place, column in enumerate(self.columns)}
        self._sizes = [(column.fixed, column.prefix) for column in self.columns]

    def spans(self, data: bytes, offset: int = 0) -> tuple[list[Span], int]:
        """Where each value lies, and the offset behind the image. Raises EventError: it ends too early."""
        return spans_of(data, offset, self._sizes)

    def image(self, values: Sequence[bytes | None]) -> bytes:
        nulls = 0
        parts = [b""]
        for place, (column, value) in enumerate(zip(self.columns, values, strict=True)):
            if value is None:
                nulls |= 1 << place
            else:
                parts.append(
                    value if column.fixed is not None else len(value).to_bytes(column.prefix, "little") + value
                )
        parts[0] = nulls.to_bytes(self.null_size, "little")
        return b"".join(parts)

    def row(self, values: Sequence[bytes | None]) -> StoredRow:
        image = self.image(values)
        return image, self.spans(image)[0]

    def values(self, image: bytes) -> list[bytes | None]:
        return values_of(image, self.spans(image)[0])


def values_of(image: bytes, spans: Sequence[Span]) -> list[bytes | None]:
    return [None if span is None else image[span[0] : span[1]] for span in spans]


class StoredLayouts:
    """Equal columns share one layout."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[StoredColumn, ...], StoredLayout] = {}
        self._layouts: list[StoredLayout] = []

    def __getitem__(self, number: int) -> StoredLayout:
        return self._layouts[number]

    def __len__(self) -> int:
        return len(self._layouts)

    def add(self, columns: Sequence[StoredColumn]) -> StoredLayout:
        """Raises EventError: there are too many layouts."""
        known = tuple(columns)
        layout = self._numbers.get(known)
        if layout is None:
            if len(self._layouts) == LAYOUTS_MAX:
                raise EventError(f"tables of the log have had more than {LAYOUTS_MAX} layouts")
            layout = self._numbers[known] = StoredLayout(known, len(self._layouts))
            self._layouts.append(layout)
        return layout


def mapped_columns(schema: TableSchema, table: TableVersion) -> list[StoredColumn]:
    """The columns of row events, by TABLE_MAP and version. Raises EventError: the two contradict each other."""
    columns = named(schema, table).columns
    return [_stored(column, known) for column, known in zip(columns, table.columns, strict=True)]


def own_columns(table: TableVersion) -> list[StoredColumn]:
    """The columns of a version's row events, as a server since 10.1 writes them."""
    return [_stored(column_of(column), column) for column in table.columns]


@functools.lru_cache(COLUMNS_REMEMBERED)
def _stored(column: Column, known: TableColumn) -> StoredColumn:
    """Leaves out what may differ between a TABLE_MAP and a definition of the same values."""
    plain = dataclasses.replace(
        column,
        metadata=0,
        is_nullable=True,
        is_unsigned=known.type.is_unsigned,
        charset=known.type.charset or ("binary" if column.charset is None else column.charset),
        labels=known.type.labels or None,
    )
    kind = kind_of(plain)
    return StoredColumn(known.id, plain, known.type, kind.fixed_size(plain), kind.length_size(plain))


# Keys -----------------------------------------------------------------------------------------

SortKey = Callable[[bytes], bytes]
"""Takes the stored bytes of a value; gives bytes that compare as the values do, and tell them apart."""

_INVERTED = bytes(255 - byte for byte in range(256))
_SIGN = 1 << 63
_WIDE = frozenset(("ucs2", "utf16", "utf16le", "utf32"))  # where a space takes more than a byte


def is_padded(kind: SqlType) -> bool:
    """Whether comparisons ignore spaces at the end."""
    return kind.collation is not None and "nopad" not in kind.collation and kind.charset not in _WIDE


def is_text(column: StoredColumn) -> bool:
    """Whether a collation compares its values."""
    return column.type.collation is not None and not column.type.labels


def sort_key(column: StoredColumn, *, is_descending: bool = False) -> SortKey:
    """Makes parts of keys; texts compare by bytes, up to spaces at their end."""
    make = _KEYS[key_op(column)]
    return make if not is_descending else lambda data: make(data).translate(_INVERTED)


def key_op(column: StoredColumn) -> KeyOp:
    found = _value_op(column.column)
    if found is KeyOp.TEXT and column.column.kind is ValueKind.TEXT and is_padded(column.type):
        return KeyOp.PADDED_TEXT
    return found


def value_key(column: Column) -> SortKey:
    """Makes bytes that compare as the values do and differ where these do."""
    return _KEYS[_value_op(column)]


def _value_op(column: Column) -> KeyOp:
    return KeyOp[kind_of(column).key_op(column)]


def _floating_key(data: bytes) -> bytes:
    value = int.from_bytes(data, "little")
    bits = 8 * len(data)
    if value == 1 << (bits - 1):
        value = 0  # both zeros are one value
    value = value ^ (1 << bits) - 1 if value >> (bits - 1) else value | 1 << (bits - 1)
    return value.to_bytes(len(data), "big")


def _text_key(data: bytes) -> bytes:
    return data.replace(b"\0", b"\0\xff") + b"\0\0"


_KEYS: dict[KeyOp, SortKey] = {
    KeyOp.UNSIGNED: lambda data: int.from_bytes(data, "little").to_bytes(8, "big"),
    KeyOp.SIGNED: lambda data: (int.from_bytes(data, "little", signed=True) + _SIGN).to_bytes(8, "big"),
    KeyOp.REVERSED: lambda data: data[::-1],
    KeyOp.TIME: lambda data: (int.from_bytes(data, "little", signed=True) + (1 << 23)).to_bytes(3, "big"),
    KeyOp.FLOATING: _floating_key,
    KeyOp.FIXED: bytes,
    KeyOp.TEXT: _text_key,
    KeyOp.PADDED_TEXT: lambda data: _text_key(data.rstrip(b" ")),
}


@dataclass(frozen=True, slots=True)
class KeyPlan:
    """The place of each column of the key, and what makes its part."""

    parts: list[tuple[int, SortKey]]

    def key(self, image: bytes, spans: Sequence[Span]) -> bytes:
        """Raises InexactRowsError: the image lacks a value of the key."""
        found = b""
        for place, make in self.parts:
            span = spans[place]
            if span is None:
                raise InexactRowsError("an image has no value for columns of the key")
            found += make(image[span[0] : span[1]])
        return found


def key_plan(table: TableVersion, layout: StoredLayout) -> KeyPlan | None:
    """None without a key."""
    index = row_key(table)
    if index is None:
        return None
    places = [(layout.places[part.column_id], part.is_descending) for part in index.parts]
    return KeyPlan([(at, sort_key(layout.columns[at], is_descending=is_descending)) for at, is_descending in places])


def key_columns(table: TableVersion) -> set[int]:
    """The ids of the columns that distinguish rows."""
    index = row_key(table)
    if index is None:
        return {column.id for column in table.columns if not column.is_computed}
    return {part.column_id for part in index.parts}


def key_types(table: TableVersion) -> list[tuple[object, ...]]:
    """Versions with equal ones have the same keys."""
    index = row_key(table)
    if index is None:
        return [(None,), *((column.id, column.type) for column in table.columns if not column.is_computed)]
    types = {column.id: column.type for column in table.columns}
    return [(part.column_id, part.is_descending, *_form_of_key(types[part.column_id])) for part in index.parts]


def _form_of_key(kind: SqlType) -> tuple[object, ...]:
    own = BY_NAME[kind.word]
    if own.is_integer:
        return ("integer", kind.is_unsigned)
    if own.is_string:
        return ("string", kind.charset, is_padded(kind))
    return (kind,)
