"""Kernels that make columns of what was collected: event headers, GTIDs as text, strings side by side."""

from __future__ import annotations

from numba import int32

from ibbmaster.event.header import FLAGS_OFFSET, TYPE_OFFSET
from ibbmaster.kernel.digits import put_gtid
from ibbmaster.kernel.fields import EventColumn, GroupColumn
from ibbmaster.kernel.group_begin import server_of
from ibbmaster.kernel.memory import copy, copy32, jit, load16, load32

GTID_TEXT_MAX = 10 + 10 + 20 + 2


@jit
def header_columns(data, events, count, types, timestamps, server_ids, flags):
    """Type, time in microseconds, server id and flags of each event."""
    for index in range(count):
        start = events[index, EventColumn.START]
        timestamps[index] = load32(data, start) * 1_000_000
        types[index] = int32(data[start + TYPE_OFFSET])
        server_ids[index] = server_of(data, start)
        flags[index] = int32(load16(data, start + FLAGS_OFFSET))


@jit
def gtid_texts(groups, wanted, count, offsets, out):
    """Write the GTIDs of the groups in `wanted` as text, side by side; `out` has room for the longest ones."""
    position = 0
    last, last_start, last_size = -1, 0, 0
    offsets[0] = 0
    for index in range(count):
        group = wanted[index]
        if group == last:
            copy(out, position, out, last_start, last_size)
            position += last_size
        else:
            last, last_start = group, position
            domain, server = groups[group, GroupColumn.DOMAIN], groups[group, GroupColumn.SERVER]
            position = put_gtid(out, position, domain, server, groups[group, GroupColumn.SEQ_NO])
            last_size = position - last_start
        offsets[index + 1] = position


@jit
def copy_strings(data, starts, sizes, valid, count, padded, offsets, out):
    """Put strings side by side, each with zeros up to `padded` bytes; absent ones are empty.

    Returns how many bytes they take; the copying ends where `out` does.
    """
    position = 0
    offsets[0] = 0
    for index in range(count):
        if valid[index]:
            size = sizes[index]
            taken = max(size, padded)
            start = starts[index]
            if size <= 32 and start + 32 <= len(data) and position + max(taken, 32) <= len(out):
                copy32(out, position, data, start)  # what is too much is written over, or cut off
            elif position + taken <= len(out):
                copy(out, position, data, start, size)
            if position + taken <= len(out):
                for place in range(position + size, position + taken):
                    out[place] = 0
            position += taken
        offsets[index + 1] = int32(min(position, 2147483647))
    return position
