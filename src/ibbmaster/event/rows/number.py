"""How the digits of a DECIMAL lie in bytes. Layout: protocol/event/rows.md."""

from __future__ import annotations

WORD_DIGITS = 9  # four bytes hold nine digits ...
PART_SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)  # ... and of fewer digits


def digit_groups(digits: int, scale: int) -> list[int]:
    """How many digits each group of bytes holds, of a DECIMAL(digits, scale)."""
    whole = digits - scale
    counts = [whole % WORD_DIGITS] if whole % WORD_DIGITS else []
    counts += [WORD_DIGITS] * (whole // WORD_DIGITS + scale // WORD_DIGITS)
    return counts + ([scale % WORD_DIGITS] if scale % WORD_DIGITS else [])


def decimal_size(digits: int, scale: int) -> int:
    """Bytes of a value."""
    return sum(PART_SIZES[count] for count in digit_groups(digits, scale))
