"""VECTOR: numbers of four bytes in a VARCHAR; only the declared type shows it."""

import struct
from typing import Any

from ibbmaster.errors import ConfigurationError
from ibbmaster.sqltext import literals
from ..rows.charset import BINARY_COLLATION
from ..rows.column import Column, ColumnType, ValueKind
from ..rows.value import Convert, Encode
from . import kind as kinds
from .kind import ColumnKind, SqlType
from .strings import length_bytes

_NUMBER = struct.Struct("<f")
VECTOR_NUMBER_SIZE = _NUMBER.size


def vector_of(data: bytes) -> tuple[float, ...]:
    """Raises ValueError: not a multiple of four bytes."""
    if len(data) % _NUMBER.size:
        raise ValueError(f"a vector of {len(data)} bytes")
    return tuple(number for (number,) in _NUMBER.iter_unpack(data))


def vector_bytes(value: object) -> bytes:
    """From numbers, or a list of them as text; bytes stay as they are. Raises ValueError."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    numbers = value.strip().removeprefix("[").removesuffix("]").split(",") if isinstance(value, str) else value
    try:
        return b"".join(_NUMBER.pack(float(number)) for number in numbers)  # type: ignore[attr-defined]
    except (TypeError, OverflowError):
        raise ValueError(f"{value!r} is no vector") from None


class Vector(ColumnKind):
    content = ValueKind.VECTOR
    frame = "array<float>"
    step = kinds.COPY

    def length_size(self, column: Column) -> int:
        return length_bytes(column.size)

    def convert(self, column: Column) -> Convert:
        return vector_of

    def declare(self, column: Column, declared: kinds.DeclaredType) -> dict[str, Any]:
        declared.expect(column, column.type == ColumnType.VARCHAR)
        return {"kind": self.content}

    def write(self, declared: kinds.DeclaredType) -> kinds.WrittenType:
        size = (declared.length or 0) * VECTOR_NUMBER_SIZE
        if not 0 < size <= 0xFFFF:
            raise ConfigurationError(f"{declared.where}: {declared.text!r} needs a length from 1 to 16383")
        encode = _encoder(length_bytes(size), size)
        return kinds.WrittenType(ColumnType.VARCHAR, size.to_bytes(2, "little"), encode, collation=BINARY_COLLATION)

    def length_of(self, written: int | None) -> int | None:
        return written

    def size_of(self, sql: SqlType) -> int | None:
        return self.digits(sql)

    def digits(self, sql: SqlType) -> int:
        return VECTOR_NUMBER_SIZE * (sql.length or 0)

    def sizes(self, sql: SqlType) -> kinds.TypeSizes:
        return kinds.TypeSizes(self.digits(sql), self.digits(sql))

    def stored(self, column: Column, sql: SqlType, value: literals.Value) -> bytes:
        return kinds.bytes_of(value)

    def shown(self, column: Column, sql: SqlType, settings: kinds.TextSettings) -> kinds.Text:
        return bytes

    def result(self, sql: SqlType) -> kinds.ResultType:
        return kinds.ResultType(ColumnType.VAR_STRING, self.digits(sql), 0, ("BINARY",))


def _encoder(prefix: int, size: int) -> Encode:
    def encode(value: object) -> bytes:
        data = vector_bytes(value)
        if len(data) != size:
            raise ValueError(f"a vector of {len(data)} bytes, expected {size}")
        return len(data).to_bytes(prefix, "little") + data

    return encode


KINDS = (Vector("vector", ColumnType.VARCHAR, ColumnType.VARCHAR_COMPRESSED, ColumnType.VAR_STRING),)
