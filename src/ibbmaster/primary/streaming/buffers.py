"""Memory that is used again: buffers for packets, and workspaces for those who frame them."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ibbmaster.gtid import Gtid
from ibbmaster.kernel.calls import Framing, Kernels, Sending
from ibbmaster.kernel.fields import (
    LEAVES_OUT_ANNOTATE,
    LEAVES_OUT_MARKED,
    PAIR_COLUMNS,
    ChunkColumn,
    Field,
    Progress,
    noted_gtids,
)
from ibbmaster.kernel.plain_memory import RowTable, kept, numbers, scratch, short_rows
from ibbmaster.position import LogPosition
from ibbmaster.replication.dump.rewriting import Selection
from ibbmaster.storage.disk.page_memory import page_memory
from ibbmaster.storage.ibb.page import PAGE_SIZE
from .block import Block, FramingState, Packets

PAGES_PER_BLOCK = 16  # 256 KiB: pages and packets stay in a core's second cache
PAGES_MAX = 64  # of a record that is framed as one piece
OUT_BYTES = 576 * 1024  # the smallest events, of 19 bytes, grow by up to 7
SHARED_BYTES = 1 << 20  # blocks for many readers end at multiples of it in a file
SHARED_OUT_BYTES = SHARED_BYTES + 128 * 1024  # packets of one of them
FREE_SHARED_MAX = 4  # of them that are kept for later
SMALL = 32 * 1024
PAIRS_MAX = 64
CHUNKS_MAX = 8192  # in a block, which ends there
SEGMENTS_MAX = 64
SEQUENCE_MASK = 0xFF


def pages_to_border(page_no: int, size: int = PAGES_PER_BLOCK) -> int:
    """The pages of a block that begins here, so that blocks of all readers end at the same borders."""
    count = size - page_no % size
    return count if count >= size // 2 else count + size


_NO_STATE = numbers(Field.SIZE)


@dataclass(slots=True)
class Workspace:
    """The arrays for one call of the kernels."""

    pages: Any = field(default_factory=lambda: page_memory(PAGES_MAX * PAGE_SIZE))
    state: Any = field(default_factory=lambda: numbers(Field.SIZE))
    head: Any = field(default_factory=lambda: scratch(32))
    begin: Any = field(default_factory=lambda: scratch(64))
    prefix: Any = field(default_factory=lambda: scratch(8))
    pairs: Any = field(default_factory=lambda: RowTable(PAIRS_MAX, PAIR_COLUMNS))
    table: Any = field(default_factory=lambda: short_rows(CHUNKS_MAX, ChunkColumn.COLUMNS))
    segments: Any = field(default_factory=lambda: RowTable(SEGMENTS_MAX, 3).memory)
    vectors: Any = field(default_factory=lambda: RowTable(2 * SEGMENTS_MAX + 1, 2).memory)

    def framing(self, out: Any, segments: Any) -> Framing:
        return Framing(self.state, self.head, self.begin, self.prefix, self.pairs.memory, self.table, out, segments)

    def sending(self, file: int, socket: int, progress: Any, rest: Any) -> Sending:
        """What the socket does not take is put into `rest`."""
        progress[Progress.FILE], progress[Progress.SOCKET] = file, socket
        return Sending(progress, self.vectors, rest)

    def gtids(self) -> tuple[Gtid, ...]:
        """The last framed of each (domain, server) pair."""
        return noted_gtids(self.pairs.rows(self.state[Field.PAIRS]))

    @property
    def is_in_order(self) -> bool:
        """The numbers of each pair have grown."""
        return not self.state[Field.STEPS_BACK]

    def prepare(self, selection: Selection, sequence: int) -> None:
        """Begin a block with the number of its first packet, and nothing under way."""
        state = self.state
        state[:] = _NO_STATE
        state[Field.SEQUENCE] = sequence
        state[Field.FILTERS] = (LEAVES_OUT_ANNOTATE if selection.leaves_out_annotate else 0) | (
            LEAVES_OUT_MARKED if selection.leaves_out_marked else 0
        )
        state[Field.PREFIX_SIZE] = size = len(selection.prefix)
        if size:
            self.prefix[:size] = memoryview(selection.prefix)
        state[Field.SKIP_TYPE] = state[Field.NESTED_TYPE] = -1

    def go_to(self, at: FramingState) -> None:
        """`at` is on the first of `pages`."""
        self.state[Field.OFFSET] = at.position.page_offset
        self.state[Field.SKIP_TYPE], self.state[Field.NESTED_TYPE] = at.skip_type, at.nested_type

    def framing_state(self, file_no: int, page_no: int) -> FramingState:
        state = self.state
        position = LogPosition.on_page(file_no, page_no, int(state[Field.OFFSET]))
        return FramingState(position, int(state[Field.SKIP_TYPE]), int(state[Field.NESTED_TYPE]))


class Buffers:
    """A thread-safe pool, which keeps what is released: as much as was ever in use at once, but few long buffers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: list[Any] = []
        self._free_shared: list[Any] = []
        self._workspaces: list[Workspace] = []

    def take(self, *, is_shared: bool = False) -> Any:
        """`OUT_BYTES`, or `SHARED_OUT_BYTES` for many readers."""
        free = self._free_shared if is_shared else self._free
        with self._lock:
            if free:
                return free.pop()
        return page_memory(SHARED_OUT_BYTES if is_shared else OUT_BYTES)

    def room(self, size: int) -> tuple[Any, "Buffers | None"]:
        """A buffer, and the pool that it returns to; none for a large one."""
        return (self.take(), self) if size <= OUT_BYTES else (page_memory(size), None)

    def release(self, buffer: Any) -> None:
        if len(buffer) == OUT_BYTES:
            self._free.append(buffer)  # atomic: the garbage collector may call this while the lock is held
        elif len(buffer) == SHARED_OUT_BYTES and len(self._free_shared) < FREE_SHARED_MAX:
            self._free_shared.append(buffer)

    @contextlib.contextmanager
    def workspace(self) -> Iterator[Workspace]:
        with self._lock:
            workspace = self._workspaces.pop() if self._workspaces else Workspace()
        try:
            yield workspace
        finally:
            self._workspaces.append(workspace)


def framed_packets(out: Any, pool: Buffers, state: Any, sent_bytes: int = 0) -> Packets:
    """What a kernel has left in `out`, which the packets own from now on."""
    size, sequence = int(state[Field.OUT]), int(state[Field.SEQUENCE])
    if size >= (SMALL if len(out) == OUT_BYTES else len(out) // 2):
        return Packets(out, size, sequence, pool, sent_bytes)
    copy = kept(out[:size])
    pool.release(out)
    return Packets(copy, size, sequence, sent_bytes=sent_bytes)


def renumbered(block: Block, was: int, sequence: int, *, kernels: Kernels, pool: Buffers, first: int = 0) -> Block:
    """With other packet numbers; the first packet begins at byte `first`."""
    size, delta = len(block), (sequence - was) & SEQUENCE_MASK
    out, owner = pool.room(size)
    memoryview(out)[:size] = block.data()
    kernels.renumber(out, size, min(first, size), delta)
    packets = Packets(out, size, (block.sequence_after + delta) & SEQUENCE_MASK, owner, block.packets.sent_bytes)
    return replace(block, packets=packets)
