"""What kernels know of a group by the GTID event that it begins with. The reference: `ibbmaster.log.event_groups`."""

from __future__ import annotations

from numba import int64, types, uint64

from ibbmaster.event.gtid_event import DOMAIN_ID_OFFSET, SEQ_NO_OFFSET
from ibbmaster.event.header import SERVER_ID_OFFSET, SIZE_OFFSET, TYPE_OFFSET
from ibbmaster.kernel.fields import EVENT_HEADER, GROUP_BEGIN, GTID_EVENT, GTID_EVENT_MIN, Field
from ibbmaster.kernel.memory import inlined, jit, loader

# each of an array and the offset of an event there
domain_of = loader(32, types.int64, behind=DOMAIN_ID_OFFSET)
server_of = loader(32, types.int64, behind=SERVER_ID_OFFSET)
sequence_of = loader(64, types.uint64, behind=SEQ_NO_OFFSET)
size_of = loader(32, types.int64, behind=SIZE_OFFSET)  # as the event says


@inlined
def is_group_begin(source, start, end):
    """Whether the bytes begin with a GTID event."""
    if end - start < GROUP_BEGIN or source[uint64(start + TYPE_OFFSET)] != GTID_EVENT:
        return False
    return size_of(source, start) >= GTID_EVENT_MIN


@jit
def is_group(source, start, end, stopper):
    """Whether the bytes begin with a GTID event and are events to their end, none of the type `stopper`."""
    if not is_group_begin(source, start, end):
        return False
    offset = start
    while end - offset >= EVENT_HEADER:
        size = size_of(source, offset)
        if size < EVENT_HEADER or size > end - offset or source[uint64(offset + TYPE_OFFSET)] == stopper:
            return False
        offset += size
    return offset == end


@jit
def is_skipped(source, start, skips):
    """Whether a group that begins at `start` comes before the one at which its domain's skipping ends.

    Each row of `skips` is domain, server and sequence number of such a group.
    """
    for row in range(len(skips)):
        if skips[row, 0] == domain_of(source, start):
            is_other_server = skips[row, 1] != server_of(source, start)
            return is_other_server or sequence_of(source, start) < uint64(skips[row, 2])
    return False


@jit
def is_limit(source, start, skips):
    """Whether a group that begins at `start` is the one at which its domain's skipping ends: see `is_skipped`."""
    for row in range(len(skips)):
        if skips[row, 0] == domain_of(source, start):
            is_same_server = skips[row, 1] == server_of(source, start)
            return is_same_server and sequence_of(source, start) == uint64(skips[row, 2])
    return False


@inlined
def is_same_pair(source, one, other):
    """Whether two groups have the same domain and server."""
    return server_of(source, one) == server_of(source, other) and domain_of(source, one) == domain_of(source, other)


@inlined
def find_pair(source, start, pairs, count):
    """The row of a group's domain and server; `count` if they are not among the first `count` pairs."""
    server_id, domain_id = server_of(source, start), domain_of(source, start)
    pair = 0
    while pair < count and (pairs[pair, 0] != domain_id or pairs[pair, 1] != server_id):
        pair += 1
    return pair


@inlined
def is_step_back(source, start, pairs, state):
    """Whether a group that begins at `start` has a number that is not above the one noted last for its pair."""
    count = state[Field.PAIRS]
    pair = find_pair(source, start, pairs, count)
    return pair < count and sequence_of(source, start) <= uint64(pairs[pair, 2])


@inlined
def note_group(source, start, pairs, state):
    """Note the GTID of a group that begins at `start`, and its turn; returns the row of its pair, -1 for no room."""
    count = state[Field.PAIRS]
    pair = find_pair(source, start, pairs, count)
    if pair == len(pairs):
        return -1
    if pair == count:
        state[Field.PAIRS] = count + 1
    elif sequence_of(source, start) <= uint64(pairs[pair, 2]):
        state[Field.STEPS_BACK] += 1
    state[Field.NOTED] += 1
    pairs[pair, 0] = domain_of(source, start)
    pairs[pair, 1] = server_of(source, start)
    pairs[pair, 2] = int64(sequence_of(source, start))
    pairs[pair, 3] = state[Field.NOTED]
    return pair
