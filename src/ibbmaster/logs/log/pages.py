"""Verified pages of a binlog directory, several per read where they are wanted in order."""

from ibbmaster.errors import ChecksumError, MissingFileError
from ibbmaster.position import LogPosition
from ibbmaster.storage.codec.buffer import is_zero
from ibbmaster.storage.disk.interface import ReadDisk
from ibbmaster.storage.ibb.file_header import FileHeader, decode_file_header
from ibbmaster.storage.ibb.file_name import format_file_name
from ibbmaster.storage.ibb.page import PAGE_SIZE, verify_page

READAHEAD_PAGES_MAX = 16  # 256 KiB held at most
REREADS = 20  # of a page with a wrong checksum: a writer may be amid it


class PageReader:
    """Reads pages, verifies each once, and holds the last block. Not thread-safe. `readahead_pages_max` 1 is for random
    access. While `only_cached` each call raises BlockingIOError where it would wait for the disk."""

    def __init__(
        self, disk: ReadDisk, *, readahead_pages_max: int = READAHEAD_PAGES_MAX, only_cached: bool = False
    ) -> None:
        self.disk = disk
        self.only_cached = only_cached
        self.page_reads = 0
        self._readahead_pages_max = readahead_pages_max
        self._readahead_pages = 1
        self._file_no = -1
        self._first_no = 0
        self._block = memoryview(b"")
        self._is_verified = bytearray()

    def page(self, file_no: int, page_no: int) -> memoryview | None:
        """None after the end of the file; the view owns its memory. Raises ChecksumError, StoreError."""
        index = page_no - self._first_no
        if file_no != self._file_no or not 0 <= index < len(self._is_verified):
            if not self._read_block(file_no, page_no):
                return None
            index = 0
        start = index * PAGE_SIZE
        page = self._block[start : start + PAGE_SIZE]
        if not self._is_verified[index]:
            try:
                verify_page(bytes(page), LogPosition.on_page(file_no, page_no))
            except ChecksumError:
                return self.fresh_page(file_no, page_no)
            self._is_verified[index] = True
        return page

    def fresh_page(self, file_no: int, page_no: int) -> memoryview | None:
        """The page as it is on disk now, for readers after a writer."""
        for attempt in range(REREADS + 1):
            self._file_no = -1
            self._readahead_pages = 1
            if not self._read_block(file_no, page_no):
                return None
            try:
                verify_page(bytes(self._block[:PAGE_SIZE]), LogPosition.on_page(file_no, page_no))
            except ChecksumError:
                if attempt == REREADS:
                    self._file_no = -1
                    raise
            else:
                break
        self._is_verified[0] = True
        return self._block[:PAGE_SIZE]

    def last_with_data(self, file_no: int, size_pages: int) -> int:
        """The last page with data, 0 for none; a binary search over the first bytes of pages."""
        low, high = 1, size_pages  # the header is none of them
        while low < high:
            middle = (low + high) // 2
            page = self.page(file_no, middle)
            if page is None or not page[0]:
                high = middle
            else:
                low = middle + 1
        return low - 1

    def header(self, file_no: int) -> FileHeader | None:
        """None if the file is missing or unused. Raises HeaderError, ChecksumError: it is wrong or damaged."""
        try:
            data = self._read(file_no, 0, 1)
        except MissingFileError:
            return None
        self.page_reads += 1
        if is_zero(data):
            return None
        header = decode_file_header(data, file_no=file_no)
        if len(data) == PAGE_SIZE:
            verify_page(data, LogPosition.on_page(file_no, 0))
        return header

    def _read_block(self, file_no: int, page_no: int) -> bool:
        is_next = file_no == self._file_no and page_no == self._first_no + len(self._is_verified)
        self._readahead_pages = min(self._readahead_pages * 2, self._readahead_pages_max) if is_next else 1
        try:
            data = self._read(file_no, page_no, self._readahead_pages)
        except MissingFileError:
            return False
        count = len(data) // PAGE_SIZE
        if not count:
            return False
        self.page_reads += count
        self._file_no, self._first_no = file_no, page_no
        self._block = memoryview(data)
        self._is_verified = bytearray(count)
        return True

    def _read(self, file_no: int, page_no: int, count: int) -> bytes:
        name, offset, size = format_file_name(file_no), page_no * PAGE_SIZE, count * PAGE_SIZE
        if not self.only_cached:
            return self.disk.read(name, offset, size)
        return read_cached(self.disk, name, offset, size)


def read_cached(disk: ReadDisk, name: str, offset: int, size: int) -> bytes:
    """As `disk.read`, from memory. Raises BlockingIOError: it is not there, or another thread is reading."""
    target = bytearray(size)
    found = disk.read_into(name, offset, memoryview(target), only_cached=True)
    if found is None:
        raise BlockingIOError(f"{disk}: {name} is not in memory at offset {offset}")
    return bytes(target[:found])
