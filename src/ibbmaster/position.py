"""A place in the log."""

from __future__ import annotations

from typing import NamedTuple

PAGE_SIZE = 16384  # bytes of a page of an `.ibb` file


class LogPosition(NamedTuple):
    """A file and a byte in it, in the order of the log.

    `file_no` is the number of an `.ibb` file, or the index of a traditional file in its series. A record's position is
    the type byte of its first chunk. Between groups, a position lies behind every group that begins before it."""

    file_no: int
    offset: int

    @classmethod
    def on_page(cls, file_no: int, page_no: int, page_offset: int = 0) -> LogPosition:
        return cls(file_no, page_no * PAGE_SIZE + page_offset)

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

    def __str__(self) -> str:
        return f"binlog-{self.file_no:06d}.ibb page {self.page_no} offset {self.page_offset}"


class NamedPosition(LogPosition):
    """A position in a traditional file, printed with the name of the file and an offset, as it has no pages."""

    file_name: str

    @classmethod
    def in_file(cls, position: LogPosition, file_name: str) -> NamedPosition:
        named = cls(*position)
        named.file_name = file_name
        return named

    def __str__(self) -> str:
        return f"{self.file_name} offset {self.offset}"


LOG_START = LogPosition(0, 0)
NOWHERE = LogPosition(-1, 0)  # of what does not come from a file
