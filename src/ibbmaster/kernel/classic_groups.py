"""Kernels that find the plain groups of a traditional binlog, and put their events side by side.

They stop before whatever is not plain; the twin takes that: `ibbmaster.classic.groups`.
"""

from __future__ import annotations

from numba import uint32, uint64

from ibbmaster.event.gtid_event import COMMIT_ID, THREAD_ID, GtidExtraFlag, GtidFlag
from ibbmaster.kernel.collecting import note_group
from ibbmaster.kernel.crc32c import byte_tables
from ibbmaster.kernel.fields import (
    C_CHECKSUM,
    C_READ_AT,
    C_SOURCE_OFFSET,
    EVENT_HEADER,
    GTID_EVENT,
    GTID_EVENT_MIN,
    S_GROUPS,
    S_OUT,
)
from ibbmaster.kernel.memory import copy, jit, load32, load64, store32

GOES_ON, ENDS = 0, 1  # what an event does to its group; every other number is for the twin
STANDALONE = int(GtidFlag.STANDALONE)
NOT_PLAIN = int(GtidFlag.PREPARED_XA | GtidFlag.COMPLETED_XA)
HAS_COMMIT_ID = int(GtidFlag.GROUP_COMMIT)
GTID_FIXED = EVENT_HEADER + 13  # sequence number, domain, flags
HAS_THREAD_ID = int(GtidExtraFlag.THREAD_ID)
COMMIT_ID_BYTES, THREAD_ID_BYTES = COMMIT_ID.size, THREAD_ID.size
ZLIB_TABLES = byte_tables(0xEDB88320)


@jit
def crc32(source, start, end):
    """CRC-32 as zlib has it, eight bytes at a time."""
    register = uint32(0xFFFFFFFF)
    offset = start
    while end - offset >= 8:
        word = load64(source, offset) ^ uint64(register)
        register = uint32(
            ZLIB_TABLES[7, word & uint64(0xFF)]
            ^ ZLIB_TABLES[6, (word >> uint64(8)) & uint64(0xFF)]
            ^ ZLIB_TABLES[5, (word >> uint64(16)) & uint64(0xFF)]
            ^ ZLIB_TABLES[4, (word >> uint64(24)) & uint64(0xFF)]
            ^ ZLIB_TABLES[3, (word >> uint64(32)) & uint64(0xFF)]
            ^ ZLIB_TABLES[2, (word >> uint64(40)) & uint64(0xFF)]
            ^ ZLIB_TABLES[1, (word >> uint64(48)) & uint64(0xFF)]
            ^ ZLIB_TABLES[0, word >> uint64(56)]
        )
        offset += 8
    while offset < end:
        register = uint32(ZLIB_TABLES[0, (register ^ uint32(source[offset])) & uint32(0xFF)] ^ (register >> uint32(8)))
        offset += 1
    return register ^ uint32(0xFFFFFFFF)


@jit
def event_size(source, offset, end, numbers):
    """The size of an event that is whole and as it says it is; 0 for the twin."""
    if end - offset < EVENT_HEADER:
        return 0
    size = load32(source, offset + 9)
    checksum_bytes = numbers[C_CHECKSUM]
    if size < EVENT_HEADER + checksum_bytes or size > end - offset:
        return 0
    log_pos = load32(source, offset + 13)
    if log_pos != 0 and log_pos != (numbers[C_SOURCE_OFFSET] + offset + size) & 0xFFFFFFFF:
        return 0
    if checksum_bytes > 0 and int(crc32(source, offset, offset + size - 4)) != load32(source, offset + size - 4):
        return 0
    return size


@jit
def group_end(source, offset, end, numbers, transaction_roles, standalone_roles):
    """Where a plain group ends that begins here, and the bytes of its events without checksums; -1 for the twin."""
    size = event_size(source, offset, end, numbers)
    checksum_bytes = numbers[C_CHECKSUM]
    if size < GTID_EVENT_MIN + checksum_bytes or source[offset + 4] != GTID_EVENT:
        return -1, 0
    flags = int(source[offset + GTID_FIXED - 1])
    if flags & NOT_PLAIN:
        return -1, 0
    extra_at = GTID_FIXED + (COMMIT_ID_BYTES if flags & HAS_COMMIT_ID else 0)
    rest = size - checksum_bytes - extra_at
    extra_flags = int(source[offset + extra_at]) if rest > 0 else 0
    if rest < 0 or (extra_flags != 0 and (extra_flags != HAS_THREAD_ID or rest < 1 + THREAD_ID_BYTES)):
        return -1, 0
    roles = standalone_roles if flags & STANDALONE else transaction_roles
    total = size - checksum_bytes
    offset += size
    while True:
        size = event_size(source, offset, end, numbers)
        if size == 0:
            return -1, 0
        role = roles[source[offset + 4]]
        total += size - checksum_bytes
        offset += size
        if role == ENDS:
            return offset, total
        if role != GOES_ON:
            return -1, 0


@jit
def copy_events(source, offset, end, checksum_bytes, target, position):
    """Copy events without checksums and without places in their file; returns the position behind them."""
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
def collect_classic_groups(
    source, end, numbers, transaction_roles, standalone_roles, file_no, first, last, state, groups, data
):
    """Copy the events of plain groups of source[READ_AT:end]; groups and data go on from GROUPS and OUT.

    Groups that begin before `first` of the file are passed over. Stops before a group that begins
    at `last` or behind it, or is not plain, or not whole here, and where there is no more room.
    """
    offset, position, count = numbers[C_READ_AT], state[S_OUT], state[S_GROUPS]
    while count < len(groups) and numbers[C_SOURCE_OFFSET] + offset < last:
        behind, total = group_end(source, offset, end, numbers, transaction_roles, standalone_roles)
        if behind < 0 or total > len(data) - position:
            break
        file_offset = numbers[C_SOURCE_OFFSET] + offset
        if file_offset >= first:
            start = position
            position = copy_events(source, offset, behind, numbers[C_CHECKSUM], data, position)
            note_group(groups, count, data, start, position, file_no, file_offset, numbers[C_SOURCE_OFFSET] + behind)
            count += 1
        offset = behind
    numbers[C_READ_AT] = offset
    state[S_OUT], state[S_GROUPS] = position, count
