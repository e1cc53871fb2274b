"""Kernels that find the plain groups of a traditional binlog, check them, and put their events side by side.

They stop before whatever is not plain; the references take that: `ibbmaster.classic.groups`, and
`ibbmaster.classic.verifying`.
"""

from __future__ import annotations

from numba import uint64

from ibbmaster.event.gtid_event import (
    ALTER_SEQ_NO,
    COMMIT_ID,
    FIXED,
    GTID_EVENT_SIZE_MIN,
    THREAD_ID,
    XID,
    XID_PART_SIZE_MAX,
    GtidExtraFlag,
    GtidFlag,
)
from ibbmaster.kernel.collecting import note_group
from ibbmaster.kernel.crc32 import crc32
from ibbmaster.kernel.fields import (
    CONTINUES,
    ENDS,
    EVENT_HEADER,
    EVENT_MAX,
    GROUP_BEGIN,
    GTID_EVENT,
    MAY_END,
    PARTIAL_ROW_DATA,
    Conversion,
    Field,
    LongGroup,
    Status,
)
from ibbmaster.kernel.group_begin import note_group as note_pair
from ibbmaster.kernel.group_begin import size_of
from ibbmaster.kernel.memory import copy, inlined, jit, load16, load32, load64, store32

NO_GROUP, TRANSACTION, STANDALONE = 0, 1, 2  # what begins with an event
CUT, WRONG = 0, -1  # of an event: not all of it is here; the reference says what is wrong with it
CUT_GROUP, NOT_PLAIN = -2, -1  # instead of the end of a group
STANDALONE_FLAG = int(GtidFlag.STANDALONE)
XA_FLAGS = int(GtidFlag.PREPARED_XA | GtidFlag.COMPLETED_XA)
HAS_COMMIT_ID = int(GtidFlag.GROUP_COMMIT)
GTID_FLAGS_AT = EVENT_HEADER + FIXED.size - 1
GTID_FIELDS_AT = EVENT_HEADER + FIXED.size
GTID_SIZE_MIN = GTID_EVENT_SIZE_MIN
HAS_ENGINE_COUNT, HAS_THREAD_ID = int(GtidExtraFlag.MULTI_ENGINE), int(GtidExtraFlag.THREAD_ID)
HAS_ALTER_SEQ_NO = int(GtidExtraFlag.COMMIT_ALTER | GtidExtraFlag.ROLLBACK_ALTER)
COMMIT_ID_BYTES, THREAD_ID_BYTES, ALTER_SEQ_NO_BYTES = COMMIT_ID.size, THREAD_ID.size, ALTER_SEQ_NO.size
XID_BYTES, XID_PART_MAX = XID.size, XID_PART_SIZE_MAX
QUERY_FIXED = 13
ENDING_QUERY_MAX = 64 * 1024
COMMIT_TEXT, ROLLBACK_TEXT = (int.from_bytes(text, "little") for text in (b"COMMIT", b"ROLLBACK"))


@inlined
def event_size(source, offset, end, source_offset, checksum_bytes):
    """The size of an event that is whole and as it says it is; CUT or WRONG of any other."""
    if end - offset < EVENT_HEADER:
        return CUT
    size = load32(source, offset + 9)
    if size < EVENT_HEADER + checksum_bytes or size - checksum_bytes > EVENT_MAX:
        return WRONG
    log_pos = load32(source, offset + 13)
    if log_pos != 0 and log_pos != (source_offset + offset + size) & 0xFFFFFFFF:
        return WRONG
    if size > end - offset:
        return CUT
    if checksum_bytes > 0 and crc32(source, offset, offset + size - 4, 0) != load32(source, offset + size - 4):
        return WRONG
    return size


@inlined
def group_kind(source, start, end):
    """What begins with an event in source[start:end], without its checksum; NO_GROUP also for the reference."""
    if end - start < GTID_SIZE_MIN or source[start + 4] != GTID_EVENT:
        return NO_GROUP
    flags = int(source[start + GTID_FLAGS_AT])
    offset = start + GTID_FIELDS_AT
    if flags & HAS_COMMIT_ID:
        offset += COMMIT_ID_BYTES
    if flags & XA_FLAGS:
        if end - offset < XID_BYTES:
            return NO_GROUP
        gtrid_bytes, bqual_bytes = int(source[offset + 4]), int(source[offset + 5])
        if gtrid_bytes > XID_PART_MAX or bqual_bytes > XID_PART_MAX:
            return NO_GROUP
        offset += XID_BYTES + gtrid_bytes + bqual_bytes
    if offset < end and source[offset] != 0:
        extra_flags = int(source[offset])
        offset += 1
        if extra_flags & HAS_ENGINE_COUNT:
            offset += 1
        if extra_flags & HAS_ALTER_SEQ_NO:
            offset += ALTER_SEQ_NO_BYTES
        if extra_flags & HAS_THREAD_ID:
            offset += THREAD_ID_BYTES
    if offset > end:
        return NO_GROUP
    return STANDALONE if flags & STANDALONE_FLAG else TRANSACTION


@jit
def is_ending_query(source, start, end):
    """Whether a QUERY event in source[start:end], without its checksum, ends a transaction by its text."""
    if end - start <= EVENT_HEADER + QUERY_FIXED or end - start > ENDING_QUERY_MAX:
        return False
    body = start + EVENT_HEADER
    text = body + QUERY_FIXED + load16(source, body + 11) + int(source[body + 8]) + 1
    if end - text == 6:
        return load64(source, text - 2) >> uint64(16) == uint64(COMMIT_TEXT)
    return end - text == 8 and load64(source, text) == uint64(ROLLBACK_TEXT)


@inlined
def event_role(source, start, end, role):
    """What an event in source[start:end], without its checksum, whose type has a role, does to its group."""
    if role != MAY_END:
        return role
    return ENDS if is_ending_query(source, start, end) else CONTINUES


@jit
def group_end(source, offset, end, numbers, roles):
    """Where a group ends that begins here, and the bytes of its events without checksums.

    CUT_GROUP where not all of it is here, NOT_PLAIN for the reference.
    """
    checksum_bytes, source_offset = numbers[Conversion.CHECKSUM_BYTES], numbers[Conversion.SOURCE_OFFSET]
    size = event_size(source, offset, end, source_offset, checksum_bytes)
    if size <= 0:
        return CUT_GROUP if size == CUT else NOT_PLAIN, 0
    kind = group_kind(source, offset, offset + size - checksum_bytes)
    if kind == NO_GROUP or source[offset + GTID_FLAGS_AT] & XA_FLAGS:
        return NOT_PLAIN, 0
    role_of = roles.standalone if kind == STANDALONE else roles.transaction
    total = size - checksum_bytes
    offset += size
    while True:
        size = event_size(source, offset, end, source_offset, checksum_bytes)
        if size <= 0:
            return CUT_GROUP if size == CUT else NOT_PLAIN, 0
        role = event_role(source, offset, offset + size - checksum_bytes, int(role_of[source[offset + 4]]))
        total += size - checksum_bytes
        offset += size
        if role == ENDS:
            return offset, total
        if role != CONTINUES:
            return NOT_PLAIN, 0


@jit
def copy_events(source, offset, end, checksum_bytes, target, position):
    """Copy events without checksums and without places in their file; returns the position after them."""
    while offset < end:
        event_bytes = load32(source, offset + 9)
        kept = event_bytes - checksum_bytes
        copy(target, position, source, offset, kept)
        store32(target, position + 9, kept)
        store32(target, position + 13, 0)
        position += kept
        offset += event_bytes
    return position


@jit
def collect_classic_groups(source, end, numbers, roles, file_no, first, last, collecting):
    """Copy the events of plain groups of source[READ_AT:end]; groups and data continue from GROUPS and OUT.

    Groups that begin before `first` of the file are skipped. Stops before a group that begins
    at `last` or after it, or is not plain, or not whole here, and where there is no more room.
    """
    state, groups, data = collecting.state, collecting.groups, collecting.data
    offset, position, count = numbers[Conversion.READ_AT], state[Field.OUT], state[Field.GROUPS]
    while count < len(groups) and numbers[Conversion.SOURCE_OFFSET] + offset < last:
        behind, total = group_end(source, offset, end, numbers, roles)
        if behind < 0 or total > len(data) - position:
            break
        file_offset = numbers[Conversion.SOURCE_OFFSET] + offset
        if file_offset >= first:
            start = position
            position = copy_events(source, offset, behind, numbers[Conversion.CHECKSUM_BYTES], data, position)
            note_group(
                groups, count, data, start, position, file_no, file_offset, numbers[Conversion.SOURCE_OFFSET] + behind
            )
            count += 1
        offset = behind
    numbers[Conversion.READ_AT] = offset
    state[Field.OUT], state[Field.GROUPS] = position, count


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
        note_pair(source, offset, pairs, state)
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
            note_pair(head, 0, pairs, state)
            state[Field.GROUPS] += 1
            state[Field.OUT] += group[LongGroup.BYTES]
            break
    numbers[Conversion.READ_AT] = offset
    return status
