"""Pages on their way to one file: gathered, sealed, and written several at once."""

from __future__ import annotations

from collections.abc import Callable

from ibbmaster.codec.crc32c import crc32c
from ibbmaster.disk.interface import Disk
from ibbmaster.disk.page_memory import page_memory
from ibbmaster.ibb.appender import PageChange
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.ibb.page import CHECKSUM, DATA_SIZE, PAGE_SIZE

BATCH_PAGES = 64  # 1 MiB, held all the time
ROOM_PAGES = 20  # that a kernel has at least, unless the file ends: what it cannot place the reference places
Seal = Callable[[memoryview, int], object]  # gives the first pages, and their number: they get checksums


def seal_pages(pages: memoryview, count: int) -> None:
    """The reference of the kernel of that name."""
    for start in range(0, count * PAGE_SIZE, PAGE_SIZE):
        CHECKSUM.pack_into(pages, start + DATA_SIZE, crc32c(bytes(pages[start : start + DATA_SIZE])))


class PageWriter:
    """Takes the changes of one file's pages, and writes whole sealed pages.

    A full page is written once, the last, partly filled one by each `write_out` that finds
    more in it. To continue in a file that has data, give the place after it.
    """

    def __init__(
        self, disk: Disk, file_no: int, *, page_no: int = 0, page_offset: int = 0, seal: Seal = seal_pages
    ) -> None:
        self.file_no = file_no
        self._disk = disk
        self._name = format_file_name(file_no)
        self._first_no = page_no  # the page at the start of the batch
        self._batch = page_memory(BATCH_PAGES * PAGE_SIZE)
        self.seal = seal
        self._end = page_offset  # of what was placed in the batch
        self._is_written = True
        self._is_synced = True
        if page_offset:  # the page is there already, partly filled
            self._batch[:page_offset] = disk.read(self._name, page_no * PAGE_SIZE, page_offset)

    def place(self, change: PageChange) -> None:
        """Put bytes where they belong; changes come in the order of the file, without gaps."""
        _, page_no, page_offset, data = change
        if page_no - self._first_no >= BATCH_PAGES:
            self.write_out()
        start = (page_no - self._first_no) * PAGE_SIZE + page_offset
        self._end = start + len(data)
        self._batch[start : self._end] = data
        self._is_written = False

    def room(self, page_no: int, page_offset: int) -> tuple[memoryview, int]:
        """Whole pages for a kernel to place bytes in from a position on, and where in them that is.

        What was placed before may not be changed; `placed` says how far it went.
        """
        if page_no - self._first_no > BATCH_PAGES - ROOM_PAGES:
            self._write_full_pages(page_no, page_offset)
        return self._batch, (page_no - self._first_no) * PAGE_SIZE + page_offset

    def placed(self, end: int) -> tuple[int, int]:
        """Take what was placed up to `end`: after the last byte, or the start of the page after a full one.

        Returns the position there.
        """
        self._end = end if end % PAGE_SIZE else end - (PAGE_SIZE - DATA_SIZE)
        self._is_written = False
        return self._first_no + end // PAGE_SIZE, end % PAGE_SIZE

    def write_out(self) -> None:
        """Write the pages of the batch; a partly filled last one stays in it, to be written again as it grows."""
        if self._is_written:
            return
        page_count = -(-self._end // PAGE_SIZE)
        last_start = (page_count - 1) * PAGE_SIZE
        batch = self._batch
        unused = last_start + DATA_SIZE - self._end
        if unused > 0:
            batch[self._end : last_start + DATA_SIZE] = bytes(unused)  # an earlier batch may have left something
        self._write(page_count)
        self._is_written = True
        if unused > 0:
            batch[:PAGE_SIZE] = batch[last_start : last_start + PAGE_SIZE]
            self._first_no += page_count - 1
            self._end -= last_start
        else:
            self._first_no += page_count
            self._end = 0

    def _write_full_pages(self, page_no: int, page_offset: int) -> None:
        """Write the pages of the batch before a position; those of its own page stay in it."""
        count = page_no - self._first_no
        self._write(count)
        start = count * PAGE_SIZE
        self._batch[:page_offset] = self._batch[start : start + page_offset]
        self._first_no, self._end = page_no, page_offset
        self._is_written = not page_offset

    def _write(self, page_count: int) -> None:
        """Seal and write the first pages of the batch."""
        self.seal(self._batch, page_count)
        self._is_synced = False
        self._disk.write(self._name, self._first_no * PAGE_SIZE, self._batch[: page_count * PAGE_SIZE])

    def sync(self) -> None:
        """Make what was written durable."""
        if not self._is_synced:
            self._disk.sync(self._name)
            self._is_synced = True
