"""The kernel that checks plain groups of a traditional binlog. The reference: `ibbmaster.classic.verifying`."""

from __future__ import annotations

from ibbmaster.kernel.classic_groups import (
    CUT,
    CUT_GROUP,
    ENDING_QUERY_MAX,
    GTID_FLAGS_AT,
    NO_GROUP,
    STANDALONE,
    XA_FLAGS,
    event_role,
    event_size,
    group_end,
    group_kind,
)
from ibbmaster.kernel.crc32 import crc32
from ibbmaster.kernel.fields import (
    CONTINUES,
    ENDS,
    EVENT_HEADER,
    EVENT_MAX,
    GROUP_BEGIN,
    MAY_END,
    PARTIAL_ROW_DATA,
    Conversion,
    Field,
    LongGroup,
    Status,
)
from ibbmaster.kernel.group_begin import note_group, size_of
from ibbmaster.kernel.memory import copy, inlined, jit, load32


@inlined
def has_fragments(source, offset, end):
    """Whether row events come in fragments, which have an order."""
    while offset < end:
        if source[offset + 4] == PARTIAL_ROW_DATA:
            return True
        offset += size_of(source, offset)
    return False


@jit
def check_classic_groups(source, end, numbers, roles, pairs, state):
    """Check groups of source[READ_AT:end], and note them; GROUPS and PAIRS continue, OUT has bytes of events.

    Stops, with READ_AT, before a group that is not plain, not whole here, or not as it should be. Returns 1 if it
    may be plain and is not whole.
    """
    offset = numbers[Conversion.READ_AT]
    is_cut = 0
    while state[Field.PAIRS] < len(pairs):
        after, total = group_end(source, offset, end, numbers, roles)
        if after == CUT_GROUP:
            is_cut = 1
            break
        if after < 0 or has_fragments(source, offset, after):
            break
        note_group(source, offset, pairs, state)
        state[Field.GROUPS] += 1
        state[Field.OUT] += total
        offset = after
    numbers[Conversion.READ_AT] = offset
    return is_cut


@jit
def begin_long_event(source, offset, end, numbers, roles, group):
    """Read the header of the event that comes next in a long group, and say what it does there.

    NEED_MORE where more of it must be here, FALLBACK for the reference.
    """
    checksum_bytes = numbers[Conversion.CHECKSUM_BYTES]
    if end - offset < EVENT_HEADER:
        return Status.NEED_MORE
    size, event_type = size_of(source, offset), source[offset + 4]
    log_pos, event_end = load32(source, offset + 13), numbers[Conversion.SOURCE_OFFSET] + offset + size
    if size < EVENT_HEADER + checksum_bytes or size - checksum_bytes > EVENT_MAX:
        return Status.FALLBACK
    if (log_pos != 0 and log_pos != event_end & 0xFFFFFFFF) or event_type == PARTIAL_ROW_DATA:
        return Status.FALLBACK
    role_of = roles.standalone if group[LongGroup.KIND] == STANDALONE else roles.transaction
    role = int(role_of[event_type])
    if role == MAY_END:
        if size - checksum_bytes > ENDING_QUERY_MAX:
            role = CONTINUES
        elif size > end - offset:
            return Status.NEED_MORE
        else:
            role = event_role(source, offset, offset + size - checksum_bytes, role)
    if role != CONTINUES and role != ENDS:
        return Status.FALLBACK
    group[LongGroup.ROLE], group[LongGroup.LEFT], group[LongGroup.CHECKSUM] = role, size, 0
    group[LongGroup.BYTES] += size - checksum_bytes
    return Status.DONE


@jit
def begin_long_group(source, offset, end, numbers, group, head):
    """Take the GTID event that a long group begins with; returns its size, 0 if it is not here or for the reference."""
    checksum_bytes = numbers[Conversion.CHECKSUM_BYTES]
    size = event_size(source, offset, end, numbers[Conversion.SOURCE_OFFSET], checksum_bytes)
    if size <= CUT:
        return 0
    kind = group_kind(source, offset, offset + size - checksum_bytes)
    if kind == NO_GROUP or source[offset + GTID_FLAGS_AT] & XA_FLAGS:
        return 0
    copy(head, 0, source, offset, GROUP_BEGIN)
    group[LongGroup.KIND], group[LongGroup.BYTES] = kind, size - checksum_bytes
    return size


@jit
def check_long_group(source, end, numbers, roles, group, head, pairs, state):
    """Check what source[READ_AT:end] has of a plain group that may go on behind it, and note it at its end.

    DONE with READ_AT after it, NEED_MORE with READ_AT where it goes on, FALLBACK if it is for the reference.
    """
    checksum_bytes = numbers[Conversion.CHECKSUM_BYTES]
    offset = numbers[Conversion.READ_AT]
    status = Status.DONE
    if group[LongGroup.KIND] == NO_GROUP:
        size = begin_long_group(source, offset, end, numbers, group, head)
        if size == 0:
            return Status.FALLBACK
        offset += size
    while status == Status.DONE:
        if group[LongGroup.LEFT] == 0:
            status = begin_long_event(source, offset, end, numbers, roles, group)
            continue
        piece = min(group[LongGroup.LEFT] - checksum_bytes, end - offset)
        if piece > 0:
            if checksum_bytes > 0:
                group[LongGroup.CHECKSUM] = crc32(source, offset, offset + piece, group[LongGroup.CHECKSUM])
            offset += piece
            group[LongGroup.LEFT] -= piece
        if group[LongGroup.LEFT] > checksum_bytes or end - offset < checksum_bytes:
            status = Status.NEED_MORE
            continue
        if checksum_bytes > 0 and load32(source, offset) != group[LongGroup.CHECKSUM]:
            return Status.FALLBACK
        offset += checksum_bytes
        group[LongGroup.LEFT] = 0
        if group[LongGroup.ROLE] == ENDS:
            note_group(head, 0, pairs, state)
            state[Field.GROUPS] += 1
            state[Field.OUT] += group[LongGroup.BYTES]
            break
    numbers[Conversion.READ_AT] = offset
    return status
