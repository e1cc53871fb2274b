"""A kernel that writes a column of values as the text MariaDB shows. The references: `ibbmaster.event.rows.kinds`."""

from __future__ import annotations

import numpy as np
from numba import int32, int64, uint8, uint64

from ibbmaster.event.rows.kinds.net import (
    REORDERED_VARIANT_BYTE,
    REORDERED_VERSION_BYTE,
    REORDERED_VERSION_END,
    STORED_SEGMENTS,
    UUID_VARIANT_BIT,
)
from ibbmaster.kernel.digits import COLON, MINUS, POINT, put_clock, put_number
from ibbmaster.kernel.fields import TextOp
from ibbmaster.kernel.memory import inlined, jit
from ibbmaster.kernel.numbers import POWERS, big

HEX = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), dtype=np.uint8)  # two digits, side by side
AS_READ = np.arange(16, dtype=np.int64)
AS_STORED = np.zeros(16, dtype=np.int64)  # where each byte of the text is, in segments in reverse order
AS_STORED[[place for start, end in STORED_SEGMENTS for place in range(start, end)]] = np.arange(16)
DASH_BEFORE = np.isin(AS_READ, (4, 6, 8, 10)).astype(np.uint8)
WORDS = 8  # of an INET6


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
