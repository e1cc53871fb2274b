"""What readers see of a store: its directory, with the pages that are not in their files yet.

A reader of the log needs no other rule than the format's own: behind the durable end there
are zeros, as in a file that was never written further.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ibbmaster.disk.interface import ReadDisk
from ibbmaster.ibb.file_name import parse_file_name
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.position import LogPosition
from ibbmaster.store.page_fifo import PageFifo


class VisiblePages:
    """A `ReadDisk` to read from; everything before `mark()` is durable and visible, nothing else is."""

    def __init__(self, disk: ReadDisk, fifo: PageFifo, mark: Callable[[], LogPosition]) -> None:
        self._disk = disk
        self._fifo = fifo
        self._mark = mark

    def __str__(self) -> str:
        return str(self._disk)

    def list(self) -> Sequence[str]:
        return self._disk.list()

    def size(self, name: str) -> int:
        return self._disk.size(name)

    def modified_at(self, name: str) -> float:
        return self._disk.modified_at(name)

    def read(self, name: str, offset: int, size: int) -> bytes:
        view = self._view(name, offset, size)
        data = self._disk.read(name, offset, size)  # after that: a page that was not held is in its file
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
        return offset  # a page in memory may be where the file has a hole

    def open(self, name: str) -> int | None:
        return self._disk.open(name)  # a page comes into its file when it is durable, never before

    def close(self) -> None:
        """The directory is closed by its store."""

    def _view(self, name: str, offset: int, size: int) -> _View:
        """What a reader may see of this part of a file, whatever is written from now on."""
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
    """Of what is read from `offset` on: the pages in memory, and where in it the visible part ends.

    Pages behind the end may be on their way into the file, half of one already.
    """

    held: dict[int, bytes]
    offset: int
    end: int

    def apply(self, data: memoryview) -> None:
        """Make of what the file has what a reader may see."""
        for page_no, page in self.held.items():
            start = page_no * PAGE_SIZE - self.offset
            source = page[max(-start, 0) :]
            start = max(start, 0)
            end = min(start + len(source), len(data))
            if end > start:
                data[start:end] = source[: end - start]
        if self.end < len(data):
            data[self.end :] = bytes(len(data) - self.end)
