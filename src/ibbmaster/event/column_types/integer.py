"""Whole numbers: TINYINT to BIGINT, BIT and YEAR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.event.column_types.kind import ColumnKind, DeclaredType, Layout, WrittenType
from ibbmaster.event.rows.attributes import is_unsigned
from ibbmaster.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.event.rows.value import Encode, Reader, Value

INTEGER_SIZES = {
    ColumnType.TINY: 1,
    ColumnType.SHORT: 2,
    ColumnType.INT24: 3,
    ColumnType.LONG: 4,
    ColumnType.LONGLONG: 8,
}
_WRITTEN = {
    **dict.fromkeys(("tinyint", "int1", "boolean", "bool"), ColumnType.TINY),
    **dict.fromkeys(("smallint", "int2"), ColumnType.SHORT),
    **dict.fromkeys(("mediumint", "middleint", "int3"), ColumnType.INT24),
    **dict.fromkeys(("int", "int4", "integer"), ColumnType.LONG),
    **dict.fromkeys(("bigint", "int8"), ColumnType.LONGLONG),
}
YEAR_ZERO = 1900


def integer_range(column: Column) -> tuple[int, int]:
    """The smallest and the largest value of TINYINT to BIGINT."""
    bits = 8 * INTEGER_SIZES[ColumnType(column.type)]
    return (0, (1 << bits) - 1) if column.is_unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)


class Integer(ColumnKind):
    """TINYINT to BIGINT, little-endian."""

    values = dict.fromkeys(INTEGER_SIZES, ValueKind.INTEGER)
    words = frozenset((*_WRITTEN, "serial"))
    has_sign = True

    def fixed_size(self, column: Column) -> int:
        return INTEGER_SIZES[ColumnType(column.type)]

    def convert(self, column: Column) -> Callable[[bytes], Value]:
        is_signed = not column.is_unsigned
        return lambda data: int.from_bytes(data, "little", signed=is_signed)

    def keeps_values(self, old: Column, new: Column) -> bool:
        low, high = integer_range(old)
        match new.kind:
            case ValueKind.INTEGER:
                new_low, new_high = integer_range(new)
                return new_low <= low and high <= new_high
            case ValueKind.DECIMAL:
                limit = 10 ** (new.size - new.scale)
                return high < limit and -low < limit and (low == 0 or not new.is_unsigned)
        return False

    def reader(self, column: Column) -> Reader:
        size, is_signed, from_bytes = self.fixed_size(column), not column.is_unsigned, int.from_bytes

        def read(data: bytes, offset: int) -> tuple[Value, int]:
            end = offset + size
            if end > len(data):
                raise ValueError(f"an integer of {size} bytes runs over the end of the rows")
            return from_bytes(data[offset:end], "little", signed=is_signed), end

        return read

    def declare(self, column: Column, declared: DeclaredType) -> dict[str, Any]:
        return {"is_unsigned": is_unsigned(declared.text)} if column.is_unsigned is None else {}

    def write(self, declared: DeclaredType) -> WrittenType | None:
        kind = _WRITTEN.get(declared.word)
        if kind is None:
            return None
        has_no_sign = is_unsigned(declared.text)
        return WrittenType(kind, b"", _integer_encoder(INTEGER_SIZES[kind], is_signed=not has_no_sign), has_no_sign)


class Bit(ColumnKind):
    """BIT(n), big-endian in as many bytes as it takes."""

    values = {ColumnType.BIT: ValueKind.BIT}
    words = frozenset(("bit",))
    metadata_sizes = {ColumnType.BIT: 2}

    def layout(self, where: str, column_type: ColumnType, metadata: int, raw: bytes) -> Layout:
        bits = (metadata >> 8) * 8 + (metadata & 0xFF)
        if bits > 64 or metadata & 0xFF > 7:
            raise EventError(f"{where} has bit metadata {metadata:#06x}")
        return Layout(column_type, bits)

    def fixed_size(self, column: Column) -> int:
        return (column.size + 7) // 8

    def keeps_values(self, old: Column, new: Column) -> bool:
        return new.kind is ValueKind.BIT and new.size >= old.size

    def convert(self, column: Column) -> Callable[[bytes], Value]:
        return lambda data: int.from_bytes(data, "big")

    def write(self, declared: DeclaredType) -> WrittenType:
        bits = 1 if declared.length is None else declared.length
        if not 1 <= bits <= 64:
            raise ConfigurationError(f"{declared.where}: BIT({bits}) does not exist")
        return WrittenType(ColumnType.BIT, bytes([bits % 8, bits // 8]), _bit_encoder(bits))


class Year(ColumnKind):
    """YEAR, one byte: years since 1900, or 0 for the zero year."""

    values = {ColumnType.YEAR: ValueKind.YEAR}
    words = frozenset(("year",))
    has_sign = True

    def fixed_size(self, column: Column) -> int:
        return 1

    def convert(self, column: Column) -> Callable[[bytes], Value]:
        return lambda data: data[0] + YEAR_ZERO if data[0] else 0

    def write(self, declared: DeclaredType) -> WrittenType:
        return WrittenType(ColumnType.YEAR, b"", _encode_year, is_unsigned=True)


def _integer_encoder(size: int, *, is_signed: bool) -> Encode:
    def encode(value: object) -> bytes:
        try:
            number = int(value)  # type: ignore[call-overload]
            return int(number).to_bytes(size, "little", signed=is_signed)
        except OverflowError:
            raise ValueError(f"{value!r} does not fit into {size} bytes") from None
        except TypeError:
            raise ValueError(f"{value!r} is no number") from None

    return encode


def _bit_encoder(bits: int) -> Encode:
    def encode(value: object) -> bytes:
        number = int.from_bytes(value, "big") if isinstance(value, bytes) else int(value)  # type: ignore[call-overload]
        if number < 0 or number >> bits:
            raise ValueError(f"{value!r} does not fit into {bits} bits")
        return int(number).to_bytes((bits + 7) // 8, "big")

    return encode


def _encode_year(value: object) -> bytes:
    year = int(value)  # type: ignore[call-overload]
    if year and not 1901 <= year <= 2155:
        raise ValueError(f"{year} is no YEAR")
    return bytes([year - YEAR_ZERO if year else 0])
