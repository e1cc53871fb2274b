"""A kernel that finds the out-of-band nodes of a stream in the order of their data.

The reference: `ibbmaster.ibb.oob.walk_oob`, together with `ibbmaster.log.out_of_band`.
"""

from __future__ import annotations

from numba import int64, uint64

from ibbmaster.kernel.crc32c import DATA, PAGE, is_page_good
from ibbmaster.kernel.fields import CHUNK_HEADER, LAST, OOB_DATA, NodeColumn, NodeSearch, PathColumn, Status
from ibbmaster.kernel.memory import inlined, jit, load32, load64
from ibbmaster.kernel.pump import _pread

TAG_BITS, TAG_MASK, LONG_TAG = 3, 7, 7  # of a compressed integer; the long form is for the reference


@inlined
def decode_int(source, offset, end):
    """A compressed integer, and the offset behind it, -1 if it runs over the end or is long."""
    size = (int64(source[offset]) & TAG_MASK) + 1
    if offset + size > end or size > LONG_TAG:
        return int64(0), int64(-1)
    value = load64(source, offset) & ((uint64(1) << uint64(8 * size)) - uint64(1))
    return int64(value >> uint64(TAG_BITS)), offset + size


@jit
def read_header(file, place, page, header):
    """Read the header of the node at a place of the file; False where there is none."""
    first = place // PAGE * PAGE
    if first < PAGE or _pread(file, page.ctypes.data, PAGE, first) != PAGE or not is_page_good(page, 0):
        return False
    offset = place - first
    if offset > DATA - CHUNK_HEADER - 1:
        return False
    chunk = load32(page, offset)
    start, size = offset + CHUNK_HEADER, chunk >> 8 & 0xFFFF
    if chunk & 0xFF & ~LAST != OOB_DATA or size == 0 or start + size > DATA:
        return False
    offset = start
    for index in range(5):
        if offset >= start + size:
            return False
        header[index], offset = decode_int(page, offset, start + size)
        if offset < 0:
            return False
    header[5] = offset - start
    return True


@jit
def find_nodes(file, search, path, page, header, nodes):
    """Note the nodes that come next in `nodes`, as many as there is room for; returns how many, and the status.

    `path` is what is left to look at, at first the last node of the stream. DONE behind the
    last node, FULL where there are more; FALLBACK where a node is in another file, or
    something is not as it should be: then the reference says what.
    """
    found = 0
    while search[NodeSearch.PATH] > 0 and found < len(nodes):
        row = search[NodeSearch.PATH] - 1
        place, number = path[row, PathColumn.PLACE], path[row, PathColumn.NUMBER]
        if path[row, PathColumn.HEADER_SIZE] > 0:  # all that comes before it was given
            if number != search[NodeSearch.NEXT] or (number == 0 and place != search[NodeSearch.FIRST]):
                return found, Status.FALLBACK
            nodes[found, NodeColumn.FILE_NO], nodes[found, NodeColumn.PLACE] = search[NodeSearch.FILE_NO], place
            nodes[found, NodeColumn.HEADER_SIZE] = path[row, PathColumn.HEADER_SIZE]
            found += 1
            search[NodeSearch.NEXT] += 1
            search[NodeSearch.PATH] -= 1
            continue
        if not read_header(file, place, page, header):
            return found, Status.FALLBACK
        index, left_file, left, right_file, right = header[0], header[1], header[2], header[3], header[4]
        has_left, has_right = left_file != 0 or left != 0, right_file != 0 or right != 0
        if (
            (number >= 0 and number != index)
            or (has_left and (not has_right or left_file != search[NodeSearch.FILE_NO]))
            or (has_right and right_file != search[NodeSearch.FILE_NO])
            or has_right == (index == 0)
            or row + 3 > len(path)
        ):
            return found, Status.FALLBACK
        path[row, PathColumn.NUMBER], path[row, PathColumn.HEADER_SIZE] = index, header[5]
        is_leftmost = path[row, PathColumn.IS_LEFTMOST]
        if has_right and (has_left or is_leftmost):
            row += 1
            path[row, PathColumn.PLACE], path[row, PathColumn.NUMBER] = right, index - 1
            path[row, PathColumn.IS_LEFTMOST] = is_leftmost and not has_left
            path[row, PathColumn.HEADER_SIZE] = 0
        if has_left:
            row += 1
            path[row, PathColumn.PLACE], path[row, PathColumn.NUMBER] = left, -1
            path[row, PathColumn.IS_LEFTMOST] = is_leftmost
            path[row, PathColumn.HEADER_SIZE] = 0
        search[NodeSearch.PATH] = row + 1
    if search[NodeSearch.PATH] > 0:
        return found, Status.FULL
    return found, Status.DONE if search[NodeSearch.NEXT] == search[NodeSearch.NODES] else Status.FALLBACK
