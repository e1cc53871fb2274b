"""Kernels that put the events of whole groups side by side, with an index of the groups and of the events.

The twins: `ibbmaster.log.event_groups` and `ibbmaster.log.group_content`.
"""

from __future__ import annotations

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
    S_GROUPS,
    S_NESTED_TYPE,
    S_OFFSET,
    S_OUT,
    S_PAGE,
    S_SKIP_TYPE,
    TYPE_MASK,
    EventColumn,
    GroupColumn,
)
from ibbmaster.kernel.memory import copy, inlined, jit, load16, load32, load64
from ibbmaster.kernel.records import gather, is_group, passed_chunk

G_DOMAIN, G_SERVER, G_SEQ_NO = int(GroupColumn.DOMAIN), int(GroupColumn.SERVER), int(GroupColumn.SEQ_NO)
G_TIMESTAMP, G_FILE_OFFSET = int(GroupColumn.TIMESTAMP), int(GroupColumn.FILE_OFFSET)
G_FILE_NO, G_END_FILE_NO = int(GroupColumn.FILE_NO), int(GroupColumn.END_FILE_NO)
G_END_OFFSET, G_START, G_END = int(GroupColumn.END_OFFSET), int(GroupColumn.START), int(GroupColumn.END)
G_FIRST_NUMBER = int(GroupColumn.FIRST_NUMBER)
E_START, E_SIZE = int(EventColumn.START), int(EventColumn.SIZE)
E_GROUP, E_NUMBER = int(EventColumn.GROUP), int(EventColumn.NUMBER)


@inlined
def note_group(groups, row, data, start, end, file_no, file_offset, end_offset):  # type: ignore[no-untyped-def]
    """Note a group whose events are data[start:end], and where it is in its file."""
    groups[row, G_DOMAIN] = load32(data, start + EVENT_HEADER + 8)
    groups[row, G_SERVER] = load32(data, start + 5)
    groups[row, G_SEQ_NO] = int(load64(data, start + EVENT_HEADER))
    groups[row, G_TIMESTAMP] = load32(data, start)
    groups[row, G_FILE_NO] = file_no
    groups[row, G_FILE_OFFSET] = file_offset
    groups[row, G_END_FILE_NO] = file_no
    groups[row, G_END_OFFSET] = end_offset
    groups[row, G_START] = start
    groups[row, G_END] = end
    groups[row, G_FIRST_NUMBER] = 0


@jit
def collect_groups(block, page_count, state, file_no, base, last, groups, data):  # type: ignore[no-untyped-def]
    """Copy the events of whole inline groups of a block of pages; pass over other records.

    `base` is where in its file the block begins. Groups and data go on from GROUPS and OUT.
    DONE at the first group that begins at `last` of the file or behind it; a group with a part
    out of band, and everything that is not as it should be, is for the careful path: CAREFUL.
    """
    page, offset = state[S_PAGE], state[S_OFFSET]
    skip_type, nested_type = state[S_SKIP_TYPE], state[S_NESTED_TYPE]
    position, count = state[S_OUT], state[S_GROUPS]
    verified = page
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
        if data_size == 0 or end > DATA or not (KNOWN_TYPES >> (type_byte & TYPE_MASK)) & 1:
            status = CAREFUL
            break
        if type_byte & TYPE_MASK != COMMIT or skip_type >= 0:
            is_good, next_skip, next_nested = passed_chunk(type_byte, skip_type, nested_type)
            if not is_good:
                status = CAREFUL
                break
            skip_type, nested_type = next_skip, next_nested
            offset = end
            continue
        if type_byte & CONT:
            status = CAREFUL
            break
        if base + start >= last:
            status = DONE
            break
        if count == len(groups):
            status = FULL
            break
        if type_byte & LAST:
            size, next_page, next_offset = data_size, page, end
            if len(data) - position < size:
                status = FULL
                break
            copy(data, position, block, start + 3, size)
        else:
            gathered, size, next_page, next_offset, verified = gather(
                block, page_count, page, offset, verified, data[position:]
            )
            if gathered == NEED_MORE:
                break
            if gathered != DONE:
                status = FULL if position > 0 else CAREFUL
                break
        if data[position] != 0 or not is_group(data, position + 1, position + size):
            status = CAREFUL
            break
        behind = base + next_page * PAGE + next_offset
        note_group(groups, count, data, position + 1, position + size, file_no, base + start, behind)
        count += 1
        position += size
        page, offset = next_page, next_offset
    state[S_PAGE], state[S_OFFSET] = page, offset
    state[S_SKIP_TYPE], state[S_NESTED_TYPE] = skip_type, nested_type
    state[S_OUT], state[S_GROUPS] = position, count
    return status


@jit
def index_events(data, groups, count, events):  # type: ignore[no-untyped-def]
    """Find the events of the first `count` groups, which are whole; returns how many there are."""
    found = 0
    for group in range(count):
        offset, end = groups[group, G_START], groups[group, G_END]
        number = groups[group, G_FIRST_NUMBER]
        while offset < end and found < len(events):
            size = load32(data, offset + 9)
            events[found, E_START] = offset
            events[found, E_SIZE] = size
            events[found, E_GROUP] = group
            events[found, E_NUMBER] = number
            found += 1
            number += 1
            offset += max(size, EVENT_HEADER)
    return found
