"""Kernels that read, frame and send by themselves, so that a far replica costs no Python for each block."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numba import types

from ibbmaster.kernel.crc32c import PAGE
from ibbmaster.kernel.framing import (
    BAD_PAGE,
    CAREFUL,
    DONE,
    FULL,
    NEED_MORE,
    NO_DATA,
    S_CHUNK_LEFT,
    S_IS_FIRST,
    S_IS_LAST,
    S_NESTED_TYPE,
    S_OFFSET,
    S_OUT,
    S_PAGE,
    S_TO_SKIP,
    frame_groups,
    frame_record,
)
from ibbmaster.kernel.memory import jit

PAGES_PER_READ = 16
WAIT_MS = 10  # for a socket that takes nothing, before the caller shall wait in a better way
POLLOUT = 4
DONT_WAIT_NO_SIGNAL = 0x4040  # MSG_DONTWAIT | MSG_NOSIGNAL of Linux

_pread = types.ExternalFunction("pread", types.int64(types.int32, types.intp, types.int64, types.int64))
_send = types.ExternalFunction("send", types.int64(types.int32, types.intp, types.int64, types.int32))
_poll = types.ExternalFunction("poll", types.int32(types.intp, types.uint64, types.int32))


class Progress(IntEnum):
    """Places in the numbers that a call is given and leaves."""

    FILE_OFFSET = 0  # of the page at hand
    BUDGET = 1  # end after so many bytes
    FRAMED = 2  # bytes of packets
    REST_START = 3  # what the socket did not take lies in the output from here
    REST_END = 4  # to here
    NODE = 5  # index of the node at hand
    IS_BEGUN = 6  # whether FILE_OFFSET and the state are of a place inside that node
    SIZE = 7


P_FILE_OFFSET, P_BUDGET, P_FRAMED = int(Progress.FILE_OFFSET), int(Progress.BUDGET), int(Progress.FRAMED)
P_REST_START, P_REST_END = int(Progress.REST_START), int(Progress.REST_END)
P_NODE, P_IS_BEGUN = int(Progress.NODE), int(Progress.IS_BEGUN)


@jit
def send_all(socket, out, size, wanted):  # type: ignore[no-untyped-def]
    """Send out[:size]; returns how much of it the socket took."""
    start = 0
    is_retry = False
    while start < size:
        taken = _send(socket, out.ctypes.data + start, size - start, DONT_WAIT_NO_SIGNAL)
        if taken > 0:
            start += taken
            is_retry = False
            continue
        if is_retry:
            break
        wanted[0] = np.int64(socket) | np.int64(POLLOUT << 32)  # a struct pollfd
        if _poll(wanted.ctypes.data, 1, WAIT_MS) <= 0:
            break
        is_retry = True
    return start


@jit
def pump(file, socket, progress, pages, state, head, prefix, pairs, scratch, out, wanted):  # type: ignore[no-untyped-def]
    """Frame and send groups until something else than a whole group in its pages comes; see `frame_groups`.

    Returns why it stopped: FULL also where the budget is used, or the socket takes no more.
    """
    while progress[P_FRAMED] < progress[P_BUDGET]:
        size = _pread(file, pages.ctypes.data, PAGES_PER_READ * PAGE, progress[P_FILE_OFFSET])
        if size < PAGE:
            return NO_DATA
        offset = state[S_OFFSET]
        state[S_PAGE] = 0
        state[S_OUT] = 0
        status = frame_groups(pages, size // PAGE, state, head, prefix, pairs, scratch, out)
        has_advanced = state[S_PAGE] > 0 or state[S_OFFSET] != offset
        progress[P_FILE_OFFSET] += state[S_PAGE] * PAGE
        progress[P_FRAMED] += state[S_OUT]
        taken = send_all(socket, out, state[S_OUT], wanted)
        if taken < state[S_OUT]:
            progress[P_REST_START] = taken
            progress[P_REST_END] = state[S_OUT]
            return FULL
        if status == NO_DATA or status == CAREFUL or status == BAD_PAGE:
            return status
        if not has_advanced:
            return CAREFUL if status == NEED_MORE else FULL
    return FULL


@jit
def pump_nodes(file, socket, progress, nodes, pages, state, head, prefix, out, wanted):  # type: ignore[no-untyped-def]
    """Frame and send the events in out-of-band nodes; each row of `nodes` is a file offset and the bytes before events.

    Returns why it stopped: DONE behind the last node, FULL where the budget is used or the
    socket takes no more, else as `frame_record`, with the place of the trouble at hand.
    """
    first, count = -1, 0  # of the pages that were read
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
        page_no = progress[P_FILE_OFFSET] // PAGE
        if not first <= page_no < first + count:
            first = page_no
            count = _pread(file, pages.ctypes.data, PAGES_PER_READ * PAGE, progress[P_FILE_OFFSET]) // PAGE
            if count <= 0:
                return NEED_MORE
        state[S_PAGE] = page_no - first
        state[S_OUT] = 0
        status = frame_record(pages, count, state, head, prefix, out)
        progress[P_FILE_OFFSET] = (first + state[S_PAGE]) * PAGE
        progress[P_FRAMED] += state[S_OUT]
        taken = send_all(socket, out, state[S_OUT], wanted)
        if status == DONE:
            progress[P_NODE] += 1
            progress[P_IS_BEGUN] = 0
        if taken < state[S_OUT]:
            progress[P_REST_START] = taken
            progress[P_REST_END] = state[S_OUT]
            return FULL
        if status == CAREFUL or status == BAD_PAGE:
            return status
    return DONE
