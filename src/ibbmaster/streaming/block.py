"""A run of packets that is ready to be sent, and what its reader has to know to go on behind it."""

from __future__ import annotations

import os
from collections.abc import Hashable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ibbmaster.codec.buffer import Buffer
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.fields import Field
from ibbmaster.streaming.buffers import OUT_BYTES, Buffers

SMALL = 32 * 1024  # bytes: fewer do not keep a whole buffer
SEQUENCE_MASK = 0xFF

Key = tuple[Hashable, ...]


class Position(NamedTuple):
    """A place in the log between records, or inside one that is passed over (types other than -1)."""

    file_no: int
    file_offset: int
    skip_type: int = -1
    nested_type: int = -1


class PartPosition(NamedTuple):
    """A place inside a group: in which of its nodes, and the state of the framing there; node 0 is its inline part."""

    node: int
    file_no: int
    file_offset: int
    state: tuple[int, ...]
    head: bytes


class Block:
    """Packets, the first and last of which may be cut. Immutable, and its own owner.

    They lie in a buffer of a pool, which goes back with the block; or, once it is shared, in
    a file in memory, from which the kernel sends to any number of sockets without a copy.
    Such a file is never written again: what is on its way to a replica still lies there.
    """

    __slots__ = ("_buffer", "_pool", "_size", "after", "descriptor", "gtids", "is_inside_event", "sequence_after")

    def __init__(
        self,
        buffer: Any,
        pool: Buffers | None,
        size: int,
        *,
        sequence_after: int,
        after: Position | PartPosition | None,
        gtids: tuple[Gtid, ...],
        is_inside_event: bool,
        descriptor: int | None = None,
    ) -> None:
        self._buffer = buffer
        self._pool = pool
        self._size = size
        self.descriptor = descriptor  # of the file in memory, which is the block's from now on
        self.sequence_after = sequence_after  # the number of the packet that comes next
        self.after = after  # None behind the last part of a group
        self.gtids = gtids  # the last one of each (domain, server) pair
        self.is_inside_event = is_inside_event

    def __len__(self) -> int:
        """Bytes of packets."""
        return self._size

    def data(self) -> Buffer:
        """The packets; good for as long as the block is kept."""
        if self.descriptor is None:
            return memoryview(self._buffer)[: self._size]
        return os.pread(self.descriptor, self._size, 0)

    def copy_to(self, target: Any) -> None:
        """Copy the packets to the begin of an array."""
        memoryview(target)[: self._size] = self.data()

    def __del__(self) -> None:
        if self._pool is not None:
            self._pool.give_back(self._buffer)
        elif self.descriptor is not None:
            os.close(self.descriptor)


def make_block(
    out: Any,
    pool: Buffers,
    state: Any,
    *,
    after: Position | PartPosition | None,
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
        after=after,
        gtids=gtids,
        is_inside_event=is_inside_event,
    )


def renumbered(block: Block, was: int, sequence: int, *, kernels: ModuleType, pool: Buffers, first: int = 0) -> Block:
    """The same block with other packet numbers; its first packet begins at byte `first`."""
    size = len(block)
    out = pool.take() if size <= OUT_BYTES else np.empty(size, dtype=np.uint8)
    delta = (sequence - was) & SEQUENCE_MASK
    block.copy_to(out)
    kernels.renumber(out, size, min(first, size), delta)
    return Block(
        out,
        pool if size <= OUT_BYTES else None,
        size,
        sequence_after=(block.sequence_after + delta) & SEQUENCE_MASK,
        after=block.after,
        gtids=block.gtids,
        is_inside_event=block.is_inside_event,
    )


def shared_block(pieces: list[Block]) -> Block:
    """Blocks that follow each other as one, where the system can send it from; the first of them if that fails."""
    first, last = pieces[0], pieces[-1]
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
        after=last.after,
        gtids=tuple(gtid for piece in pieces for gtid in piece.gtids),
        is_inside_event=last.is_inside_event,
        descriptor=descriptor,
    )
