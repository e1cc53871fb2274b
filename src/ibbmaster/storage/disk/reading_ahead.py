"""The bytes of a file in order, block after block, which other threads, if any, read ahead."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import NamedTuple

from .page_memory import page_memory

BLOCKS_AHEAD = 3

Reading = Callable[[int, memoryview], tuple[int, int]]
"""Fills memory from an offset on; returns the size of the bytes read, and a note about them."""


class FoundPiece(NamedTuple):
    data: memoryview
    kept: int  # bytes of it that came before
    note: int  # of the others, by `Reading`


class _Block(NamedTuple):
    """In a buffer, after room for bytes of the block before."""

    buffer: memoryview
    size: int
    note: int


class PieceReader:
    """Reads blocks of `block_bytes`, each perhaps after the last `kept_max` bytes of the one before."""

    def __init__(self, read: Reading, *, block_bytes: int, kept_max: int, helper: Executor | None) -> None:
        self._read = read
        self._block_bytes = block_bytes
        self._kept_max = kept_max
        self._helper = helper
        self._free: list[memoryview] = []
        self._ahead: deque[Future[_Block]] = deque()
        self._next = 0  # the offset at which the first of them begins
        self._current: _Block | None = None

    def at(self, offset: int) -> FoundPiece:
        """The bytes from an offset on, best in the current block or at its end. Errors of reading are raised here."""
        before, kept = self._current, self._next - offset
        if before is None or not 0 <= kept <= min(before.size, self._kept_max):
            self._stop()
            before, kept, self._next = None, 0, offset
        block = self._next_block()
        base = self._kept_max
        if before is not None:
            block.buffer[base - kept : base] = before.buffer[base + before.size - kept : base + before.size]
            self._free.append(before.buffer)
        self._current = block
        return FoundPiece(block.buffer[base - kept : base + block.size], kept, block.note)

    def close(self) -> None:
        """Waits for the reads under way, and frees the memory now: `read` may refer to the owner of this reader."""
        self._stop()
        self._free.clear()

    def _stop(self) -> None:
        self._drop_ahead()
        self._current = None

    def _next_block(self) -> _Block:
        if self._helper is None:
            block = self._fill(self._next, self._buffer())
        else:
            while len(self._ahead) < BLOCKS_AHEAD:
                offset = self._next + len(self._ahead) * self._block_bytes
                self._ahead.append(self._helper.submit(self._fill, offset, self._buffer()))
            block = self._ahead.popleft().result()
        self._next += block.size
        if block.size < self._block_bytes:
            self._drop_ahead()  # they are not where the file goes on
        return block

    def _fill(self, offset: int, buffer: memoryview) -> _Block:
        return _Block(buffer, *self._read(offset, buffer[self._kept_max :]))

    def _buffer(self) -> memoryview:
        return self._free.pop() if self._free else page_memory(self._kept_max + self._block_bytes)

    def _drop_ahead(self) -> None:
        while self._ahead:
            future = self._ahead.popleft()
            if not future.cancel() and future.exception() is None:
                self._free.append(future.result().buffer)
