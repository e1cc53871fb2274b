"""The kernel that writes a DECIMAL as text. The reference: `ibbmaster.event.rows.kinds.decimals`."""

from __future__ import annotations

from numba import int64, uint64

from ibbmaster.kernel.digits import MINUS, POINT, ZERO, put_digits, put_number
from ibbmaster.kernel.memory import jit
from ibbmaster.kernel.numbers import PART_SIZES, POWERS, WORD_DIGITS, big


@jit
def put_decimal(out, at, data, start, digits, scale):
    """Write a DECIMAL; returns the offset after it, or -1 if it is none."""
    is_negative = data[start] & 0x80 == 0
    whole = digits - scale
    first, last = whole % WORD_DIGITS, scale % WORD_DIGITS
    whole_groups = whole // WORD_DIGITS + (1 if first else 0)
    total = whole_groups + scale // WORD_DIGITS + (1 if last else 0)
    begin = at
    at += 1  # for the sign
    has_digit = False
    is_zero = True
    for group in range(total):
        count = WORD_DIGITS
        if group == 0 and first:
            count = first
        elif group == total - 1 and last:
            count = last
        size = PART_SIZES[count]
        part = big(data, start, size)
        if group == 0:
            part ^= uint64(0x80) << uint64(8 * size - 8)
        if is_negative:
            part ^= (uint64(1) << uint64(8 * size)) - uint64(1)
        if part >= uint64(POWERS[count]):
            return int64(-1)
        start += size
        if part:
            is_zero = False
        if group >= whole_groups:
            if group == whole_groups:
                if not has_digit:
                    out[at] = ZERO
                    at += 1
                out[at] = POINT
                at += 1
            at = put_digits(out, at, part, count)
            has_digit = True
        elif has_digit:
            at = put_digits(out, at, part, count)
        elif part:
            at = put_number(out, at, part, 1)
            has_digit = True
    if not has_digit:
        out[at] = ZERO
        at += 1
    if is_negative and not is_zero:
        out[begin] = MINUS
        return at
    for place in range(begin, at - 1):
        out[place] = out[place + 1]
    return at - 1
