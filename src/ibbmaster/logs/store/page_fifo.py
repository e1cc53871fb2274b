"""Pages between the writer, the flusher and the readers.

The writer adds to the last page, the flusher takes full pages out at the other end once their redo is durable, and
readers look at copies: no thread waits longer than the copy of a page takes. Readers need no rule beyond the format's
own: zeros follow the durable end. Source of the idea: MariaDB 12.3, fsp_binlog.cc, fsp_binlog_page_fifo."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ibbmaster.position import LogPosition
from ibbmaster.storage.disk.interface import DiskLayer, ReadDisk
from ibbmaster.storage.ibb.appender import PageChange
from ibbmaster.storage.ibb.file_name import parse_file_name
from ibbmaster.storage.ibb.page import BLANK, DATA_SIZE, PAGE_SIZE, seal_page

RUN_PAGES_MAX = 32


class _Page:
    __slots__ = ("data", "end", "lsn", "needs_image")

    def __init__(self) -> None:
        self.data = bytearray(PAGE_SIZE)
        self.end = 0
        self.lsn = 0
        self.needs_image = False


class PageRun(NamedTuple):
    """Consecutive pages of one file, sealed."""

    file_no: int
    first_page_no: int
    data: bytes

    @property
    def page_nos(self) -> range:
        return range(self.first_page_no, self.first_page_no + len(self.data) // PAGE_SIZE)


class PageFifo:
    """Thread-safe. `len()` counts the pages held, with the last one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pages: OrderedDict[tuple[int, int], _Page] = OrderedDict()
        self.open_page: _Page | None = None  # the last one, if changes need no image of it

    def __len__(self) -> int:
        return len(self._pages)

    def load_last(self, file_no: int, page_no: int, data: bytes, end: int) -> None:
        page = _Page()
        page.data[:end] = data[:end]
        page.end, page.needs_image = end, True
        self._pages[file_no, page_no] = page

    def whole_changes(self, changes: Iterable[PageChange]) -> list[PageChange]:
        """The changes as the redo log needs them: the first one of a page that was written partly filled grows to the
        whole page, so no page is ever put together from file and redo log."""
        found = []
        seen: set[tuple[int, int]] = set()
        for change in changes:
            key = change.file_no, change.page_no
            page = self._pages.get(key)
            if page is not None and page.needs_image and key not in seen:
                seen.add(key)
                image = bytes(page.data[: change.page_offset]) + change.data
                found.append(PageChange(change.file_no, change.page_no, 0, image))
            else:
                found.append(change)
        return found

    def place(self, changes: Iterable[PageChange], lsn: int) -> int:
        """Take changes in the order of the log; `lsn` is the end of their redo record. Returns the number of pages."""
        with self._lock:
            for file_no, page_no, page_offset, data in changes:
                page = self._pages.get((file_no, page_no))
                if page is None:
                    page = self._pages[file_no, page_no] = _Page()
                assert page_no == 0 or page_offset in (0, page.end)  # 0: an image of the page
                page.data[page_offset : page_offset + len(data)] = data
                page.end = page_offset + len(data)
                page.lsn = lsn
                page.needs_image = False
                self.open_page = page if page_no and page.end < DATA_SIZE else None
                if page_no and page.end == DATA_SIZE:
                    seal_page(page.data)
            return len(self._pages)

    def extend(self, data: bytes, lsn: int) -> None:
        """As `place` of one change at the end of the open page, which it does not fill."""
        with self._lock:
            page = self.open_page
            assert page is not None
            end = page.end + len(data)
            assert end < DATA_SIZE
            page.data[page.end : end] = data
            page.end, page.lsn = end, lsn

    def next_run(self, durable_lsn: int) -> PageRun | None:
        """The oldest full pages whose changes are durable, as many as fit into one write."""
        with self._lock:
            first: tuple[int, int] | None = None
            parts: list[bytearray] = []
            for (file_no, page_no), page in self._pages.items():
                if page.end < DATA_SIZE or page.lsn > durable_lsn or len(parts) == RUN_PAGES_MAX:
                    break
                if first is None:
                    first = file_no, page_no
                elif (file_no, page_no) != (first[0], first[1] + len(parts)):
                    break
                parts.append(page.data)
            return None if first is None else PageRun(*first, b"".join(parts))

    def drop(self, run: PageRun) -> None:
        with self._lock:
            for page_no in run.page_nos:
                del self._pages[run.file_no, page_no]

    def drop_before(self, lsn: int) -> None:
        """Forget full pages last changed before an LSN: a checkpoint says that their files have them."""
        with self._lock:
            done = []
            for key, page in self._pages.items():
                if page.end < DATA_SIZE or page.lsn > lsn:
                    break
                done.append(key)
            for key in done:
                del self._pages[key]

    def last_partial(self) -> tuple[tuple[int, int], PageRun] | None:
        """Key and sealed copy of the last page, if it is partly filled and its file lacks it."""
        with self._lock:
            if not self._pages:
                return None
            key = next(reversed(self._pages))
            page = self._pages[key]
            if page.end >= DATA_SIZE or page.needs_image:
                return None
            page.needs_image = True
            self.open_page = None
            data = bytearray(page.data)
            seal_page(data)
            return key, PageRun(*key, bytes(data))

    def oldest_file_no(self) -> float:
        """Infinity without pages."""
        with self._lock:
            return next(iter(self._pages))[0] if self._pages else float("inf")

    def holds(self, key: tuple[int, int]) -> bool:
        return key in self._pages

    def unmark(self, key: tuple[int, int]) -> None:
        """The page from `last_partial` was not written after all."""
        with self._lock:
            page = self._pages.get(key)
            if page is not None:
                page.needs_image = False

    def clear(self) -> None:
        with self._lock:
            self._pages.clear()
            self.open_page = None

    def visible(self, file_no: int, pages: range, mark: LogPosition) -> dict[int, bytes]:
        """Copies of the held pages among these, as readers may see them: sealed, nothing after `mark`."""
        found: dict[int, bytes] = {}
        with self._lock:
            if not self._pages:
                return found
            first_file_no, first_page_no = next(iter(self._pages))
            if (file_no, pages.stop) <= (first_file_no, first_page_no):
                return found
            for page_no in pages:
                page = self._pages.get((file_no, page_no))
                if page is not None:
                    found[page_no] = self._cut(page, (file_no, page_no), mark)
        return found

    def _cut(self, page: _Page, key: tuple[int, int], mark: LogPosition) -> bytes:
        here = mark.file_no, mark.page_no
        if key > here:
            return BLANK
        end = page.end if key < here else mark.page_offset
        if end >= DATA_SIZE:
            return bytes(page.data)
        if end == 0:
            return BLANK
        data = bytearray(PAGE_SIZE)
        data[:end] = page.data[:end]
        seal_page(data)
        return bytes(data)


class VisiblePages(DiskLayer):
    """A `ReadDisk` with the pages that files lack. Exactly what is before `mark()` is durable and visible."""

    def __init__(self, disk: ReadDisk, fifo: PageFifo, mark: Callable[[], LogPosition]) -> None:
        super().__init__(disk)
        self._fifo = fifo
        self._mark = mark

    def read(self, name: str, offset: int, size: int) -> bytes:
        view = self._view(name, offset, size)
        data = self._disk.read(name, offset, size)  # now: a page that was not held is in its file
        if not view.held and view.end >= len(data):
            return data
        patched = bytearray(data)
        view.apply(memoryview(patched))
        return bytes(patched)

    def read_into(self, name: str, offset: int, target: memoryview, *, only_cached: bool = False) -> int | None:
        view = self._view(name, offset, len(target))
        size = self._disk.read_into(name, offset, target, only_cached=only_cached)
        if size is not None:
            view.apply(target[:size])
        return size

    def next_data(self, name: str, offset: int) -> int:
        return offset  # a page in memory may fill a hole of the file

    def _view(self, name: str, offset: int, size: int) -> _View:
        """Stays true whatever is written from now on."""
        file_no = parse_file_name(name)
        mark = self._mark()
        if file_no is None:
            return _View({}, offset, size)
        pages = range(offset // PAGE_SIZE, -(-(offset + size) // PAGE_SIZE))
        held = self._fifo.visible(file_no, pages, mark)
        if file_no < mark.file_no:
            return _View(held, offset, size)
        end = 0 if file_no > mark.file_no else (mark.page_no + (mark.page_offset > 0)) * PAGE_SIZE
        return _View(held, offset, max(end - offset, 0))


class _View(NamedTuple):
    """Of what is read from `offset` on: the pages in memory, and the end of the visible part."""

    held: dict[int, bytes]
    offset: int
    end: int

    def apply(self, data: memoryview) -> None:
        for page_no, page in self.held.items():
            start = page_no * PAGE_SIZE - self.offset
            source = page[max(-start, 0) :]
            start = max(start, 0)
            end = min(start + len(source), len(data))
            if end > start:
                data[start:end] = source[: end - start]
        if self.end < len(data):
            data[self.end :] = bytes(len(data) - self.end)
