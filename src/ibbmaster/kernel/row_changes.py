"""A kernel that collects what row events do to the rows of tables: keys, and whole images as they are kept.

The references: `ibbmaster.fold.row_events`, and for keys `ibbmaster.fold.stored`.
"""

from __future__ import annotations

from numba import int64, uint8, uint64

from ibbmaster.event.header import TYPE_OFFSET
from ibbmaster.event.types import EventType
from ibbmaster.kernel.fields import (
    EVENT_HEADER,
    INSERT,
    KEY_MAX,
    ROW_HEAD,
    UPDATE_BEFORE,
    ChangeField,
    ChangeOp,
    ChangeStatus,
    ChangeVariantColumn,
    EventColumn,
    ImageColumn,
    KeyColumn,
    KeyOp,
    MapColumn,
    OpenColumn,
    VariantColumn,
)
from ibbmaster.kernel.memory import copy, inlined, jit, load16, store32, store64
from ibbmaster.kernel.numbers import little
from ibbmaster.kernel.rows import BAD_ROWS, NO_ROWS, find_map, find_open, find_variant, name_table, rows_head

TABLE_MAP, QUERY = int(EventType.TABLE_MAP), int(EventType.QUERY)
NO_IMAGE, NO_KEY = -1, -1
SIGN = uint64(1) << uint64(63)
QUERY_FIXED = 13  # bytes before the status of a QUERY event


@inlined
def find_spans(data, offset, end, columns, first, count, spans):
    """Where each value of an image lies, or -1; returns the offset behind it, NO_IMAGE if it ends too early."""
    nulls = offset
    offset += (count + 7) // 8
    for place in range(count):
        if offset > end:
            break
        if data[uint64(nulls + (place >> 3))] >> (place & 7) & 1:
            spans[place, 0] = -1
            continue
        size = columns[first + place, ImageColumn.SIZE]
        if size < 0:
            prefix = columns[first + place, ImageColumn.LENGTH_SIZE]
            if end - offset < prefix:
                offset = end + 1
                break
            size = int64(little(data, offset, prefix))
            offset += prefix
        if end - offset < size:
            offset = end + 1
            break
        spans[place, 0], spans[place, 1] = offset, size
        offset += size
    return offset if offset <= end else int64(NO_IMAGE)


@inlined
def put_big(out, at, value, size):
    """Write the lowest bytes of a number, the highest first."""
    for index in range(size):
        out[at + index] = uint8(value >> uint64(8 * (size - 1 - index)) & uint64(255))
    return at + size


@jit
def put_part(data, start, size, op, out, at, end):
    """Write a part of a key; returns the offset behind it, NO_KEY if it does not fit."""
    if op == KeyOp.TEXT or op == KeyOp.PADDED_TEXT:
        last = start + size
        if op == KeyOp.PADDED_TEXT:
            while last > start and data[last - 1] == 32:
                last -= 1
        for index in range(start, last):
            if end - at < 4:
                return NO_KEY
            out[at] = data[index]
            at += 1
            if data[index] == 0:
                out[at] = 255
                at += 1
        if end - at < 2:
            return NO_KEY
        out[at], out[at + 1] = 0, 0
        return at + 2
    if end - at < max(size, 8):
        return NO_KEY
    if op == KeyOp.FIXED:
        for index in range(size):
            out[at + index] = data[start + index]
        return at + size
    if op == KeyOp.REVERSED:
        for index in range(size):
            out[at + index] = data[start + size - 1 - index]
        return at + size
    value = little(data, start, size)
    top = uint64(1) << uint64(8 * size - 1)
    if op == KeyOp.FLOATING:
        if value == top:
            value = uint64(0)
        value = ~value if value & top else value | top
        return put_big(out, at, value, size)
    if op == KeyOp.TIME:
        return put_big(out, at, value ^ top, 3)
    if op == KeyOp.SIGNED:
        if size < 8 and value & top:
            value |= ~((top << uint64(1)) - uint64(1))
        value ^= SIGN
    return put_big(out, at, value, 8)


@jit
def put_key(data, parts, first, count, spans, keys, row):
    """Write the key of an image, and zeros behind it, one at least.

    Returns its size, NO_KEY if it has none, or one that is too long.
    """
    begin = row * KEY_MAX
    for word in range(0, KEY_MAX, 8):
        store64(keys, begin + word, int64(0))
    at = begin
    for part in range(first, first + count):
        place = parts[part, KeyColumn.PLACE]
        start = spans[place, 0]
        if start < 0:
            return NO_KEY
        behind = put_part(data, start, spans[place, 1], parts[part, KeyColumn.OP], keys, at, begin + KEY_MAX - 1)
        if behind < 0:
            return NO_KEY
        if parts[part, KeyColumn.IS_DESCENDING]:
            for index in range(at, behind):
                keys[index] = uint8(255) - keys[index]
        at = behind
    return at - begin


@inlined
def are_equal(keys, one, other):
    """Whether two rows of keys are the same."""
    index = 0
    while index < KEY_MAX and keys[one * KEY_MAX + index] == keys[other * KEY_MAX + index]:
        index += 1
    return index == KEY_MAX


@jit
def take_rows(data, offset, end, kind, map_row, variants, variant, columns, parts, spans, changes, count, out):
    """Collect the changes of the rows of an event; returns status, the offset behind them, new count and out."""
    first = variants[variant, ChangeVariantColumn.FIRST_COLUMN]
    column_count = variants[variant, ChangeVariantColumn.COLUMN_COUNT]
    after_first = variants[variant, ChangeVariantColumn.AFTER_FIRST_COLUMN]
    after_count = variants[variant, ChangeVariantColumn.AFTER_COLUMN_COUNT]
    first_part = variants[variant, ChangeVariantColumn.FIRST_PART]
    after_part = variants[variant, ChangeVariantColumn.AFTER_FIRST_PART]
    part_count = variants[variant, ChangeVariantColumn.PART_COUNT]
    layout = variants[variant, ChangeVariantColumn.LAYOUT]
    maps, ops, places, key_sizes, keys, images = changes
    while offset < end:
        if count + 2 > len(ops):
            return ChangeStatus.FULL, offset, count, out
        image = offset
        behind = find_spans(data, image, end, columns, first, column_count, spans)
        if behind < 0:
            return ChangeStatus.BY_REFERENCE, offset, count, out
        size = put_key(data, parts, first_part, part_count, spans, keys, count)
        if size < 0:
            return ChangeStatus.BY_REFERENCE, offset, count, out
        maps[count], key_sizes[count] = map_row, size
        row = count
        if kind == INSERT:
            ops[row] = ChangeOp.INSERT
        elif kind != UPDATE_BEFORE:
            ops[row] = ChangeOp.DELETE
            count += 1
            offset = behind
            continue
        else:
            image = behind
            behind = find_spans(data, image, end, columns, after_first, after_count, spans)
            if behind < 0:
                return ChangeStatus.BY_REFERENCE, offset, count, out
            row = count + 1
            size = put_key(data, parts, after_part, part_count, spans, keys, row)
            if size < 0:
                return ChangeStatus.BY_REFERENCE, offset, count, out
            if size == key_sizes[count] and are_equal(keys, count, row):
                row = count
                ops[row] = ChangeOp.REPLACE
            else:
                ops[count], ops[row] = ChangeOp.DELETE, ChangeOp.INSERT
                maps[row], key_sizes[row] = map_row, size
        bytes_of_image = behind - image
        if len(images) - out < ROW_HEAD + bytes_of_image:
            return ChangeStatus.FULL, offset, count, out
        places[row] = out
        store32(images, out, bytes_of_image)
        images[out + 4], images[out + 5] = uint8(layout & 255), uint8(layout >> 8)
        copy(images, out + ROW_HEAD, data, image, bytes_of_image)
        out += ROW_HEAD + bytes_of_image
        count = row + 1
        offset = behind
    return ChangeStatus.END, offset, count, out


@jit
def ends_or_begins(data, start, end):
    """Whether a QUERY event is COMMIT or BEGIN, which change nothing."""
    body = start + EVENT_HEADER
    if end - body < QUERY_FIXED:
        return False
    text = body + QUERY_FIXED + int64(load16(data, body + 11)) + int64(data[body + 8]) + 1
    if end - text == 5:
        found = little(data, text, 5)
        return found == uint64(0x4E49474542)
    return end - text == 6 and little(data, text, 6) == uint64(0x54494D4D4F43)


@jit
def collect_changes(data, events, state, known, changes):
    """Collect the changes of row events from the current one on, in groups from its group's first event on.

    Stops at an event for which the caller has to do something; call it again then.
    """
    open_tables, store, maps, map_count, variants, variant_count, columns, parts, is_other, spans = known
    count, out = state[ChangeField.COUNT], state[ChangeField.OUT]
    event = state[ChangeField.EVENT]
    last_map = -1
    status = ChangeStatus.END
    while event < len(events):
        start, size = events[event, EventColumn.START], events[event, EventColumn.SIZE]
        end = start + size
        if events[event, EventColumn.GROUP] != state[ChangeField.GROUP]:
            state[ChangeField.GROUP] = events[event, EventColumn.GROUP]
            state[ChangeField.OPEN] = 0
            state[ChangeField.TURN] += 1
        event_type = int(data[start + TYPE_OFFSET])
        if event_type == TABLE_MAP:
            if size < EVENT_HEADER + 8:
                status = ChangeStatus.OTHER_EVENT
                break
            map_row = find_map(
                data, start + EVENT_HEADER + 6, size - EVENT_HEADER - 6, maps, map_count, store, last_map
            )
            if map_row < 0:
                status = ChangeStatus.NEW_MAP
                break
            last_map = map_row
            table_id = int64(little(data, start + EVENT_HEADER, 6))
            open_count = name_table(open_tables, state[ChangeField.OPEN], table_id, state[ChangeField.TURN], map_row)
            if open_count < 0:
                status = ChangeStatus.MANY_TABLES
                break
            state[ChangeField.OPEN] = open_count
            event += 1
            continue
        if is_other[event_type]:
            if event_type != QUERY or not ends_or_begins(data, start, end):
                status = ChangeStatus.OTHER_EVENT
                break
            event += 1
            continue
        kind, table_id, offset, column_count = rows_head(data, start, end)
        if kind == NO_ROWS:
            event += 1
            continue
        if kind == BAD_ROWS:
            status = ChangeStatus.OTHER_EVENT
            break
        place = find_open(open_tables, table_id, state[ChangeField.TURN])
        if open_tables[place, OpenColumn.TURN] != state[ChangeField.TURN]:
            status = ChangeStatus.OTHER_EVENT
            break
        map_row = open_tables[place, OpenColumn.MAP]
        if not maps[map_row, MapColumn.IS_WANTED]:
            event += 1
            continue
        variant = find_variant(data, offset, end, map_row, kind, column_count, variants, variant_count, store)
        if variant < 0:
            status = ChangeStatus.NEW_VARIANT
            break
        if variants[variant, ChangeVariantColumn.IS_BY_REFERENCE]:
            status = ChangeStatus.BY_REFERENCE
            break
        offset += variants[variant, VariantColumn.BITS_SIZE]
        if state[ChangeField.OFFSET] > 0:
            offset = state[ChangeField.OFFSET]
        status, offset, count, out = take_rows(
            data, offset, end, kind, map_row, variants, variant, columns, parts, spans, changes, count, out
        )
        if status != ChangeStatus.END:
            state[ChangeField.OFFSET] = offset
            break
        state[ChangeField.OFFSET] = 0
        event += 1
    state[ChangeField.COUNT], state[ChangeField.OUT], state[ChangeField.EVENT] = count, out, event
    return status
