"""Blocks that were framed lately, for replicas that come to the same place."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict

from ibbmaster.streaming.block import Block, Key
from ibbmaster.streaming.buffers import Buffers

BLOCKS_MAX = 96  # of at most 576 KiB each
READERS_OF_SHARED = 8  # so many are worth the file in memory of a block


class BlockCache:
    """Thread-safe; bounded. A key says where a block begins and how it is framed, not how its packets are numbered.

    A reader alone keeps nothing here: its buffer is hot, and written again at once.
    """

    def __init__(self) -> None:
        self.buffers = Buffers()
        self._readers: weakref.WeakSet[object] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._blocks: OrderedDict[tuple[Key, int], Block] = OrderedDict()
        self._numbers: dict[Key, int] = {}  # that of the first packet of the block seen last

    def add_reader(self, reader: object) -> None:
        """Somebody reads from here for as long as the object lives."""
        self._readers.add(reader)

    @property
    def is_shared(self) -> bool:
        """Whether there are so many readers that one should frame for all."""
        return len(self._readers) >= READERS_OF_SHARED

    def get(self, key: Key, sequence: int) -> Block | None:
        """The block whose first packet has this number."""
        with self._lock:
            block = self._blocks.get((key, sequence))
            if block is not None:
                self._blocks.move_to_end((key, sequence))
            return block

    def get_like(self, key: Key) -> tuple[Block, int] | None:
        """The same block with any number, and that number."""
        with self._lock:
            sequence = self._numbers.get(key)
            block = None if sequence is None else self._blocks.get((key, sequence))
            return None if block is None or sequence is None else (block, sequence)

    def put(self, key: Key, sequence: int, block: Block) -> None:
        """Keep a block for other readers, if there are any; the one that was not used for longest goes."""
        if len(self._readers) < 2:
            return
        if self.is_shared:
            block.share()
        dropped: list[Block] = []  # they go when the lock is free again
        with self._lock:
            self._blocks[key, sequence] = block
            self._numbers[key] = sequence
            while len(self._blocks) > BLOCKS_MAX:
                (old_key, old_sequence), old = self._blocks.popitem(last=False)
                if self._numbers.get(old_key) == old_sequence:
                    del self._numbers[old_key]
                dropped.append(old)

    def __len__(self) -> int:
        return len(self._blocks)
