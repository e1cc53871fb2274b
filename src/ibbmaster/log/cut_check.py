"""Whether a file that is shorter than its header says was ended there, or cut by something else.

FLUSH BINARY LOGS cuts a file after its last page, and fills that page up: with a dummy record,
or with filler where there is no room for one. After a page that is full otherwise there was more.
"""

from __future__ import annotations

from ibbmaster.disk.interface import ReadDisk
from ibbmaster.errors import ChunkError, FormatError, Location
from ibbmaster.ibb.chunk import ChunkEnd, RecordType
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.ibb.page import DATA_SIZE, PAGE_SIZE
from ibbmaster.ibb.scan import last_chunk
from ibbmaster.log.pages import PageReader


def cut_error(disk: ReadDisk, file_no: int) -> ChunkError | None:
    """What to raise for a file whose end was cut off; None for one that was not, or is not there.
    Raises ChecksumError, HeaderError: its first or last page is damaged."""
    pages = PageReader(disk, readahead_pages_max=1)
    header = pages.header(file_no)
    if header is None:
        return None
    size = disk.size(format_file_name(file_no))
    size_pages = size // PAGE_SIZE
    if size >= header.size_pages * PAGE_SIZE or (not size % PAGE_SIZE and _is_ended(pages, file_no, size_pages - 1)):
        return None
    return ChunkError(
        Location(file_no=file_no, page_no=size_pages),
        f"the file has {size} bytes, its header says {header.size_pages * PAGE_SIZE}, and no FLUSH has ended it here: "
        "what was behind is lost; take this file from a backup",
    )


def check_not_cut(disk: ReadDisk, file_no: int) -> None:
    """Raise ChunkError if the end of a file was cut off; and as `cut_error` does."""
    if (error := cut_error(disk, file_no)) is not None:
        raise error


def _is_ended(pages: PageReader, file_no: int, page_no: int) -> bool:
    page = pages.page(file_no, page_no) if page_no else None
    return page is not None and is_ended(page, file_no=file_no, page_no=page_no)


def is_ended(page: memoryview, *, file_no: int, page_no: int) -> bool:
    """Whether a page is not full, so that nothing followed it, or FLUSH has filled it up."""
    try:
        last, end = last_chunk(page, file_no=file_no, page_no=page_no)
    except FormatError:
        return True  # who reads the page meets the same
    return (
        end is ChunkEnd.NO_DATA or last is None or last.record_type == RecordType.DUMMY or last.end_offset < DATA_SIZE
    )
