"""The kernel that changes the events of packets that are framed already: their numbers, places and checksums.

The references: `ibbmaster.stages.renumbering`, and `ibbmaster.dump.rewriting` for a traditional primary.
"""

from __future__ import annotations

from numba import int64, uint8, uint64

from ibbmaster.kernel.classic_framing import is_left_out
from ibbmaster.kernel.classic_groups import (
    COMMIT_ID_BYTES,
    GTID_FIELDS_AT,
    GTID_FLAGS_AT,
    HAS_ALTER_SEQ_NO,
    HAS_COMMIT_ID,
    NO_GROUP,
    STANDALONE,
    XA_FLAGS,
    XID_BYTES,
    event_role,
    group_kind,
)
from ibbmaster.kernel.crc32 import crc32
from ibbmaster.kernel.fields import CONTINUES, ENDS, EVENT_HEADER, GTID_EVENT, PACKET_MAX, Status
from ibbmaster.kernel.group_begin import domain_of
from ibbmaster.kernel.memory import copy, inlined, jit, load32, load64, store32, store64
from ibbmaster.kernel.packet_fields import (
    AS_STORED,
    BORDERS,
    COMMIT_BITS,
    EVERY,
    LATER,
    OLD_DOMAIN,
    OLD_SERVER,
    STEP,
    ChangeOf,
)

SERVER_AT, SIZE_AT, LOG_POS_AT, DOMAIN_AT = 5, 9, 13, EVENT_HEADER + 8
SPARE = 64  # bytes that stay free after the output


@inlined
def number_for(numbers, what, old, unnamed):
    """The number in the row of a server or domain, `unnamed` if it has none."""
    for row in range(len(numbers)):
        if numbers[row, 0] == what and numbers[row, 1] == old:
            return numbers[row, 2]
    return unnamed


@jit
def renumber_head(out, event, source, start, end, numbers):
    """Give the GTID event of source[start:end], copied to out[event:], other numbers; False where the reference has to.

    Not for XA and two-phase ALTER, which name others.
    """
    domain = domain_of(source, start)
    store32(out, event + DOMAIN_AT, number_for(numbers, OLD_DOMAIN, domain, domain))
    step = number_for(numbers, STEP, domain, 0)
    bits = number_for(numbers, COMMIT_BITS, 0, 0)
    if step == 0 and bits == 0:
        return True
    flags = int64(source[start + GTID_FLAGS_AT])
    offset = start + GTID_FIELDS_AT
    store64(out, event + EVENT_HEADER, int64(load64(source, start + EVENT_HEADER) + uint64(step)))
    if flags & HAS_COMMIT_ID:
        high = event + offset - start + COMMIT_ID_BYTES - 2
        out[high] ^= uint8(bits & 0xFF)
        out[high + 1] ^= uint8(bits >> 8)
        offset += COMMIT_ID_BYTES
    if flags & XA_FLAGS:
        offset += XID_BYTES + int64(source[offset + 4]) + int64(source[offset + 5])
    return offset >= end or source[offset] & HAS_ALTER_SEQ_NO == 0


@jit
def change_packets(source, size, state, numbers, roles, out):
    """Copy the packets of source[:size], which are whole groups, with their events changed; returns how many bytes.

    Rows of `numbers`: OLD_SERVER or OLD_DOMAIN, a number, what it becomes; STEP, a domain, what is added to its
    sequence numbers; LATER, 0, seconds that are added to times; COMMIT_BITS, 0, what commit ids are changed with.
    Second is DONE, or FALLBACK where an event fills more than a packet, or a group is not as it should be, or names
    another one that has other numbers, or there is no room.
    """
    prefix_size, filters, trailer = state[ChangeOf.PREFIX_SIZE], state[ChangeOf.FILTERS], state[ChangeOf.CHECKSUM_BYTES]
    rule, sequence = state[ChangeOf.LOG_POS], state[ChangeOf.SEQUENCE]
    kind = NO_GROUP
    offset = position = 0
    while offset < size:
        payload = load32(source, offset) & PACKET_MAX if size - offset >= 4 else PACKET_MAX
        start = offset + 4 + prefix_size
        length = payload - prefix_size
        after = offset + 4 + payload
        if payload + trailer >= PACKET_MAX or length < EVENT_HEADER or after > size:
            return 0, Status.FALLBACK
        is_head = source[start + 4] == GTID_EVENT
        ends = False
        if is_head:
            kind = group_kind(source, start, after)
        elif rule == BORDERS:
            event_type = source[start + 4]
            role = int(roles.standalone[event_type]) if kind == STANDALONE else int(roles.transaction[event_type])
            role = event_role(source, start, after, role)
            ends = role == ENDS
            if role != ENDS and role != CONTINUES:
                return 0, Status.FALLBACK
        if kind == NO_GROUP:
            return 0, Status.FALLBACK
        state[ChangeOf.LAST_POSITION] = state[ChangeOf.POSITION]
        state[ChangeOf.POSITION] += length + trailer
        if is_left_out(source, start, filters):
            offset = after
            continue
        if position + 4 + payload + trailer + SPARE > len(out):
            return 0, Status.FALLBACK
        copy(out, position, source, offset, 4 + payload)
        store32(out, position, (payload + trailer) | sequence << 24)
        sequence = (sequence + 1) & 0xFF
        event = position + 4 + prefix_size
        if len(numbers) > 0:
            server = load32(source, start + SERVER_AT)
            store32(out, event + SERVER_AT, number_for(numbers, OLD_SERVER, server, server))
            store32(out, event, (load32(source, start) + number_for(numbers, LATER, 0, 0)) & 0xFFFFFFFF)
            if is_head and not renumber_head(out, event, source, start, after, numbers):
                return 0, Status.FALLBACK
        if rule != AS_STORED:
            has_place = rule == EVERY or is_head or ends
            store32(out, event + LOG_POS_AT, state[ChangeOf.POSITION] & 0xFFFFFFFF if has_place else 0)
        position = event + length
        if trailer > 0:
            store32(out, event + SIZE_AT, length + trailer)
            store32(out, position, crc32(out, event, position, 0))
            position += trailer
        offset = after
    state[ChangeOf.SEQUENCE] = sequence
    return position, Status.DONE
