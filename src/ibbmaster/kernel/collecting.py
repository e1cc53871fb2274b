"""Kernels that put the events of whole groups side by side, with an index of the groups and of the events.

The references: `ibbmaster.log.event_groups` and `ibbmaster.log.group_content`.
"""

from __future__ import annotations

from numba import int64, uint64

from ibbmaster.kernel.fields import (
    CHUNK_HEADER,
    COMMIT,
    CONT,
    EVENT_HEADER,
    LAST,
    NO_EVENT,
    TYPE_MASK,
    ChunkColumn,
    EventColumn,
    Field,
    GroupColumn,
    Status,
)
from ibbmaster.kernel.group_begin import domain_of, is_group, sequence_of, server_of, size_of
from ibbmaster.kernel.memory import copy, inlined, jit, load32
from ibbmaster.kernel.scan import index_chunks, stop_at


@inlined
def note_group(groups, row, data, start, end, file_no, file_offset, end_offset):
    """Note a group whose events are data[start:end], and where it is in its file."""
    groups[row, GroupColumn.DOMAIN] = domain_of(data, start)
    groups[row, GroupColumn.SERVER] = server_of(data, start)
    groups[row, GroupColumn.SEQ_NO] = int(sequence_of(data, start))
    groups[row, GroupColumn.TIMESTAMP] = load32(data, start)
    groups[row, GroupColumn.FILE_NO] = file_no
    groups[row, GroupColumn.FILE_OFFSET] = file_offset
    groups[row, GroupColumn.END_FILE_NO] = file_no
    groups[row, GroupColumn.END_OFFSET] = end_offset
    groups[row, GroupColumn.START] = start
    groups[row, GroupColumn.END] = end
    groups[row, GroupColumn.FIRST_NUMBER] = 0


@jit
def collect_table(pages, count, collecting, file_range):
    """Copy the events of whole inline groups of a block of `count` pages; skip other records.

    Groups and data continue from GROUPS and OUT. DONE at the first group that begins at the end of
    the range or after it; a group with a part out of band, and everything that is not as it
    should be, is for the reference path: FALLBACK.
    """
    state, table, groups, data = collecting
    position, found = state[Field.OUT], state[Field.GROUPS]
    base = file_range.block_offset
    place, held = int64(-1), int64(0)  # of the current record, -1 for none, and bytes of it that were copied
    row = rows = int64(0)
    status = Status.NEED_MORE
    while True:
        if row == rows:
            if status != Status.NEED_MORE or state[Field.PAGE] >= count:
                break
            rows, status = index_chunks(pages, state[Field.PAGE] + 1, state, table, int64(0))
            row = int64(0)
            continue
        at = uint64(row)
        start, size, type_byte = table[at, ChunkColumn.START], table[at, ChunkColumn.SIZE], table[at, ChunkColumn.TYPE]
        row += 1
        if type_byte & TYPE_MASK != COMMIT or (type_byte & CONT and place < 0):
            continue  # another record, or the rest of one that began before
        if not type_byte & CONT:
            place, held = start, int64(0)
        if base + place >= file_range.end_offset:
            status = Status.DONE
            break
        if found == len(groups) or size > len(data) - position - held:
            status = Status.FULL
            break
        copy(data, position + held, pages, start + CHUNK_HEADER, size)
        held += size
        if not type_byte & LAST:
            continue
        if data[position] != 0 or not is_group(data, position + 1, position + held, NO_EVENT):
            status = Status.FALLBACK
            break
        behind = base + start + CHUNK_HEADER + size
        note_group(groups, found, data, position + 1, position + held, file_range.file_no, base + place, behind)
        found += 1
        position += held
        place = int64(-1)
    if place >= 0:
        stop_at(place, state)
    state[Field.OUT], state[Field.GROUPS] = position, found
    return status


@jit
def index_events(data, groups, count, events):
    """Find the events of the first `count` groups, which are whole; returns how many there are."""
    found = 0
    for group in range(count):
        offset, end = groups[group, GroupColumn.START], groups[group, GroupColumn.END]
        number = groups[group, GroupColumn.FIRST_NUMBER]
        while offset < end and found < len(events):
            size = size_of(data, offset)
            events[found, EventColumn.START] = offset
            events[found, EventColumn.SIZE] = size
            events[found, EventColumn.GROUP] = group
            events[found, EventColumn.NUMBER] = number
            found += 1
            number += 1
            offset += max(size, EVENT_HEADER)
    return found
