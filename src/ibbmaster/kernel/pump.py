"""Kernels that read, frame and send by themselves, so that a far replica costs no Python for each block."""

from __future__ import annotations

import numpy as np
from numba import int64, types

from ibbmaster.kernel.classic_framing import frame_classic
from ibbmaster.kernel.crc32c import DATA, PAGE
from ibbmaster.kernel.fields import (
    CHUNK_HEADER,
    COMMIT,
    CONT,
    FILLER,
    KNOWN_TYPES,
    TYPE_MASK,
    Field,
    NodeColumn,
    Progress,
    Status,
)
from ibbmaster.kernel.groups import frame_node, frame_table, frame_way
from ibbmaster.kernel.memory import jit
from ibbmaster.kernel.packet_fields import ClassicField
from ibbmaster.kernel.scan import stop_at

PAGES_PER_READ = 32  # 512 KiB: a sixth to a quarter more goes through than with half or twice as much
SEND_MIN = 1 << 17  # bytes of output that are worth a call by themselves
READ_MAX = 1 << 28  # bytes of a file in one call: where nothing is framed, it may have to end
WAIT_MS = 10  # for a socket that takes nothing, before the caller shall wait in a better way
POLLOUT = 4
IPPROTO_TCP, TCP_CORK = 6, 3
BYTES_PER_READ = 1 << 18  # of a traditional file: that and what is made of it stay in the second cache of a core
BYTES_PER_LONG_READ = 1 << 20  # of groups that are longer
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
def cork(socket, is_on, wanted):
    """Have pieces wait for each other until a packet of the network is full, or no longer; a few wake-ups fewer."""
    wanted[0] = is_on
    _setsockopt(socket, IPPROTO_TCP, TCP_CORK, wanted.ctypes.data, 4)


@jit
def is_writable(socket, wanted):
    """Wait a moment for a socket that took nothing; `wanted` has room for a struct pollfd."""
    cork(socket, 0, wanted)
    wanted[0] = np.int64(socket) | np.int64(POLLOUT << 32)
    is_ready = _poll(wanted.ctypes.data, 1, WAIT_MS) > 0
    cork(socket, 1, wanted)
    return is_ready


@jit
def gather(pages, framing, vectors):
    """Put what was framed in order: addresses and sizes of pieces of the output, with the segments between."""
    state, out, segments = framing.state, framing.out, framing.segments
    count = 0
    position = 0
    for index in range(state[Field.SEGMENTS] + 1):
        is_last = index == state[Field.SEGMENTS]
        end = state[Field.OUT] if is_last else segments[index, 0]
        if position < end:
            vectors[count, 0], vectors[count, 1] = out.ctypes.data + position, end - position
            count += 1
            position = end
        if not is_last:
            vectors[count, 0], vectors[count, 1] = pages.ctypes.data + segments[index, 1], segments[index, 2]
            count += 1
    return count


@jit
def send_framed(socket, pages, framing, sending):
    """Send what was framed in one call, if the socket takes it; what it does not take is put into `rest`.

    The output is empty then.

    `rest` is as long as `out`, and all that was framed is no longer: see `frame_bytes`.
    """
    progress, vectors, wanted, rest = sending
    state = framing.state
    count = gather(pages, framing, vectors)
    progress[Progress.FRAMED] += state[Field.OUT] + state[Field.SEGMENT_BYTES]
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
    state[Field.OUT] = state[Field.SEGMENTS] = state[Field.SEGMENT_BYTES] = 0
    filled = 0
    while first < count:
        _memcpy(rest.ctypes.data + filled, vectors[first, 0], vectors[first, 1])
        filled += vectors[first, 1]
        first += 1
    progress[Progress.REST] = filled
    return filled == 0


@jit
def find_commit(file, begin, end, wanted):
    """File offset of the commit record that comes first from a chunk on, and before `end` unless that is 0; 0 for none.

    Only the heads of chunks are read, and they may be damaged: the caller has to check the whole way.
    """
    place = begin
    while place < begin + READ_MAX and (end == 0 or place < end):
        offset = place % PAGE
        type_byte = int64(FILLER)
        if offset < DATA - CHUNK_HEADER:
            wanted[0] = 0
            if _pread(file, wanted.ctypes.data, CHUNK_HEADER, place) != CHUNK_HEADER:
                break
            type_byte = wanted[0] & 0xFF
        if type_byte == FILLER:
            place += PAGE - offset
            continue
        size = wanted[0] >> 8
        record_type = type_byte & TYPE_MASK
        if record_type == COMMIT:
            return int64(0) if type_byte & CONT else place
        is_known = (KNOWN_TYPES >> record_type) & 1
        if not is_known or type_byte == 0 or size == 0 or offset + CHUNK_HEADER + size > DATA:
            break
        place += CHUNK_HEADER + size
    return int64(0)


@jit
def _pump(file, socket, pages, framing, sending):
    """Frame and send groups until something else than a whole group in its pages comes; see `frame_table`.

    Long pieces go from the pages that were read to the socket, without another copy. What is
    skipped and verified is remembered: a large group that follows consists of it.

    Returns why it stopped: FULL also where the budget is used, or the socket takes no more,
    or much was read; DONE where out-of-band records begin, and COMMIT is the place of their commit record,
    as the heads of chunks say, or KNOWN_COMMIT where they begin at KNOWN_BEGIN; nothing of it was verified.
    """
    state, progress = framing.state, sending.progress
    progress[Progress.COMMIT] = 0
    may_walk = True
    last = progress[Progress.FILE_OFFSET] + READ_MAX
    progress[Progress.VERIFIED_FROM] = progress[Progress.VERIFIED_TO] = progress[Progress.FILE_OFFSET]
    while progress[Progress.FRAMED] < progress[Progress.BUDGET] and progress[Progress.FILE_OFFSET] < last:
        count = _pread(file, pages.ctypes.data, PAGES_PER_READ * PAGE, progress[Progress.FILE_OFFSET]) // PAGE
        if count <= 0:
            return Status.NO_DATA
        offset = state[Field.OFFSET]
        state[Field.PAGE] = 0
        state[Field.OUT] = 0
        if progress[Progress.END] > 0:
            state[Field.END] = progress[Progress.END] - progress[Progress.FILE_OFFSET]
            if state[Field.END] <= offset:
                return Status.NO_DATA
        status = frame_table(pages, count, framing)
        if may_walk and state[Field.RUN] >= 0 and status == Status.NEED_MORE:
            if progress[Progress.FILE_OFFSET] + state[Field.RUN] == progress[Progress.KNOWN_BEGIN]:
                progress[Progress.COMMIT] = progress[Progress.KNOWN_COMMIT]
            else:
                begin = progress[Progress.FILE_OFFSET] + state[Field.PAGE] * PAGE + state[Field.OFFSET]
                progress[Progress.COMMIT] = find_commit(file, begin, progress[Progress.END], sending.wanted)
            may_walk = False
            if progress[Progress.COMMIT] > 0:
                stop_at(state[Field.RUN], state)
                status = Status.DONE
        has_advanced = state[Field.PAGE] > 0 or state[Field.OFFSET] != offset
        progress[Progress.FILE_OFFSET] += state[Field.PAGE] * PAGE
        progress[Progress.VERIFIED_TO] = progress[Progress.FILE_OFFSET]
        if not send_framed(socket, pages, framing, sending):
            return Status.FULL
        if status == Status.NO_DATA or status == Status.FALLBACK or status == Status.BAD_PAGE or status == Status.DONE:
            return status
        if not has_advanced:
            return Status.FALLBACK if status == Status.NEED_MORE else Status.FULL
    return Status.FULL


@jit
def _pump_nodes(file, socket, nodes, pages, framing, sending):
    """Frame and send the events in out-of-band nodes; `nodes` are those of one file.

    What the output has already goes out first. Pages that `_pump` has skipped were verified there.

    Returns why it stopped: DONE after the last node, FULL where the budget is used or the
    socket takes no more, else as `frame_node`, with the place of the current trouble.
    """
    state, progress = framing.state, sending.progress
    begin, count, verified = -1, 0, 0  # file offset of the current pages, how many, and of them whose checksum is right
    while progress[Progress.NODE] < len(nodes):
        if not progress[Progress.IS_BEGUN]:
            page_no = nodes[progress[Progress.NODE], NodeColumn.PLACE] // PAGE
            progress[Progress.FILE_OFFSET] = page_no * PAGE
            state[Field.OFFSET] = nodes[progress[Progress.NODE], NodeColumn.PLACE] - page_no * PAGE
            state[Field.TO_SKIP] = nodes[progress[Progress.NODE], NodeColumn.HEADER_SIZE]
            state[Field.SKIP_TYPE] = state[Field.NESTED_TYPE] = -1
            progress[Progress.IS_BEGUN] = 1
        if not begin <= progress[Progress.FILE_OFFSET] < begin + count * PAGE:
            if state[Field.SEGMENTS] > 0 or state[Field.OUT] >= SEND_MIN:
                if (
                    not send_framed(socket, pages, framing, sending)
                    or progress[Progress.FRAMED] >= progress[Progress.BUDGET]
                ):
                    return Status.FULL
            begin = progress[Progress.FILE_OFFSET]
            count = _pread(file, pages.ctypes.data, PAGES_PER_READ * PAGE, begin) // PAGE
            if count <= 0:
                send_framed(socket, pages, framing, sending)
                return Status.NEED_MORE
            is_verified = progress[Progress.VERIFIED_FROM] <= begin < progress[Progress.VERIFIED_TO]
            verified = min(count, (progress[Progress.VERIFIED_TO] - begin) // PAGE) if is_verified else 0
        first = (progress[Progress.FILE_OFFSET] - begin) // PAGE
        state[Field.PAGE] = first
        state[Field.VERIFIED] = verified
        status = frame_node(pages, count, framing)
        progress[Progress.FILE_OFFSET] = begin + state[Field.PAGE] * PAGE
        if first <= verified < state[Field.PAGE]:
            verified = state[Field.PAGE]
        if status == Status.DONE:
            progress[Progress.NODE] += 1
            progress[Progress.IS_BEGUN] = 0
        elif status != Status.NEED_MORE:
            if (
                not send_framed(socket, pages, framing, sending)
                or progress[Progress.FRAMED] >= progress[Progress.BUDGET]
            ):
                return Status.FULL
            if status != Status.FULL:
                return status
    return Status.DONE if send_framed(socket, pages, framing, sending) else Status.FULL


@jit
def _pump_way(file, socket, nodes, pages, framing, sending):
    """Frame and send the events in out-of-band nodes, and check all that lies between them and up to `COMMIT`.

    What the output has already goes out first.

    Returns why it stopped: DONE before the commit record, FULL where the budget is used, the socket takes no more or
    other nodes are wanted, else as `frame_way`, with the place of the current trouble.
    """
    state, progress = framing.state, sending.progress
    status = Status.NEED_MORE
    while status == Status.NEED_MORE:
        if progress[Progress.FRAMED] >= progress[Progress.BUDGET]:
            return Status.FULL
        base = progress[Progress.FILE_OFFSET]
        state[Field.PAGE] = 0
        if base == progress[Progress.COMMIT]:
            is_between = state[Field.SKIP_TYPE] < 0 and state[Field.NESTED_TYPE] < 0
            status = Status.DONE if is_between else Status.FALLBACK
        else:
            count = _pread(file, pages.ctypes.data, PAGES_PER_READ * PAGE, base) // PAGE
            status = frame_way(pages, count, base, nodes, framing, progress) if count > 0 else Status.NO_DATA
        progress[Progress.FILE_OFFSET] += state[Field.PAGE] * PAGE
        is_full = status == Status.FULL and state[Field.OUT] + state[Field.SEGMENT_BYTES] > 0
        if not send_framed(socket, pages, framing, sending):
            return Status.FULL
        if is_full:
            status = Status.NEED_MORE
    return status


@jit
def pump(file, socket, pages, framing, sending):
    """As `_pump`, with the socket corked meanwhile."""
    cork(socket, 1, sending.wanted)
    status = _pump(file, socket, pages, framing, sending)
    cork(socket, 0, sending.wanted)
    return status


@jit
def pump_nodes(file, socket, nodes, pages, framing, sending):
    """As `_pump_nodes`, with the socket corked meanwhile."""
    cork(socket, 1, sending.wanted)
    status = _pump_nodes(file, socket, nodes, pages, framing, sending)
    cork(socket, 0, sending.wanted)
    return status


@jit
def pump_way(file, socket, nodes, pages, framing, sending):
    """As `_pump_way`, with the socket corked meanwhile."""
    cork(socket, 1, sending.wanted)
    status = _pump_way(file, socket, nodes, pages, framing, sending)
    cork(socket, 0, sending.wanted)
    return status


@jit
def _pump_classic(file, socket, source, framing, roles, sending):
    """Frame and send until the budget is used, the socket takes no more, or the caller has to decide."""
    state, progress = framing.state, sending.progress
    wanted_bytes = BYTES_PER_READ
    while progress[Progress.FRAMED] < progress[Progress.BUDGET]:
        size = _pread(file, source.ctypes.data, wanted_bytes, progress[Progress.FILE_OFFSET])
        if progress[Progress.END] > 0 and state[ClassicField.IN_PARTS] == 0:
            size = min(size, progress[Progress.END] - progress[Progress.FILE_OFFSET])
        if size <= 0:
            return Status.NEED_MORE
        state[ClassicField.READ_AT] = state[Field.OUT] = 0
        state[ClassicField.SOURCE_OFFSET] = progress[Progress.FILE_OFFSET]
        status = frame_classic(source, size, framing, roles, framing.segments[:0])
        has_advanced = state[ClassicField.READ_AT] > 0 or state[Field.OUT] > 0
        progress[Progress.FILE_OFFSET] += state[ClassicField.READ_AT]
        if not send_framed(socket, source, framing, sending):
            return Status.FULL
        if status == Status.DONE:
            state[ClassicField.IN_PARTS] = 0
            wanted_bytes = BYTES_PER_READ
        elif status == Status.FALLBACK:
            return Status.FALLBACK
        elif has_advanced:
            wanted_bytes = BYTES_PER_LONG_READ if state[ClassicField.IN_PARTS] else BYTES_PER_READ
        elif status == Status.NEED_MORE and size < wanted_bytes:
            return Status.NEED_MORE
        elif status == Status.NEED_MORE and wanted_bytes < BYTES_PER_LONG_READ:
            wanted_bytes = BYTES_PER_LONG_READ
        elif state[ClassicField.IN_PARTS] or not state[ClassicField.MAY_BE_IN_PARTS]:
            return status
        else:
            state[ClassicField.IN_PARTS] = 1
    return Status.FULL


@jit
def pump_classic(file, socket, source, framing, roles, sending):
    """As `_pump_classic`, with the socket corked meanwhile; see `frame_classic`."""
    cork(socket, 1, sending.wanted)
    status = _pump_classic(file, socket, source, framing, roles, sending)
    cork(socket, 0, sending.wanted)
    return status
