"""Hands bytes from the thread that receives them to the one that stores them, within an agreed number."""

from __future__ import annotations

import threading
from collections import deque

TAKEN_BYTES = 1 << 18  # at once; more do not stay in the caches of a CPU


class BytePipe:
    """For one thread that puts and one that takes."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._pieces: deque[bytes] = deque()
        self._bytes = 0
        self._is_over = self._is_unwanted = False
        self._changed = threading.Condition()

    def would_wait(self, size: int) -> bool:
        """Whether that number of bytes has to wait for room. One piece always has some."""
        return self._bytes > 0 and self._bytes + size > self._bytes_max

    def put(self, data: bytes) -> bool:
        """Add bytes, once there is room; False if nobody takes them."""
        with self._changed:
            while self.would_wait(len(data)) and not self._is_unwanted:
                self._changed.wait()
            self._pieces.append(data)
            self._bytes += len(data)
            self._changed.notify()
            return not self._is_unwanted

    def finish(self) -> None:
        """Nothing more is put."""
        with self._changed:
            self._is_over = True
            self._changed.notify()

    def refuse(self) -> None:
        """Nothing more is taken."""
        with self._changed:
            self._is_unwanted = True
            self._changed.notify()

    @property
    def is_unwanted(self) -> bool:
        return self._is_unwanted

    @property
    def is_empty(self) -> bool:
        return not self._bytes

    def next(self) -> bytes:
        """Some of what has come since; waits for it. Empty at the end."""
        with self._changed:
            while not self._pieces and not self._is_over:
                self._changed.wait()
            size, taken = 0, []
            while self._pieces and size < TAKEN_BYTES:
                taken.append(self._pieces.popleft())
                size += len(taken[-1])
            self._bytes -= size
            self._changed.notify()
        return b"".join(taken)
