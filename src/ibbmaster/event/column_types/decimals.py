"""DECIMAL values of rows. Layout: protocol/event/rows.md."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from ibbmaster.errors import ConfigurationError, EventError
from ibbmaster.event.column_types.kind import ColumnKind, DeclaredType, Layout, WrittenType
from ibbmaster.event.rows.attributes import is_unsigned
from ibbmaster.event.rows.column import Column, ColumnType, ValueKind
from ibbmaster.event.rows.number import PART_SIZES, decimal_size, digit_groups
from ibbmaster.event.rows.value import Encode, Value

DIGITS_MAX = 65
SCALE_MAX = 38
_EXACT = Context(prec=2 * DIGITS_MAX)  # the usual one rounds to 28 digits


class Decimals(ColumnKind):
    """DECIMAL(digits, scale) since MySQL 5.0; the metadata is both."""

    values = {ColumnType.NEWDECIMAL: ValueKind.DECIMAL}
    words = frozenset(("decimal", "numeric", "dec"))
    metadata_sizes = {ColumnType.NEWDECIMAL: 2}
    big_endian = frozenset(metadata_sizes)
    has_sign = True

    def layout(self, where: str, column_type: ColumnType, metadata: int, raw: bytes) -> Layout:
        digits, scale = raw
        if not 0 < digits <= DIGITS_MAX or scale > min(digits, SCALE_MAX):
            raise EventError(f"{where} is DECIMAL({digits},{scale})")
        return Layout(column_type, digits, scale)

    def fixed_size(self, column: Column) -> int:
        return decimal_size(column.size, column.scale)

    def declare(self, column: Column, declared: DeclaredType) -> dict[str, Any]:
        return {"is_unsigned": is_unsigned(declared.text)} if column.is_unsigned is None else {}

    def keeps_values(self, old: Column, new: Column) -> bool:
        has_sign = old.is_unsigned or not new.is_unsigned
        is_wide = new.scale >= old.scale and new.size - new.scale >= old.size - old.scale
        return new.kind is ValueKind.DECIMAL and bool(has_sign) and is_wide

    def convert(self, column: Column) -> Callable[[bytes], Value]:
        return decimal_reader(column.size, column.scale)

    def write(self, declared: DeclaredType) -> WrittenType:
        digits, scale = declared.length or 10, declared.scale
        if not 0 < digits <= DIGITS_MAX or scale > min(digits, SCALE_MAX):
            raise ConfigurationError(f"{declared.where}: DECIMAL({digits},{scale}) does not exist")
        encode = _encoder(digits, scale)
        return WrittenType(ColumnType.NEWDECIMAL, bytes([digits, scale]), encode, is_unsigned(declared.text))


def decimal_reader(digits: int, scale: int) -> Callable[[bytes], Decimal]:
    """Reads a DECIMAL: groups of digits, big-endian; the first bit is set unless negative, which inverts all.

    Source: MariaDB 12.3, decimal.c, bin2decimal().
    """
    layout = []
    offset = 0
    for count in digit_groups(digits, scale):
        size = PART_SIZES[count]
        layout.append((offset, offset + size, 10**count))
        offset += size
    size = offset
    sign_bit = 1 << (8 * size - 1)
    all_bits = (1 << 8 * size) - 1

    def read(data: bytes) -> Decimal:
        packed = int.from_bytes(data, "big") ^ sign_bit
        is_negative = bool(packed & sign_bit)
        if is_negative:
            packed ^= all_bits
        plain = packed.to_bytes(size, "big")
        value = 0
        for start, end, limit in layout:
            part = int.from_bytes(plain[start:end], "big")
            if part >= limit:
                raise ValueError(f"decimal {data.hex()} has a group above {limit - 1}")
            value = value * limit + part
        return Decimal((int(is_negative and value > 0), tuple(map(int, str(value))), -scale))

    return read


def _encoder(digits: int, scale: int) -> Encode:
    """Source: MariaDB 12.3, decimal.c, decimal2bin()."""
    counts, size, limit = digit_groups(digits, scale), decimal_size(digits, scale), 10**digits

    def encode(value: object) -> bytes:
        try:
            number = Decimal(str(value))
        except InvalidOperation:
            raise ValueError(f"{value!r} is no number") from None
        scaled = number.scaleb(scale, _EXACT)
        if not number.is_finite() or scaled != scaled.to_integral_value(context=_EXACT) or scaled.copy_abs() >= limit:
            raise ValueError(f"{value} does not fit into DECIMAL({digits},{scale})")
        text = str(abs(int(scaled))).zfill(digits)
        packed, start = b"", 0
        for count in counts:
            packed += int(text[start : start + count]).to_bytes(PART_SIZES[count], "big")
            start += count
        plain = int.from_bytes(packed, "big") ^ (1 << (8 * size - 1))
        if scaled < 0:
            plain ^= (1 << 8 * size) - 1
        return plain.to_bytes(size, "big")

    return encode
