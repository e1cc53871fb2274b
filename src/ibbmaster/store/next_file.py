"""The file that a log continues in: made before it is needed, at a cost that does not depend on how many there are."""

from __future__ import annotations

from ibbmaster.disk.interface import Disk
from ibbmaster.errors import MissingFileError
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.ibb.page import PAGE_SIZE


def make_file(disk: Disk, file_no: int, size_pages: int, *, is_sparse: bool) -> tuple[int, bool]:
    """Have an empty file of at least this size; returns the pages it has, and whether anything was changed for it.

    The caller makes it durable.
    """
    name = format_file_name(file_no)
    try:
        found = disk.size(name)
    except MissingFileError:
        disk.create(name)
        found = 0
    size = max(size_pages * PAGE_SIZE, found // PAGE_SIZE * PAGE_SIZE)
    if found != size:
        if is_sparse:
            disk.truncate(name, size)
        else:
            disk.allocate(name, size)
    return size // PAGE_SIZE, found != size
