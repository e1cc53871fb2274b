"""A kernel that finds the out-of-band nodes of a stream in the order of their data.

The reference: `ibbmaster.ibb.oob.walk_oob`, together with `ibbmaster.log.out_of_band`.
"""

from __future__ import annotations

from numba import int64, uint64

from ibbmaster.kernel.crc32c import DATA, PAGE, is_page_good
from ibbmaster.kernel.fields import (
    CHUNK_HEADER,
    CONT,
    GTID_STATE,
    LAST,
    NODE_HEAD_MIN,
    OOB_DATA,
    NodeColumn,
    NodeScan,
    Status,
    UnreadNodeColumn,
)
from ibbmaster.kernel.memory import copy, inlined, jit, load32, load64
from ibbmaster.kernel.pump import _pread

TAG_BITS, TAG_MASK, LONG_TAG = 3, 7, 7  # of a compressed integer; the long form is for the reference


@inlined
def decode_int(source, offset, end):
    """A compressed integer, and the offset after it, -1 if it runs over the end or is long."""
    size = (int64(source[offset]) & TAG_MASK) + 1
    if offset + size > end or size > LONG_TAG:
        return int64(0), int64(-1)
    value = load64(source, offset) & ((uint64(1) << uint64(8 * size)) - uint64(1))
    return int64(value >> uint64(TAG_BITS)), offset + size


@jit
def read_page(file, first, page):
    """Read the page at an offset of the file; False where there is none that is good."""
    return first >= PAGE and _pread(file, page.ctypes.data, PAGE, first) == PAGE and is_page_good(page, 0)


@jit
def keep_head(page, start, size, held):
    """Keep bytes of the head of a node behind the page, after `held` of them; returns how many there are then."""
    taken = min(size, NODE_HEAD_MIN - held)
    copy(page, PAGE + held, page, start, taken)
    return held + taken


@jit
def read_header(file, place, page, header):
    """Read the header of the node at a place of the file; False where there is none.

    It may go on at the begin of the next page, after the state that may stand there.
    """
    first = place // PAGE * PAGE
    if not read_page(file, first, page):
        return False
    offset = place - first
    if offset > DATA - CHUNK_HEADER - 1:
        return False
    chunk = load32(page, offset)
    start, size = offset + CHUNK_HEADER, chunk >> 8 & 0xFFFF
    if chunk & 0xFF & ~LAST != OOB_DATA or size == 0 or start + size > DATA:
        return False
    held = keep_head(page, start, size, 0)
    if held < NODE_HEAD_MIN and not chunk & LAST:
        if not read_page(file, first + PAGE, page):
            return False
        chunk, start = load32(page, 0), int64(CHUNK_HEADER)
        if chunk & 0xFF == GTID_STATE | LAST:
            start += (chunk >> 8 & 0xFFFF) + CHUNK_HEADER
            if start > DATA - 1:
                return False
            chunk = load32(page, start - CHUNK_HEADER)
        size = chunk >> 8 & 0xFFFF
        if chunk & 0xFF & ~LAST != OOB_DATA | CONT or size == 0 or start + size > DATA:
            return False
        held = keep_head(page, start, size, held)
    offset, end = int64(PAGE), PAGE + held
    for index in range(5):
        if offset >= end:
            return False
        header[index], offset = decode_int(page, offset, end)
        if offset < 0:
            return False
    header[5] = offset - PAGE
    return True


@jit
def find_nodes(file, search, path, page, header, nodes):
    """Note the nodes that come next in `nodes`, as many as there is room for; returns how many, and the status.

    `path` is what is left to look at, at first the last node of the stream. DONE after the
    last node, FULL where there are more; FALLBACK where a node is in another file, or
    something is not as it should be: then the reference says what.
    """
    found = 0
    while search[NodeScan.PATH] > 0 and found < len(nodes):
        row = search[NodeScan.PATH] - 1
        place, number = path[row, UnreadNodeColumn.PLACE], path[row, UnreadNodeColumn.NUMBER]
        if path[row, UnreadNodeColumn.HEADER_SIZE] > 0:  # all that comes before it was given
            if number != search[NodeScan.NEXT] or (number == 0 and place != search[NodeScan.FIRST]):
                return found, Status.FALLBACK
            nodes[found, NodeColumn.FILE_NO], nodes[found, NodeColumn.PLACE] = search[NodeScan.FILE_NO], place
            nodes[found, NodeColumn.HEADER_SIZE] = path[row, UnreadNodeColumn.HEADER_SIZE]
            found += 1
            search[NodeScan.NEXT] += 1
            search[NodeScan.PATH] -= 1
            continue
        if not read_header(file, place, page, header):
            return found, Status.FALLBACK
        index, left_file, left, right_file, right = header[0], header[1], header[2], header[3], header[4]
        has_left, has_right = left_file != 0 or left != 0, right_file != 0 or right != 0
        if (
            (number >= 0 and number != index)
            or (has_left and (not has_right or left_file != search[NodeScan.FILE_NO]))
            or (has_right and right_file != search[NodeScan.FILE_NO])
            or has_right == (index == 0)
            or row + 3 > len(path)
        ):
            return found, Status.FALLBACK
        path[row, UnreadNodeColumn.NUMBER], path[row, UnreadNodeColumn.HEADER_SIZE] = index, header[5]
        is_leftmost = path[row, UnreadNodeColumn.IS_LEFTMOST]
        if has_right and (has_left or is_leftmost):
            row += 1
            path[row, UnreadNodeColumn.PLACE], path[row, UnreadNodeColumn.NUMBER] = right, index - 1
            path[row, UnreadNodeColumn.IS_LEFTMOST] = is_leftmost and not has_left
            path[row, UnreadNodeColumn.HEADER_SIZE] = 0
        if has_left:
            row += 1
            path[row, UnreadNodeColumn.PLACE], path[row, UnreadNodeColumn.NUMBER] = left, -1
            path[row, UnreadNodeColumn.IS_LEFTMOST] = is_leftmost
            path[row, UnreadNodeColumn.HEADER_SIZE] = 0
        search[NodeScan.PATH] = row + 1
    if search[NodeScan.PATH] > 0:
        return found, Status.FULL
    return found, Status.DONE if search[NodeScan.NEXT] == search[NodeScan.NODES] else Status.FALLBACK
