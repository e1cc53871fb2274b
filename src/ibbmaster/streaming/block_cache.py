"""Blocks that were framed lately, for replicas that come to the same place."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from ibbmaster.streaming.block import Block, Key
from ibbmaster.streaming.buffers import Buffers
from ibbmaster.streaming.known_skips import KnownSkips
from ibbmaster.streaming.known_ways import KnownWays

if TYPE_CHECKING:
    from ibbmaster.streaming.large_group import LargeGroup

BYTES_MAX = 64 << 20  # of memory that all blocks take
IDENTITIES_MAX = 1024  # of files, each with its header: under a megabyte
READERS_OF_SHARED = 8  # this number is worth longer blocks, which stay in memory
READERS_OF_KEPT = 2  # one alone never comes to a place again


class BlockCache:
    """Thread-safe; bounded. A key says where a block begins and how it is framed, not how its packets are numbered.

    A reader alone keeps nothing here: its buffer is hot, and written again at once.
    """

    def __init__(self) -> None:
        self.buffers = Buffers()
        self.skips = KnownSkips()  # kept without readers, too: small, and for dumps to come
        self.ways = KnownWays()  # likewise
        self._identities: dict[Key, Hashable] = {}
        self._readers: set[object] = set()
        self._making = threading.Lock()  # held while a block for many is made: the others find it then
        self._lock = threading.Lock()
        self._blocks: OrderedDict[tuple[Key, int], Block] = OrderedDict()
        self._bytes = 0
        self._numbers: dict[Key, int] = {}  # that of the first packet of the block seen last
        self._large_groups: WeakValueDictionary[Key, LargeGroup] = WeakValueDictionary()  # that a dump is inside of

    def add_reader(self, reader: object) -> None:
        """A reader reads from here, until `remove_reader`."""
        with self._lock:
            self._readers.add(reader)

    def remove_reader(self, reader: object) -> None:
        """It reads no longer; what was kept for others goes when there are none."""
        with self._lock:
            self._readers.discard(reader)
            is_alone = len(self._readers) < READERS_OF_KEPT
        if is_alone:
            self.clear()

    def clear(self) -> None:
        """Keep no block any longer; one that is being sent goes when that is done."""
        with self._lock:
            dropped = self._blocks
            self._blocks, self._numbers, self._bytes = OrderedDict(), {}, 0
        del dropped  # now, without the lock

    @property
    def is_shared(self) -> bool:
        """Whether there are enough readers for one to frame for all."""
        return len(self._readers) >= READERS_OF_SHARED

    def find(
        self,
        key: Key,
        sequence: int,
        make: Callable[[tuple[Block, int] | None], Block | None],
        *,
        only_cached: bool,
        is_shared: bool = False,
    ) -> Block | None:
        """The block whose first packet has this number, made if it is not there.

        `make` gets the same block with another number, and that number, if there is one. One that `is_shared` is
        worth to be waited for where another thread makes it; with `only_cached` this does not wait.
        """
        block = self._get(key, sequence)
        if block is not None:
            return block
        if not is_shared:
            return self._make(key, sequence, make)
        if not self._making.acquire(blocking=not only_cached):
            return None
        try:
            block = self._get(key, sequence)
            return block if block is not None else self._make(key, sequence, make)
        finally:
            self._making.release()

    def keep(self, key: Key, sequence: int, block: Block) -> None:
        """Keep a block for other readers, if there are any; the one that was not used for longest goes."""
        if len(self._readers) < READERS_OF_KEPT:
            return
        dropped: list[Block] = []  # they go when the lock is free again
        with self._lock:
            old = self._blocks.pop((key, sequence), None)
            self._bytes += block.held_bytes - (0 if old is None else old.held_bytes)
            self._blocks[key, sequence] = block
            self._numbers[key] = sequence
            while self._bytes > BYTES_MAX:
                (old_key, old_sequence), old = self._blocks.popitem(last=False)
                self._bytes -= old.held_bytes
                if self._numbers.get(old_key) == old_sequence:
                    del self._numbers[old_key]
                dropped.append(old)

    def identity(self, header: Key, judge: Callable[[], Hashable]) -> Hashable:
        """What a file with a number and the first bytes of a header is known by; judged once, unless that is None."""
        found = self._identities.get(header)
        if found is None and (found := judge()) is not None:
            if len(self._identities) >= IDENTITIES_MAX:
                self._identities.clear()
            self._identities[header] = found
        return found

    def large_group(self, key: Key, make: Callable[[], LargeGroup] | None = None) -> LargeGroup | None:
        """A group that another dump is inside of, or, if there is none, a new one."""
        with self._lock:
            group = self._large_groups.get(key)
            if group is None and make is not None:
                group = self._large_groups[key] = make()
            return group

    def _make(self, key: Key, sequence: int, make: Callable[[tuple[Block, int] | None], Block | None]) -> Block | None:
        with self._lock:
            number = self._numbers.get(key)
            like = None if number is None else self._blocks.get((key, number))
        block = make(None if like is None or number is None else (like, number))
        if block is not None:
            self.keep(key, sequence, block)
        return block

    def _get(self, key: Key, sequence: int) -> Block | None:
        with self._lock:
            block = self._blocks.get((key, sequence))
            if block is not None:
                self._blocks.move_to_end((key, sequence))
            return block

    def __len__(self) -> int:
        return len(self._blocks)
