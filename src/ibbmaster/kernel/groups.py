"""Kernels that frame whole groups in a block of pages, and parts of groups out of band.

The twins, which put the same bytes on the wire: `ibbmaster.log.event_groups` and
`ibbmaster.log.out_of_band`, together with `ibbmaster.dump.framing`.
"""

from __future__ import annotations

from numba import int64

from ibbmaster.kernel.crc32c import DATA, PAGE, is_page_good
from ibbmaster.kernel.fields import (
    BAD_PAGE,
    CAREFUL,
    COMMIT,
    CONT,
    DONE,
    EVENT_HEADER,
    FILLER,
    FULL,
    KNOWN_TYPES,
    LAST,
    NEED_MORE,
    NO_DATA,
    OOB_DATA,
    S_CHUNK_LEFT,
    S_EMPTY_TAIL,
    S_EVENT_LEFT,
    S_FILTERS,
    S_GROUPS,
    S_HEAD_HELD,
    S_IS_FIRST,
    S_IS_LAST,
    S_NESTED_TYPE,
    S_OFFSET,
    S_OUT,
    S_PAGE,
    S_PAIRS,
    S_PREFIX,
    S_SEGMENT_BYTES,
    S_SEGMENTS,
    S_SEQUENCE,
    S_SKIP_TYPE,
    S_TO_SKIP,
    S_VERIFIED,
    TYPE_MASK,
)
from ibbmaster.kernel.framing import frame_bytes, frame_plain
from ibbmaster.kernel.memory import jit, load16, load32, load64
from ibbmaster.kernel.records import (
    gather,
    is_group,
    is_group_begin,
    is_same_pair,
    is_skipped,
    is_step_back,
    note_group,
    passed_chunk,
    record_chunk,
)


@jit
def frame_run(block, page_start, offset, state, prefix, pairs, out):  # type: ignore[no-untyped-def]
    """Frame whole groups, each in one chunk of the page that begins at `page_start`, and left as it is.

    Returns the offset behind the last of them. A pair is noted when another one comes, as
    that costs as much as an event.
    """
    position, sequence, prefix_size = state[S_OUT], state[S_SEQUENCE], state[S_PREFIX]
    room = len(out) - state[S_SEGMENT_BYTES] - 32
    noted_last = page_start  # the group that is to be noted; none yet
    while offset <= DATA - 4:
        start = page_start + offset
        data_size = load16(block, start + 1)
        end = start + 3 + data_size
        if block[start] != COMMIT | LAST or end > page_start + DATA or block[start + 3] != 0:
            break
        start += 4
        if not is_group_begin(block, start, end) or state[S_PAIRS] + 1 >= len(pairs):
            break
        if noted_last != page_start:
            if not is_same_pair(block, start, noted_last):
                note_group(block, noted_last, pairs, state)
                noted_last = page_start
            elif load64(block, start + EVENT_HEADER) <= load64(block, noted_last + EVENT_HEADER):
                break
        if noted_last == page_start and is_step_back(block, start, pairs, state):
            break
        behind, sequence = frame_plain(block, start, end, out, room, position, sequence, prefix, prefix_size)
        if behind < 0:
            break
        noted_last = start
        position = behind
        state[S_GROUPS] += 1
        offset = end - page_start
    if noted_last != page_start:
        note_group(block, noted_last, pairs, state)
    state[S_OUT], state[S_SEQUENCE] = position, sequence
    return offset


@jit
def frame_long(block, page_count, page, offset, verified, state, head, prefix, out, segments):  # type: ignore[no-untyped-def]
    """Frame the group in the record of several chunks that begins at a place, whose first byte is no event.

    Returns status, the place behind the record, and how many pages were verified.
    """
    nested = -1
    to_skip = 1
    while True:
        status, page, offset, data_size, verified, nested = record_chunk(
            block, page_count, page, offset, verified, COMMIT, to_skip == 1, nested
        )
        if status != DONE:
            return status, page, offset, verified
        start = page * PAGE + offset
        offset += 3 + data_size
        first, end = start + 3 + to_skip, start + 3 + data_size
        to_skip = 0
        _, status = frame_bytes(block, first, end, state, head, prefix, out, segments)
        if status != DONE or block[start] & LAST:
            return status, page, offset, verified


@jit
def frame_groups(block, page_count, state, head, prefix, pairs, scratch, out, segments, skips):  # type: ignore[no-untyped-def]
    """Frame whole event groups of a block of pages, each if all of it is here; pass over other records.

    Begins and ends where a record ends, or inside one that is passed over (`SKIP_TYPE`).
    `PAIRS` goes on from what it was. Groups with a part out of band, and everything that is
    not as it should be, are for the careful path: CAREFUL.

    With `skips`, groups are passed over instead, up to the first that is not one of those:
    see `is_skipped`.
    """
    page = state[S_PAGE]
    offset = state[S_OFFSET]
    skip_type = state[S_SKIP_TYPE]
    nested_type = state[S_NESTED_TYPE]
    verified = page
    state[S_GROUPS] = 0
    state[S_SEGMENTS] = state[S_SEGMENT_BYTES] = 0
    filters = state[S_FILTERS]
    prefix_size = state[S_PREFIX]
    prefix_number = load32(prefix, 0) & ((1 << (8 * prefix_size)) - 1)
    status = NEED_MORE
    while page < page_count:
        if page >= verified:
            if not is_page_good(block, page * PAGE):
                status = BAD_PAGE
                break
            verified = page + 1
        start = page * PAGE + offset
        if offset > DATA - 4 or block[start] == FILLER:
            page += 1
            offset = 0
            continue
        type_byte = int(block[start])
        if type_byte == 0:
            status = NO_DATA
            break
        data_size = load16(block, start + 1)
        end = offset + 3 + data_size
        found = type_byte & TYPE_MASK
        if data_size == 0 or end > DATA or not (KNOWN_TYPES >> found) & 1:
            status = CAREFUL
            break
        if found == COMMIT and skip_type < 0:
            if type_byte & CONT:
                status = CAREFUL
                break
            if len(skips) > 0:
                if block[start + 3] == 0 and is_group_begin(block, start + 4, start + 3 + data_size):
                    if not is_skipped(block, start + 4, skips) or not note_group(block, start + 4, pairs, state):
                        status = CAREFUL
                        break
                    skip_type = -1 if type_byte & LAST else found
                    offset = end
                else:  # its first event is cut
                    gathered, size, next_page, next_offset, verified = gather(
                        block, page_count, page, offset, verified, scratch
                    )
                    if gathered == NEED_MORE:
                        break
                    is_whole = gathered == DONE and scratch[0] == 0 and is_group_begin(scratch, 1, size)
                    if not is_whole or not is_skipped(scratch, 1, skips) or not note_group(scratch, 1, pairs, state):
                        status = CAREFUL
                        break
                    page, offset = next_page, next_offset
                state[S_GROUPS] += 1
                continue
            if filters == 0 and type_byte & LAST:
                behind = frame_run(block, page * PAGE, offset, state, prefix_number, pairs, out)
                if behind > offset:
                    offset = behind
                    continue
            out_before, sequence_before = state[S_OUT], state[S_SEQUENCE]
            segments_before, segment_bytes_before = state[S_SEGMENTS], state[S_SEGMENT_BYTES]
            is_gathered = False
            if state[S_PAIRS] + 1 >= len(pairs):
                status = FULL
                break
            if type_byte & LAST:
                source_start, source_end = start + 3, start + 3 + data_size
                next_page, next_offset = page, end
                if block[source_start] != 0 or not is_group(block, source_start + 1, source_end):
                    status = CAREFUL
                    break
                if is_step_back(block, source_start + 1, pairs, state):
                    status = CAREFUL
                    break
                _, framed = frame_bytes(block, source_start + 1, source_end, state, head, prefix, out, segments)
            elif block[start + 3] == 0 and is_group_begin(block, start + 4, start + 3 + data_size):
                if is_step_back(block, start + 4, pairs, state):
                    status = CAREFUL
                    break
                framed, next_page, next_offset, verified = frame_long(
                    block, page_count, page, offset, verified, state, head, prefix, out, segments
                )
            else:
                gathered, size, next_page, next_offset, verified = gather(
                    block, page_count, page, offset, verified, scratch
                )
                if gathered == NEED_MORE:
                    break
                if gathered != DONE or scratch[0] != 0 or not is_group(scratch, 1, size):
                    status = CAREFUL
                    break
                if is_step_back(scratch, 1, pairs, state):
                    status = CAREFUL
                    break
                is_gathered = True
                state[S_SEGMENTS] = len(segments)  # it does not lie in the pages: there is no room for more
                _, framed = frame_bytes(scratch, int64(1), size, state, head, prefix, out, segments)
                state[S_SEGMENTS] = segments_before
            if framed != DONE or state[S_EVENT_LEFT] != 0 or state[S_HEAD_HELD] != 0:
                state[S_OUT], state[S_SEQUENCE] = out_before, sequence_before
                state[S_SEGMENTS], state[S_SEGMENT_BYTES] = segments_before, segment_bytes_before
                state[S_EVENT_LEFT] = state[S_HEAD_HELD] = state[S_EMPTY_TAIL] = 0
                if framed == NEED_MORE:
                    break
                status = FULL if framed == FULL and state[S_GROUPS] > 0 else CAREFUL
                break
            if is_gathered:
                note_group(scratch, 1, pairs, state)
            else:
                note_group(block, start + 4, pairs, state)
            state[S_GROUPS] += 1
            page, offset = next_page, next_offset
            continue
        is_good, next_skip, next_nested = passed_chunk(type_byte, skip_type, nested_type)
        if not is_good:
            status = CAREFUL
            break
        skip_type, nested_type = next_skip, next_nested
        offset = end
    state[S_PAGE] = page
    state[S_OFFSET] = offset
    state[S_SKIP_TYPE] = skip_type
    state[S_NESTED_TYPE] = nested_type
    return status


@jit
def frame_record(block, page_count, state, head, prefix, out, segments):  # type: ignore[no-untyped-def]
    """Frame the events in the out-of-band record of which a chunk, or the rest of one, is at hand.

    `TO_SKIP` bytes of the record come before the events. DONE behind the record;
    NEED_MORE at the end of the block; FULL where the output ends; CAREFUL where the pages or
    events are not as they should be.
    """
    page, offset, nested = state[S_PAGE], state[S_OFFSET], state[S_NESTED_TYPE]
    verified = max(page, state[S_VERIFIED])
    status = NEED_MORE
    state[S_SEGMENTS] = state[S_SEGMENT_BYTES] = 0
    while page < page_count:
        if state[S_CHUNK_LEFT] == 0:
            status, page, offset, data_size, verified, nested = record_chunk(
                block, page_count, page, offset, verified, OOB_DATA, state[S_IS_FIRST] == 1, nested
            )
            if status != DONE:
                break
            state[S_IS_LAST] = int((block[page * PAGE + offset] & LAST) != 0)
            state[S_IS_FIRST] = 0
            state[S_CHUNK_LEFT] = data_size
            offset += 3
        elif page >= verified:
            if not is_page_good(block, page * PAGE):
                status = BAD_PAGE
                break
            verified = page + 1
        start = page * PAGE + offset
        skipped = min(state[S_TO_SKIP], state[S_CHUNK_LEFT])
        state[S_TO_SKIP] -= skipped
        end = start + state[S_CHUNK_LEFT]
        stopped, status = frame_bytes(block, start + skipped, end, state, head, prefix, out, segments)
        offset += stopped - start
        state[S_CHUNK_LEFT] = end - stopped
        if status != DONE or state[S_IS_LAST]:
            break
    state[S_PAGE], state[S_OFFSET], state[S_NESTED_TYPE] = page, offset, nested
    return status
