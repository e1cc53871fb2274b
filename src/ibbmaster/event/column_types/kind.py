"""What is to be known of a kind of columns, so that one module holds all of it."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

from ibbmaster.errors import ConfigurationError
from ibbmaster.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.event.rows.value import Encode, Reader, Value, fixed, prefixed

_NUMBERS = re.compile(r"\s*(\d+)\s*(?:,\s*(\d+)\s*)?", re.ASCII)
_DECLARED = re.compile(
    r"\s*(?P<word>[a-z0-9]+)\s*(?:\((?P<inside>(?:[^()']|'(?:[^']|'')*')*)\))?.*", re.IGNORECASE | re.DOTALL
)


class StoredText(NamedTuple):
    """How the text of a column is stored: its character set, its collation's number, bytes of the longest character."""

    charset: str = "utf8mb4"
    collation: int = 45  # utf8mb4_general_ci
    unit: int = 4


class DeclaredType(NamedTuple):
    """A type as CREATE TABLE writes it; `where` names its column in errors.

    `storage` and `is_compressed` are of columns that are written.
    """

    where: str
    text: str
    word: str  # in lower case
    inside: str | None  # the brackets after it
    storage: StoredText = StoredText()
    is_compressed: bool = False

    @property
    def length(self) -> int | None:
        """The first number in the brackets."""
        match = None if self.inside is None else _NUMBERS.fullmatch(self.inside)
        return None if match is None else int(match[1])

    @property
    def scale(self) -> int:
        """The second number in the brackets; 0 if there is none."""
        match = None if self.inside is None else _NUMBERS.fullmatch(self.inside)
        return int(match[2] or 0) if match is not None else 0

    def expect(self, column: Column, is_possible: bool) -> None:
        """See that a column may be of this type. Raises ConfigurationError: it may not."""
        if not is_possible:
            problem = f"declared as {self.text!r}, but the binlog has it as {column.type_name}"
            raise ConfigurationError(f"{self.where}: {problem}")


def read_declared(where: str, text: str) -> DeclaredType:
    """Take a type apart. Raises ConfigurationError: it does not begin with a word."""
    match = _DECLARED.fullmatch(text)
    if match is None:
        raise ConfigurationError(f"{where}: {text!r} is no column type")
    return DeclaredType(where, text, match["word"].lower(), match["inside"])


class Layout(NamedTuple):
    """What the metadata block says of a column: its type, and `Column.size` and `Column.scale`."""

    type: int
    size: int = 0
    scale: int = 0


class WrittenType(NamedTuple):
    """How a column is written. `metadata` are its bytes in the metadata block."""

    type: ColumnType
    metadata: bytes
    encode: Encode
    is_unsigned: bool | None = None  # None for what is no number
    collation: int | None = None  # None for what is no string
    labels: tuple[bytes, ...] = ()  # of ENUM and SET, as they are stored
    geometry_type: int | None = None


class ColumnKind(ABC):
    """Types that are alike. Those of one kind are in one module, and nowhere else.

    A value has either as many bytes as `fixed_size` says, or a length of `length_size` bytes
    before it; `convert` takes the bytes, and raises ValueError where they make no value.
    """

    values: ClassVar[Mapping[ColumnType, ValueKind]]  # the types, and what their values are
    words: ClassVar[frozenset[str]] = frozenset()  # how CREATE TABLE calls them
    metadata_sizes: ClassVar[Mapping[ColumnType, int]] = {}  # bytes in the metadata block; others have none
    big_endian: ClassVar[frozenset[ColumnType]] = frozenset()  # types whose metadata has the high byte first
    has_sign: ClassVar[bool] = False  # a bit in the field SIGNEDNESS
    has_collation: ClassVar[bool] = False  # a number in the fields DEFAULT_CHARSET or COLUMN_CHARSET

    def layout(self, where: str, column_type: ColumnType, metadata: int, raw: bytes) -> Layout:
        """What the metadata of a column says; `raw` are its bytes, `metadata` the number that they are.

        Raises EventError: no column has such metadata.
        """
        return Layout(column_type)

    def fixed_size(self, column: Column) -> int | None:
        """Bytes of each value; None where a length precedes it."""
        return None

    def length_size(self, column: Column) -> int:
        """Bytes of the length before a value; 0 where there is none."""
        return 0

    @abstractmethod
    def convert(self, column: Column) -> Callable[[bytes], Value]:
        """How the bytes of a value become what `ValueKind` says."""

    def keeps_values(self, old: Column, new: Column) -> bool:
        """Whether every value of a column of this kind is the same value in another column, of whatever kind."""
        return (old.kind, old.type, old.size, old.scale) == (new.kind, new.type, new.size, new.scale)

    def reader(self, column: Column) -> Reader:
        """How values are read out of rows."""
        size = self.fixed_size(column)
        if size is not None:
            return fixed(size, self.convert(column))
        return prefixed(self.length_size(column), self.convert(column))

    def declare(self, column: Column, declared: DeclaredType) -> dict[str, Any]:
        """What a declared type says of a column that its TABLE_MAP does not: fields of `Column`.

        Raises ConfigurationError: the column cannot be of this type.
        """
        return {}

    def write(self, declared: DeclaredType) -> WrittenType | None:
        """How a column of a declared type is written; None if that cannot be done.

        Raises ConfigurationError: there is no such type.
        """
        return None
