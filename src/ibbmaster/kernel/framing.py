"""Kernels that frame events as packets.

Arrays are flat, numbers are int64, nothing is allocated; every length is checked before it
is used, as nothing else would stop a write behind the end of a buffer.

The twin, which puts the same bytes on the wire: `ibbmaster.dump.framing`.
"""

from __future__ import annotations

from numba import uint8

from ibbmaster.kernel.fields import (
    ANNOTATE_ROWS,
    CAREFUL,
    DONE,
    EVENT_HEADER,
    EVENT_MAX,
    FULL,
    LEAVES_OUT_ANNOTATE,
    LEAVES_OUT_MARKED,
    PACKET_MAX,
    S_EMPTY_TAIL,
    S_EVENT_LEFT,
    S_FILTERS,
    S_HEAD_HELD,
    S_IS_DROPPED,
    S_OUT,
    S_PACKET_LEFT,
    S_PREFIX,
    S_SEGMENT_BYTES,
    S_SEGMENTS,
    S_SEQUENCE,
    SEGMENT_MIN,
    SMALL_EVENT,
)
from ibbmaster.kernel.memory import (
    copy,
    copy32,
    jit,
    load32,
    store32,
    store64,
)


@jit
def frame_bytes(source, start, end, state, head, prefix, out, segments):  # type: ignore[no-untyped-def]
    """Frame the events that lie in source[start:end], which may begin and end inside one.

    As long as there is room in `segments`, long pieces of events are not copied, but noted
    there: where in the output they belong, where in the source they are, and their size.
    Output and these pieces together are never longer than `out`.
    Returns where it stopped and why: DONE, FULL, or CAREFUL where an event's size makes no
    sense; `state` and `head` hold what is needed to go on.
    """
    offset = start
    position = state[S_OUT]
    room = len(out) - state[S_SEGMENT_BYTES]
    prefix_size = state[S_PREFIX]
    filters = state[S_FILTERS]
    sequence = state[S_SEQUENCE]
    whole_max = SEGMENT_MIN if state[S_SEGMENTS] < len(segments) else PACKET_MAX - prefix_size
    status = DONE
    while offset < end:
        if state[S_EVENT_LEFT] == 0 and state[S_HEAD_HELD] == 0 and end - offset >= EVENT_HEADER:
            size = load32(source, offset + 9)
            if size <= end - offset and size >= EVENT_HEADER and size < whole_max:
                if filters != 0 and (
                    (filters & LEAVES_OUT_ANNOTATE and source[offset + 4] == ANNOTATE_ROWS)
                    or (filters & LEAVES_OUT_MARKED and source[offset + 18] & 0x80)
                ):
                    offset += size
                    continue
                if room - position < size + prefix_size + 4:
                    status = FULL
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
            status = FULL
            break
        if state[S_EVENT_LEFT] == 0:
            taken = min(EVENT_HEADER - state[S_HEAD_HELD], end - offset)
            for index in range(taken):
                head[state[S_HEAD_HELD] + index] = source[offset + index]
            offset += taken
            state[S_HEAD_HELD] += taken
            if state[S_HEAD_HELD] < EVENT_HEADER:
                break
            size = load32(head, 9)
            if size < EVENT_HEADER or size > EVENT_MAX:
                status = CAREFUL
                break
            state[S_HEAD_HELD] = 0
            state[S_EVENT_LEFT] = size - EVENT_HEADER
            state[S_IS_DROPPED] = 0
            if (filters & LEAVES_OUT_ANNOTATE and head[4] == ANNOTATE_ROWS) or (
                filters & LEAVES_OUT_MARKED and head[18] & 0x80
            ):
                state[S_IS_DROPPED] = 1
                continue
            payload = size + prefix_size
            state[S_PACKET_LEFT] = min(payload, PACKET_MAX)
            state[S_EMPTY_TAIL] = int(payload % PACKET_MAX == 0)
            store32(out, position, state[S_PACKET_LEFT] | (sequence << 24))
            sequence = (sequence + 1) & 0xFF
            for index in range(prefix_size):
                out[position + 4 + index] = prefix[index]
            copy(out, position + 4 + prefix_size, head, 0, EVENT_HEADER)
            position += 4 + prefix_size + EVENT_HEADER
            state[S_PACKET_LEFT] -= prefix_size + EVENT_HEADER
        elif state[S_IS_DROPPED]:
            taken = min(state[S_EVENT_LEFT], end - offset)
            offset += taken
            state[S_EVENT_LEFT] -= taken
        else:
            if state[S_PACKET_LEFT] == 0:
                state[S_PACKET_LEFT] = min(state[S_EVENT_LEFT], PACKET_MAX)
                store32(out, position, state[S_PACKET_LEFT] | (sequence << 24))
                sequence = (sequence + 1) & 0xFF
                position += 4
            taken = min(min(state[S_EVENT_LEFT], state[S_PACKET_LEFT]), min(end - offset, room - position - 8))
            if taken >= SEGMENT_MIN and state[S_SEGMENTS] < len(segments):
                segments[state[S_SEGMENTS], 0] = position
                segments[state[S_SEGMENTS], 1] = offset
                segments[state[S_SEGMENTS], 2] = taken
                state[S_SEGMENTS] += 1
                state[S_SEGMENT_BYTES] += taken
                room -= taken
            else:
                copy(out, position, source, offset, taken)
                position += taken
            offset += taken
            state[S_EVENT_LEFT] -= taken
            state[S_PACKET_LEFT] -= taken
        if state[S_EVENT_LEFT] == 0 and not state[S_IS_DROPPED] and state[S_EMPTY_TAIL]:
            store32(out, position, sequence << 24)
            sequence = (sequence + 1) & 0xFF
            position += 4
            state[S_EMPTY_TAIL] = 0
    state[S_OUT] = position
    state[S_SEQUENCE] = sequence
    return offset, status


@jit
def frame_plain(source, start, end, out, room, position, sequence, prefix, prefix_size):  # type: ignore[no-untyped-def]
    """Frame the events in source[start:end], all of them whole, at a position of the output, which ends at `room`.

    `prefix` is a number, with the bytes in front of each event. Up to 32 bytes behind `room`
    may be written. Returns the position and the sequence number behind the events; -1 and the
    number as it was where the bytes are no events, there is no room, or one is too long.
    """
    readable = len(source) - 32
    offset = start
    number = sequence
    while end - offset >= EVENT_HEADER:
        size = load32(source, offset + 9)
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
def renumber(out, size, first, delta):  # type: ignore[no-untyped-def]
    """Add `delta` to the numbers of packets, the first of which begins at `first`."""
    offset = first
    while offset < size:
        out[offset + 3] = uint8((int(out[offset + 3]) + delta) & 0xFF)
        offset += 4 + (load32(out, offset) & PACKET_MAX)
