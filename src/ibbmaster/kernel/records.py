"""Kernels that follow one record through its chunks, and know a group by its first bytes.

The twins: `ibbmaster.log.cursor` for chunks, `ibbmaster.log.event_groups` for groups.
"""

from __future__ import annotations

from numba import uint64

from ibbmaster.kernel.crc32c import DATA, PAGE, is_page_good
from ibbmaster.kernel.fields import (
    BAD_PAGE,
    CAREFUL,
    CONT,
    DONE,
    DUMMY,
    EVENT_HEADER,
    FILLER,
    GTID_EVENT,
    GTID_EVENT_MIN,
    GTID_STATE,
    KNOWN_TYPES,
    LAST,
    NEED_MORE,
    S_NOTED,
    S_PAIRS,
    TYPE_MASK,
)
from ibbmaster.kernel.memory import copy, inlined, jit, load16, load32, load64


@jit
def record_chunk(block, page_count, page, offset, verified, record_type, is_first, nested):
    """Find the next chunk of a record, behind whole state and dummy records in between.

    `verified` is the number of pages whose checksum is known to be right, from the first on;
    `nested` the type of a record in between that is not over, -1 for none. Returns status,
    page, offset, bytes of data, `verified` and `nested` as they are then: DONE at the chunk,
    else the place of what is missing or not as it should be.
    """
    while page < page_count:
        if page >= verified:
            if not is_page_good(block, page * PAGE):
                return BAD_PAGE, page, offset, 0, verified, nested
            verified = page + 1
        start = page * PAGE + offset
        if offset > DATA - 4 or block[start] == FILLER:
            page += 1
            offset = 0
            continue
        type_byte = int(block[start])
        found = type_byte & TYPE_MASK
        data_size = load16(block, start + 1)
        end = offset + 3 + data_size
        if data_size == 0 or end > DATA or not (KNOWN_TYPES >> found) & 1:
            break
        goes_on = bool(type_byte & CONT)
        if nested >= 0 or (not is_first and found != record_type and (found in (GTID_STATE, DUMMY))):
            if goes_on != (nested >= 0) or (nested >= 0 and found != nested):
                break
            nested = -1 if type_byte & LAST else found
            offset = end
            continue
        if found != record_type or goes_on == is_first:
            break
        return DONE, page, offset, data_size, verified, nested
    return NEED_MORE if page >= page_count else CAREFUL, page, offset, 0, verified, nested


@inlined
def passed_chunk(type_byte, skip_type, nested_type):
    """Pass over a chunk of a record that is not wanted; -1 stands for no such record.

    Returns whether it is in its place, the type of the record that goes on behind it, and
    that of one nested in it.
    """
    found = type_byte & TYPE_MASK
    goes_on = bool(type_byte & CONT)
    is_last = bool(type_byte & LAST)
    is_good = True
    if nested_type >= 0:
        is_good = found == nested_type and goes_on
        if is_last:
            nested_type = -1
    elif skip_type < 0:
        is_good = not goes_on
        if not is_last:
            skip_type = found
    elif found == skip_type:
        is_good = goes_on
        if is_last:
            skip_type = -1
    else:
        is_good = (found == GTID_STATE or found == DUMMY) and not goes_on
        if not is_last:
            nested_type = found
    return is_good, skip_type, nested_type


@jit
def gather(block, page_count, page, offset, verified, scratch):
    """Put the chunks of the record that begins at a place together in `scratch`.

    Returns status, bytes, the place behind the record, and how many pages were verified.
    """
    record_type = int(block[page * PAGE + offset]) & TYPE_MASK
    size = 0
    nested = -1
    while True:
        status, page, offset, data_size, verified, nested = record_chunk(
            block, page_count, page, offset, verified, record_type, size == 0, nested
        )
        if status == DONE and size + data_size > len(scratch):
            status = CAREFUL
        if status != DONE:
            return status, size, page, offset, verified
        start = page * PAGE + offset
        copy(scratch, size, block, start + 3, data_size)
        size += data_size
        offset += 3 + data_size
        if block[start] & LAST:
            return DONE, size, page, offset, verified


@inlined
def is_group_begin(source, start, end):
    """Whether the bytes begin with a GTID event."""
    if end - start < GTID_EVENT_MIN or source[start + 4] != GTID_EVENT:
        return False
    return load32(source, start + 9) >= GTID_EVENT_MIN


@jit
def is_group(source, start, end):
    """Whether the bytes begin with a GTID event and are events to their end."""
    if not is_group_begin(source, start, end):
        return False
    offset = start
    while end - offset >= EVENT_HEADER:
        size = load32(source, offset + 9)
        if size < EVENT_HEADER or size > end - offset:
            return False
        offset += size
    return offset == end


@jit
def is_skipped(source, start, skips):
    """Whether a group that begins at `start` comes before the one at which its domain's skipping ends.

    Each row of `skips` is domain, server and sequence number of such a group.
    """
    domain_id = load32(source, start + EVENT_HEADER + 8)
    for row in range(len(skips)):
        if skips[row, 0] == domain_id:
            is_other_server = skips[row, 1] != load32(source, start + 5)
            return is_other_server or load64(source, start + EVENT_HEADER) < uint64(skips[row, 2])
    return False


@inlined
def is_same_pair(source, one, other):
    """Whether two groups have the same domain and server."""
    return load32(source, one + 5) == load32(source, other + 5) and (
        load32(source, one + EVENT_HEADER + 8) == load32(source, other + EVENT_HEADER + 8)
    )


@inlined
def is_step_back(source, start, pairs, state):
    """Whether a group that begins at `start` has a number that is not above the one noted last for its pair."""
    server_id = load32(source, start + 5)
    domain_id = load32(source, start + EVENT_HEADER + 8)
    count = state[S_PAIRS]
    pair = 0
    while pair < count and (pairs[pair, 0] != domain_id or pairs[pair, 1] != server_id):
        pair += 1
    return pair < count and load64(source, start + EVENT_HEADER) <= uint64(pairs[pair, 2])


@inlined
def note_group(source, start, pairs, state):
    """Note the GTID of a group that begins at `start`, and its turn; False if there is no room for another pair."""
    server_id = load32(source, start + 5)
    domain_id = load32(source, start + EVENT_HEADER + 8)
    count = state[S_PAIRS]
    place = 0
    while place < count and (pairs[place, 0] != domain_id or pairs[place, 1] != server_id):
        place += 1
    if place == len(pairs):
        return False
    if place == count:
        state[S_PAIRS] = count + 1
    state[S_NOTED] += 1
    pairs[place, 0] = domain_id
    pairs[place, 1] = server_id
    pairs[place, 2] = int(load64(source, start + EVENT_HEADER))
    pairs[place, 3] = state[S_NOTED]
    return True
