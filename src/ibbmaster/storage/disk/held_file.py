"""The file in which a log ends, held open: whether its name still means that file, and all of it is there.

Neither inode nor size tells: a copy over a file keeps its inode, and file systems reuse that of a removed file at once,
but not while a descriptor holds it. In a file that someone wrote to, the first bytes and the last known ones must be
those of before."""

from __future__ import annotations

import contextlib
import enum
import time
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, Protocol

from ibbmaster.errors import StoreError

HEAD_BYTES = 1 << 12
TAIL_BYTES = 1 << 9
FIRST_BYTES = 1 << 16  # compared where a file begins again what a held one had
TICK_S, COARSE_TICK_S = 0.1, 3.0  # within which two changes may bear the same time
SECOND_NS = 10**9
LONG_AGO_NS = 60 * SECOND_NS  # more than clocks differ


class Stamp(NamedTuple):
    """How the file system sees a file. `file` identifies it, whatever its name, while it is held."""

    file: Hashable
    size: int
    changed_at: tuple[int, ...]  # in nanoseconds

    @classmethod
    def of(cls, found: Any) -> Stamp:
        return cls((found.st_dev, found.st_ino), found.st_size, (found.st_mtime_ns, found.st_ctime_ns))

    def is_settled(self, seen_s: float) -> bool:
        """Whether any change from now on changes this stamp, first seen so long ago."""
        tick_s = TICK_S if any(at % SECOND_NS for at in self.changed_at) else COARSE_TICK_S
        return seen_s >= tick_s or time.time_ns() - max(self.changed_at) > LONG_AGO_NS


class OpenedFile(Protocol):
    def stamp(self) -> Stamp: ...

    def fill(self, offset: int, target: memoryview) -> int: ...

    def close(self) -> None: ...


class FileChange(enum.Enum):
    NONE = "the same, or more"
    CUT = "not all of it is there: it is gone, or begun again"
    OTHER = "another file"


class KnownBytes(NamedTuple):
    """The bytes from `first` up to `last` show whether a file keeps its content; it has `size` at least."""

    first: int
    last: int
    size: int


def last_bytes(size: int) -> KnownBytes:
    return KnownBytes(max(size - TAIL_BYTES, 0), size, size)


class HeldFile:
    """`stamp` and `head`, the first bytes, are of the last look that found all of the file. `glance` returns the stamp
    of the file of that name, `window` the last known bytes by size. The byte at `flags_at` may change. Raises OSError,
    StoreError."""

    def __init__(
        self,
        glance: Callable[[], Stamp],
        open_it: Callable[[], OpenedFile],
        *,
        window: Callable[[int], KnownBytes] = last_bytes,
        head_bytes: int = HEAD_BYTES,
        flags_at: int | None = None,
    ) -> None:
        self._file = open_it()
        self._glance = glance
        self._open = open_it
        self._window = window
        self._head_bytes = head_bytes
        self._flags_at = flags_at
        self.stamp = self._file.stamp()
        self._first_seen = time.monotonic()
        self._is_settled = self.stamp.is_settled(0.0)  # before anything was read
        self.head, self._known, self._tail = self._read_known(self._file, self.stamp)

    def close(self) -> None:
        self._file.close()

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # it could not be opened
            self.close()

    def is_untouched(self) -> bool:
        """Costs one stat."""
        try:
            return self._is_settled and self._glance() == self.stamp
        except (OSError, StoreError):
            return False

    def look(self) -> FileChange:
        """Updates `stamp`, unless it is cut or another one."""
        if self.is_untouched() and self._window(self.stamp.size) == self._known:
            return FileChange.NONE
        with contextlib.ExitStack() as stack:
            try:
                file = self._file
                if self._glance().file != file.stamp().file:
                    file = self._open()
                    stack.callback(file.close)
                stamp, now = file.stamp(), time.monotonic()
                known = self._read_known(file, stamp)  # first: the next look finds a file replaced after this
                change = self._compare(file, stamp)
            except (OSError, StoreError):
                return FileChange.CUT
            if change is FileChange.NONE:
                if file is not self._file:
                    stack.pop_all()
                    self._file.close()
                    self._file = file
                self.head, self._known, self._tail = known
                if stamp != self.stamp:
                    self.stamp, self._first_seen = stamp, now
                self._is_settled = stamp.is_settled(now - self._first_seen)
            return change

    def _read_known(self, file: OpenedFile, stamp: Stamp) -> tuple[bytes, KnownBytes, bytes]:
        window = self._window(stamp.size)
        return self._read(file, 0, self._head_bytes), window, self._read(file, window.first, window.last)

    def _compare(self, file: OpenedFile, stamp: Stamp) -> FileChange:
        change = compared(self._read(file, 0, len(self.head)), self.head)
        if change is FileChange.NONE:
            change = compared(self._read(file, self._known.first, self._known.last), self._tail)
        if change is FileChange.NONE and stamp.size < self._known.size:
            change = FileChange.CUT
        if change is FileChange.CUT and file is not self._file:
            for first, last, _ in (KnownBytes(0, FIRST_BYTES, 0), last_bytes(min(stamp.size, self.stamp.size))):
                if compared(self._read(file, first, last), self._read(self._file, first, last)) is FileChange.OTHER:
                    return FileChange.OTHER
        return change

    def _read(self, file: OpenedFile, first: int, last: int) -> bytes:
        data = bytearray(last - first)
        del data[file.fill(first, memoryview(data)) if data else 0 :]
        if self._flags_at is not None and first <= self._flags_at < first + len(data):
            data[self._flags_at - first] = 0
        return bytes(data)


def compared(found: bytes, known: bytes) -> FileChange:
    if len(found) == len(known) and found.startswith(known.rstrip(b"\0")):
        return FileChange.NONE
    return FileChange.CUT if known.startswith(found.rstrip(b"\0")) else FileChange.OTHER
