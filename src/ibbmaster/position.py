"""A place in the log."""

from __future__ import annotations

from typing import NamedTuple

from .errors import Location

PAGE_SIZE = 16384  # bytes of a page of an `.ibb` file


class LogPosition(NamedTuple):
    """A file and a byte in it; positions compare in the order of the log.

    `file_no` is the number of an `.ibb` file, or the index of a traditional file in its series; `offset` counts
    bytes from the file's start. A record's position is the type byte of its first chunk. Between groups, a position
    lies behind every group that begins before it.
    """

    file_no: int
    offset: int

    @classmethod
    def on_page(cls, file_no: int, page_no: int, page_offset: int = 0) -> LogPosition:
        """The position of a byte of a page of an `.ibb` file."""
        return cls(file_no, page_no * PAGE_SIZE + page_offset)

    @classmethod
    def of(cls, location: Location) -> LogPosition:
        """The position that an error points at."""
        return cls.on_page(location.file_no, location.page_no, location.page_offset)

    @property
    def is_in_file(self) -> bool:
        """Whether it is a place in a file; what a primary sends has none."""
        return self.file_no != NOWHERE.file_no

    @property
    def page_no(self) -> int:
        return self.offset // PAGE_SIZE

    @property
    def page_offset(self) -> int:
        return self.offset % PAGE_SIZE

    @property
    def location(self) -> Location:
        """The place in an `.ibb` file, as errors carry it."""
        return Location(file_no=self.file_no, page_no=self.page_no, page_offset=self.page_offset)

    def __str__(self) -> str:
        return str(self.location)


class NamedPosition(LogPosition):
    """A position in a traditional file, printed with the name of the file and an offset, as it has no pages."""

    file_name: str

    @classmethod
    def in_file(cls, position: LogPosition, file_name: str) -> NamedPosition:
        """A position with the name of its file."""
        named = cls(*position)
        named.file_name = file_name
        return named

    def __str__(self) -> str:
        return f"{self.file_name} offset {self.offset}"


LOG_START = LogPosition(0, 0)
NOWHERE = LogPosition(-1, 0)  # of what does not come from a file
