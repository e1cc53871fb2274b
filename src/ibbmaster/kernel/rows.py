"""A kernel that reads the rows of row events into columns.

Every value becomes one number of 64 bits, or two; of what is longer they are the place. One kernel serves all tables:
steps say how each column is read. The reference, which also says what is wrong with an event: `ibbmaster.event.rows`.
"""

from __future__ import annotations

from numba import int64, uint64

from ibbmaster.event.header import TYPE_OFFSET
from ibbmaster.event.types import EventType
from ibbmaster.kernel.fields import (
    ANY_TABLE,
    DELETE,
    EVENT_HEADER,
    INSERT,
    KIND_BITS,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    EventColumn,
    MapColumn,
    OpenColumn,
    RowField,
    RowOp,
    RowStatus,
    StepColumn,
    VariantColumn,
)
from ibbmaster.kernel.memory import inlined, jit, load16, load32, load64
from ibbmaster.kernel.numbers import big, days_of, fraction_of, little, read_decimal

NO_ROWS, BAD_ROWS = -1, -2  # instead of a kind of changes
DAY_US = 86_400 * 1_000_000
TABLE_MAP = int(EventType.TABLE_MAP)
WRITE_V1, UPDATE_V1, DELETE_V1 = (
    int(EventType.WRITE_ROWS_V1),
    int(EventType.UPDATE_ROWS_V1),
    int(EventType.DELETE_ROWS_V1),
)
WRITE_V2, UPDATE_V2, DELETE_V2 = int(EventType.WRITE_ROWS), int(EventType.UPDATE_ROWS), int(EventType.DELETE_ROWS)


@jit
def read_rows(data, offset, end, steps, first, count, after_first, after_count, is_update, row, row_max, values, valid):
    """Read the rows of an event; returns status, the offset behind what was read, and the next free row.

    Each image is a row of the output; an update has two, read with the steps from `first` and from
    `after_first`. One call for many rows: a call counts references to its arrays.
    """
    is_after = False
    while offset < end:
        if not is_after and row + 2 > row_max:
            return RowStatus.FULL, offset, row
        step = after_first if is_after else first
        last = step + (after_count if is_after else count)
        nulls = offset
        bit = 0
        offset += (last - step + 7) // 8
        if offset > end:
            return RowStatus.BAD, offset, row
        while step < last:
            is_null = data[uint64(nulls + (bit >> 3))] >> (bit & 7) & 1
            at = uint64(step)
            op, argument, second = steps[at, StepColumn.OP], steps[at, StepColumn.FIRST], steps[at, StepColumn.SECOND]
            slot, size = uint64(steps[at, StepColumn.SLOT]), steps[at, StepColumn.SIZE]
            step += 1
            bit += 1
            if is_null:
                continue
            if end - offset < size:
                return RowStatus.BAD, offset, row
            if op == RowOp.SKIP_PREFIXED or op == RowOp.RAW_PREFIXED:
                length = int64(little(data, offset, size))
                offset += size
                if end - offset < length:
                    return RowStatus.BAD, offset, row
                if op == RowOp.RAW_PREFIXED:
                    values[slot, uint64(row)], values[slot + uint64(1), uint64(row)] = offset, length
                    valid[slot, uint64(row)] = 1
                offset += length
                continue
            is_valid = True
            if op == RowOp.INTEGER:
                if size == 4:
                    value = load32(data, offset)
                elif size == 8:
                    value = int64(load64(data, offset))
                else:
                    value = int64(little(data, offset, size))
                if second and size < 8 and value >> (8 * size - 1):
                    value -= 1 << (8 * size)
                values[slot, uint64(row)] = value
            elif op == RowOp.BIG_ENDIAN:
                values[slot, uint64(row)] = int64(big(data, offset, size))
            elif op == RowOp.FLOAT:
                values[slot, uint64(row)] = load32(data, offset)
            elif op == RowOp.DOUBLE:
                values[slot, uint64(row)] = int64(load64(data, offset))
            elif op == RowOp.YEAR:
                values[slot, uint64(row)] = int64(data[offset]) + 1900 if data[offset] else 0
            elif op == RowOp.DECIMAL:
                low, high, is_good = read_decimal(data, offset, argument, second)
                if not is_good:
                    return RowStatus.BAD, offset, row
                values[slot, uint64(row)], values[slot + uint64(1), uint64(row)] = int64(low), int64(high)
            elif op == RowOp.DATE:
                value = int64(little(data, offset, 3))
                values[slot, uint64(row)], is_valid = days_of(value >> 9, value >> 5 & 15, value & 31)
            elif op == RowOp.DATETIME:
                value = int64(big(data, offset, 5)) - (1 << 39)
                fraction = fraction_of(data, offset + 5, argument)
                if value < 0 or fraction < 0:
                    return RowStatus.BAD, offset, row
                year_month = uint64(value >> 22)
                year = int64(year_month // uint64(13))
                days, is_valid = days_of(year, int64(year_month) - 13 * year, value >> 17 & 31)
                hour, minute, second_of_minute = value >> 12 & 31, value >> 6 & 63, value & 63
                is_valid = is_valid and hour < 24 and minute < 60 and second_of_minute < 60
                seconds = (hour * 60 + minute) * 60 + second_of_minute
                values[slot, uint64(row)] = days * DAY_US + seconds * 1_000_000 + fraction
            elif op == RowOp.TIMESTAMP:
                seconds = int64(big(data, offset, 4))
                fraction = fraction_of(data, offset + 4, argument)
                if fraction < 0:
                    return RowStatus.BAD, offset, row
                is_valid = seconds != 0 or (size > 4 and big(data, offset + 4, size - 4) != 0)  # also a digit not shown
                values[slot, uint64(row)] = seconds * 1_000_000 + fraction
            elif op == RowOp.RAW_FIXED:
                values[slot, uint64(row)], values[slot + uint64(1), uint64(row)] = offset, size
            if op != RowOp.SKIP_FIXED and is_valid:
                valid[slot, uint64(row)] = 1
            offset += size
        row += 1
        is_after = is_update and not is_after
    return RowStatus.BAD if is_after else RowStatus.END, offset, row


@inlined
def is_equal(one, one_start, other, other_start, size):
    """Whether two ranges of bytes are equal."""
    index = 0
    while index < size and one[one_start + index] == other[other_start + index]:
        index += 1
    return index == size


@inlined
def rows_head(data, start, end):
    """Of the event data[start:end]: the kind of its changes, NO_ROWS if it is no row event; the table's number, where
    the columns present begin, and how many columns there are, -1 for too many."""
    event_type = int(data[start + TYPE_OFFSET])
    is_v2 = event_type == WRITE_V2 or event_type == UPDATE_V2 or event_type == DELETE_V2
    kind, table_id, column_count = NO_ROWS, int64(0), int64(0)
    offset = start + EVENT_HEADER
    if event_type == UPDATE_V1 or event_type == UPDATE_V2:
        kind = UPDATE_BEFORE
    elif event_type == DELETE_V1 or event_type == DELETE_V2:
        kind = DELETE
    elif event_type == WRITE_V1 or event_type == WRITE_V2:
        kind = INSERT
    if kind != NO_ROWS and end - offset < 8 + 2 + 3:
        kind = BAD_ROWS
    elif kind != NO_ROWS:
        table_id = int64(little(data, offset, 6))
        offset += 8
        if is_v2:
            extra = load16(data, offset)
            offset += extra
            if extra < 2 or end - offset < 3:
                kind = BAD_ROWS
        if kind != BAD_ROWS:
            column_count = int64(data[offset])
            offset += 1
            if column_count == 252:
                column_count = load16(data, offset)
                offset += 2
            elif column_count > 252:
                column_count = int64(-1)  # no table has so many
    return kind, table_id, offset, column_count


@jit
def find_map(data, start, size, maps, map_count, known, last):
    """The row of the table with these bytes, -1 for none; looks at row `last` first."""
    for turn in range(-1, map_count):
        row = last if turn < 0 else turn
        if (
            0 <= row < map_count
            and maps[row, MapColumn.SIZE] == size
            and is_equal(data, start, known, maps[row, MapColumn.START], size)
        ):
            return row
    return -1


@jit
def find_variant(data, bits, end, map_row, kind, column_count, variants, variant_count, known):
    """The row of the kind of row event whose columns present are at `bits`, -1 for none."""
    for row in range(variant_count):
        size = variants[row, VariantColumn.BITS_SIZE]
        if (
            variants[row, VariantColumn.MAP] == map_row
            and variants[row, VariantColumn.KIND] == kind
            and variants[row, VariantColumn.COLUMN_COUNT] == column_count
            and bits + size <= end
            and is_equal(data, bits, known, variants[row, VariantColumn.BITS_START], size)
        ):
            return row
    return -1


@jit
def find_open(open_tables, table_id, turn):
    """The place of a table among those that a group has named, or the free one where it belongs."""
    mask = len(open_tables) - 1
    place = table_id & mask
    while open_tables[place, OpenColumn.TURN] == turn and open_tables[place, OpenColumn.ID] != table_id:
        place = place + 1 & mask
    return place


@jit
def name_table(open_tables, open_count, table_id, turn, map_row):
    """Note what a group calls a table; how many it has named then, or -1 where there is no room for one more."""
    place = find_open(open_tables, table_id, turn)
    if open_tables[place, OpenColumn.TURN] != turn:
        if 2 * open_count >= len(open_tables):
            return int64(-1)
        open_tables[place, OpenColumn.ID] = table_id
        open_tables[place, OpenColumn.TURN] = turn
        open_count += 1
    open_tables[place, OpenColumn.MAP] = map_row
    return int64(open_count)


@jit
def decode_rows(data, events, state, known, decoded):
    """Read the rows of events from the current one on, in groups from its group's first event on.

    Stops at an event for which the caller has to do something; call it again then.
    """
    open_tables, store, maps, map_count, variants, variant_count, steps = known
    values, valid, row_groups, row_kinds, event_sizes = decoded
    event_count = len(events)
    row, event = state[RowField.ROWS], state[RowField.EVENT]
    row_max = len(row_groups)
    last_map = -1
    status = RowStatus.END
    while event < event_count:
        start, size = events[event, EventColumn.START], events[event, EventColumn.SIZE]
        end = start + size
        if events[event, EventColumn.GROUP] != state[RowField.GROUP]:
            state[RowField.GROUP] = events[event, EventColumn.GROUP]
            state[RowField.OPEN] = 0
            state[RowField.TURN] += 1
        event_type = int(data[start + TYPE_OFFSET])
        if event_type == TABLE_MAP:
            if size < EVENT_HEADER + 8:
                status = RowStatus.BAD
                break
            map_row = find_map(data, start + EVENT_HEADER, size - EVENT_HEADER, maps, map_count, store, last_map)
            if map_row < 0:
                status = RowStatus.NEW_MAP
                break
            last_map = map_row
            table_id = int64(little(data, start + EVENT_HEADER, 6))
            open_count = name_table(open_tables, state[RowField.OPEN], table_id, state[RowField.TURN], map_row)
            if open_count < 0:
                status = RowStatus.MANY_TABLES
                break
            state[RowField.OPEN] = open_count
            event += 1
            continue
        kind, table_id, offset, column_count = rows_head(data, start, end)
        if kind == NO_ROWS:
            event += 1
            continue
        if kind == BAD_ROWS:
            status = RowStatus.BAD
            break
        place = find_open(open_tables, table_id, state[RowField.TURN])
        if open_tables[place, OpenColumn.TURN] != state[RowField.TURN]:
            status = RowStatus.BAD
            break
        map_row = open_tables[place, OpenColumn.MAP]
        if not maps[map_row, MapColumn.IS_WANTED]:
            event += 1
            continue
        if map_row != state[RowField.TABLE] and state[RowField.TABLE] != ANY_TABLE:
            state[RowField.TABLE] = map_row
            status = RowStatus.NEW_TABLE
            break
        variant = find_variant(data, offset, end, map_row, kind, column_count, variants, variant_count, store)
        if variant < 0:
            status = RowStatus.NEW_VARIANT
            break
        offset += variants[variant, VariantColumn.BITS_SIZE]
        if state[RowField.OFFSET] > 0:
            offset = state[RowField.OFFSET]
        first, count = variants[variant, VariantColumn.FIRST_STEP], variants[variant, VariantColumn.STEPS]
        after_first, after_count = (
            variants[variant, VariantColumn.AFTER_FIRST_STEP],
            variants[variant, VariantColumn.AFTER_STEPS],
        )
        if count + after_count == 0 and offset < end:
            status = RowStatus.BAD
            break
        is_update = kind == UPDATE_BEFORE
        begun = row
        status, offset, row = read_rows(
            data, offset, end, steps, first, count, after_first, after_count, is_update, row, row_max, values, valid
        )
        row_groups[begun:row] = state[RowField.GROUP]
        row_kinds[begun:row] = variant << KIND_BITS | kind
        if is_update:
            row_kinds[begun + 1 : row : 2] = variant << KIND_BITS | UPDATE_AFTER
        if status != RowStatus.END:
            state[RowField.OFFSET] = offset if status == RowStatus.FULL else 0
            break
        event_sizes[variant] += size
        state[RowField.OFFSET] = 0
        event += 1
    state[RowField.ROWS], state[RowField.EVENT] = row, event
    return status
