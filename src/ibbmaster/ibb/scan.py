"""Which chunks pages hold, and whether each is in its place: the reference for `ibbmaster.kernel.scan`.

Rules: protocol/ibb/chunk.md and protocol/ibb/record.md.
"""

import enum
from collections.abc import Iterator
from typing import NamedTuple

from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import ChecksumError, ChunkError, Location
from ibbmaster.ibb.chunk import Chunk, ChunkEnd, RecordType, next_chunk
from ibbmaster.ibb.page import PAGE_SIZE, verify_page

NESTABLE = (RecordType.GTID_STATE, RecordType.DUMMY)  # what may be between the chunks of another record
NO_RECORD = -1


class Misplaced(enum.Enum):
    """Why a chunk cannot come next."""

    NOT_BEGUN = "a record continues that has not begun"
    NOT_ENDED = "a record begins before the one before it has ended"
    INSIDE = "record of type {found} inside one of type {record}"
    NESTED_NOT_BEGUN = "a nested record continues that has not begun"
    NESTED_NOT_ENDED = "a nested record is broken off"


class Nesting:
    """The current record, and the one inside it.

    Attributes:
        record_type: of the record that has not ended yet.
        nested_type: of the state or dummy record inside that has not ended yet.
    """

    __slots__ = ("nested_type", "record_type")

    def __init__(self, record_type: int = NO_RECORD, nested_type: int = NO_RECORD) -> None:
        self.record_type = record_type
        self.nested_type = nested_type

    def take(self, chunk: Chunk) -> Misplaced | None:
        """Go after a chunk; stays as it is if the chunk cannot come next, and says why."""
        found, is_first, is_last = chunk.record_type, chunk.is_first, chunk.is_last
        if self.nested_type != NO_RECORD:
            if is_first or found != self.nested_type:
                return Misplaced.NESTED_NOT_ENDED
            self.nested_type = NO_RECORD if is_last else found
        elif self.record_type == NO_RECORD:
            if not is_first:
                return Misplaced.NOT_BEGUN
            self.record_type = NO_RECORD if is_last else found
        elif found == self.record_type:
            if is_first:
                return Misplaced.NOT_ENDED
            self.record_type = NO_RECORD if is_last else found
        elif found not in NESTABLE:
            return Misplaced.INSIDE
        elif not is_first:
            return Misplaced.NESTED_NOT_BEGUN
        else:
            self.nested_type = NO_RECORD if is_last else found
        return None


def page_chunks(page: memoryview, page_offset: int = 0, *, file_no: int, page_no: int) -> Iterator[Chunk]:
    """The chunks of a page from an offset on, wherever they belong.
    Raises ChunkError: a chunk is empty or reaches past the data area, or its type is unknown."""
    while isinstance(found := next_chunk(page, page_offset, file_no=file_no, page_no=page_no), Chunk):
        yield found
        page_offset = found.end_offset


def last_chunk(page: memoryview, *, file_no: int, page_no: int) -> tuple[Chunk | None, ChunkEnd]:
    """The last chunk of a page, None if there is none, and why no more follow it.
    Raises ChunkError: as `page_chunks`."""
    last, offset = None, 0
    while isinstance(found := next_chunk(page, offset, file_no=file_no, page_no=page_no), Chunk):
        last, offset = found, found.end_offset
    return last, found


class ScanEnd(enum.Enum):
    """Why a scan noted no more chunks."""

    NEED_MORE = "there are no more pages"
    NO_DATA = "nothing was written here yet"
    BAD_PAGE = "the checksum of a page is wrong"
    BAD_CHUNK = "a chunk is damaged, or not in its place"


class Scan(NamedTuple):
    """The chunks of pages, and the place after them."""

    chunks: list[tuple[int, Chunk]]  # each with the index of its page
    page: int
    page_offset: int
    nesting: Nesting
    end: ScanEnd


def index_chunks(pages: Buffer, page: int = 0, page_offset: int = 0, nesting: Nesting | None = None) -> Scan:
    """The chunks of pages from a place on, as long as each page and chunk is as it should be."""
    nesting = nesting or Nesting()
    chunks: list[tuple[int, Chunk]] = []
    view = memoryview(pages)
    while page < len(view) // PAGE_SIZE:
        here = view[page * PAGE_SIZE : (page + 1) * PAGE_SIZE]
        try:
            verify_page(bytes(here), Location(file_no=0, page_no=page))
            while isinstance(found := next_chunk(here, page_offset, file_no=0, page_no=page), Chunk):
                if nesting.take(found) is not None:
                    return Scan(chunks, page, page_offset, nesting, ScanEnd.BAD_CHUNK)
                chunks.append((page, found))
                page_offset = found.end_offset
        except ChecksumError:
            return Scan(chunks, page, page_offset, nesting, ScanEnd.BAD_PAGE)
        except ChunkError:
            return Scan(chunks, page, page_offset, nesting, ScanEnd.BAD_CHUNK)
        if found is ChunkEnd.NO_DATA:
            return Scan(chunks, page, page_offset, nesting, ScanEnd.NO_DATA)
        page, page_offset = page + 1, 0
    return Scan(chunks, page, page_offset, nesting, ScanEnd.NEED_MORE)
