"""Kernels that frame events as packets.

Arrays are flat, numbers are int64, nothing is allocated; every length is checked before it
is used, as nothing else would stop a write past the end of a buffer.

The reference, which puts the same bytes on the wire: `ibbmaster.dump.framing`.
"""

from __future__ import annotations

from numba import uint8

from ibbmaster.event.header import FLAGS_OFFSET, TYPE_OFFSET
from ibbmaster.event.types import EventFlag
from ibbmaster.kernel.fields import (
    ANNOTATE_ROWS,
    EVENT_HEADER,
    EVENT_MAX,
    LEAVES_OUT_ANNOTATE,
    LEAVES_OUT_MARKED,
    PACKET_MAX,
    SEGMENT_MIN,
    SMALL_EVENT,
    Field,
    Status,
)
from ibbmaster.kernel.group_begin import size_of
from ibbmaster.kernel.memory import copy, copy32, inlined, jit, load16, load32, store32, store64

MARKED = int(EventFlag.SKIP_REPLICATION)


@inlined
def is_left_out(source, offset, filters):
    """Whether a replica does not want an event."""
    return filters != 0 and (
        (filters & LEAVES_OUT_ANNOTATE and source[offset + TYPE_OFFSET] == ANNOTATE_ROWS)
        or (filters & LEAVES_OUT_MARKED and load16(source, offset + FLAGS_OFFSET) & MARKED)
    )


@jit
def frame_bytes(source, start, end, framing):
    """Frame the events that lie in source[start:end], which may begin and end inside one.

    As long as there is room in `segments`, long pieces of events are not copied, but noted there: where in the output
    they belong, where in the source they are, and their size. Output and these pieces together are never longer than
    `out`. Returns where it stopped and why: DONE, FULL, or FALLBACK where an event's size makes no sense; `state` and
    `head` hold what is needed to continue.
    """
    state, head, _, prefix, _, _, out, segments = framing
    offset = start
    position = state[Field.OUT]
    room = len(out) - state[Field.SEGMENT_BYTES]
    prefix_size = state[Field.PREFIX_SIZE]
    filters = state[Field.FILTERS]
    sequence = state[Field.SEQUENCE]
    whole_max = SEGMENT_MIN if state[Field.SEGMENTS] < len(segments) else PACKET_MAX - prefix_size
    status = Status.DONE
    while offset < end:
        if state[Field.EVENT_LEFT] == 0 and state[Field.HEAD_HELD] == 0 and end - offset >= EVENT_HEADER:
            size = size_of(source, offset)
            if size <= end - offset and size >= EVENT_HEADER and size < whole_max:
                if is_left_out(source, offset, filters):
                    offset += size
                    continue
                if room - position < size + prefix_size + 4:
                    status = Status.FULL
                    break
                store32(out, position, (size + prefix_size) | (sequence << 24))
                for index in range(prefix_size):
                    out[position + 4 + index] = prefix[index]
                copy(out, position + 4 + prefix_size, source, offset, size)
                position += 4 + prefix_size + size
                sequence = (sequence + 1) & 0xFF
                offset += size
                continue
        if room - position < 64:
            status = Status.FULL
            break
        if state[Field.EVENT_LEFT] == 0:
            taken = min(EVENT_HEADER - state[Field.HEAD_HELD], end - offset)
            for index in range(taken):
                head[state[Field.HEAD_HELD] + index] = source[offset + index]
            offset += taken
            state[Field.HEAD_HELD] += taken
            if state[Field.HEAD_HELD] < EVENT_HEADER:
                break
            size = size_of(head, 0)
            if size < EVENT_HEADER or size > EVENT_MAX:
                status = Status.FALLBACK
                break
            state[Field.HEAD_HELD] = 0
            state[Field.EVENT_LEFT] = size - EVENT_HEADER
            state[Field.IS_DROPPED] = 0
            if is_left_out(head, 0, filters):
                state[Field.IS_DROPPED] = 1
                continue
            payload = size + prefix_size
            state[Field.PACKET_LEFT] = min(payload, PACKET_MAX)
            state[Field.EMPTY_TAIL] = int(payload % PACKET_MAX == 0)
            store32(out, position, state[Field.PACKET_LEFT] | (sequence << 24))
            sequence = (sequence + 1) & 0xFF
            for index in range(prefix_size):
                out[position + 4 + index] = prefix[index]
            copy(out, position + 4 + prefix_size, head, 0, EVENT_HEADER)
            position += 4 + prefix_size + EVENT_HEADER
            state[Field.PACKET_LEFT] -= prefix_size + EVENT_HEADER
        elif state[Field.IS_DROPPED]:
            taken = min(state[Field.EVENT_LEFT], end - offset)
            offset += taken
            state[Field.EVENT_LEFT] -= taken
        else:
            if state[Field.PACKET_LEFT] == 0:
                state[Field.PACKET_LEFT] = min(state[Field.EVENT_LEFT], PACKET_MAX)
                store32(out, position, state[Field.PACKET_LEFT] | (sequence << 24))
                sequence = (sequence + 1) & 0xFF
                position += 4
            taken = min(min(state[Field.EVENT_LEFT], state[Field.PACKET_LEFT]), min(end - offset, room - position - 8))
            if taken >= SEGMENT_MIN and state[Field.SEGMENTS] < len(segments):
                segments[state[Field.SEGMENTS], 0] = position
                segments[state[Field.SEGMENTS], 1] = offset
                segments[state[Field.SEGMENTS], 2] = taken
                state[Field.SEGMENTS] += 1
                state[Field.SEGMENT_BYTES] += taken
                room -= taken
            else:
                copy(out, position, source, offset, taken)
                position += taken
            offset += taken
            state[Field.EVENT_LEFT] -= taken
            state[Field.PACKET_LEFT] -= taken
        if state[Field.EVENT_LEFT] == 0 and not state[Field.IS_DROPPED] and state[Field.EMPTY_TAIL]:
            store32(out, position, sequence << 24)
            sequence = (sequence + 1) & 0xFF
            position += 4
            state[Field.EMPTY_TAIL] = 0
    state[Field.OUT] = position
    state[Field.SEQUENCE] = sequence
    return offset, status


@jit
def frame_plain(source, start, end, out, room, position, sequence, prefix, prefix_size):
    """Frame the events in source[start:end], all of them whole, at a position of the output, which ends at `room`.

    `prefix` is a number, with the bytes in front of each event. Up to 32 bytes after `room`
    may be written. Returns the position and the sequence number after the events; -1 and the
    number as it was where the bytes are no events, there is no room, or one is too long.
    """
    readable = len(source) - 32
    offset = start
    number = sequence
    while end - offset >= EVENT_HEADER:
        size = size_of(source, offset)
        payload = size + prefix_size
        if size < EVENT_HEADER or size > end - offset or position + payload + 4 > room or payload >= PACKET_MAX:
            return -1, sequence
        store64(out, position, payload | (number << 24) | (prefix << 32))  # bytes too many are overwritten
        position += 4 + prefix_size
        if size <= SMALL_EVENT and offset + size <= readable:
            for step in range(0, size, 32):
                copy32(out, position + step, source, offset + step)
        else:
            copy(out, position, source, offset, size)
        position += size
        offset += size
        number = (number + 1) & 0xFF
    return (position, number) if offset == end else (-1, sequence)


@jit
def renumber(out, size, first, delta):
    """Add `delta` to the numbers of packets, the first of which begins at `first`."""
    offset = first
    while offset < size:
        out[offset + 3] = uint8((int(out[offset + 3]) + delta) & 0xFF)
        offset += 4 + (load32(out, offset) & PACKET_MAX)
