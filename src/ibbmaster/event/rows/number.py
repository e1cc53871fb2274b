"""DECIMAL values of rows. Layout: protocol/event/rows.md."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

DIGITS_MAX = 65
SCALE_MAX = 38
WORD_DIGITS = 9  # four bytes hold nine digits ...
PART_SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)  # ... and fewer digits so many bytes


def decimal_size(digits: int, scale: int) -> int:
    """Bytes of a DECIMAL(digits, scale)."""
    whole = digits - scale
    words = whole // WORD_DIGITS + scale // WORD_DIGITS
    return words * 4 + PART_SIZES[whole % WORD_DIGITS] + PART_SIZES[scale % WORD_DIGITS]


def decimal_reader(digits: int, scale: int) -> Callable[[bytes], Decimal]:
    """Reads a DECIMAL: groups of digits, big-endian; the first bit is set unless negative, which inverts all.

    Source: MariaDB 12.3, decimal.c, bin2decimal().
    """
    whole = digits - scale
    groups = [whole % WORD_DIGITS] if whole % WORD_DIGITS else []
    groups += [WORD_DIGITS] * (whole // WORD_DIGITS + scale // WORD_DIGITS)
    groups += [scale % WORD_DIGITS] if scale % WORD_DIGITS else []
    layout = []
    offset = 0
    for count in groups:
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
