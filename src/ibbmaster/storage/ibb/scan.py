"""The chunks of pages, and whether each is in its place. Rules: protocol/ibb/chunk.md, protocol/ibb/record.md."""

import enum
from collections.abc import Iterator

from .chunk import Chunk, ChunkEnd, RecordType, next_chunk

NESTABLE = (RecordType.GTID_STATE, RecordType.DUMMY)  # what may be between the chunks of another record
NO_RECORD = -1


class Misplaced(enum.Enum):
    NOT_BEGUN = "a record continues that has not begun"
    NOT_ENDED = "a record begins before the one before it has ended"
    INSIDE = "record of type {found} inside one of type {record}"
    NESTED_NOT_BEGUN = "a nested record continues that has not begun"
    NESTED_NOT_ENDED = "a nested record is broken off"


class Nesting:
    __slots__ = ("nested_type", "record_type")

    def __init__(self, record_type: int = NO_RECORD, nested_type: int = NO_RECORD) -> None:
        self.record_type = record_type  # of the record that has not ended yet
        self.nested_type = nested_type  # of the state or dummy record inside that has not ended yet

    def take(self, chunk: Chunk) -> Misplaced | None:
        """Advance over a chunk; if it cannot come next, change nothing and say why."""
        found, is_first, is_last = chunk.record_type, chunk.is_first, chunk.is_last
        if self.nested_type != NO_RECORD:
            if is_first or found != self.nested_type:
                return Misplaced.NESTED_NOT_ENDED
            self.nested_type = NO_RECORD if is_last else found
        elif self.record_type in (NO_RECORD, found):
            if is_first != (self.record_type == NO_RECORD):
                return Misplaced.NOT_ENDED if is_first else Misplaced.NOT_BEGUN
            self.record_type = NO_RECORD if is_last else found
        elif found not in NESTABLE:
            return Misplaced.INSIDE
        elif not is_first:
            return Misplaced.NESTED_NOT_BEGUN
        else:
            self.nested_type = NO_RECORD if is_last else found
        return None


def page_chunks(page: memoryview, page_offset: int = 0, *, file_no: int, page_no: int) -> Iterator[Chunk]:
    """The chunks of a page from an offset on, wherever they belong. Raises ChunkError: as `next_chunk`."""
    while isinstance(found := next_chunk(page, page_offset, file_no=file_no, page_no=page_no), Chunk):
        yield found
        page_offset = found.end_offset


def last_chunk(page: memoryview, *, file_no: int, page_no: int) -> tuple[Chunk | None, ChunkEnd]:
    """None without any, and why no more follow it. Raises ChunkError: as `next_chunk`."""
    last, offset = None, 0
    while isinstance(found := next_chunk(page, offset, file_no=file_no, page_no=page_no), Chunk):
        last, offset = found, found.end_offset
    return last, found
