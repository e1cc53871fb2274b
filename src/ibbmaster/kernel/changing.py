"""The kernels that change the events of packets that are framed already, and that leave out groups and events.

One gives them other numbers, places and checksums; the other hands back each group about which more is to be decided.

The references: `ibbmaster.stages.renumbering`, `ibbmaster.dump.rewriting` for a traditional primary,
`ibbmaster.stages.filtering`, and `ibbmaster.stages.stage` for what an emptied group is.
"""

from __future__ import annotations

from numba import int64, uint8, uint64

from ibbmaster.event.gtid_event import GtidFlag
from ibbmaster.event.table_map import FLAG_STATEMENT_END, ROW_EVENT_TYPES, TABLE_ID_SIZE
from ibbmaster.event.types import EventType
from ibbmaster.kernel.classic_groups import (
    ALTER_SEQ_NO_BYTES,
    COMMIT_ID_BYTES,
    COMMIT_TEXT,
    GTID_FIELDS_AT,
    GTID_FLAGS_AT,
    GTID_SIZE_MIN,
    HAS_ALTER_SEQ_NO,
    HAS_COMMIT_ID,
    HAS_ENGINE_COUNT,
    HAS_THREAD_ID,
    NO_GROUP,
    QUERY_FIXED,
    STANDALONE,
    XA_FLAGS,
    XID_BYTES,
    event_role,
    group_kind,
    is_ending_query,
)
from ibbmaster.kernel.crc32 import crc32
from ibbmaster.kernel.fields import ANNOTATE_ROWS, CONTINUES, ENDS, EVENT_HEADER, GTID_EVENT, PACKET_MAX, Status
from ibbmaster.kernel.framing import is_left_out
from ibbmaster.kernel.group_begin import domain_of, server_of
from ibbmaster.kernel.memory import copy, inlined, jit, load16, load32, load64, store32, store64
from ibbmaster.kernel.packet_fields import (
    AS_STORED,
    BORDERS,
    CHOSEN_DOMAIN,
    COMMIT_BITS,
    DOUBTFUL,
    EMPTIED_MAX,
    EVERY,
    KEPT,
    LATER,
    OLD_DOMAIN,
    OLD_SERVER,
    STEP,
    UNKNOWN,
    ChangeOf,
    FilterField,
    FilterStatus,
    TableRow,
)

SERVER_AT, SIZE_AT, LOG_POS_AT, DOMAIN_AT = 5, 9, 13, EVENT_HEADER + 8
SPARE = 64  # bytes that stay free after the output
TABLE_MAP, QUERY, XID, XA_PREPARE = (
    int(one) for one in (EventType.TABLE_MAP, EventType.QUERY, EventType.XID, EventType.XA_PREPARE)
)
ROW_TYPES_LOW = sum(1 << int(one) for one in ROW_EVENT_TYPES if one < 64)
ROW_TYPES_HIGH = sum(1 << (int(one) - 128) for one in ROW_EVENT_TYPES if one >= 128)
STATEMENT_END = int(FLAG_STATEMENT_END)
NAMES_AT = EVENT_HEADER + TABLE_ID_SIZE + 2  # of a TABLE_MAP
NOT_OF_EMPTIED = int(
    GtidFlag.STANDALONE | GtidFlag.DDL | GtidFlag.WAITED | GtidFlag.PREPARED_XA | GtidFlag.COMPLETED_XA
)
COMMIT_EVENT_BYTES = EVENT_HEADER + QUERY_FIXED + 1 + 6


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


@inlined
def packet_end(source, offset, size, prefix_size):
    """Where a packet ends that begins here and is a whole event; -1 if it is not."""
    if size - offset < 4:
        return -1
    payload = load32(source, offset) & PACKET_MAX
    end = offset + 4 + payload
    return end if payload < PACKET_MAX and payload >= prefix_size + EVENT_HEADER and end <= size else -1


@jit
def verdict_of(source, start, names_size, names, tables):
    """What becomes of events of the table whose names begin at `start`."""
    digest = crc32(source, start, start + names_size, 0)
    mask = len(tables) - 1
    row = digest & mask
    while tables[row, TableRow.BYTES] != 0:
        if tables[row, TableRow.HASH] == digest and tables[row, TableRow.BYTES] == names_size:
            at, index = tables[row, TableRow.OFFSET], 0
            while index < names_size and names[at + index] == source[start + index]:
                index += 1
            if index == names_size:
                return tables[row, TableRow.VERDICT]
        row = (row + 1) & mask
    return UNKNOWN


@inlined
def names_bytes(source, start, end):
    """How long the names of a TABLE_MAP event in source[start:end] are; 0 if they do not end in it."""
    at = start + NAMES_AT
    if at >= end:
        return 0
    table_at = at + int(source[at]) + 2
    if table_at >= end or table_at + int(source[table_at]) + 1 >= end:
        return 0
    return table_at + int(source[table_at]) + 2 - at


@jit
def is_chosen(source, start, numbers):
    """Whether the group of a GTID event is of a domain and a server that are chosen."""
    has_domains = has_servers = is_of_domain = is_of_server = False
    for row in range(len(numbers)):
        if numbers[row, 0] == CHOSEN_DOMAIN:
            has_domains = True
            is_of_domain = is_of_domain or numbers[row, 1] == domain_of(source, start)
        else:
            has_servers = True
            is_of_server = is_of_server or numbers[row, 1] == server_of(source, start)
    return (is_of_domain or not has_domains) and (is_of_server or not has_servers)


@inlined
def thread_of(source, start, end):
    """The thread id of a GTID event, which is whole; 0 if it has none."""
    flags = int(source[start + GTID_FLAGS_AT])
    at = start + GTID_FIELDS_AT
    if flags & HAS_COMMIT_ID:
        at += COMMIT_ID_BYTES
    if flags & XA_FLAGS:
        at += XID_BYTES + int(source[at + 4]) + int(source[at + 5])
    if at >= end:
        return 0
    extra_flags = int(source[at])
    at += 1
    if extra_flags & HAS_ENGINE_COUNT:
        at += 1
    if extra_flags & HAS_ALTER_SEQ_NO:
        at += ALTER_SEQ_NO_BYTES
    return load32(source, at) if extra_flags & HAS_THREAD_ID else 0


@jit
def put_emptied(source, start, end, prefix_size, sequence, out, position):
    """Write the packets of a group with the GTID event in source[start:end] and a COMMIT; returns where they end."""
    flags = int(source[start + GTID_FLAGS_AT])
    kept = GTID_FIELDS_AT + (COMMIT_ID_BYTES if flags & HAS_COMMIT_ID else 0)
    size = max(kept, GTID_SIZE_MIN)
    copy(out, position, source, start - prefix_size - 4, 4 + prefix_size + kept)
    store32(out, position, (prefix_size + size) | sequence << 24)
    event = position + 4 + prefix_size
    store32(out, event + 9, size)
    out[event + GTID_FLAGS_AT] = flags & ~NOT_OF_EMPTIED & 0xFF
    for index in range(kept, size):
        out[event + index] = 0
    position = event + size
    copy(out, position, source, start - prefix_size - 4, 4 + prefix_size + EVENT_HEADER)
    store32(out, position, (prefix_size + COMMIT_EVENT_BYTES) | ((sequence + 1) & 0xFF) << 24)
    event = position + 4 + prefix_size
    out[event + 4] = QUERY
    store32(out, event + 9, COMMIT_EVENT_BYTES)
    for index in range(13, COMMIT_EVENT_BYTES):
        out[event + index] = 0
    store32(out, event + EVENT_HEADER, thread_of(source, start, end))
    store64(out, event + EVENT_HEADER + QUERY_FIXED + 1, COMMIT_TEXT)
    return event + COMMIT_EVENT_BYTES


@jit
def leave_out(source, size, state, numbers, names, tables, opened, out):
    """Copy the packets of source[READ_AT:size], which are whole groups, without what is not chosen.

    Rows of `numbers`: CHOSEN_DOMAIN or CHOSEN_SERVER, and which; others are emptied. `names` and `tables` say what
    becomes of the events of tables, `opened` has room for those of one group. Packets and their numbers continue
    from OUT and SEQUENCE. Returns a `FilterStatus`.
    """
    prefix_size = state[FilterField.PREFIX_SIZE]
    by_table = state[FilterField.BY_TABLE] != 0
    offset, position, sequence = state[FilterField.READ_AT], state[FilterField.OUT], state[FilterField.SEQUENCE]

    while offset < size:
        state[FilterField.READ_AT], state[FilterField.OUT], state[FilterField.SEQUENCE] = offset, position, sequence
        end = packet_end(source, offset, size, prefix_size)
        start = offset + 4 + prefix_size
        if end < 0 or source[start + 4] != GTID_EVENT or position + EMPTIED_MAX + end - offset > len(out):
            return FilterStatus.WRONG
        kind = group_kind(source, start, end)
        if kind == NO_GROUP:
            return FilterStatus.WRONG
        is_emptied = not is_chosen(source, start, numbers)
        if is_emptied:
            position = put_emptied(source, start, end, prefix_size, sequence, out, position)
            sequence = (sequence + 2) & 0xFF
        else:
            copy(out, position, source, offset, end - offset)
            out[position + 3] = sequence
            position += end - offset
            sequence = (sequence + 1) & 0xFF
        offset = end
        open_count = 0
        annotated_at = annotated_end = -1
        has_kept = has_left_out = is_kept = is_left_out = False  # of the group, of the statement
        while offset < size:
            end = packet_end(source, offset, size, prefix_size)
            start = offset + 4 + prefix_size
            if end < 0:
                return FilterStatus.WRONG
            event_type = int(source[start + 4])
            if event_type == GTID_EVENT:
                break
            takes = not is_emptied
            if by_table and takes:
                is_low, is_high = event_type < 64, event_type >= 128 and event_type < 192
                if (is_low and (ROW_TYPES_LOW >> event_type) & 1) or (
                    is_high and (ROW_TYPES_HIGH >> (event_type - 128)) & 1
                ):
                    if end - start < NAMES_AT:
                        return FilterStatus.GROUP
                    table_id = load32(source, start + EVENT_HEADER) | load16(source, start + EVENT_HEADER + 4) << 32
                    row = 0
                    while row < open_count and opened[row, 0] != table_id:
                        row += 1
                    if row == open_count:
                        return FilterStatus.GROUP
                    takes = opened[row, 1] == KEPT
                    if source[start + EVENT_HEADER + TABLE_ID_SIZE] & STATEMENT_END:
                        is_kept = is_left_out = False
                        annotated_at = -1
                elif event_type == TABLE_MAP:
                    named = names_bytes(source, start, end)
                    verdict = DOUBTFUL
                    if named > 0:
                        verdict = verdict_of(source, start + NAMES_AT, named, names, tables)
                    if verdict == UNKNOWN:
                        state[FilterField.TABLE_AT] = start
                        return FilterStatus.TABLE
                    takes = verdict == KEPT
                    is_kept, is_left_out = is_kept or takes, is_left_out or not takes
                    has_kept, has_left_out = has_kept or takes, has_left_out or not takes
                    if verdict == DOUBTFUL or (is_kept and is_left_out):
                        return FilterStatus.GROUP
                    table_id = load32(source, start + EVENT_HEADER) | load16(source, start + EVENT_HEADER + 4) << 32
                    row = 0
                    while row < open_count and opened[row, 0] != table_id:
                        row += 1
                    if row == len(opened):
                        return FilterStatus.GROUP
                    opened[row, 0], opened[row, 1] = table_id, verdict
                    open_count = max(open_count, row + 1)
                    if takes and annotated_at >= 0:
                        if position + annotated_end - annotated_at + EMPTIED_MAX > len(out):
                            return FilterStatus.WRONG
                        copy(out, position, source, annotated_at, annotated_end - annotated_at)
                        out[position + 3] = sequence
                        position += annotated_end - annotated_at
                        sequence = (sequence + 1) & 0xFF
                        annotated_at = -1
                elif event_type == ANNOTATE_ROWS:
                    annotated_at, annotated_end = offset, end
                    takes = False
                elif not (
                    event_type == XID
                    or event_type == XA_PREPARE
                    or (event_type == QUERY and is_ending_query(source, start, end))
                ):
                    return FilterStatus.GROUP
            if takes:
                if position + end - offset + EMPTIED_MAX > len(out):
                    return FilterStatus.WRONG
                copy(out, position, source, offset, end - offset)
                out[position + 3] = sequence
                position += end - offset
                sequence = (sequence + 1) & 0xFF
            offset = end
        if kind == STANDALONE and has_left_out and not has_kept:
            return FilterStatus.GROUP
    state[FilterField.READ_AT], state[FilterField.OUT], state[FilterField.SEQUENCE] = offset, position, sequence
    return FilterStatus.DONE
