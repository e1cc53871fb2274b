"""Numbers, days and fractions of a second as rows hold them, for kernels. The references: `ibbmaster.event.rows`."""

from __future__ import annotations

import numpy as np
from numba import int64, uint64

from ibbmaster.event.rows.number import PART_SIZES as _PART_SIZES
from ibbmaster.event.rows.number import WORD_DIGITS as _WORD_DIGITS
from ibbmaster.kernel.memory import inlined, load64, load64_big

# Arrays: to pick from a tuple by a number that is not known ahead is a chain of branches.
PART_SIZES = np.array(_PART_SIZES, dtype=np.int64)
WORD_DIGITS = int(_WORD_DIGITS)
SMALL_DIGITS = 19  # of a number that fits into 64 bits
POWERS = np.array([10**digits for digits in range(10)], dtype=np.int64)


@inlined
def little(data, offset, size):
    """A number of up to 8 bytes, the lowest first."""
    if size < 8 and offset + 8 <= len(data):
        return load64(data, offset) & ((uint64(1) << uint64(8 * size)) - uint64(1))
    value = uint64(0)
    for index in range(size):
        value |= uint64(data[offset + index]) << uint64(8 * index)
    return value


@inlined
def big(data, offset, size):
    """A number of 1 to 8 bytes, the highest first."""
    if offset + 8 <= len(data):
        return load64_big(data, offset) >> uint64(64 - 8 * size)
    value = uint64(0)
    for index in range(size):
        value = (value << uint64(8)) | uint64(data[offset + index])
    return value


@inlined
def days_of(year, month, day):
    """Days since 1970 of a day of the Gregorian calendar; False if there is no such day from the year 1 to 9999."""
    if year < 1 or year > 9999 or month < 1 or month > 12 or day < 1:
        return 0, False
    # Years that begin in March, so that the leap day is their last; unsigned numbers are divided sooner.
    is_early = uint64(month <= 2)
    years = uint64(year) - is_early
    months = uint64(month) + uint64(12) * is_early - uint64(3)
    centuries = years // uint64(100)
    before = years * uint64(365) + (years >> uint64(2)) - centuries + (centuries >> uint64(2))
    before += (uint64(153) * months + uint64(2)) // uint64(5)
    if month == 2:
        length = 28 + (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))
    else:
        length = 30 + ((month + (month >> 3)) & 1)
    return int64(before) + day - 719469, day <= length


@inlined
def fraction_of(data, offset, digits):
    """Microseconds of the fraction of a second that is stored with `digits` digits; -1 if it is none."""
    if digits == 0:
        return 0
    size = (digits + 1) // 2
    value = int64(big(data, offset, size))
    if value >= POWERS[2 * size]:
        return -1
    if digits % 2 == 1:
        value = value // 10 * 10  # one digit more is stored than there is
    return value * POWERS[6 - 2 * size]


@inlined
def read_decimal(data, offset, digits, scale):
    """A DECIMAL of up to 38 digits as a number of 128 bits: its lower half, its upper half, and whether it is one."""
    whole = digits - scale
    is_negative = data[offset] & 0x80 == 0
    low, high = uint64(0), uint64(0)
    group = 0
    if 0 < whole < WORD_DIGITS and 0 < scale < WORD_DIGITS:  # two parts, as most have
        size, rest = PART_SIZES[whole], PART_SIZES[scale]
        part = big(data, offset, size) ^ (uint64(0x80) << uint64(8 * size - 8))
        behind = big(data, offset + size, rest)
        if is_negative:
            part ^= (uint64(1) << uint64(8 * size)) - uint64(1)
            behind ^= (uint64(1) << uint64(8 * rest)) - uint64(1)
        limit = uint64(POWERS[scale])
        low = part * limit + behind
        if is_negative:
            low = ~low + uint64(1)
            high = ~high + (uint64(1) if low == uint64(0) else uint64(0))
        return low, high, part < uint64(POWERS[whole]) and behind < limit
    first, last = whole % WORD_DIGITS, scale % WORD_DIGITS
    words = whole // WORD_DIGITS + scale // WORD_DIGITS
    total = (1 if first else 0) + words + (1 if last else 0)
    while group < total:
        count = WORD_DIGITS
        if group == 0 and first:
            count = first
        elif group == total - 1 and last:
            count = last
        size = PART_SIZES[count]
        part = big(data, offset, size)
        if group == 0:
            part ^= uint64(0x80) << uint64(8 * size - 8)
        if is_negative:
            part ^= (uint64(1) << uint64(8 * size)) - uint64(1)
        limit = uint64(POWERS[count])
        if part >= limit:
            return low, high, False
        if digits <= SMALL_DIGITS:
            low = low * limit + part
        else:
            bottom = (low & uint64(0xFFFFFFFF)) * limit + part
            top = (low >> uint64(32)) * limit + (bottom >> uint64(32))
            low = (top << uint64(32)) | (bottom & uint64(0xFFFFFFFF))
            high = high * limit + (top >> uint64(32))
        offset += size
        group += 1
    if is_negative:
        low = ~low + uint64(1)
        high = ~high + (uint64(1) if low == uint64(0) else uint64(0))
    return low, high, True
