"""A file of rows that only grows: where the contents of tables are while a process runs, and not longer."""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
import threading
from collections.abc import Iterable

from ibbmaster.codec.buffer import Buffer

HEAD = struct.Struct("<IH")  # of a row: bytes of its image, number of its layout
UNWRITTEN_MAX = 1 << 20  # bytes that wait for the next write


class RowFile:
    """Images of rows with the numbers of their layouts, by the offset where they begin. Thread-safe."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="ibbmaster-rows-", buffering=0)  # noqa: SIM115 - `close` ends it
        self._unwritten = bytearray()
        self._written = 0
        self._lock = threading.Lock()
        self._map: mmap.mmap | None = None

    @property
    def size(self) -> int:
        """In bytes."""
        return self._written + len(self._unwritten)

    def close(self) -> None:
        """Give the disk back once nobody reads; a second call does nothing."""
        self._file.close()

    def append(self, layout_no: int, images: Iterable[bytes]) -> list[int]:
        """Add rows; returns where each of them is."""
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

    def read(self, place: int) -> tuple[int, bytes]:
        """Layout and image of a row."""
        with self._lock:
            if place >= self._written:
                start = place - self._written
                size, layout_no = HEAD.unpack_from(self._unwritten, start)
                return layout_no, bytes(self._unwritten[start + HEAD.size : start + HEAD.size + size])
        data = self.data()
        size, layout_no = HEAD.unpack_from(data, place)
        return layout_no, bytes(data[place + HEAD.size : place + HEAD.size + size])

    def data(self) -> Buffer:
        """All rows so far, as one buffer that stays as it is."""
        with self._lock:
            self._write()
            if self._written == 0:
                return b""
            if self._map is None or len(self._map) < self._written:
                self._map = mmap.mmap(self._file.fileno(), self._written, access=mmap.ACCESS_READ)
            return memoryview(self._map)

    def _write(self) -> None:
        view = memoryview(self._unwritten)
        sent = 0
        while sent < len(view):
            sent += os.write(self._file.fileno(), view[sent:])
        view.release()
        self._written += len(self._unwritten)
        self._unwritten.clear()
