"""Kernels that read, frame and send by themselves, so that a far replica costs no Python for each block."""

from __future__ import annotations

import numpy as np
from numba import types

from ibbmaster.kernel.crc32c import PAGE
from ibbmaster.kernel.fields import (
    BAD_PAGE,
    CAREFUL,
    DONE,
    FULL,
    NEED_MORE,
    NO_DATA,
    P_BUDGET,
    P_FILE_OFFSET,
    P_FRAMED,
    P_IS_BEGUN,
    P_NODE,
    P_REST,
    P_VERIFIED_FROM,
    P_VERIFIED_TO,
    S_CHUNK_LEFT,
    S_IS_FIRST,
    S_IS_LAST,
    S_NESTED_TYPE,
    S_OFFSET,
    S_OUT,
    S_PAGE,
    S_SEGMENT_BYTES,
    S_SEGMENTS,
    S_TO_SKIP,
    S_VERIFIED,
)
from ibbmaster.kernel.groups import frame_groups, frame_record
from ibbmaster.kernel.memory import jit

PAGES_PER_READ = 16  # 256 KiB and what is made of it stay in the second cache of a core
PAGES_PER_LONG_READ = 32  # of long groups, of which the last is seldom whole
READ_MAX = 1 << 28  # bytes of a file in one call: where nothing is framed, somebody may want to end it
WAIT_MS = 10  # for a socket that takes nothing, before the caller shall wait in a better way
POLLOUT = 4
IPPROTO_TCP, TCP_CORK = 6, 3
DONT_WAIT_NO_SIGNAL = 0x4040  # MSG_DONTWAIT | MSG_NOSIGNAL of Linux
MESSAGE_VECTORS, MESSAGE_COUNT = 2, 3  # words of a struct msghdr of 64-bit Linux

_pread = types.ExternalFunction("pread", types.int64(types.int32, types.intp, types.int64, types.int64))
_sendmsg = types.ExternalFunction("sendmsg", types.int64(types.int32, types.intp, types.int32))
_memcpy = types.ExternalFunction("memcpy", types.intp(types.intp, types.intp, types.int64))
_setsockopt = types.ExternalFunction(
    "setsockopt", types.int32(types.int32, types.int32, types.int32, types.intp, types.uint32)
)
_poll = types.ExternalFunction("poll", types.int32(types.intp, types.uint64, types.int32))


@jit
def cork(socket, is_on, wanted):  # type: ignore[no-untyped-def]
    """Have pieces wait for each other until a packet of the network is full, or no longer; a few wake-ups fewer."""
    wanted[0] = is_on
    _setsockopt(socket, IPPROTO_TCP, TCP_CORK, wanted.ctypes.data, 4)


@jit
def is_writable(socket, wanted):  # type: ignore[no-untyped-def]
    """Wait a moment for a socket that took nothing; `wanted` has room for a struct pollfd."""
    cork(socket, 0, wanted)
    wanted[0] = np.int64(socket) | np.int64(POLLOUT << 32)
    is_ready = _poll(wanted.ctypes.data, 1, WAIT_MS) > 0
    cork(socket, 1, wanted)
    return is_ready


@jit
def gather(pages, state, out, segments, vectors):  # type: ignore[no-untyped-def]
    """Put what was framed in order: addresses and sizes of pieces of the output, with the segments between."""
    count = 0
    position = 0
    for index in range(state[S_SEGMENTS] + 1):
        is_last = index == state[S_SEGMENTS]
        end = state[S_OUT] if is_last else segments[index, 0]
        if position < end:
            vectors[count, 0], vectors[count, 1] = out.ctypes.data + position, end - position
            count += 1
            position = end
        if not is_last:
            vectors[count, 0], vectors[count, 1] = pages.ctypes.data + segments[index, 1], segments[index, 2]
            count += 1
    return count


@jit
def send_framed(socket, pages, state, out, segments, vectors, wanted, progress, rest):  # type: ignore[no-untyped-def]
    """Send what was framed in one call, if the socket takes it; what it does not take is put into `rest`.

    `rest` is as long as `out`, and all that was framed is no longer: see `frame_bytes`.
    """
    count = gather(pages, state, out, segments, vectors)
    progress[P_FRAMED] += state[S_OUT] + state[S_SEGMENT_BYTES]
    first = 0  # of the pieces that are to be sent still
    is_retry = False
    while first < count:
        wanted[:] = 0
        wanted[MESSAGE_VECTORS], wanted[MESSAGE_COUNT] = vectors[first:].ctypes.data, count - first
        taken = _sendmsg(socket, wanted.ctypes.data, DONT_WAIT_NO_SIGNAL)
        if taken > 0:
            is_retry = False
            while first < count and taken >= vectors[first, 1]:
                taken -= vectors[first, 1]
                first += 1
            if first < count:
                vectors[first, 0] += taken
                vectors[first, 1] -= taken
        elif is_retry or not is_writable(socket, wanted):
            break
        else:
            is_retry = True
    filled = 0
    while first < count:
        _memcpy(rest.ctypes.data + filled, vectors[first, 0], vectors[first, 1])
        filled += vectors[first, 1]
        first += 1
    progress[P_REST] = filled
    return filled == 0


@jit
def _pump(file, socket, progress, pages, state, head, prefix, pairs, scratch, out, segments, vectors, wanted, rest):  # type: ignore[no-untyped-def]
    """Frame and send groups until something else than a whole group in its pages comes; see `frame_groups`.

    Long pieces go from the pages that were read to the socket, without another copy. What is
    passed over and verified is remembered: a large group that follows consists of it.

    Returns why it stopped: FULL also where the budget is used, or the socket takes no more,
    or much was read.
    """
    wanted_pages = PAGES_PER_READ
    last = progress[P_FILE_OFFSET] + READ_MAX
    progress[P_VERIFIED_FROM] = progress[P_VERIFIED_TO] = progress[P_FILE_OFFSET]
    while progress[P_FRAMED] < progress[P_BUDGET] and progress[P_FILE_OFFSET] < last:
        count = _pread(file, pages.ctypes.data, wanted_pages * PAGE, progress[P_FILE_OFFSET]) // PAGE
        if count <= 0:
            return NO_DATA
        offset = state[S_OFFSET]
        state[S_PAGE] = 0
        state[S_OUT] = 0
        status = frame_groups(pages, count, state, head, prefix, pairs, scratch, out, segments, segments[:0])
        has_advanced = state[S_PAGE] > 0 or state[S_OFFSET] != offset
        is_long = count - state[S_PAGE] > 2
        wanted_pages = PAGES_PER_LONG_READ if is_long else PAGES_PER_READ
        progress[P_FILE_OFFSET] += state[S_PAGE] * PAGE
        progress[P_VERIFIED_TO] = progress[P_FILE_OFFSET]
        if not send_framed(socket, pages, state, out, segments, vectors, wanted, progress, rest):
            return FULL
        if status == NO_DATA or status == CAREFUL or status == BAD_PAGE:
            return status
        if not has_advanced:
            return CAREFUL if status == NEED_MORE else FULL
    return FULL


@jit
def _pump_nodes(file, socket, progress, nodes, pages, state, head, prefix, out, segments, vectors, wanted, rest):  # type: ignore[no-untyped-def]
    """Frame and send the events in out-of-band nodes; each row of `nodes` is a file offset and the bytes before events.

    Pages that `_pump` has passed over were verified there.

    Returns why it stopped: DONE behind the last node, FULL where the budget is used or the
    socket takes no more, else as `frame_record`, with the place of the trouble at hand.
    """
    begin, count, verified = -1, 0, 0  # file offset of the pages at hand, how many, and of them whose checksum is right
    while progress[P_NODE] < len(nodes):
        if progress[P_FRAMED] >= progress[P_BUDGET]:
            return FULL
        if not progress[P_IS_BEGUN]:
            page_no = nodes[progress[P_NODE], 0] // PAGE
            progress[P_FILE_OFFSET] = page_no * PAGE
            state[S_OFFSET] = nodes[progress[P_NODE], 0] - page_no * PAGE
            state[S_TO_SKIP] = nodes[progress[P_NODE], 1]
            state[S_CHUNK_LEFT] = state[S_IS_LAST] = 0
            state[S_IS_FIRST] = 1
            state[S_NESTED_TYPE] = -1
            progress[P_IS_BEGUN] = 1
        if not begin <= progress[P_FILE_OFFSET] < begin + count * PAGE:
            begin = progress[P_FILE_OFFSET]
            count = _pread(file, pages.ctypes.data, PAGES_PER_LONG_READ * PAGE, begin) // PAGE
            if count <= 0:
                return NEED_MORE
            is_verified = progress[P_VERIFIED_FROM] <= begin < progress[P_VERIFIED_TO]
            verified = min(count, (progress[P_VERIFIED_TO] - begin) // PAGE) if is_verified else 0
        state[S_PAGE] = (progress[P_FILE_OFFSET] - begin) // PAGE
        state[S_VERIFIED] = verified
        state[S_OUT] = 0
        status = frame_record(pages, count, state, head, prefix, out, segments)
        progress[P_FILE_OFFSET] = begin + state[S_PAGE] * PAGE
        if status == DONE:
            progress[P_NODE] += 1
            progress[P_IS_BEGUN] = 0
        if not send_framed(socket, pages, state, out, segments, vectors, wanted, progress, rest):
            return FULL
        if status == CAREFUL or status == BAD_PAGE:
            return status
    return DONE


@jit
def pump(file, socket, progress, pages, state, head, prefix, pairs, scratch, out, segments, vectors, wanted, rest):  # type: ignore[no-untyped-def]
    """As `_pump`, with the socket corked meanwhile."""
    cork(socket, 1, wanted)
    status = _pump(
        file, socket, progress, pages, state, head, prefix, pairs, scratch, out, segments, vectors, wanted, rest
    )
    cork(socket, 0, wanted)
    return status


@jit
def pump_nodes(file, socket, progress, nodes, pages, state, head, prefix, out, segments, vectors, wanted, rest):  # type: ignore[no-untyped-def]
    """As `_pump_nodes`, with the socket corked meanwhile."""
    cork(socket, 1, wanted)
    status = _pump_nodes(
        file, socket, progress, nodes, pages, state, head, prefix, out, segments, vectors, wanted, rest
    )
    cork(socket, 0, wanted)
    return status
