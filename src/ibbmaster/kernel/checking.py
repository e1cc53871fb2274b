"""A kernel that checks pages whose records are all as they should be, and stops where one is not.

The reference, which says what is wrong: `ibbmaster.log.verify`.
"""

from __future__ import annotations

from numba import int64

from ibbmaster.kernel.crc32c import DATA, PAGE
from ibbmaster.kernel.fields import (
    CHUNK_HEADER,
    COMMIT,
    CONT,
    FILLER,
    GTID_STATE,
    LAST,
    OOB_DATA,
    PARTIAL_ROW_DATA,
    TYPE_MASK,
    ChunkColumn,
    Field,
    Found,
    PairColumn,
    Status,
)
from ibbmaster.kernel.group_begin import is_group, is_step_back, note_group
from ibbmaster.kernel.memory import copy, inlined, jit
from ibbmaster.kernel.scan import index_chunks

NODE_HEAD_MIN = 64  # bytes of a node in its first chunk, unless the record ends there: its header is no longer


@inlined
def is_filled(pages, chunk_end, start):
    """Whether a chunk may begin at `start` if the one before ends at `chunk_end`: at once, or on the next page."""
    is_good = start == chunk_end
    end = chunk_end // PAGE * PAGE + DATA
    if start == end + PAGE - DATA and end - chunk_end <= CHUNK_HEADER:
        is_good = True
        for offset in range(chunk_end, end):
            is_good = is_good and pages[offset] == FILLER
    return is_good


@inlined
def note_found(found, row, place, size, first_size, record_type):
    """Note a record that was not looked into."""
    found[row, Found.PAGE], found[row, Found.OFFSET] = place // PAGE, place % PAGE
    found[row, Found.SIZE], found[row, Found.FIRST_SIZE] = size, first_size
    found[row, Found.TYPE] = record_type


@jit
def note_commit(source, start, size, pairs, state, place):
    """Note the group in a commit record, which begins at a place of the pages.

    False if it has a part out of band, is not whole events, has fragments of row events, or its number is not
    above the last of its pair.
    """
    if source[start] != 0 or not is_group(source, start + 1, start + size, PARTIAL_ROW_DATA):
        return False
    known = state[Field.PAIRS]
    if is_step_back(source, start + 1, pairs, state):
        return False
    pair = note_group(source, start + 1, pairs, state)
    if pair < 0:
        return False
    page, offset = place // PAGE, place % PAGE
    if pair == known:
        pairs[pair, PairColumn.FIRST] = pairs[pair, PairColumn.LAST]
        pairs[pair, PairColumn.FIRST_PAGE], pairs[pair, PairColumn.FIRST_OFFSET] = page, offset
    pairs[pair, PairColumn.LAST_PAGE], pairs[pair, PairColumn.LAST_OFFSET] = page, offset
    return True


@jit
def check_table(pages, count, checking):
    """Check whole inline groups and out-of-band records of `count` pages from a place between records on.

    Stops, with the place in `state`, before the first record that is another, not whole here,
    or not right, and before a group whose number is not above the one before of its pair. Of the state record that
    is due at DUE the place is noted, and after it, or after the record that it stands in, it stops, too.
    GROUPS and PAIRS continue counting. Returns how many nodes and states were found, what is in them was not
    looked at, and NEED_MORE where that record continues after the block.
    """
    state, table, pairs, found, scratch = checking
    place = chunk_end = state[Field.PAGE] * PAGE + state[Field.OFFSET]  # all before is right; the last chunk ends there
    due = state[Field.DUE] * PAGE if state[Field.DUE] >= 0 else int64(len(pages))
    rows_found = kept = 0  # the latter of what is right to its end
    held = first_size = int64(0)  # bytes of the current record, and of its first chunk
    row = rows = int64(0)
    status = Status.NEED_MORE
    is_good, has_state = True, False
    while is_good and not (has_state and place == chunk_end):
        if row == rows:
            if status != Status.NEED_MORE or state[Field.PAGE] >= count:
                break
            rows, status = index_chunks(pages, state[Field.PAGE] + 1, state, table, int64(0))
            row = int64(0)
            continue
        start, size = int64(table[row, ChunkColumn.START]), int64(table[row, ChunkColumn.SIZE])
        type_byte = table[row, ChunkColumn.TYPE]
        record_type = type_byte & TYPE_MASK
        is_good = is_filled(pages, chunk_end, start)
        if record_type == GTID_STATE:
            is_good = is_good and start == due and not has_state and type_byte & (CONT | LAST) == LAST
            is_good = is_good and rows_found < len(found)
            if is_good:
                note_found(found, rows_found, start, size, size, GTID_STATE)
                rows_found += 1
                has_state = True
                if place == chunk_end:
                    place, kept = start + CHUNK_HEADER + size, rows_found
                chunk_end = start + CHUNK_HEADER + size
                row += 1
            continue
        is_good = is_good and (start < due or has_state)
        if is_good and place == chunk_end:  # between records
            place, held, first_size = start, int64(0), size
        is_good = is_good and (record_type == COMMIT or record_type == OOB_DATA)
        if not is_good:
            break
        chunk_end = start + CHUNK_HEADER + size
        row += 1
        if record_type == COMMIT and type_byte & (CONT | LAST) != LAST and size <= len(scratch) - held:
            copy(scratch, held, pages, start + CHUNK_HEADER, size)
        held += size
        if not type_byte & LAST:
            continue
        if record_type == OOB_DATA:
            is_good = rows_found < len(found) and (first_size >= NODE_HEAD_MIN or first_size == held)
            if is_good:
                note_found(found, rows_found, place, held, first_size, OOB_DATA)
                rows_found += 1
        else:
            if type_byte & CONT:
                is_good = held <= len(scratch) and note_commit(scratch, 0, held, pairs, state, place)
            else:
                is_good = note_commit(pages, start + CHUNK_HEADER, size, pairs, state, place)
            state[Field.GROUPS] += int64(is_good)
        if is_good:
            place, kept = chunk_end, rows_found
    is_cut = is_good and place != chunk_end and status == Status.NEED_MORE
    last = state[Field.PAGE] * PAGE + state[Field.OFFSET]
    if is_good and row == rows and place == chunk_end and is_filled(pages, chunk_end, last):
        place = last
    state[Field.PAGE], state[Field.OFFSET] = place // PAGE, place % PAGE
    return kept, Status.NEED_MORE if is_cut else Status.FALLBACK
