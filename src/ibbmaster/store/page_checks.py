"""Many pages checked at once, as far as they are all right; what is not is left to who can name it."""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

from ibbmaster.codec.buffer import Buffer
from ibbmaster.gtid import Gtid
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.kernel.fields import PAIR_COLUMNS, Field, Found, Status, noted_gtids

PAIRS_MAX = 256
NODES_MAX = 4096
SCRATCH_BYTES = 1 << 20  # a longer commit record is left to the slow way


class Checked(NamedTuple):
    """What was passed: everything before byte `offset` of page `page`, counted in the block."""

    page: int
    offset: int
    groups: int
    gtids: tuple[Gtid, ...]  # the last of each (domain, server) pair
    nodes: list[tuple[int, int, int, int]]  # out-of-band records: page, offset, bytes, bytes of the first chunk
    is_cut: bool  # what comes there goes on behind the block


class PageChecks:
    """Holds the memory that the kernel needs; not thread-safe."""

    def __init__(self, kernels: ModuleType) -> None:
        import numpy as np

        self._numpy = np
        self._kernels = kernels
        self._state = np.zeros(Field.SIZE, dtype=np.int64)
        self._pairs = np.zeros((PAIRS_MAX, PAIR_COLUMNS), dtype=np.int64)
        self._nodes = np.zeros((NODES_MAX, Found.COLUMNS), dtype=np.int64)
        self._scratch = np.empty(SCRATCH_BYTES, dtype=np.uint8)

    def check(self, block: bytearray, page_count: int, page: int, offset: int) -> Checked:
        """Check whole groups and out-of-band records from a place between records on.

        The page of that place must be verified already if `offset` is not 0.
        """
        state = self._state
        state[:] = 0
        state[Field.PAGE], state[Field.OFFSET] = page, offset
        pages = self._numpy.frombuffer(block, dtype=self._numpy.uint8)
        count, reason = self._kernels.check_groups(pages, page_count, state, self._pairs, self._nodes, self._scratch)
        return Checked(
            page=int(state[Field.PAGE]),
            offset=int(state[Field.OFFSET]),
            groups=int(state[Field.GROUPS]),
            gtids=noted_gtids(self._pairs, state[Field.PAIRS]),
            nodes=[tuple(row) for row in self._nodes[:count].tolist()],
            is_cut=reason == Status.NEED_MORE,
        )


def node_head(block: Buffer, node: tuple[int, int, int, int]) -> memoryview:
    """The data of the first chunk of an out-of-band record."""
    page, offset, _, size = node
    start = page * PAGE_SIZE + offset + 3
    return memoryview(block)[start : start + size]
