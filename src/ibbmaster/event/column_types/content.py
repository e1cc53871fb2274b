"""What is stored in strings of a fixed number of bytes, of which a TABLE_MAP says nothing more than these."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from ibbmaster.event.column_types.kind import ColumnKind, DeclaredType, ResultType, RowReading, SqlType, WrittenType
from ibbmaster.event.rows.charset import BINARY_COLLATION
from ibbmaster.event.rows.column import Column, ColumnType
from ibbmaster.event.rows.value import Value
from ibbmaster.sqltext import literals


class FixedContent(ColumnKind):
    """Values that are shown as text, and stored as BINARY(size). They compare with texts by what is stored."""

    octets: ClassVar[int]
    width: ClassVar[int]  # letters of the longest text
    has_name = True
    compares_size = True
    is_shown_as_text = True

    def __init__(self, word: str, text: Callable[[bytes], str]) -> None:
        """`text` raises ValueError for another number of bytes."""
        super().__init__(word, ColumnType.STRING)
        self.text = text
        self.key_size, self.line = self.octets, (word.upper(), self.octets, 0)

    @abstractmethod
    def written(self, text: str) -> bytes:
        """The bytes of a text in row events. Raises ValueError: it is none."""

    @abstractmethod
    def kept(self, value: literals.Value) -> bytes:
        """The bytes of a constant as a server stores, and compares, them. Raises ValueError: it is none."""

    def length_size(self, column: Column) -> int:
        return 1

    def convert(self, column: Column) -> Callable[[bytes], Value]:
        read, octets = self.text, self.octets
        return lambda data: read(data.ljust(octets, b"\0"))  # zeros at the end do not travel

    def declare(self, column: Column, declared: DeclaredType) -> dict[str, Any]:
        declared.expect(column, column.type == ColumnType.STRING and column.size == self.octets)
        return {"kind": self.content}

    def write(self, declared: DeclaredType) -> WrittenType:
        metadata = bytes([ColumnType.STRING, self.octets])
        return WrittenType(ColumnType.STRING, metadata, self._encode, collation=BINARY_COLLATION)

    def _encode(self, value: object) -> bytes:
        data = self.written(str(value)).rstrip(b"\0")
        return bytes([len(data)]) + data

    def size_of(self, sql: SqlType) -> int | None:
        return self.octets

    def stored(self, column: Column, sql: SqlType, value: literals.Value) -> bytes:
        return self.kept(value)

    def result(self, sql: SqlType) -> ResultType:
        return ResultType(ColumnType.STRING, self.width, 0, ("BINARY", "UNSIGNED"), is_text=True)

    def reading(self, column: Column, frame_type: str) -> RowReading:
        return RowReading("RAW_PREFIXED", 1, 0, "shown")

    def text_op(self, column: Column) -> tuple[str, int]:
        return self.word.upper(), self.octets
