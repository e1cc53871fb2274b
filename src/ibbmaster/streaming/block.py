"""A run of packets that is ready to be sent, and what its reader has to know to go on behind it."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np

from ibbmaster.codec.buffer import Buffer
from ibbmaster.dump.error import not_continuous
from ibbmaster.gtid import Gtid
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.kernel.fields import Field
from ibbmaster.streaming.buffers import OUT_BYTES, Buffers
from ibbmaster.streaming.framing_state import FramingState, PartState

SMALL = 32 * 1024  # bytes: fewer do not keep a whole buffer
SEQUENCE_MASK = 0xFF
OVERHEAD = 2048  # bytes: a block without packets, its key and what they refer to

Key = tuple[Hashable, ...]


class Block:
    """Packets, the first and last of which may be cut. Immutable, and its own owner.

    They lie in a buffer of a pool, which goes back with the block; or, once it is shared, in
    a file in memory, from which the kernel sends to any number of sockets without a copy.
    Such a file is never written again: what is on its way to a replica still lies there.
    """

    __slots__ = (
        "_buffer",
        "_pool",
        "_size",
        "after",
        "before",
        "descriptor",
        "gtids",
        "is_inside_event",
        "sequence_after",
    )

    def __init__(
        self,
        buffer: Any,
        pool: Buffers | None,
        size: int,
        *,
        sequence_after: int,
        before: FramingState | PartState,
        after: FramingState | PartState | None,
        gtids: tuple[Gtid, ...],
        is_inside_event: bool,
        descriptor: int | None = None,
    ) -> None:
        self._buffer = buffer
        self._pool = pool
        self._size = size
        self.descriptor = descriptor  # of the file in memory, which is the block's from now on
        self.sequence_after = sequence_after  # the number of the packet that comes next
        self.before = before  # where it begins
        self.after = after  # None behind the last part of a group
        self.gtids = gtids  # the last one of each (domain, server) pair
        self.is_inside_event = is_inside_event

    def __len__(self) -> int:
        """Bytes of packets."""
        return self._size

    @property
    def held_bytes(self) -> int:
        """Memory that it takes."""
        return OVERHEAD + (self._size if self.descriptor is not None else len(self._buffer))

    def data(self) -> Buffer:
        """The packets; good for as long as the block is kept."""
        if self.descriptor is None:
            return memoryview(self._buffer)[: self._size]
        return os.pread(self.descriptor, self._size, 0)

    def __del__(self) -> None:
        if self._pool is not None:
            self._pool.give_back(self._buffer)
        elif self.descriptor is not None:
            os.close(self.descriptor)


def check_continues(block: Block, at: FramingState | PartState) -> None:
    """Whether a block begins at a place.

    Raises:
        DumpError: it does not, so something would be lost or come twice.
    """
    if block.before != at:
        raise not_continuous(_named(at), _named(block.before))


def _named(at: FramingState | PartState) -> str:
    name = format_file_name(max(at.position.file_no, 0))
    node = "" if isinstance(at, FramingState) else f" (node {at.node} of a group)"
    return f"{name}{node} offset {at.position.offset}"


def make_block(
    out: Any,
    pool: Buffers,
    state: Any,
    *,
    before: FramingState | PartState,
    after: FramingState | PartState | None,
    gtids: tuple[Gtid, ...] = (),
    is_inside_event: bool = False,
) -> Block:
    """The block that a kernel has left in `out`, which belongs to it from now on."""
    size = int(state[Field.OUT])
    is_small = size < SMALL
    buffer = out[:size].copy() if is_small else out
    if is_small:
        pool.give_back(out)
    return Block(
        buffer,
        None if is_small else pool,
        size,
        sequence_after=int(state[Field.SEQUENCE]),
        before=before,
        after=after,
        gtids=gtids,
        is_inside_event=is_inside_event,
    )


def renumbered(block: Block, was: int, sequence: int, *, kernels: ModuleType, pool: Buffers, first: int = 0) -> Block:
    """The same block with other packet numbers; its first packet begins at byte `first`."""
    size = len(block)
    out: Any = pool.take() if size <= OUT_BYTES else np.empty(size, dtype=np.uint8)
    delta = (sequence - was) & SEQUENCE_MASK
    memoryview(out)[:size] = block.data()
    kernels.renumber(out, size, min(first, size), delta)
    return Block(
        out,
        pool if size <= OUT_BYTES else None,
        size,
        sequence_after=(block.sequence_after + delta) & SEQUENCE_MASK,
        before=block.before,
        after=block.after,
        gtids=block.gtids,
        is_inside_event=block.is_inside_event,
    )


def longer(first: Block, follow: Callable[[Block], Block | None], *, pieces_max: int) -> Block:
    """A block for many readers: `first` and what follows, as each of them costs every reader a turn.

    `follow` makes the block behind another one, None where there shall be none.
    """
    pieces = [first]
    while len(pieces) < pieces_max and (more := follow(pieces[-1])) is not None:
        pieces.append(more)
    return joined(pieces)


def joined(pieces: list[Block]) -> Block:
    """Blocks that follow each other as one, where the system can send it from; the first of them if that fails.

    Raises:
        DumpError: they do not follow each other.
    """
    first, last = pieces[0], pieces[-1]
    for one, other in pairwise(pieces):
        assert one.after is not None
        check_continues(other, one.after)
    size = sum(map(len, pieces))
    if size < SMALL:
        return first
    try:
        descriptor = os.memfd_create("ibbmaster block")
    except OSError:
        return first  # too many open files
    try:
        for piece in pieces:
            view = memoryview(piece.data())
            while view:
                view = view[os.write(descriptor, view) :]
    except OSError:
        os.close(descriptor)
        return first
    return Block(
        None,
        None,
        size,
        sequence_after=last.sequence_after,
        before=first.before,
        after=last.after,
        gtids=tuple(gtid for piece in pieces for gtid in piece.gtids),
        is_inside_event=last.is_inside_event,
        descriptor=descriptor,
    )
