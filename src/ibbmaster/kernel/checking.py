"""A kernel that checks pages whose records are all as they should be, and stops where one is not.

The twin, which says what is wrong: `ibbmaster.log.verify`.
"""

from __future__ import annotations

from ibbmaster.kernel.crc32c import DATA, PAGE, is_page_good
from ibbmaster.kernel.fields import (
    CAREFUL,
    COMMIT,
    CONT,
    EVENT_HEADER,
    F_FIRST_SIZE,
    F_OFFSET,
    F_PAGE,
    F_SIZE,
    FILLER,
    FULL,
    KNOWN_TYPES,
    LAST,
    NEED_MORE,
    OOB_DATA,
    S_GROUPS,
    S_OFFSET,
    S_PAGE,
    S_PAIRS,
    TYPE_MASK,
    PairColumn,
)
from ibbmaster.kernel.memory import copy, jit, load16, load32
from ibbmaster.kernel.records import is_group, is_step_back, note_group

P_LAST, P_FIRST = int(PairColumn.LAST), int(PairColumn.FIRST)
P_FIRST_PAGE, P_FIRST_OFFSET = int(PairColumn.FIRST_PAGE), int(PairColumn.FIRST_OFFSET)
P_LAST_PAGE, P_LAST_OFFSET = int(PairColumn.LAST_PAGE), int(PairColumn.LAST_OFFSET)
NODE_HEAD_MIN = 64  # bytes of a node in its first chunk, unless the record ends there: its header is no longer


@jit
def is_filler(block, start, end):  # type: ignore[no-untyped-def]
    """Whether the end of a page is filled as it should be."""
    if end - start >= 4:
        return False
    for offset in range(start, end):
        if block[offset] != FILLER:
            return False
    return True


@jit
def walk_record(block, page_count, page, offset, scratch):  # type: ignore[no-untyped-def]
    """Go behind the record that begins at a place, and put its data, as far as it fits, into `scratch`.

    Returns whether it is whole and well formed, nothing else in between; its bytes; and the
    place behind it, with its status.
    """
    record_type = int(block[page * PAGE + offset]) & TYPE_MASK
    size = 0
    is_first = True
    while True:
        start = page * PAGE + offset
        if offset > DATA - 4 or block[start] == FILLER:
            if not is_filler(block, start, page * PAGE + DATA):
                return CAREFUL, size, page, offset
            page += 1
            offset = 0
            if page >= page_count:
                return NEED_MORE, size, page, offset
            if not is_page_good(block, page * PAGE):
                return CAREFUL, size, page, offset
            continue
        type_byte = int(block[start])
        data_size = load16(block, start + 1)
        end = offset + 3 + data_size
        if type_byte & TYPE_MASK != record_type or data_size == 0 or end > DATA:
            return CAREFUL, size, page, offset
        if bool(type_byte & CONT) == is_first:
            return CAREFUL, size, page, offset
        if size + data_size <= len(scratch):
            copy(scratch, size, block, start + 3, data_size)
        size += data_size
        is_first = False
        offset = end
        if type_byte & LAST:
            return FULL, size, page, offset


@jit
def note_in_order(source, start, pairs, state, page, offset):  # type: ignore[no-untyped-def]
    """As `note_group`, with the place of the record; False also if the number is not above the last of its pair."""
    server_id = load32(source, start + 5)
    domain_id = load32(source, start + EVENT_HEADER + 8)
    count = state[S_PAIRS]
    pair = 0
    while pair < count and (pairs[pair, 0] != domain_id or pairs[pair, 1] != server_id):
        pair += 1
    if is_step_back(source, start, pairs, state) or not note_group(source, start, pairs, state):
        return False
    if pair == count:
        pairs[pair, P_FIRST] = pairs[pair, P_LAST]
        pairs[pair, P_FIRST_PAGE], pairs[pair, P_FIRST_OFFSET] = page, offset
    pairs[pair, P_LAST_PAGE], pairs[pair, P_LAST_OFFSET] = page, offset
    return True


@jit
def check_groups(block, page_count, state, pairs, nodes, scratch):  # type: ignore[no-untyped-def]
    """Check whole inline groups and out-of-band records from a place between records on.

    Stops, with the place in `state`, before the first record that is another, not whole here,
    or not right, and before a group whose number is not above the one before of its pair. The
    page of the place was verified if OFFSET is not 0. GROUPS and PAIRS go on counting.
    Returns how many nodes were found, what is in them was not looked at, and NEED_MORE where
    that record goes on behind the block.
    """
    page = state[S_PAGE]
    offset = state[S_OFFSET]
    is_verified = offset > 0
    found_count = 0
    reason = CAREFUL
    while page < page_count:
        if not is_verified:
            if not is_page_good(block, page * PAGE):
                break
            is_verified = True
        start = page * PAGE + offset
        if offset > DATA - 4 or block[start] == FILLER:
            if not is_filler(block, start, page * PAGE + DATA):
                break
            page += 1
            offset = 0
            is_verified = False
            continue
        type_byte = int(block[start])
        data_size = load16(block, start + 1)
        end = offset + 3 + data_size
        record_type = type_byte & TYPE_MASK
        if type_byte == 0 or type_byte & CONT or data_size == 0 or end > DATA or not (KNOWN_TYPES >> record_type) & 1:
            break
        if record_type == COMMIT:
            if type_byte & LAST:
                if block[start + 3] != 0 or not is_group(block, start + 4, start + 3 + data_size):
                    break
                if not note_in_order(block, start + 4, pairs, state, page, offset):
                    break
                offset = end
            else:
                status, size, next_page, next_offset = walk_record(block, page_count, page, offset, scratch)
                if status != FULL:
                    reason = status
                    break
                if size > len(scratch) or scratch[0] != 0 or not is_group(scratch, 1, size):
                    break
                if not note_in_order(scratch, 1, pairs, state, page, offset):
                    break
                page, offset = next_page, next_offset
            state[S_GROUPS] += 1
        elif record_type == OOB_DATA:
            if found_count == len(nodes) or (data_size < NODE_HEAD_MIN and not type_byte & LAST):
                break
            status, size, next_page, next_offset = walk_record(block, page_count, page, offset, scratch[:0])
            if status != FULL:
                reason = status
                break
            nodes[found_count, F_PAGE] = page
            nodes[found_count, F_OFFSET] = offset
            nodes[found_count, F_SIZE] = size
            nodes[found_count, F_FIRST_SIZE] = data_size
            found_count += 1
            page, offset = next_page, next_offset
        else:
            break
    state[S_PAGE] = page
    state[S_OFFSET] = offset
    return found_count, reason
