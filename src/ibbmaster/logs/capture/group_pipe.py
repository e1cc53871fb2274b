"""Hands groups from the thread that receives them to the one that stores them, within an agreed number of bytes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from ibbmaster.gtid import Gtid
from ibbmaster.storage.codec.buffer import Buffer


class Acknowledgement(NamedTuple):
    """The place in its log that a primary with semi-synchronous replication waits for."""

    file_name: bytes
    position: int


class WholeGroup(NamedTuple):
    """A group that has come completely."""

    gtid: Gtid
    event: bytes
    body: list[Buffer]
    acknowledgement: Acknowledgement | None


class GroupBegin(NamedTuple):
    """A long group, whose body follows in pieces up to a `GroupEnd`."""

    gtid: Gtid
    event: bytes


class GroupEnd(NamedTuple):
    """The end of a long group, or of what has come of it."""

    is_whole: bool
    acknowledgement: Acknowledgement | None = None


Item = WholeGroup | GroupBegin | Buffer | GroupEnd | Acknowledgement  # the last: of all before it


class CutGroupError(Exception):
    """The rest of a long group does not come."""


class GroupPipe:
    """For one thread that puts and one that takes."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._items: deque[Item] = deque()
        self._ready: deque[Item] = deque()  # taken, of the thread that takes
        self._bytes = 0
        self.acknowledgement: Acknowledgement | None = None
        self._is_over = self._is_unwanted = False
        self._changed = threading.Condition()

    def would_wait(self, size: int) -> bool:
        """Whether that number of bytes has to wait for room. One item always has some."""
        return self._bytes > 0 and self._bytes + size > self._bytes_max

    def put(self, item: Item, size: int) -> bool:
        """Add an item of that many bytes, once there is room; False if nobody takes it."""
        with self._changed:
            while self.would_wait(size) and not self._is_unwanted:
                self._changed.wait()
            self._items.append(item)
            self._bytes += size
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

    def _take(self, *, waits: bool) -> bool:
        with self._changed:
            while waits and not self._items and not self._is_over:
                self._changed.wait()
            self._ready += self._items
            self._items.clear()
            self._bytes = 0
            self._changed.notify()
        return bool(self._ready)

    def has_group(self) -> bool:
        """Whether the next item is a whole group that is there already."""
        return (bool(self._ready) or self._take(waits=False)) and isinstance(self._ready[0], WholeGroup)

    def next(self) -> Item | None:
        """The next item; waits for it. None at the end."""
        return self._ready.popleft() if self._ready or self._take(waits=True) else None

    def body(self) -> Iterator[Buffer]:
        """The pieces of the long group that has begun; then `acknowledgement` is that of its end. Raises
        CutGroupError."""
        while True:
            item = self.next()
            if isinstance(item, GroupEnd) and item.is_whole:
                self.acknowledgement = item.acknowledgement
                return
            if item is None or isinstance(item, (WholeGroup, GroupBegin, GroupEnd, Acknowledgement)):
                raise CutGroupError
            yield item
