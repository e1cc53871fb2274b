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
def is_filled(pages, behind, start):
    """Whether a chunk may begin at `start` if the one before ends at `behind`: at once, or on the next page."""
    is_good = start == behind
    end = behind // PAGE * PAGE + DATA
    if start == end + PAGE - DATA and end - behind <= CHUNK_HEADER:
        is_good = True
        for offset in range(behind, end):
            is_good = is_good and pages[offset] == FILLER
    return is_good


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
    or not right, and before a group whose number is not above the one before of its pair.
    GROUPS and PAIRS continue counting. Returns how many nodes were found, what is in them was not
    looked at, and NEED_MORE where that record continues after the block.
    """
    state, table, pairs, nodes, scratch = checking
    place = behind = state[Field.PAGE] * PAGE + state[Field.OFFSET]  # all before is right; the last chunk ends there
    found = 0
    held = first_size = int64(0)  # bytes of the current record, and of its first chunk
    row = rows = int64(0)
    status = Status.NEED_MORE
    is_good = True
    while is_good:
        if row == rows:
            if status != Status.NEED_MORE or state[Field.PAGE] >= count:
                break
            rows, status = index_chunks(pages, state[Field.PAGE] + 1, state, table, int64(0))
            row = int64(0)
            continue
        start, size = int64(table[row, ChunkColumn.START]), int64(table[row, ChunkColumn.SIZE])
        type_byte = table[row, ChunkColumn.TYPE]
        record_type = type_byte & TYPE_MASK
        is_good = is_filled(pages, behind, start)
        if is_good and place == behind:  # between records
            place, held, first_size = start, int64(0), size
        is_good = is_good and (record_type == COMMIT or record_type == OOB_DATA)
        if not is_good:
            break
        behind = start + CHUNK_HEADER + size
        row += 1
        if record_type == COMMIT and type_byte & (CONT | LAST) != LAST and size <= len(scratch) - held:
            copy(scratch, held, pages, start + CHUNK_HEADER, size)
        held += size
        if not type_byte & LAST:
            continue
        if record_type == OOB_DATA:
            is_good = found < len(nodes) and (first_size >= NODE_HEAD_MIN or first_size == held)
            if is_good:
                nodes[found, Found.PAGE], nodes[found, Found.OFFSET] = place // PAGE, place % PAGE
                nodes[found, Found.SIZE], nodes[found, Found.FIRST_SIZE] = held, first_size
                found += 1
        else:
            if type_byte & CONT:
                is_good = held <= len(scratch) and note_commit(scratch, 0, held, pairs, state, place)
            else:
                is_good = note_commit(pages, start + CHUNK_HEADER, size, pairs, state, place)
            state[Field.GROUPS] += int64(is_good)
        if is_good:
            place = behind
    last = state[Field.PAGE] * PAGE + state[Field.OFFSET]
    is_cut = is_good and place != behind and status == Status.NEED_MORE
    if is_good and place == behind and is_filled(pages, behind, last):
        place = last
    state[Field.PAGE], state[Field.OFFSET] = place // PAGE, place % PAGE
    return found, Status.NEED_MORE if is_cut else Status.FALLBACK
