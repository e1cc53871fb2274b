"""Numbers, days and clocks as text, for kernels that write it."""

from __future__ import annotations

import numpy as np
from numba import uint8, uint64

from ibbmaster.kernel.memory import inlined, jit
from ibbmaster.kernel.numbers import POWERS

LIMITS = np.array([10**digits for digits in range(20)], dtype=np.uint64)
MINUS, POINT, COLON, SPACE, ZERO = 45, 46, 58, 32, 48
PAIRS = np.frombuffer(b"".join(b"%02d" % number for number in range(100)), dtype=np.uint8)  # two digits, side by side


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
