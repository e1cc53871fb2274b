"""A kernel that makes commit records of the small, plain groups of a traditional binlog.

It stops before whatever is not plain; the twin takes that: `ibbmaster.store.classic_file`
for what is read, `ibbmaster.ibb.appender` for what is written.
"""

from __future__ import annotations

from numba import uint32, uint64

from ibbmaster.event.gtid_event import COMMIT_ID, THREAD_ID, GtidExtraFlag, GtidFlag
from ibbmaster.kernel.crc32c import DATA, PAGE, byte_tables
from ibbmaster.kernel.fields import (
    C_CHECKSUM,
    C_EVENT_BYTES,
    C_NOTED,
    C_PAIRS,
    C_READ_AT,
    C_RECORD_MAX,
    C_SOURCE_OFFSET,
    C_WRITE_AT,
    C_WRITE_END,
    COMMIT,
    CONT,
    EVENT_HEADER,
    FILLER,
    GTID_EVENT,
    GTID_EVENT_MIN,
    LAST,
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
def crc32(source, start, end):  # type: ignore[no-untyped-def]
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
def event_size(source, offset, end, numbers):  # type: ignore[no-untyped-def]
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
def group_end(source, offset, end, numbers, transaction_roles, standalone_roles):  # type: ignore[no-untyped-def]
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
def record_end(position, size):  # type: ignore[no-untyped-def]
    """Where in the pages a record of so many bytes ends that begins at a position."""
    page, offset = position // PAGE, position % PAGE
    left = size
    while left > 0:
        room = DATA - offset
        if room >= 4:
            piece = min(left, room - 3)
            left -= piece
            offset += 3 + piece
        if left > 0 or offset == DATA:
            page += 1
            offset = 0
    return page * PAGE + offset


@jit
def place_record(record, size, pages, position):  # type: ignore[no-untyped-def]
    """Place a commit record, in chunks; returns the position behind it."""
    done = 0
    while done < size:
        offset = position % PAGE
        room = DATA - offset
        if room < 4:
            for index in range(room):
                pages[position + index] = FILLER
            position = (position // PAGE + 1) * PAGE
            continue
        piece = min(size - done, room - 3)
        type_byte = COMMIT
        if done > 0:
            type_byte |= CONT
        if done + piece == size:
            type_byte |= LAST
        pages[position] = type_byte
        pages[position + 1] = piece & 0xFF
        pages[position + 2] = piece >> 8
        copy(pages, position + 3, record, done, piece)
        done += piece
        position += 3 + piece
        if position % PAGE == DATA:
            position = (position // PAGE + 1) * PAGE
    return position


@jit
def convert_groups(  # type: ignore[no-untyped-def]
    source, end, numbers, pairs, transaction_roles, standalone_roles, scratch, pages
):
    """Append plain groups of source[READ_AT:end] to the pages, while they end before WRITE_END.

    Stops before a group that is not plain, not whole here, too long, or of a pair that is
    not known.
    """
    offset = numbers[C_READ_AT]
    position = numbers[C_WRITE_AT]
    checksum_bytes = numbers[C_CHECKSUM]
    pair = 0
    while True:
        behind, total = group_end(source, offset, end, numbers, transaction_roles, standalone_roles)
        if behind < 0 or total + 1 > numbers[C_RECORD_MAX] or total + 1 > len(scratch):
            break
        if record_end(position, total + 1) > numbers[C_WRITE_END]:
            break
        server_id = load32(source, offset + 5)
        domain_id = load32(source, offset + EVENT_HEADER + 8)
        if pairs[pair, 0] != domain_id or pairs[pair, 1] != server_id:
            pair = 0
            while pair < numbers[C_PAIRS] and (pairs[pair, 0] != domain_id or pairs[pair, 1] != server_id):
                pair += 1
            if pair >= numbers[C_PAIRS]:
                break
        numbers[C_NOTED] += 1
        pairs[pair, 2] = int(load64(source, offset + EVENT_HEADER))
        pairs[pair, 3] = numbers[C_NOTED]
        scratch[0] = 0  # nothing is out of band
        size = 1
        while offset < behind:
            event_bytes = load32(source, offset + 9)
            kept = event_bytes - checksum_bytes
            copy(scratch, size, source, offset, kept)
            store32(scratch, size + 9, kept)
            store32(scratch, size + 13, 0)
            size += kept
            offset += event_bytes
        position = place_record(scratch, size, pages, position)
        numbers[C_EVENT_BYTES] += total
    numbers[C_READ_AT] = offset
    numbers[C_WRITE_AT] = position
