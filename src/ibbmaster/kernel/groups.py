"""Kernels that frame whole groups in a block of pages, skip them, and frame parts of groups out of band.

The references, which put the same bytes on the wire: `ibbmaster.log.event_groups` and
`ibbmaster.log.out_of_band`, together with `ibbmaster.dump.framing`.
"""

from __future__ import annotations

from numba import int64, uint64

from ibbmaster.kernel.crc32c import PAGE
from ibbmaster.kernel.fields import (
    CHUNK_HEADER,
    COMMIT,
    CONT,
    GROUP_BEGIN,
    LAST,
    OOB_DATA,
    TYPE_MASK,
    ChunkColumn,
    Field,
    NodeColumn,
    Progress,
    Status,
)
from ibbmaster.kernel.framing import frame_bytes, frame_plain
from ibbmaster.kernel.group_begin import (
    is_group_begin,
    is_limit,
    is_same_pair,
    is_skipped,
    is_step_back,
    note_group,
    sequence_of,
)
from ibbmaster.kernel.memory import copy, inlined, jit, load32
from ibbmaster.kernel.scan import index_chunks, is_begin, record_end, stop_at


@jit
def gather_begin(pages, table, row, end, begin):
    """Put the first bytes of the commit record in rows [row:end] together; returns how many."""
    position = 0
    while row < end and position < len(begin):
        if table[row, ChunkColumn.TYPE] & TYPE_MASK == COMMIT:
            taken = min(table[row, ChunkColumn.SIZE], len(begin) - position)
            copy(begin, position, pages, table[row, ChunkColumn.START] + CHUNK_HEADER, taken)
            position += taken
        row += 1
    return position


@inlined
def find_begin(pages, table, row, end, begin):
    """Where the first event of a commit record in rows [row:end] lies: in the pages or, if it is cut, in `begin`.

    Its place is -1 if it is no GTID event, or something is out of band.
    """
    source, start, size = pages, table[row, ChunkColumn.START] + CHUNK_HEADER, table[row, ChunkColumn.SIZE]
    if size < 1 + GROUP_BEGIN and end > row + 1:
        source, start = begin, 0
        size = gather_begin(pages, table, row, end, begin)
    if source[start] == 0 and is_group_begin(source, start + 1, start + size):
        start += 1
    else:
        start = -1
    return source, start


@jit
def frame_group(pages, row, end, framing):
    """Frame the group in a commit record's rows [row:end], and note it; nothing of it is left if that does not go."""
    state, _, begin, _, pairs, table, _, _ = framing
    source, first = find_begin(pages, table, row, end, begin)
    if first < 0 or is_step_back(source, first, pairs, state):
        return Status.FALLBACK
    position, sequence = state[Field.OUT], state[Field.SEQUENCE]
    segment_count, segment_bytes = state[Field.SEGMENTS], state[Field.SEGMENT_BYTES]
    to_skip = 1
    status = Status.DONE
    while row < end and status == Status.DONE:
        if table[row, ChunkColumn.TYPE] & TYPE_MASK == COMMIT:
            start = table[row, ChunkColumn.START] + CHUNK_HEADER
            stop = start + table[row, ChunkColumn.SIZE]
            _, status = frame_bytes(pages, start + to_skip, stop, framing)
            to_skip = 0
        row += 1
    if status == Status.DONE and (state[Field.EVENT_LEFT] != 0 or state[Field.HEAD_HELD] != 0):
        status = Status.FALLBACK
    if status == Status.DONE:
        note_group(source, first, pairs, state)
    else:
        state[Field.OUT], state[Field.SEQUENCE] = position, sequence
        state[Field.SEGMENTS], state[Field.SEGMENT_BYTES] = segment_count, segment_bytes
        state[Field.EVENT_LEFT] = state[Field.HEAD_HELD] = state[Field.EMPTY_TAIL] = 0
    return status


@jit
def frame_run(pages, row, count, framing):
    """Frame groups of one chunk each that are left as they are; returns the row of the first that is not one.

    A pair is noted when another one comes, as that costs as much as an event.
    """
    state, _, _, prefix, pairs, table, out, _ = framing
    position, sequence, prefix_size = state[Field.OUT], state[Field.SEQUENCE], state[Field.PREFIX_SIZE]
    prefix_number = load32(prefix, 0) & ((1 << (8 * prefix_size)) - 1)
    room = len(out) - state[Field.SEGMENT_BYTES] - 32
    pair_max = len(pairs) - 1
    noted_last = -1  # the group that is to be noted; none yet
    while row < count:
        at = uint64(row)
        if table[at, ChunkColumn.TYPE] != COMMIT | LAST:
            if is_begin(table, row, COMMIT):
                break
            row += 1
            continue
        start = table[at, ChunkColumn.START] + CHUNK_HEADER + 1
        end = start - 1 + table[at, ChunkColumn.SIZE]
        if pages[uint64(start - 1)] != 0 or not is_group_begin(pages, start, end) or state[Field.PAIRS] >= pair_max:
            break
        if noted_last >= 0:
            if not is_same_pair(pages, start, noted_last):
                note_group(pages, noted_last, pairs, state)
                noted_last = -1
            elif sequence_of(pages, start) <= sequence_of(pages, noted_last):
                break
        if noted_last < 0 and is_step_back(pages, start, pairs, state):
            break
        behind, sequence = frame_plain(pages, start, end, out, room, position, sequence, prefix_number, prefix_size)
        if behind < 0:
            break
        noted_last = start
        position = behind
        state[Field.GROUPS] += 1
        row += 1
    if noted_last >= 0:
        note_group(pages, noted_last, pairs, state)
    state[Field.OUT], state[Field.SEQUENCE] = position, sequence
    return row


@jit
def frame_table(pages, count, framing):
    """Frame whole event groups of a block of `count` pages, each if all of it is here; skip other records.

    Begins and ends where a record ends, or inside one that is skipped (`SKIP_TYPE`).
    `PAIRS` continues from what it was; `RUN` is noted. Groups with a part out of band, and everything that is
    not as it should be, are for the reference path: FALLBACK.
    """
    state, table, pairs = framing.state, framing.table, framing.pairs
    state[Field.GROUPS] = state[Field.SEGMENTS] = state[Field.SEGMENT_BYTES] = 0
    is_plain = state[Field.FILTERS] == 0
    row = rows = int64(0)
    is_cut = False  # the current record continues after the rows
    status = Status.NEED_MORE
    while True:
        if row == rows or is_cut:
            if status != Status.NEED_MORE or state[Field.PAGE] >= count:
                break
            rows, status = index_chunks(pages, state[Field.PAGE] + 1, state, table, rows)
            is_cut = False
            continue
        if is_plain:
            row = frame_run(pages, row, rows, framing)
            if row == rows:
                continue
        if not is_begin(table, row, COMMIT):
            row += 1
            continue
        end = record_end(table, row, rows)
        if end < 0:
            is_cut = True
            continue
        if state[Field.PAIRS] + 1 >= len(pairs):
            status = Status.FULL
            break
        framed = frame_group(pages, row, end, framing)
        if framed != Status.DONE:
            status = Status.FULL if framed == Status.FULL and state[Field.GROUPS] > 0 else Status.FALLBACK
            break
        state[Field.GROUPS] += 1
        row = end
    state[Field.RUN] = last_run(table, rows) if row == rows and state[Field.SKIP_TYPE] == OOB_DATA else -1
    if row < rows:
        stop_at(int64(table[row, ChunkColumn.START]), state)
    return status


@jit
def last_run(table, row):
    """Where in the pages the out-of-band records before a row begin, with no group between; -1 for none."""
    found = int64(-1)
    while row > 0:
        row -= 1
        type_byte = table[row, ChunkColumn.TYPE]
        if type_byte & TYPE_MASK == COMMIT:
            break
        if is_begin(table, row, OOB_DATA):
            found = int64(table[row, ChunkColumn.START])
    return found


@jit
def skip_table(pages, count, framing, skips):
    """Skip groups of a block of pages up to the one in its domain's row of `skips`; DONE after that.

    See `is_skipped`. Continues after the first chunks of a group whose rest is not here. FALLBACK
    before a group that is not to be skipped, or is not as it should be.
    """
    state, table, pairs = framing.state, framing.table, framing.pairs
    state[Field.GROUPS] = 0
    row = rows = int64(0)
    is_cut = False  # the current record continues after the rows
    status = Status.NEED_MORE
    while True:
        if row == rows or is_cut:
            if status != Status.NEED_MORE or state[Field.PAGE] >= count:
                break
            rows, status = index_chunks(pages, state[Field.PAGE] + 1, state, table, rows)
            is_cut = False
            continue
        if not is_begin(table, row, COMMIT):
            row += 1
            continue
        end = record_end(table, row, rows)
        if end < 0 and table[row, ChunkColumn.SIZE] <= GROUP_BEGIN:
            is_cut = True
            continue
        is_whole = end >= 0
        end = end if is_whole else rows
        source, start = find_begin(pages, table, row, end, framing.begin)
        is_last = start >= 0 and is_whole and is_limit(source, start, skips)
        goes_on = is_last or (start >= 0 and is_skipped(source, start, skips))
        if not goes_on or note_group(source, start, pairs, state) < 0:
            status = Status.FALLBACK
            break
        state[Field.GROUPS] += 1
        row = end
        if is_last:
            status = Status.DONE
            break
    if row < rows:
        stop_at(int64(table[row, ChunkColumn.START]), state)
    return status


@jit
def frame_node(pages, count, framing):
    """Frame the events in the out-of-band record whose begin, or other chunk, is the place.

    Without the first `TO_SKIP` bytes. DONE after the record; NEED_MORE at the end of the block;
    FULL where the output ends; FALLBACK where the pages or events are not as they should be.
    Output and `SEGMENTS` continue from what they were.
    """
    state, table = framing.state, framing.table
    is_begun = state[Field.SKIP_TYPE] == OOB_DATA
    status = Status.NEED_MORE
    while state[Field.PAGE] < count and status == Status.NEED_MORE:
        rows, status = index_chunks(pages, state[Field.PAGE] + 1, state, table, int64(0))
        for row in range(rows):
            type_byte = table[row, ChunkColumn.TYPE]
            if type_byte & TYPE_MASK != OOB_DATA:
                if is_begun:
                    continue  # a state or dummy record inside
                stop_at(int64(table[row, ChunkColumn.START]), state)
                return Status.FALLBACK
            is_begun = True
            start = table[row, ChunkColumn.START] + CHUNK_HEADER
            end = start + table[row, ChunkColumn.SIZE]
            first = min(start + state[Field.TO_SKIP], end)
            state[Field.TO_SKIP] -= first - start
            stopped, framed = frame_bytes(pages, first, end, framing)
            if framed != Status.DONE:
                stop_at(int64(table[row, ChunkColumn.START]), state)
                if type_byte & CONT:
                    state[Field.SKIP_TYPE] = OOB_DATA
                state[Field.TO_SKIP] += stopped - start
                return framed
            if type_byte & LAST:
                return Status.DONE
    return Status.FALLBACK if status == Status.NO_DATA else status


@jit
def frame_way(pages, count, base, nodes, framing, progress):
    """Frame the events in the out-of-band nodes on the way to a commit record, and check all of that way.

    `base` is the file offset of the pages. What lies there besides is skipped, as `frame_table` does. DONE before the
    commit record at `COMMIT`, if that is where one record ends and the next begins, and no other came before;
    NEED_MORE at the end of the block; FULL where the output or the nodes at hand end; else as `frame_node`.
    """
    state, table = framing.state, framing.table
    state[Field.VERIFIED] = 0
    state[Field.END] = progress[Progress.COMMIT] - base
    status = Status.NEED_MORE
    while state[Field.PAGE] < count and status == Status.NEED_MORE:
        rows, status = index_chunks(pages, state[Field.PAGE] + 1, state, table, int64(0))
        for row in range(rows):
            type_byte = table[row, ChunkColumn.TYPE]
            record_type = type_byte & TYPE_MASK
            begin = int64(table[row, ChunkColumn.START])
            if record_type == COMMIT:
                stop_at(begin, state)
                return Status.FALLBACK
            if record_type != OOB_DATA:
                continue
            if not type_byte & CONT and not progress[Progress.IS_BEGUN]:
                if progress[Progress.NODE] == len(nodes):
                    if progress[Progress.HAS_MORE]:
                        stop_at(begin, state)
                        return Status.FULL
                    continue  # of another group
                place = nodes[progress[Progress.NODE], NodeColumn.PLACE]
                if place <= base + begin:
                    if place < base + begin:
                        stop_at(begin, state)
                        return Status.FALLBACK
                    progress[Progress.IS_BEGUN] = 1
                    state[Field.TO_SKIP] = nodes[progress[Progress.NODE], NodeColumn.HEADER_SIZE]
            if not progress[Progress.IS_BEGUN]:
                continue
            start = begin + CHUNK_HEADER
            end = start + table[row, ChunkColumn.SIZE]
            first = min(start + state[Field.TO_SKIP], end)
            state[Field.TO_SKIP] -= first - start
            stopped, framed = frame_bytes(pages, first, end, framing)
            if framed != Status.DONE:
                stop_at(begin, state)
                if type_byte & CONT:
                    state[Field.SKIP_TYPE] = OOB_DATA
                state[Field.TO_SKIP] += stopped - start
                return framed
            if type_byte & LAST:
                progress[Progress.IS_BEGUN] = 0
                progress[Progress.NODE] += 1
    if status != Status.NO_DATA:
        return status
    is_there = base + state[Field.PAGE] * PAGE + state[Field.OFFSET] == progress[Progress.COMMIT]
    is_between = state[Field.SKIP_TYPE] < 0 and state[Field.NESTED_TYPE] < 0
    return Status.DONE if is_there and is_between else Status.FALLBACK
