"""Values as the text that MariaDB shows, for kernels that write it, and a kernel that writes a column of them.

The references: `ibbmaster.event.column_types`.
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, uint8, uint64

from ibbmaster.event.column_types.net import (
    REORDERED_VARIANT_BYTE,
    REORDERED_VERSION_BYTE,
    REORDERED_VERSION_END,
    STORED_SEGMENTS,
    UUID_VARIANT_BIT,
)
from ibbmaster.kernel.fields import TextOp
from ibbmaster.kernel.memory import inlined, jit
from ibbmaster.kernel.numbers import PART_SIZES, POWERS, WORD_DIGITS, big

LIMITS = np.array([10**digits for digits in range(20)], dtype=np.uint64)
MINUS, POINT, COLON, SPACE, ZERO = 45, 46, 58, 32, 48
PAIRS = np.frombuffer(b"".join(b"%02d" % number for number in range(100)), dtype=np.uint8)  # two digits, side by side
HEX = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), dtype=np.uint8)  # two digits, side by side
AS_READ = np.arange(16, dtype=np.int64)
AS_STORED = np.zeros(16, dtype=np.int64)  # where each byte of the text is, in segments in reverse order
AS_STORED[[place for start, end in STORED_SEGMENTS for place in range(start, end)]] = np.arange(16)
DASH_BEFORE = np.isin(AS_READ, (4, 6, 8, 10)).astype(np.uint8)
WORDS = 8  # of an INET6


@inlined
def put_two(out, at, value):
    """Write two digits; returns the offset after them."""
    pair = uint64(2) * uint64(value)
    out[at], out[at + 1] = PAIRS[pair], PAIRS[pair + uint64(1)]
    return at + 2


@jit
def put_digits(out, at, value, count):
    """Write the last `count` digits of a number; returns the offset after them."""
    place = at + count - 1
    while place > at:
        rest = value // uint64(100)
        pair = uint64(2) * (value - uint64(100) * rest)
        out[place - 1], out[place] = PAIRS[pair], PAIRS[pair + uint64(1)]
        value = rest
        place -= 2
    if place == at:
        out[place] = uint8(ZERO + value % uint64(10))
    return at + count


@jit
def put_number(out, at, value, width):
    """Write a number with zeros in front up to a width; returns the offset after it."""
    count = 1
    while count < 20 and value >= LIMITS[uint64(count)]:
        count += 1
    return put_digits(out, at, value, max(count, width))


@jit
def put_gtid(out, at, domain, server, seq_no):
    """Write a GTID; returns the offset after it."""
    at = put_number(out, at, uint64(domain), 1)
    out[at] = MINUS
    at = put_number(out, at + 1, uint64(server), 1)
    out[at] = MINUS
    return put_number(out, at + 1, uint64(seq_no), 1)


@inlined
def date_of(days):
    """Year, month and day of a day since 1970."""
    shifted = days + 719468
    era = shifted // 146097
    day_of_era = shifted - era * 146097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    month += 3 if month < 10 else -9
    return era * 400 + year_of_era + (1 if month <= 2 else 0), month, day


@jit
def put_date(out, at, year, month, day):
    """Write a date; returns the offset after it."""
    at = put_digits(out, at, uint64(year), 4)
    out[at] = MINUS
    at = put_two(out, at + 1, month)
    out[at] = MINUS
    return put_two(out, at + 1, day)


@jit
def put_clock(out, at, hour, minute, second, microsecond, digits):
    """Write hours, minutes, seconds and some digits of a second; returns the offset after them."""
    at = put_number(out, at, uint64(hour), 2)
    out[at] = COLON
    at = put_two(out, at + 1, minute)
    out[at] = COLON
    at = put_two(out, at + 1, second)
    if digits:
        out[at] = POINT
        at = put_digits(out, at + 1, uint64(microsecond // POWERS[6 - digits]), digits)
    return at


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


@inlined
def byte_of(data, start, size, index):
    """A byte of a string of fixed length, which travels without the zeros at its end."""
    return int64(data[start + index]) if index < size else int64(0)


@inlined
def put_uuid(out, at, data, start, size):
    """Write a UUID; returns the offset after it."""
    is_reordered = (
        byte_of(data, start, size, REORDERED_VARIANT_BYTE) & UUID_VARIANT_BIT != 0
        and 0 < byte_of(data, start, size, REORDERED_VERSION_BYTE) < REORDERED_VERSION_END
    )
    for index in range(16):
        if DASH_BEFORE[index]:
            out[at] = MINUS
            at += 1
        byte = byte_of(data, start, size, AS_STORED[index] if is_reordered else index)
        out[at], out[at + 1] = HEX[uint64(2 * byte)], HEX[uint64(2 * byte + 1)]
        at += 2
    return at


@jit
def put_inet4(out, at, data, start, size, first):
    """Write four bytes from number `first` on as dotted decimals; returns the offset after them."""
    for index in range(first, first + 4):
        if index > first:
            out[at] = POINT
            at += 1
        at = put_number(out, at, uint64(byte_of(data, start, size, index)), 1)
    return at


@inlined
def word_of(data, start, size, index):
    """A word of an INET6."""
    return byte_of(data, start, size, 2 * index) << 8 | byte_of(data, start, size, 2 * index + 1)


@inlined
def put_word(out, at, word):
    """Write a word in hexadecimal digits without zeros in front; returns the offset after it."""
    shift = 12
    while shift and not word >> shift:
        shift -= 4
    while shift >= 0:
        digit = word >> shift & 15
        out[at] = uint8(digit + 48 if digit < 10 else digit + 87)
        at += 1
        shift -= 4
    return at


@jit
def put_inet6(out, at, data, start, size):
    """Write an INET6; returns the offset after it."""
    gap, gap_size, begin = 0, 0, 0
    for index in range(WORDS + 1):
        if index == WORDS or word_of(data, start, size, index):
            if index - begin > gap_size:
                gap, gap_size = begin, index - begin
            begin = index + 1
    is_mapped = gap == 0 and gap_size == 5 and word_of(data, start, size, 5) == 0xFFFF
    has_decimals = is_mapped or (gap == 0 and gap_size == 6)
    count = 6 if has_decimals else WORDS
    index = 0
    while index < count:
        if gap_size and index == gap:
            out[at], out[at + 1] = COLON, COLON
            at += 2
            index += gap_size
            continue
        if index and index != gap + gap_size:
            out[at] = COLON
            at += 1
        at = put_word(out, at, word_of(data, start, size, index))
        index += 1
    if has_decimals:
        if is_mapped:
            out[at] = COLON
            at += 1
        at = put_inet4(out, at, data, start, size, 12)
    return at


@jit
def put_time(out, at, data, start, digits):
    """Write a TIME with some digits of a second; returns the offset after it, -1 if it is none."""
    part_size = (digits + 1) // 2
    packed = int64(big(data, start, 3 + part_size)) - (int64(0x800000) << 8 * part_size)
    if packed < 0:
        out[at] = MINUS
        at += 1
        packed = -packed
    value = packed >> 8 * part_size
    fraction = packed & (int64(1) << 8 * part_size) - 1
    if fraction >= POWERS[2 * part_size]:
        return int64(-1)
    microsecond = fraction * POWERS[6 - 2 * part_size]
    return put_clock(out, at, value >> 12 & 1023, value >> 6 & 63, value & 63, microsecond, digits)


@jit
def write_texts(data, starts, sizes, valid, count, op, argument, offsets, out):
    """Write values as texts side by side; absent ones are empty. `out` has room for the longest ones.

    `argument` is the digits of a second of a TIME, and the most bytes of the others.
    Returns how many bytes they take, -1 if one of them is for the reference.
    """
    at = int64(0)
    offsets[0] = 0
    for index in range(count):
        if valid[index]:
            start, size = starts[index], sizes[index]
            if op == TextOp.TIME:
                at = put_time(out, at, data, start, argument)
            elif size > argument:
                at = int64(-1)
            elif op == TextOp.UUID:
                at = put_uuid(out, at, data, start, size)
            elif op == TextOp.INET6:
                at = put_inet6(out, at, data, start, size)
            else:
                at = put_inet4(out, at, data, start, size, 0)
            if at < 0:
                return at
        offsets[index + 1] = int32(at)
    return at
