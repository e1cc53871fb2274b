"""Where a record is: file number and offset of its first chunk. Rules: protocol/ibb/record.md."""

from __future__ import annotations

from typing import NamedTuple

from ibbmaster.codec import compressed_int
from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import Location, RecordError
from ibbmaster.ibb.page import PAGE_SIZE


class RecordRef(NamedTuple):
    """A reference to a record, as commit and out-of-band records store it."""

    file_no: int
    file_offset: int  # of the type byte of its first chunk, from the start of the file

    @property
    def page_no(self) -> int:
        return self.file_offset // PAGE_SIZE

    @property
    def page_offset(self) -> int:
        return self.file_offset % PAGE_SIZE

    @property
    def location(self) -> Location:
        return Location(file_no=self.file_no, page_no=self.page_no, page_offset=self.page_offset)

    def __str__(self) -> str:
        return str(self.location)


NO_RECORD = RecordRef(0, 0)  # file 0 begins with a header page, so no record can stand there


def decode_ref(data: Buffer, offset: int) -> tuple[RecordRef, int]:
    """The reference at `offset` of a record's data, and the offset after it.

    Raises:
        ValueError: it runs over the end of the data.
    """
    file_no, offset = compressed_int.decode(data, offset)
    file_offset, offset = compressed_int.decode(data, offset)
    return RecordRef(file_no, file_offset), offset


def encode_ref(ref: RecordRef) -> bytes:
    """File number and file offset."""
    return compressed_int.encode(ref.file_no) + compressed_int.encode(ref.file_offset)


def header_error(ref: RecordRef, kind: str, problem: object) -> RecordError:
    """What to raise when the header of a record makes no sense."""
    return RecordError(ref.location, f"{kind}: {problem}")
