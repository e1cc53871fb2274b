"""The kernel that knows pages and chunks; all others see the table that it leaves, and runs of bytes.

The reference: `ibbmaster.ibb.scan`.
"""

from __future__ import annotations

from numba import uint64

from ibbmaster.kernel.crc32c import DATA, PAGE, is_page_good
from ibbmaster.kernel.fields import (
    CHUNK_HEADER,
    COMMIT,
    CONT,
    DUMMY,
    FILLER,
    GTID_STATE,
    KNOWN_TYPES,
    LAST,
    TYPE_MASK,
    ChunkColumn,
    Field,
    Status,
)
from ibbmaster.kernel.memory import inlined, jit, load32


@inlined
def nest(type_byte, record_type, nested_type):
    """Whether a chunk is in its place, and the types of the records that continue after it.

    `record_type` is that of the current record, `nested_type` of a state or dummy record inside it; -1 stands for none.
    """
    found = type_byte & TYPE_MASK
    goes_on = bool(type_byte & CONT)
    is_last = bool(type_byte & LAST)
    if nested_type >= 0:
        is_good = found == nested_type and goes_on
        if is_last:
            nested_type = -1
    elif record_type < 0:
        is_good = not goes_on
        if not is_last:
            record_type = found
    elif found == record_type:
        is_good = goes_on
        if is_last:
            record_type = -1
    else:
        is_good = (found == GTID_STATE or found == DUMMY) and not goes_on
        if not is_last:
            nested_type = found
    return is_good, record_type, nested_type


@jit
def index_chunks(pages, count, state, table, row):
    """Note the chunks of `count` pages from a place on, as long as each page and chunk is as it should be.

    The place is that of a chunk, in `state` with the types of the records that continue there; it
    moves after what was noted. Returns the row after what was noted, from `row` on, and why no
    more was: NEED_MORE after the last page, NO_DATA also at END, BAD_PAGE, FULL if the table is, else FALLBACK.

    Consumers take page by page, so that they find it in the first cache of the core.
    """
    page, offset = state[Field.PAGE], state[Field.OFFSET]
    record_type, nested_type = state[Field.SKIP_TYPE], state[Field.NESTED_TYPE]
    row_max = len(table)
    page_end = DATA - CHUNK_HEADER  # where no chunk begins any more
    status = Status.NEED_MORE
    while page < count and status == Status.NEED_MORE:
        if state[Field.END] > 0:
            page_end = min(DATA - CHUNK_HEADER, state[Field.END] - page * PAGE)
            if offset >= page_end and page_end < DATA - CHUNK_HEADER:
                status = Status.NO_DATA
                break
        if page >= state[Field.VERIFIED] and not is_page_good(pages, page * PAGE):
            status = Status.BAD_PAGE
            break
        while offset < page_end:
            start = page * PAGE + offset
            header = load32(pages, start)
            type_byte, size = header & 0xFF, header >> 8 & 0xFFFF
            end = offset + CHUNK_HEADER + size
            if type_byte != COMMIT | LAST or record_type >= 0:
                if type_byte == FILLER:
                    break
                if type_byte == 0:
                    status = Status.NO_DATA
                    break
                is_good, next_record, next_nested = nest(type_byte, record_type, nested_type)
                if not is_good or not (KNOWN_TYPES >> (type_byte & TYPE_MASK)) & 1 or size == 0 or end > DATA:
                    status = Status.FALLBACK
                    break
                if row < row_max:
                    record_type, nested_type = next_record, next_nested
            elif size == 0 or end > DATA:
                status = Status.FALLBACK
                break
            if row == row_max:
                status = Status.FULL
                break
            table[uint64(row), ChunkColumn.START] = start
            table[uint64(row), ChunkColumn.SIZE] = size
            table[uint64(row), ChunkColumn.TYPE] = type_byte
            row += 1
            offset = end
        if status == Status.NEED_MORE and offset >= page_end and page_end < DATA - CHUNK_HEADER:
            status = Status.NO_DATA
        if status == Status.NEED_MORE:
            page += 1
            offset = 0
    state[Field.PAGE], state[Field.OFFSET] = page, offset
    state[Field.SKIP_TYPE], state[Field.NESTED_TYPE] = record_type, nested_type
    return row, status


@inlined
def is_begin(table, row, record_type):
    """Whether a record of a type begins with a chunk."""
    return table[row, ChunkColumn.TYPE] & (CONT | TYPE_MASK) == record_type


@inlined
def record_end(table, row, count):
    """The row after the last chunk of the record that begins at a row; -1 if that is not among the `count`."""
    record_type = table[row, ChunkColumn.TYPE] & TYPE_MASK
    while row < count:
        type_byte = table[row, ChunkColumn.TYPE]
        row += 1
        if type_byte & LAST and type_byte & TYPE_MASK == record_type:
            return row
    return -1


@inlined
def stop_at(start, state):
    """Have the place be that of a record that begins at `start` of the pages."""
    state[Field.PAGE], state[Field.OFFSET] = start // PAGE, start % PAGE
    state[Field.SKIP_TYPE] = state[Field.NESTED_TYPE] = -1
