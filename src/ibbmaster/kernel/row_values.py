"""A kernel that writes stored rows as the packets of an answer. The reference: `ibbmaster.select.row_values`."""

from __future__ import annotations

from numba import int64, uint8, uint64

from ibbmaster.kernel.digits import (
    MINUS,
    POINT,
    SPACE,
    ZERO,
    date_of,
    put_clock,
    put_date,
    put_decimal,
    put_digits,
    put_number,
)
from ibbmaster.kernel.fields import PACKET_MAX, ROW_HEAD, AnswerField, AnswerStatus, LayoutColumn, ValueColumn, ValueOp
from ibbmaster.kernel.memory import copy, copy32, inlined, jit, load16, load32
from ibbmaster.kernel.numbers import POWERS, big, fraction_of, little

NULL = 0xFB
TWO_BYTES, THREE_BYTES = 0xFC, 0xFD
SHORT_MAX = 250
PACKET_HEADER = 4
DAY_S = 86_400


@inlined
def put_length(out, at, size):
    """Write the length of a text; returns the offset behind it."""
    if size <= SHORT_MAX:
        out[at] = uint8(size)
        return at + 1
    if size < 1 << 16:
        out[at], out[at + 1], out[at + 2] = uint8(TWO_BYTES), uint8(size & 255), uint8(size >> 8)
        return at + 3
    out[at], out[at + 1], out[at + 2], out[at + 3] = (
        uint8(THREE_BYTES),
        uint8(size & 255),
        uint8(size >> 8 & 255),
        uint8(size >> 16),
    )
    return at + 4


@inlined
def put_bytes(out, at, source, start, size):
    """Copy some bytes; returns the offset behind them."""
    if size <= 32 and start + 32 <= len(source) and at + 32 <= len(out):
        copy32(out, at, source, start)
    else:
        copy(out, at, source, start, size)
    return at + size


@inlined
def put_little(out, at, value, size):
    """Write a number of some bytes, the lowest first; returns the offset behind it."""
    for index in range(size):
        out[at + index] = uint8(value >> uint64(8 * index) & uint64(255))
    return at + size


@jit
def put_moment_parts(out, at, year, month, day, hour, minute, second, microsecond):
    """Write a moment as the binary protocol has it; returns the offset behind it."""
    size = 0
    if microsecond:
        size = 11
    elif hour or minute or second:
        size = 7
    elif year or month or day:
        size = 4
    out[at] = uint8(size)
    at += 1
    if size >= 4:
        at = put_little(out, at, uint64(year), 2)
        out[at], out[at + 1] = uint8(month), uint8(day)
        at += 2
    if size >= 7:
        out[at], out[at + 1], out[at + 2] = uint8(hour), uint8(minute), uint8(second)
        at += 3
    if size == 11:
        at = put_little(out, at, uint64(microsecond), 4)
    return at


@jit
def put_wide_decimal(out, at, data, start, digits, scale, shown, width):
    """Write a DECIMAL behind its length, with zeros after its digits and in front; returns the offset behind it.

    -1 if it is none. `shown` digits come after the point, and `width` bytes at least if it is not negative.
    """
    begin = at + 1
    at = put_decimal(out, begin, data, start, digits, scale)
    if at < 0:
        return int64(-1)
    if shown > scale:
        if scale == 0:
            out[at] = POINT
            at += 1
        for _ in range(shown - scale):
            out[at] = ZERO
            at += 1
    size = at - begin
    missing = width - size
    if missing > 0 and out[begin] != MINUS:
        place = size - 1
        while place >= 0:
            out[begin + missing + place] = out[begin + place]
            place -= 1
        for place in range(missing):
            out[begin + place] = ZERO
        size = width
    out[begin - 1] = uint8(size)
    return begin + size


@inlined
def put_value(out, at, data, start, size, row, step, values, plan, zone_s):
    """Write a value that is not NULL; returns the offset behind it, or -1 if the reference must."""
    _, _, _, offsets, texts, side_offsets, sides = plan
    op, first, second = values[step, ValueColumn.OP], values[step, ValueColumn.FIRST], values[step, ValueColumn.SECOND]
    if op == ValueOp.COPY:
        at = put_length(out, at, size)
        return put_bytes(out, at, data, start, size)
    if op == ValueOp.INTEGER or op == ValueOp.NUMBER:
        value = little(data, start, size)
        is_negative = first != 0 and value >> uint64(8 * size - 1) & uint64(1) != 0
        if is_negative and size < 8:
            value -= uint64(1) << uint64(8 * size)
        if op == ValueOp.NUMBER:
            return put_little(out, at, value, second)
        begin = at + 1
        end = begin
        if is_negative:
            out[end] = MINUS
            end = put_number(out, end + 1, ~value + uint64(1), second)
        else:
            end = put_number(out, end, value, second)
        out[at] = uint8(end - begin)
        return end
    if op == ValueOp.DECIMAL:
        third, fourth = values[step, ValueColumn.THIRD], values[step, ValueColumn.FOURTH]
        return put_wide_decimal(out, at, data, start, first, second, third, fourth)
    if op == ValueOp.SIDE:
        begin = side_offsets[first, row]
        return put_bytes(out, at, sides, begin, side_offsets[first, row + 1] - begin)
    if op == ValueOp.CHOICE:
        number = int64(little(data, start, size))
        if number >= second:
            return -1
        begin = offsets[first + number]
        return put_bytes(out, at, texts, begin, offsets[first + number + 1] - begin)
    if op == ValueOp.BYTES:
        total = 0
        for index in range(size):
            number = first + int64(data[start + index])
            total += offsets[number + 1] - offsets[number]
        at = put_length(out, at, total)
        for index in range(size):
            number = first + int64(data[start + index])
            for place in range(offsets[number], offsets[number + 1]):
                out[at] = texts[place]
                at += 1
        return at
    if op == ValueOp.PAD:
        at = put_length(out, at, max(first, size))
        at = put_bytes(out, at, data, start, size)
        for _ in range(first - size):
            out[at] = 0
            at += 1
        return at
    if op == ValueOp.FIXED:
        return put_bytes(out, at, data, start, size)
    if op == ValueOp.YEAR or op == ValueOp.YEAR_NUMBER:
        year = int64(data[start]) + 1900 if data[start] else 0
        if op == ValueOp.YEAR_NUMBER:
            return put_little(out, at, uint64(year), 2)
        out[at] = uint8(first)
        return put_digits(out, at + 1, uint64(data[start]) if first == 2 else uint64(year), first)
    if op == ValueOp.DATE or op == ValueOp.DATE_PARTS:
        value = int64(little(data, start, 3))
        if op == ValueOp.DATE_PARTS:
            return put_moment_parts(out, at, value >> 9, value >> 5 & 15, value & 31, 0, 0, 0, 0)
        out[at] = 10
        return put_date(out, at + 1, value >> 9, value >> 5 & 15, value & 31)
    if op == ValueOp.TIME or op == ValueOp.TIME_PARTS:
        part_size = (first + 1) // 2
        packed = int64(big(data, start, 3 + part_size)) - (int64(0x800000) << 8 * part_size)
        is_negative = packed < 0
        packed = abs(packed)
        value = packed >> 8 * part_size
        microsecond = packed & (int64(1) << 8 * part_size) - 1
        if microsecond >= POWERS[2 * part_size]:
            return -1
        if first % 2 == 1:
            microsecond = microsecond // 10 * 10
        microsecond *= POWERS[6 - 2 * part_size]
        hour, minute, clock_second = value >> 12 & 1023, value >> 6 & 63, value & 63
        if op == ValueOp.TIME_PARTS:
            if not (hour or minute or clock_second or microsecond):
                out[at] = 0
                return at + 1
            out[at] = uint8(12 if microsecond else 8)
            out[at + 1] = uint8(is_negative)
            at = put_little(out, at + 2, uint64(hour // 24), 4)
            out[at], out[at + 1], out[at + 2] = uint8(hour % 24), uint8(minute), uint8(clock_second)
            return put_little(out, at + 3, uint64(microsecond), 4) if microsecond else at + 3
        begin = at + 1
        end = begin
        if is_negative:
            out[end] = MINUS
            end += 1
        end = put_clock(out, end, hour, minute, clock_second, microsecond, second)
        out[at] = uint8(end - begin)
        return end
    is_stamp = op == ValueOp.TIMESTAMP or op == ValueOp.TIMESTAMP_PARTS
    head = 4 if is_stamp else 5
    microsecond = fraction_of(data, start + head, first)
    if microsecond < 0:
        return -1
    if is_stamp:
        seconds = int64(big(data, start, 4))
        year, month, day, hour, minute, clock_second = 0, 0, 0, 0, 0, 0
        is_zero = seconds == 0
        for index in range(4, size):
            if data[start + index]:
                is_zero = False
        if not is_zero:
            seconds += zone_s
            days = seconds // DAY_S
            clock = seconds - days * DAY_S
            year, month, day = date_of(days)
            hour, minute, clock_second = clock // 3600, clock // 60 % 60, clock % 60
    else:
        value = int64(big(data, start, 5)) - (int64(1) << 39)
        if value < 0:
            return -1
        year_month = value >> 22
        year = year_month // 13
        month, day = year_month - 13 * year, value >> 17 & 31
        hour, minute, clock_second = value >> 12 & 31, value >> 6 & 63, value & 63
    if op == ValueOp.DATETIME_PARTS or op == ValueOp.TIMESTAMP_PARTS:
        return put_moment_parts(out, at, year, month, day, hour, minute, clock_second, microsecond)
    out[at] = uint8(19 + (second + 1 if second else 0))
    at = put_date(out, at + 1, year, month, day)
    out[at] = SPACE
    return put_clock(out, at + 1, hour, minute, clock_second, microsecond, second)


@jit
def find_values(data, at, layout, plan, spans):
    """Where each value of a stored row lies, or -1; returns the bytes of the row."""
    layouts, stored, _, _, _, _, _ = plan
    first, count = layouts[layout, LayoutColumn.FIRST], layouts[layout, LayoutColumn.COUNT]
    size = int64(load32(data, at))
    nulls = at + ROW_HEAD
    offset = nulls + (count + 7) // 8
    for place in range(count):
        if data[nulls + (place >> 3)] >> (place & 7) & 1:
            spans[place, 0] = -1
            continue
        length = stored[first + place, 0]
        if length < 0:
            prefix = stored[first + place, 1]
            length = int64(little(data, offset, prefix))
            offset += prefix
        spans[place, 0], spans[place, 1] = offset, length
        offset += length
    return size


@jit
def locate_values(data, places, state, plan, spans, step, starts, sizes):
    """Where the values of one column of an answer lie, of the rows that come next; -1 for NULL.

    Returns how many rows were looked at: up to the first that the reference must write.
    """
    layouts, _, values, _, _, _, _ = plan
    count = min(len(starts), state[AnswerField.END] - state[AnswerField.NEXT])
    for row in range(count):
        at = places[state[AnswerField.NEXT] + row]
        layout = load16(data, at + 4)
        if layout >= len(layouts) or layouts[layout, LayoutColumn.FIRST] < 0:
            return row
        find_values(data, at, layout, plan, spans)
        place = values[layouts[layout, LayoutColumn.VALUES] + step, ValueColumn.PLACE]
        starts[row], sizes[row] = (spans[place, 0], spans[place, 1]) if place >= 0 else (-1, 0)
    return count


@jit
def write_rows(data, places, state, plan, spans, out):
    """Write rows as packets until there are no more, or no more room."""
    layouts, _, values, offsets, texts, side_offsets, _ = plan
    shown, is_binary, zone_s = state[AnswerField.SHOWN], state[AnswerField.IS_BINARY], state[AnswerField.ZONE_S]
    row = state[AnswerField.NEXT]
    at = state[AnswerField.OUT]
    sequence = state[AnswerField.SEQUENCE]
    status = AnswerStatus.END
    while row < state[AnswerField.END]:
        stored_at = places[row]
        layout = load16(data, stored_at + 4)
        if layout >= len(layouts) or layouts[layout, LayoutColumn.FIRST] < 0:
            status = AnswerStatus.FALLBACK
            break
        size = int64(load32(data, stored_at))
        bound = layouts[layout, LayoutColumn.BOUND] + layouts[layout, LayoutColumn.FACTOR] * size
        made = row - state[AnswerField.SIDE_START]
        if made + 1 < side_offsets.shape[1]:
            for side in range(side_offsets.shape[0]):
                bound += side_offsets[side, made + 1] - side_offsets[side, made]
        if at + bound > len(out):
            status = AnswerStatus.FULL if at else AnswerStatus.FALLBACK
            break
        find_values(data, stored_at, layout, plan, spans)
        begin = at
        at += PACKET_HEADER
        nulls = at + 1
        if is_binary:
            out[at] = 0
            bits = (shown + 2 + 7) // 8
            for index in range(bits):
                out[nulls + index] = 0
            at = nulls + bits
        step = layouts[layout, LayoutColumn.VALUES]
        is_good = True
        for column in range(shown):
            op, place = values[step + column, ValueColumn.OP], values[step + column, ValueColumn.PLACE]
            if op == ValueOp.CONSTANT:
                number = values[step + column, ValueColumn.FIRST]
                if number >= 0:
                    at = put_bytes(out, at, texts, offsets[number], offsets[number + 1] - offsets[number])
                    continue
            elif spans[place, 0] >= 0:
                at = put_value(
                    out,
                    at,
                    data,
                    spans[place, 0],
                    spans[place, 1],
                    row - state[AnswerField.SIDE_START],
                    step + column,
                    values,
                    plan,
                    zone_s,
                )
                if at < 0:
                    is_good = False
                    break
                continue
            if is_binary:
                bit = column + 2
                out[nulls + (bit >> 3)] |= uint8(1 << (bit & 7))
            else:
                out[at] = NULL
                at += 1
        size = at - begin - PACKET_HEADER
        if not is_good or size >= PACKET_MAX:
            at = begin
            status = AnswerStatus.FALLBACK
            break
        out[begin], out[begin + 1], out[begin + 2], out[begin + 3] = (
            uint8(size & 255),
            uint8(size >> 8 & 255),
            uint8(size >> 16),
            uint8(sequence & 255),
        )
        sequence += 1
        row += 1
    state[AnswerField.NEXT], state[AnswerField.OUT], state[AnswerField.SEQUENCE] = row, at, sequence & 255
    return status
