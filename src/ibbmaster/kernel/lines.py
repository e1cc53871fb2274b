"""Kernels that write changes of rows as lines of text: steps say what a line has.

The references: the printers of `ibbmaster.printing`.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint8, uint64

from ibbmaster.kernel.digits import (
    COLON,
    MINUS,
    SPACE,
    date_of,
    put_clock,
    put_date,
    put_decimal,
    put_gtid,
    put_inet4,
    put_inet6,
    put_number,
    put_time,
    put_two,
    put_uuid,
)
from ibbmaster.kernel.fields import (
    KIND_BITS,
    TEXT_SIZES,
    UPDATE_BEFORE,
    GroupColumn,
    LineColumn,
    LineField,
    LineOp,
    LineStatus,
)
from ibbmaster.kernel.memory import copy, copy32, inlined, jit, load64, store64
from ibbmaster.kernel.numbers import big, fraction_of, little

BACKSLASH, DELETED, LETTER_T, LETTER_U, LETTER_Z, EQUALS = 92, 127, 84, 117, 90, 61
DAY_S = 86_400
SLACK = 64  # bytes of room that every step has beyond what is counted
ONES = uint64(0x0101010101010101)
HIGH_BITS = uint64(0x8080808080808080)
SPACES = uint64(0x2020202020202020)
QUOTES = uint64(0x2222222222222222)
BACKSLASHES = uint64(0x5C5C5C5C5C5C5C5C)
DELETES = uint64(0x7F7F7F7F7F7F7F7F)
LETTERS_64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", dtype=np.uint8)
HEX_DIGITS = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
SHORT = np.zeros(128, dtype=np.uint8)  # the letter after a backslash of what has one
for _letter, _short in zip(b'"\\\b\f\n\r\t', b'"\\bfnrt', strict=True):
    SHORT[_letter] = _short
VALUE_SIZE_MAX = max(TEXT_SIZES) + 2  # bytes of values other than strings and decimals


@inlined
def put(out, at, source, start, size):
    """Copy some bytes, with room for 32 after them; returns the offset after them."""
    if size <= 32 and start + 32 <= len(source):
        copy32(out, at, source, start)
    else:
        copy(out, at, source, start, size)
    return at + size


@inlined
def put_escape(out, at, letter):
    """Write the number of a letter in four hexadecimal digits; returns the offset after it."""
    out[at], out[at + 1] = BACKSLASH, LETTER_U
    out[at + 2], out[at + 3] = HEX_DIGITS[letter >> 12 & 15], HEX_DIGITS[letter >> 8 & 15]
    out[at + 4], out[at + 5] = HEX_DIGITS[letter >> 4 & 15], HEX_DIGITS[letter & 15]
    return at + 6


@inlined
def is_rest(byte):
    """Whether a byte goes on with a letter that has begun."""
    return byte & 0xC0 == 0x80


@jit
def letter_at(data, at, end):
    """The letter of several bytes that begins there, and its bytes; none: 0 bytes."""
    first = int64(data[at])
    if 0xC2 <= first < 0xE0 and at + 1 < end and is_rest(data[at + 1]):
        return (first & 31) << 6 | int64(data[at + 1] & 63), int64(2)
    if 0xE0 <= first < 0xF0 and at + 2 < end and is_rest(data[at + 1]) and is_rest(data[at + 2]):
        letter = (first & 15) << 12 | int64(data[at + 1] & 63) << 6 | int64(data[at + 2] & 63)
        if letter >= 0x800 and not 0xD800 <= letter < 0xE000:
            return letter, int64(3)
    if 0xF0 <= first < 0xF5 and at + 3 < end and is_rest(data[at + 1]) and is_rest(data[at + 2]):
        if is_rest(data[at + 3]):
            letter = (first & 7) << 18 | int64(data[at + 1] & 63) << 12
            letter |= int64(data[at + 2] & 63) << 6 | int64(data[at + 3] & 63)
            if 0x10000 <= letter < 0x110000:
                return letter, int64(4)
    return int64(0), int64(0)


@jit
def put_json(out, at, data, start, size):
    """Write a text in UTF-8 as a string of JSON without its quotes; returns the offset after it, -1 if it is none."""
    end = start + size
    while start < end:
        left = end - start
        if start + 8 <= len(data):
            word = load64(data, start)
            if left < 8:
                shift = uint64(8 * left)
                word = word & ((uint64(1) << shift) - uint64(1)) | SPACES << shift
            odd = (word - SPACES) | ((word ^ QUOTES) - ONES) | ((word ^ BACKSLASHES) - ONES)
            odd |= ((word ^ DELETES) - ONES) | word
            if odd & HIGH_BITS == uint64(0):
                store64(out, at, int64(word))
                taken = min(left, 8)
                start += taken
                at += taken
                continue
        byte = int64(data[start])
        if byte >= 0x80:
            letter, taken = letter_at(data, start, end)
            if taken == 0:
                return int64(-1)
            is_seen = letter > 0x9F and not (0x2028 <= letter <= 0x202E or 0x2066 <= letter <= 0x2069)
            if is_seen and letter != 0xFEFF:
                for index in range(taken):
                    out[at + index] = data[start + index]
                at += taken
            else:
                at = put_escape(out, at, letter)
            start += taken
            continue
        if SHORT[byte]:
            out[at], out[at + 1] = BACKSLASH, SHORT[byte]
            at += 2
        elif byte < SPACE or byte == DELETED:
            at = put_escape(out, at, byte)
        else:
            out[at] = uint8(byte)
            at += 1
        start += 1
    return at


@jit
def put_base64(out, at, data, start, size, filled):
    """Write bytes as base64, with zeros up to `filled` bytes; returns the offset after them."""
    total = max(size, filled)
    index = 0
    while index < total:
        word = int64(0)
        for place in range(index, index + 3):
            word = word << 8 | (int64(data[start + place]) if place < size else 0)
        out[at], out[at + 1] = LETTERS_64[word >> 18], LETTERS_64[word >> 12 & 63]
        out[at + 2] = LETTERS_64[word >> 6 & 63] if index + 1 < total else uint8(EQUALS)
        out[at + 3] = LETTERS_64[word & 63] if index + 2 < total else uint8(EQUALS)
        at += 4
        index += 3
    return at


@inlined
def wide_byte(low, high, index):
    """A byte of a number of 128 bits, counted from the lowest."""
    half = low if index < 8 else high
    return uint64(half) >> uint64(8 * (index & 7)) & uint64(255)


@jit
def put_wide_base64(out, at, low, high):
    """Write a number of 128 bits as base64 of the fewest bytes that hold it, the highest first; returns what is after.

    `low` and `high` are its halves, the second one with the sign.
    """
    size = int64(16)
    sign = uint64(high >> 63)
    while size > 1 and wide_byte(low, high, size - 1) == sign & uint64(255):
        if wide_byte(low, high, size - 2) >> uint64(7) != sign & uint64(1):
            break
        size -= 1
    index = size - 1
    while index >= 0:
        word = wide_byte(low, high, index) << uint64(16)
        if index > 0:
            word |= wide_byte(low, high, index - 1) << uint64(8)
        if index > 1:
            word |= wide_byte(low, high, index - 2)
        out[at], out[at + 1] = LETTERS_64[word >> uint64(18)], LETTERS_64[word >> uint64(12) & uint64(63)]
        out[at + 2] = LETTERS_64[word >> uint64(6) & uint64(63)] if index > 0 else uint8(EQUALS)
        out[at + 3] = LETTERS_64[word & uint64(63)] if index > 1 else uint8(EQUALS)
        at += 4
        index -= 3
    return at


@jit
def put_day(out, at, days):
    """Write the date of a day since 1970; returns the offset after it."""
    year, month, day = date_of(days)
    return put_date(out, at, year, month, day)


@jit
def put_timestamp(out, at, data, start, size, digits, letter):
    """Write a TIMESTAMP in UTC, with a letter before its clock; returns the offset after it, or -1 if it is none."""
    seconds = int64(big(data, start, 4))
    microsecond = fraction_of(data, start + 4, digits)
    if microsecond < 0:
        return int64(-1)
    is_zero = seconds == 0
    for index in range(4, size):
        if data[start + index]:
            is_zero = False  # also a digit that is not shown
    if is_zero and letter == LETTER_T:
        return int64(-1)
    if is_zero:
        at = put_date(out, at, 0, 0, 0)
    else:
        at = put_day(out, at, seconds // DAY_S)
    out[at] = uint8(letter)
    clock = seconds % DAY_S
    return put_clock(out, at + 1, clock // 3600, clock // 60 % 60, clock % 60, microsecond, digits)


@jit
def put_datetime(out, at, data, start, digits):
    """Write a DATETIME; returns the offset after it, or -1 if it is none."""
    value = int64(big(data, start, 5)) - (int64(1) << 39)
    microsecond = fraction_of(data, start + 5, digits)
    if value < 0 or microsecond < 0:
        return int64(-1)
    year_month = value >> 22
    year = year_month // 13
    if year > 9999:
        return int64(-1)
    at = put_date(out, at, year, year_month - 13 * year, value >> 17 & 31)
    out[at] = SPACE
    return put_clock(out, at + 1, value >> 12 & 31, value >> 6 & 63, value & 63, microsecond, digits)


@jit
def put_plain_date(out, at, data, start):
    """Write a DATE; returns the offset after it, or -1 if it is none."""
    value = int64(little(data, start, 3))
    if value >> 9 > 9999:
        return int64(-1)
    return put_date(out, at, value >> 9, value >> 5 & 15, value & 31)


@jit
def put_shown(out, at, data, start, size, op, argument, letter):
    """Write what has quotes and is no string of letters; returns the offset after it, or -1 if it is none."""
    if op == LineOp.DATETIME:
        return put_datetime(out, at, data, start, argument)
    if op == LineOp.TIMESTAMP:
        return put_timestamp(out, at, data, start, size, argument, letter)
    if op == LineOp.DATE:
        return put_plain_date(out, at, data, start)
    if op == LineOp.TIME:
        return put_time(out, at, data, start, argument)
    if size > argument:
        return int64(-1)
    if op == LineOp.UUID:
        return put_uuid(out, at, data, start, size)
    if op == LineOp.INET4:
        return put_inet4(out, at, data, start, size, 0)
    return put_inet6(out, at, data, start, size)


@inlined
def put_integer(out, at, value, has_sign):
    """Write a number; returns the offset after it."""
    number = uint64(value)
    if has_sign and value < 0:
        out[at] = MINUS
        at += 1
        number = ~number + uint64(1)
    return put_number(out, at, number, 1)


@jit
def put_letters(out, at, data, start, size, choices, first, store):
    """Write single bytes as the texts they stand for; returns the offset after them, or -1 if one stands for none."""
    for index in range(start, start + size):
        choice = first + int64(data[index])
        text_size = choices[choice, 1]
        if text_size < 0:
            return int64(-1)
        for place in range(text_size):
            out[at + place] = store[choices[choice, 0] + place]
        at += text_size
    return at


@jit
def write_heads(groups, note_offsets, notes, first, count, steps, store, head, offsets, out):
    """Write head number `head` of each group after those before it; returns how many bytes all take.

    `out` has room for them.
    """
    at = int64(0) if head == 0 else offsets[head * len(groups)]
    for group in range(len(groups)):
        offsets[head * len(groups) + group] = at
        for step in range(first, first + count):
            at = put(out, at, store, steps[step, LineColumn.START], steps[step, LineColumn.SIZE])
            op = steps[step, LineColumn.OP]
            if op == LineOp.GTID:
                domain, server = groups[group, GroupColumn.DOMAIN], groups[group, GroupColumn.SERVER]
                at = put_gtid(out, at, domain, server, groups[group, GroupColumn.SEQ_NO])
            elif op == LineOp.MOMENT:
                seconds = groups[group, GroupColumn.TIMESTAMP]
                at = put_day(out, at, seconds // DAY_S)
                out[at] = LETTER_T
                clock = seconds % DAY_S
                at = put_two(out, at + 1, clock // 3600)
                out[at] = COLON
                at = put_two(out, at + 1, clock // 60 % 60)
                out[at] = COLON
                at = put_two(out, at + 1, clock % 60)
                out[at] = LETTER_Z
                at += 1
            elif op == LineOp.GROUP:
                value = groups[group, steps[step, LineColumn.FIRST]] * steps[step, LineColumn.SECOND]
                at = put_number(out, at, uint64(value), 1)
            elif op == LineOp.NOTE:
                at = put(out, at, notes, note_offsets[group], note_offsets[group + 1] - note_offsets[group])
    offsets[(head + 1) * len(groups)] = at
    return at


@jit
def write_lines(data, state, plan, rows, out):
    """Write rows as lines until there are no more, or no more room; of a line that is not whole nothing counts."""
    programs, steps, store, choices, head_offsets, heads, side_offsets, sides = plan
    values, valid, row_groups, row_kinds = rows
    row, at = state[LineField.ROW], state[LineField.OUT]
    groups = state[LineField.GROUPS]
    room = len(out) - SLACK
    status = LineStatus.END
    while row < state[LineField.ROWS]:
        kind = row_kinds[row]
        group = row_groups[row]
        number = state[LineField.NUMBER] if group == state[LineField.GROUP] else 0
        program = kind >> KIND_BITS
        begin = at
        for step in range(programs[program, 0], programs[program, 0] + programs[program, 1]):
            text_size = steps[step, LineColumn.SIZE]
            if at + text_size + VALUE_SIZE_MAX > room:
                status = LineStatus.FULL
                break
            at = put(out, at, store, steps[step, LineColumn.START], text_size)
            op, first, second = (
                steps[step, LineColumn.OP],
                steps[step, LineColumn.FIRST],
                steps[step, LineColumn.SECOND],
            )
            if op == LineOp.TEXT:
                continue
            if op == LineOp.HEAD:
                start = head_offsets[first * groups + group]
                size = head_offsets[first * groups + group + 1] - start
                if at + size > room:
                    status = LineStatus.FULL
                    break
                at = put(out, at, heads, start, size)
                continue
            if op == LineOp.NUMBER:
                at = put_number(out, at, uint64(number), 1)
                number += 1
                continue
            place = row + steps[step, LineColumn.IS_AFTER]
            if op == LineOp.SIDE:
                side = place - state[LineField.SIDE_ROW]
                start = side_offsets[first, side]
                size = side_offsets[first, side + 1] - start
                if at + size > room:
                    status = LineStatus.FULL
                    break
                at = put(out, at, sides, start, size)
                continue
            slot = steps[step, LineColumn.SLOT]
            if not valid[slot, place]:
                at = put(out, at, store, steps[step, LineColumn.NULL], steps[step, LineColumn.NULL_SIZE])
                continue
            value = values[slot, place]
            size = int64(0)
            if op == LineOp.CHOICE:
                is_known = 0 <= value < second
                size = choices[first + value, 1] if is_known else int64(-1)
                room_needed = size
            elif op == LineOp.INTEGER or op == LineOp.UNSCALED:
                room_needed = int64(0)
            else:
                size = values[slot + 1, place]
                room_needed = 6 * max(size, first)
            opening, closing = steps[step, LineColumn.OPENING_SIZE], steps[step, LineColumn.CLOSING_SIZE]
            if at + room_needed + opening + closing + VALUE_SIZE_MAX > room:
                status = LineStatus.FULL
                break
            at = put(out, at, store, steps[step, LineColumn.OPENING], opening)
            if op == LineOp.INTEGER:
                end = put_integer(out, at, value // second if second else value, first)
            elif op == LineOp.UNSCALED:
                end = put_wide_base64(out, at, value, values[slot + 1, place])
            elif op == LineOp.CHOICE:
                end = put(out, at, store, choices[first + value, 0], size) if size >= 0 else int64(-1)
            elif op == LineOp.UTF8:
                end = put_json(out, at, data, value, size)
            elif op == LineOp.DECIMAL:
                end = put_decimal(out, at, data, value, first, second)
            elif op == LineOp.BASE64:
                end = put_base64(out, at, data, value, size, first)
            elif op == LineOp.LETTERS:
                end = put_letters(out, at, data, value, size, choices, first, store)
            else:
                end = put_shown(out, at, data, value, size, op, first, second)
            if end < 0:
                state[LineField.STEP] = step
                status = LineStatus.FALLBACK
                break
            at = put(out, end, store, steps[step, LineColumn.CLOSING], closing)
        if status != LineStatus.END:
            at = begin
            break
        state[LineField.GROUP], state[LineField.NUMBER] = group, number
        row += 2 if kind & (1 << KIND_BITS) - 1 == UPDATE_BEFORE else 1
    state[LineField.ROW], state[LineField.OUT] = row, at
    return status
