"""A file of rows that only grows: the contents of tables while a process runs."""

import mmap
import os
import struct
import tempfile
import threading
import weakref
from collections.abc import Iterable

from ibbmaster.storage.codec.buffer import Buffer

HEAD = struct.Struct("<IH")  # of a row: bytes of its image, number of its layout
UNWRITTEN_MAX = 1 << 20
READ_SIZE = 1 << 12  # most rows are not longer


class RowFile:
    """Images with their layouts' numbers, by offset. Thread-safe. Its disk space is free once nobody holds the file or
    a buffer of it."""

    def __init__(self) -> None:
        self._file, path = tempfile.mkstemp(prefix="ibbmaster-rows-")
        os.unlink(path)
        weakref.finalize(self, os.close, self._file)
        self._unwritten = bytearray()
        self._written = 0
        self._lock = threading.Lock()
        self._map: mmap.mmap | None = None

    @property
    def size(self) -> int:
        """In bytes."""
        return self._written + len(self._unwritten)

    def append(self, layout_no: int, images: Iterable[bytes]) -> list[int]:
        places = []
        with self._lock:
            waiting, start = self._unwritten, self._written
            for image in images:
                places.append(start + len(waiting))
                waiting += HEAD.pack(len(image), layout_no)
                waiting += image
            if len(waiting) >= UNWRITTEN_MAX:
                self._write()
        return places

    def append_block(self, rows: Buffer) -> int:
        """Add rows with their heads; returns the place of the first."""
        with self._lock:
            start = self._written + len(self._unwritten)
            self._unwritten += rows
            if len(self._unwritten) >= UNWRITTEN_MAX:
                self._write()
        return start

    def read(self, place: int) -> tuple[int, bytes]:
        with self._lock:
            if place >= self._written:
                start = place - self._written
                size, layout_no = HEAD.unpack_from(self._unwritten, start)
                return layout_no, bytes(self._unwritten[start + HEAD.size : start + HEAD.size + size])
        found = os.pread(self._file, READ_SIZE, place)
        size, layout_no = HEAD.unpack_from(found)
        while len(found) < HEAD.size + size:
            found += os.pread(self._file, HEAD.size + size - len(found), place + len(found))
        return layout_no, found[HEAD.size : HEAD.size + size]

    def data(self) -> Buffer:
        """All rows so far, as one lasting buffer."""
        with self._lock:
            self._write()
            if self._written == 0:
                return b""
            if self._map is None or len(self._map) < self._written:
                self._map = mmap.mmap(self._file, self._written, access=mmap.ACCESS_READ)
            return memoryview(self._map)

    def _write(self) -> None:
        sent = 0
        with memoryview(self._unwritten) as view:
            while sent < len(view):
                sent += os.write(self._file, view[sent:])
        self._written += len(self._unwritten)
        self._unwritten.clear()
