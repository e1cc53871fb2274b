"""A kernel that writes the events of whole groups as a traditional file has them: with place, size and checksum.

The reference: `ibbmaster.classic.series_writer`.
"""

from __future__ import annotations

from numba import int64, uint64

from ibbmaster.kernel.classic_groups import NO_GROUP, STANDALONE, event_role, group_kind
from ibbmaster.kernel.crc32 import crc32
from ibbmaster.kernel.fields import CONTINUES, ENDS, EVENT_HEADER, GroupColumn, PlacedField
from ibbmaster.kernel.group_begin import size_of
from ibbmaster.kernel.memory import copy, jit, store32

CHECKSUM = 4  # bytes
SIZE_AT, LOG_POS_AT, TYPE_AT = 9, 13, 4


@jit
def place_group(data, start, end, numbers, roles, out, position):
    """Write the group data[start:end] to `out`; the position after it, -1 for the reference."""
    checksum_bytes, says_all = numbers[PlacedField.CHECKSUM_BYTES], numbers[PlacedField.SAYS_ALL]
    offset = numbers[PlacedField.FILE_OFFSET]
    kind = group_kind(data, start, start + size_of(data, start))
    if kind == NO_GROUP:
        return int64(-1)
    role_of = roles.standalone if kind == STANDALONE else roles.transaction
    at = start
    while at < end:
        size = size_of(data, at)
        event_type = data[uint64(at + TYPE_AT)]
        is_first, is_last = at == start, at + size == end
        role = CONTINUES if is_first else event_role(data, at, at + size, int(role_of[event_type]))
        if (
            (role != CONTINUES and role != ENDS)
            or (role == ENDS) != is_last
            or event_type > numbers[PlacedField.TYPE_MAX]
        ):
            return int64(-1)
        copy(out, position, data, at, size)
        offset += size + checksum_bytes
        store32(out, position + SIZE_AT, size + checksum_bytes)
        says = is_first or is_last or says_all != 0
        store32(out, position + LOG_POS_AT, offset & 0xFFFFFFFF if says else 0)
        if checksum_bytes > 0:
            store32(out, position + size, crc32(out, position, position + size, 0))
        position += size + checksum_bytes
        at += size
    numbers[PlacedField.FILE_OFFSET] = offset
    return int64(position)


@jit
def place_groups(data, groups, first, count, numbers, roles, out):
    """Write the groups in rows [first:count] while the file has room for one more; the row of the first that is left.

    That is one for which there is no room in `out`, one after a file that is full, or one for the reference.
    """
    row = first
    position = numbers[PlacedField.OUT]
    while row < count and numbers[PlacedField.FILE_OFFSET] < numbers[PlacedField.FILE_MAX]:
        start, end = groups[row, GroupColumn.START], groups[row, GroupColumn.END]
        size_max = (end - start) + CHECKSUM * ((end - start) // EVENT_HEADER + 1) + EVENT_HEADER
        if size_max > len(out) - position:
            break
        after = place_group(data, start, end, numbers, roles, out, position)
        if after < 0:
            break
        position = after
        row += 1
    numbers[PlacedField.OUT] = position
    return row
