"""Where the commit records of large groups lie, for dumps that come to their parts after the one that looked.

To find one takes a look at each page from the first part on, about an eighth of what sending the group costs. Nothing
here was verified: who takes such a way checks all of it, see `PassedRun`.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Hashable
from typing import NamedTuple

WAYS_MAX = 16_384  # of all files: some 2 MB


class KnownWay(NamedTuple):
    """File offsets: where out-of-band records begin, and of the commit record that comes first after that."""

    begin: int
    commit: int


NO_WAY = KnownWay(0, 0)


class KnownWays:
    """Thread-safe; bounded: those of the file that was read longest ago are forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_file: OrderedDict[Hashable, list[KnownWay]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def note(self, file: Hashable, way: KnownWay) -> None:
        with self._lock:
            ways = self._by_file.setdefault(file, [])
            if way == _next(ways, way.begin):
                return
            insort(ways, way)
            self._count += 1
            self._by_file.move_to_end(file)
            while self._count > WAYS_MAX:
                _, forgotten = self._by_file.popitem(last=False)
                self._count -= len(forgotten)

    def next_from(self, file: Hashable, offset: int, end: int) -> KnownWay:
        """The first that begins at an offset or later, if it ends before `end`; 0: it may end anywhere."""
        with self._lock:
            way = _next(self._by_file.get(file, []), offset)
        return NO_WAY if end and way.commit >= end else way

    def forget(self, file: Hashable) -> None:
        """One of them was wrong, or what lies on it is damaged."""
        with self._lock:
            self._count -= len(self._by_file.pop(file, []))


def _next(ways: list[KnownWay], offset: int) -> KnownWay:
    index = bisect_left(ways, (offset, 0))
    return ways[index] if index < len(ways) else NO_WAY
