"""The kernel that reads pages of a file and verifies them while they are in the cache of the core."""

from __future__ import annotations

from numba import int64, types

from ibbmaster.kernel.crc32c import PAGE, is_page_good
from ibbmaster.kernel.memory import jit

PAGES_PER_READ = 16

_pread = types.ExternalFunction("pread", types.int64(types.int32, types.intp, types.int64, types.int64))


@jit
def read_pages(file, offset, pages):
    """Fill `pages` from an offset of a file on; returns how many are whole, and how many from the first on are right.

    They end where the file does, and at an error of reading.
    """
    size = good = int64(0)
    end = len(pages)
    is_right = True
    while size < end:
        wanted = min(end - size, PAGES_PER_READ * PAGE - size % PAGE)
        taken = _pread(file, pages.ctypes.data + size, wanted, offset + size)
        if taken <= 0:
            break
        size += taken
        while is_right and (good + 1) * PAGE <= size:
            is_right = is_page_good(pages, good * PAGE)
            good += int64(is_right)
    return size // PAGE, good
