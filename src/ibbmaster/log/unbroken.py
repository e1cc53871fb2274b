"""Whether the active file of a log is whole up to the end: nothing is appended after a hole.

A start does not read what lies before the last checkpoint, so it does not see what has become of it.
"""

from __future__ import annotations

from ibbmaster.disk.interface import ReadDisk
from ibbmaster.errors import ChunkError, Location
from ibbmaster.ibb.chunk import ChunkEnd
from ibbmaster.ibb.file_header import decode_file_header
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.ibb.page import DATA_SIZE, PAGE_SIZE, verify_page
from ibbmaster.ibb.scan import last_chunk
from ibbmaster.log.end_check import short_error
from ibbmaster.position import LogPosition

BLOCK_PAGES = 64


def check_unbroken(disk: ReadDisk, end: LogPosition) -> None:
    """Read the pages of a file from the header to the end of the log in it: each is sound, and has data to its end.

    Takes about half a second for a gigabyte that is in memory. Whether a page is another's is not seen: `verify` does.

    Raises FormatError: a page is damaged, was lost, or has less data than was written there.
    """
    name, file_no = format_file_name(end.file_no), end.file_no
    for first in range(0, end.page_no, BLOCK_PAGES):
        count = min(BLOCK_PAGES, end.page_no - first)
        block = disk.read(name, first * PAGE_SIZE, count * PAGE_SIZE)
        for index in range(count):
            page = block[index * PAGE_SIZE : (index + 1) * PAGE_SIZE]
            location = Location(file_no=file_no, page_no=first + index)
            if len(page) < PAGE_SIZE:
                raise _lost(location, end)
            verify_page(page, location)
            if location.page_no == 0:
                decode_file_header(page, file_no=file_no)
            elif not page[DATA_SIZE - 1] and (stop := _data_end(page, location)) is not None:
                raise _lost(stop, end)


def _data_end(page: bytes, location: Location) -> Location | None:
    """Where nothing was written on a page; None if it is full."""
    last, end = last_chunk(memoryview(page), file_no=location.file_no, page_no=location.page_no)
    if end is ChunkEnd.PAGE_FULL:
        return None
    return Location(file_no=location.file_no, page_no=location.page_no, page_offset=last.end_offset if last else 0)


def _lost(location: Location, end: LogPosition) -> ChunkError:
    return short_error(location, end, ", or save the rest with `ibbmaster recover DIR --salvage NEWDIR`")
