"""A place in the log that moves from chunk to chunk, over pages and files."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ibbmaster.errors import ChunkError
from ibbmaster.position import LogPosition
from ibbmaster.storage.ibb.chunk import CHUNK_SIZE_MIN, FILLER, Chunk, ChunkEnd, next_chunk
from ibbmaster.storage.ibb.page import DATA_SIZE
from ibbmaster.storage.ibb.scan import Nesting
from .end_check import gap_error, page_behind_in_file
from .pages import PageReader


def check_filler(page: memoryview, end: LogPosition) -> None:
    """Raises ChunkError: there is room for a chunk after the last one of a full page, and no filler."""
    rest = bytes(page[end.page_offset : DATA_SIZE])
    if len(rest) >= CHUNK_SIZE_MIN and rest.strip(bytes((FILLER,))):
        raise ChunkError(end, f"{len(rest)} bytes that should be filler are not all ff: a chunk may have begun here")


class ChunkCursor:
    """Walks the chunks of a log in order, over pages and files; waits in its place at the visible end."""

    def __init__(self, pages: PageReader, *, file_no: int, page_no: int, page_offset: int = 0) -> None:
        self.pages = pages
        self.on_file: Callable[[int], None] = lambda file_no: None
        self.checks_filler = False  # after the last chunk of a page
        self.file_no = file_no
        self.page_no = page_no
        self.page_offset = page_offset
        self._page: memoryview | None = None

    def fork(self) -> ChunkCursor:
        other = ChunkCursor(self.pages, file_no=self.file_no, page_no=self.page_no, page_offset=self.page_offset)
        other.on_file, other.checks_filler, other._page = self.on_file, self.checks_filler, self._page
        return other

    def go_to(self, other: ChunkCursor) -> None:
        self.file_no, self.page_no, self.page_offset = other.file_no, other.page_no, other.page_offset
        self._page = None

    @classmethod
    def at(cls, pages: PageReader, position: LogPosition) -> ChunkCursor:
        return cls(pages, file_no=position.file_no, page_no=position.page_no, page_offset=position.page_offset)

    @property
    def position(self) -> LogPosition:
        return LogPosition.on_page(self.file_no, self.page_no, self.page_offset)

    def ref_of(self, chunk: Chunk) -> LogPosition:
        """The reference to a record that begins with `chunk`, just returned by this cursor."""
        return LogPosition.on_page(self.file_no, self.page_no, chunk.page_offset)

    def next_chunk(self) -> Chunk | None:
        """The next chunk, or None at the visible end; then call again later. Raises ChecksumError, ChunkError,
        HeaderError: what comes next is damaged, or lost before the end of the file. Source: MariaDB 12.3,
        fsp_binlog.cc, binlog_chunk_reader; the end of a file as §17.2 of the format has it."""
        while True:
            page = self._page
            if page is None:
                page = self._page = self.pages.page(self.file_no, self.page_no)
                if page is None:
                    if not self._enter_next_file():
                        return None
                    continue
            found = next_chunk(page, self.page_offset, file_no=self.file_no, page_no=self.page_no)
            if type(found) is Chunk:
                self.page_offset = found.end_offset
                return found
            if found is ChunkEnd.PAGE_FULL:
                if self.checks_filler:
                    check_filler(page, self.position)
                self.page_no, self.page_offset, self._page = self.page_no + 1, 0, None
            elif not self._looks_again():
                return None

    def chunks_of(self, first: Chunk) -> Iterator[Chunk]:
        """The chunks of the record that `first` begins, without the state and dummy records in between; ends early at
        the visible end. Raises ChunkError: another record begins before this one has ended."""
        nesting = Nesting()
        nesting.take(first)
        yield first
        while nesting.record_type >= 0 and (chunk := self.next_chunk()) is not None:
            if (problem := nesting.take(chunk)) is not None:
                text = problem.value.format(found=chunk.record_type, record=first.record_type)
                raise ChunkError(self.ref_of(chunk), text)
            if chunk.record_type == first.record_type:
                yield chunk

    def skip_record(self, first: Chunk) -> bool:
        """Skip the record that `first` begins; False if its end is not visible yet."""
        *_, last = self.chunks_of(first)
        return last.is_last

    def _looks_again(self) -> bool:
        """At a zero byte: whether more follows after all, here or in the next file."""
        for _ in range(2):  # a file is complete before its successor gets a header: so this one, next, this one
            page = self._page = self.pages.fresh_page(self.file_no, self.page_no)
            if page is None:  # the file was cut here since it was read: by a flush, which begins the next one
                return self._enter_next_file()
            if page[self.page_offset]:
                return True
            if self.pages.header(self.file_no + 1) is None:
                return False
        if (found := page_behind_in_file(self.pages.disk, self.position)) is not None:
            raise gap_error(self.position, found)
        return self._enter_next_file()

    def _enter_next_file(self) -> bool:
        if self.pages.header(self.file_no + 1) is None:
            self._page = None
            return False
        self.file_no, self.page_no, self.page_offset, self._page = self.file_no + 1, 1, 0, None
        self.on_file(self.file_no)
        return True
