"""The kernel that changes the events of packets that are framed already: their numbers, places and checksums.

The references: `ibbmaster.stages.renumbering`, and `ibbmaster.dump.rewriting` for a traditional primary.
"""

from __future__ import annotations

from ibbmaster.kernel.classic_framing import is_left_out
from ibbmaster.kernel.classic_groups import NO_GROUP, STANDALONE, event_role, group_kind
from ibbmaster.kernel.crc32 import crc32
from ibbmaster.kernel.fields import CONTINUES, ENDS, EVENT_HEADER, GTID_EVENT, PACKET_MAX, Status
from ibbmaster.kernel.group_begin import domain_of
from ibbmaster.kernel.memory import copy, inlined, jit, load32, store32
from ibbmaster.kernel.packet_fields import AS_STORED, BORDERS, EVERY, OLD_DOMAIN, OLD_SERVER, ChangeOf

SERVER_AT, SIZE_AT, LOG_POS_AT, DOMAIN_AT = 5, 9, 13, EVENT_HEADER + 8
SPARE = 64  # bytes that stay free after the output


@inlined
def number_for(numbers, what, old):
    """What a server or domain becomes."""
    for row in range(len(numbers)):
        if numbers[row, 0] == what and numbers[row, 1] == old:
            return numbers[row, 2]
    return old


@jit
def change_packets(source, size, state, numbers, roles, out):
    """Copy the packets of source[:size], which are whole groups, with their events changed; returns how many bytes.

    Rows of `numbers`: OLD_SERVER or OLD_DOMAIN, a number, what it becomes. Second is DONE, or FALLBACK where an event
    fills more than a packet, or a group is not as it should be, or there is no room.
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
            store32(out, event + SERVER_AT, number_for(numbers, OLD_SERVER, load32(source, start + SERVER_AT)))
            if is_head:
                store32(out, event + DOMAIN_AT, number_for(numbers, OLD_DOMAIN, domain_of(source, start)))
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
