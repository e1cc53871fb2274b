"""Kernels that frame the events of traditional files as packets.

An event is verified, and goes out as it is stored; or as an engine's stream has it, without checksum and end position.

The references: `ibbmaster.classic.groups` with `ibbmaster.dump.rewriting` and `ibbmaster.dump.framing`.
"""

from __future__ import annotations

from ibbmaster.event.types import EventType
from ibbmaster.kernel.classic_groups import CUT, NO_GROUP, STANDALONE, WRONG, event_role, event_size, group_kind
from ibbmaster.kernel.crc32 import crc32
from ibbmaster.kernel.fields import (
    CONTINUES,
    ENDS,
    EVENT_HEADER,
    PACKET_MAX,
    SEGMENT_MIN,
    SMALL_EVENT,
    Field,
    Status,
)
from ibbmaster.kernel.framing import is_left_out
from ibbmaster.kernel.group_begin import is_skipped, note_group
from ibbmaster.kernel.memory import copy, copy32, inlined, jit, load32, store32, store64
from ibbmaster.kernel.packet_fields import ClassicField

CHECKPOINT = int(EventType.BINLOG_CHECKPOINT)
AROUND_GROUP_MAX = 1 << 19  # bytes of an event outside of groups, and of a GTID event
LARGE_MIN = 1 << 19  # bytes: a longer event may be framed before all of it was verified
ROOM = 64  # bytes that are kept free for headers, checksums, and copies that go too far


@inlined
def trailer_bytes(state):
    """Of the checksum that each event goes out with."""
    return state[ClassicField.CHECKSUM_BYTES] if state[ClassicField.IS_STORED] else 0


@jit
def begin_packet(state, out, payload):
    """The header of a packet of `payload` bytes."""
    store32(out, state[Field.OUT], payload | (state[Field.SEQUENCE] << 24))
    state[Field.OUT] += 4
    state[Field.SEQUENCE] = (state[Field.SEQUENCE] + 1) & 0xFF


@jit
def put(source, start, size, state, out, segments):
    """Bytes of an event after what is in the output: a long piece is only noted, as long as there is room for that."""
    if size >= SEGMENT_MIN and state[Field.SEGMENTS] < len(segments):
        row = state[Field.SEGMENTS]
        segments[row, 0] = state[Field.OUT]
        segments[row, 1] = start
        segments[row, 2] = size
        state[Field.SEGMENTS] += 1
        state[Field.SEGMENT_BYTES] += size
        return
    copy(out, state[Field.OUT], source, start, size)
    state[Field.OUT] += size


@jit
def begin_large(source, offset, state, prefix, out):
    """Frame the header of an event that is longer than what is here of it."""
    kept = load32(source, offset + 9) - state[ClassicField.CHECKSUM_BYTES]
    trailer = trailer_bytes(state)
    state[ClassicField.IS_LARGE] = 1
    state[Field.EVENT_LEFT] = kept - EVENT_HEADER
    state[ClassicField.CHECKSUM] = crc32(source, offset, offset + EVENT_HEADER, 0)
    if not state[ClassicField.PASSES_OVER]:
        state[ClassicField.LAST_POSITION] = state[ClassicField.POSITION]
        state[ClassicField.POSITION] += kept + trailer
    state[Field.IS_DROPPED] = int(state[ClassicField.PASSES_OVER] or is_left_out(source, offset, state[Field.FILTERS]))
    if state[Field.IS_DROPPED]:
        return
    payload = state[Field.PREFIX_SIZE] + kept + trailer
    state[Field.EMPTY_TAIL] = int(payload % PACKET_MAX == 0)
    state[Field.PACKET_LEFT] = min(payload, PACKET_MAX)
    begin_packet(state, out, state[Field.PACKET_LEFT])
    start = state[Field.OUT] + state[Field.PREFIX_SIZE]
    for index in range(state[Field.PREFIX_SIZE]):
        out[state[Field.OUT] + index] = prefix[index]
    copy(out, start, source, offset, EVENT_HEADER)
    if not state[ClassicField.IS_STORED]:
        store32(out, start + 9, kept)
        store32(out, start + 13, 0)
    state[Field.OUT] = start + EVENT_HEADER
    state[Field.PACKET_LEFT] -= state[Field.PREFIX_SIZE] + EVENT_HEADER
    state[ClassicField.PAYLOAD_LEFT] = payload - state[Field.PREFIX_SIZE] - EVENT_HEADER


@jit
def frame_large(source, end, state, out, segments):
    """Frame what is here of the current event; Status.DONE after it, and Status.FALLBACK if its checksum is wrong."""
    offset = state[ClassicField.READ_AT]
    is_dropped = state[Field.IS_DROPPED] != 0
    status = Status.DONE
    while state[Field.EVENT_LEFT] > 0:
        if offset >= end:
            status = Status.NEED_MORE
            break
        taken = min(state[Field.EVENT_LEFT], end - offset)
        if not is_dropped:
            room = len(out) - state[Field.SEGMENT_BYTES] - state[Field.OUT] - ROOM
            if room <= 0:
                status = Status.FULL
                break
            if state[Field.PACKET_LEFT] == 0:
                state[Field.PACKET_LEFT] = min(state[ClassicField.PAYLOAD_LEFT], PACKET_MAX)
                begin_packet(state, out, state[Field.PACKET_LEFT])
            taken = min(taken, min(state[Field.PACKET_LEFT], room))
        if state[ClassicField.CHECKSUM_BYTES] > 0:
            state[ClassicField.CHECKSUM] = crc32(source, offset, offset + taken, state[ClassicField.CHECKSUM])
        if not is_dropped:
            put(source, offset, taken, state, out, segments)
            state[Field.PACKET_LEFT] -= taken
            state[ClassicField.PAYLOAD_LEFT] -= taken
        offset += taken
        state[Field.EVENT_LEFT] -= taken
    state[ClassicField.READ_AT] = offset
    if status != Status.DONE:
        return status
    if end - offset < state[ClassicField.CHECKSUM_BYTES]:
        return Status.NEED_MORE
    if state[ClassicField.CHECKSUM_BYTES] > 0 and load32(source, offset) != state[ClassicField.CHECKSUM]:
        return Status.FALLBACK
    if not is_dropped:
        if len(out) - state[Field.SEGMENT_BYTES] - state[Field.OUT] < ROOM:
            return Status.FULL
        checksum = state[ClassicField.CHECKSUM]
        for _ in range(trailer_bytes(state)):
            if state[Field.PACKET_LEFT] == 0:
                state[Field.PACKET_LEFT] = min(state[ClassicField.PAYLOAD_LEFT], PACKET_MAX)
                begin_packet(state, out, state[Field.PACKET_LEFT])
            out[state[Field.OUT]] = checksum & 0xFF
            checksum >>= 8
            state[Field.OUT] += 1
            state[Field.PACKET_LEFT] -= 1
            state[ClassicField.PAYLOAD_LEFT] -= 1
        if state[Field.EMPTY_TAIL]:
            begin_packet(state, out, 0)
    state[ClassicField.READ_AT] = offset + state[ClassicField.CHECKSUM_BYTES]
    state[ClassicField.IS_LARGE] = state[Field.EMPTY_TAIL] = 0
    if state[ClassicField.IS_LAST]:
        state[ClassicField.KIND] = state[ClassicField.IS_LAST] = 0
    return Status.DONE


@inlined
def frame_whole(source, offset, size, state, prefix_number, out, segments):
    """Frame an event that is here and verified; False where the output has no room for it."""
    is_stored, prefix_size = state[ClassicField.IS_STORED], state[Field.PREFIX_SIZE]
    kept = size if is_stored else size - state[ClassicField.CHECKSUM_BYTES]
    behind = state[ClassicField.POSITION] + kept
    is_framed = True
    if not is_left_out(source, offset, state[Field.FILTERS]):
        position = state[Field.OUT]
        if len(out) - state[Field.SEGMENT_BYTES] - position < kept + ROOM:
            is_framed = False
        else:
            header = (prefix_size + kept) | (state[Field.SEQUENCE] << 24)
            store64(out, position, header | (prefix_number << 32))  # bytes too many are overwritten
            state[Field.SEQUENCE] = (state[Field.SEQUENCE] + 1) & 0xFF
            position += 4 + prefix_size
            is_segment = kept >= SEGMENT_MIN and state[Field.SEGMENTS] < len(segments)
            if is_segment:
                copy(out, position, source, offset, EVENT_HEADER)
            elif kept <= SMALL_EVENT and offset + kept <= len(source) - 32:
                for step in range(0, kept, 32):
                    copy32(out, position + step, source, offset + step)
            else:
                copy(out, position, source, offset, kept)
            if not is_stored:
                store32(out, position + 9, kept)
                store32(out, position + 13, 0)
            if is_segment:
                state[Field.OUT] = position + EVENT_HEADER
                put(source, offset + EVENT_HEADER, kept - EVENT_HEADER, state, out, segments)
            else:
                state[Field.OUT] = position + kept
    if is_framed:
        state[ClassicField.LAST_POSITION] = state[ClassicField.POSITION]
        state[ClassicField.POSITION] = behind
    return is_framed


@jit
def frame_classic(source, end, framing, roles, skips):
    """Frame the groups of source[READ_AT:end], each if all of it is here; or one of them IN_PARTS.

    With `skips`, groups are skipped instead, up to the first that is not one of those: see `is_skipped`; or all, if it
    has no row and PASSES_OVER is set. OUT, SEQUENCE, PAIRS and the positions continue from what they were.

    Returns why it stopped: Status.NEED_MORE where what comes next is not all here, Status.FULL where there is
    no room for it, Status.FALLBACK before what is not as it should be or has to be decided, Status.DONE after
    a group in parts. An event of LARGE_MIN bytes and more may go out in parts.
    """
    state, prefix, pairs, out, segments = framing.state, framing.prefix, framing.pairs, framing.out, framing.segments
    state[Field.GROUPS] = 0
    state[Field.SEGMENTS] = state[Field.SEGMENT_BYTES] = 0
    checksum_bytes, source_offset = state[ClassicField.CHECKSUM_BYTES], state[ClassicField.SOURCE_OFFSET]
    is_in_parts, passes_over = state[ClassicField.IN_PARTS] != 0, state[ClassicField.PASSES_OVER] != 0
    is_stored = state[ClassicField.IS_STORED] != 0
    prefix_number = load32(prefix, 0) & ((1 << (8 * state[Field.PREFIX_SIZE])) - 1)
    kind = state[ClassicField.KIND]
    offset = state[ClassicField.READ_AT]
    group_at = offset
    before_out, before_sequence = state[Field.OUT], state[Field.SEQUENCE]
    before_position, before_last = state[ClassicField.POSITION], state[ClassicField.LAST_POSITION]
    before_segments = before_segment_bytes = 0
    status = Status.DONE
    while True:
        if state[ClassicField.IS_LARGE]:
            state[ClassicField.READ_AT] = offset
            status = frame_large(source, end, state, out, segments)
            offset, kind = state[ClassicField.READ_AT], state[ClassicField.KIND]
            if status == Status.DONE and kind == NO_GROUP:
                state[Field.GROUPS] += 1
                break
            if status != Status.DONE:
                break
        size = event_size(source, offset, end, source_offset, checksum_bytes)
        if size == WRONG:
            status = Status.FALLBACK
            break
        is_cut = size == CUT
        if is_cut and is_in_parts and kind != NO_GROUP and end - offset >= EVENT_HEADER:
            size = load32(source, offset + 9)
        is_large = is_in_parts and kind != NO_GROUP and size > LARGE_MIN
        if is_cut and not is_large:
            status = Status.NEED_MORE
            break
        ends = False
        if kind == NO_GROUP:
            if size > AROUND_GROUP_MAX:
                status = Status.FALLBACK
                break
            if source[offset + 4] == CHECKPOINT:
                if is_stored and passes_over:
                    status = Status.FALLBACK  # it goes out, whatever is skipped around it
                    break
                if is_stored and not frame_whole(source, offset, size, state, prefix_number, out, segments):
                    status = Status.FULL
                    break
                offset += size
                continue
            kind = group_kind(source, offset, offset + size - checksum_bytes)
            if kind == NO_GROUP or (len(skips) > 0 and not is_skipped(source, offset, skips)):
                kind = NO_GROUP
                status = Status.FALLBACK
                break
            if state[Field.PAIRS] >= len(pairs):
                kind = NO_GROUP
                status = Status.FULL
                break
            group_at = offset
            before_out, before_sequence = state[Field.OUT], state[Field.SEQUENCE]
            before_position, before_last = state[ClassicField.POSITION], state[ClassicField.LAST_POSITION]
            before_segments, before_segment_bytes = state[Field.SEGMENTS], state[Field.SEGMENT_BYTES]
            if is_in_parts:
                state[ClassicField.GROUP_OFFSET] = source_offset + offset
                note_group(source, offset, pairs, state)
        else:
            event_type = source[offset + 4]
            role = int(roles.standalone[event_type]) if kind == STANDALONE else int(roles.transaction[event_type])
            role = event_role(source, offset, offset + size - checksum_bytes, role)
            ends = role == ENDS
            if role != ENDS and role != CONTINUES:
                status = Status.FALLBACK
                break
        if is_large:
            if source_offset + offset + size > state[ClassicField.FILE_SIZE]:
                status = Status.FALLBACK
                break
            if len(out) - state[Field.SEGMENT_BYTES] - state[Field.OUT] < ROOM:
                status = Status.FULL
                break
            begin_large(source, offset, state, prefix, out)
            state[ClassicField.IS_LAST] = int(ends)
            offset += EVENT_HEADER
            state[ClassicField.KIND] = kind
            continue
        if not passes_over and not frame_whole(source, offset, size, state, prefix_number, out, segments):
            status = Status.FULL
            break
        offset += size
        if ends:
            kind = NO_GROUP
            state[Field.GROUPS] += 1
            if is_in_parts:
                status = Status.DONE
                break
            note_group(source, group_at, pairs, state)
    if kind != NO_GROUP and not is_in_parts:
        offset, kind = group_at, NO_GROUP
        state[Field.OUT], state[Field.SEQUENCE] = before_out, before_sequence
        state[ClassicField.POSITION], state[ClassicField.LAST_POSITION] = before_position, before_last
        state[Field.SEGMENTS], state[Field.SEGMENT_BYTES] = before_segments, before_segment_bytes
    state[ClassicField.READ_AT] = offset
    state[ClassicField.KIND] = kind
    return status
