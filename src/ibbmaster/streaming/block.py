"""A run of packets that is ready to be sent, and what its reader has to know to continue behind it."""

from __future__ import annotations

import os
from collections.abc import Hashable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ibbmaster.codec.buffer import Buffer
from ibbmaster.dump.error import not_continuous
from ibbmaster.dump.rewriting import LogPositions
from ibbmaster.gtid import Gtid
from ibbmaster.position import LogPosition
from ibbmaster.streaming.framing_state import Mark

if TYPE_CHECKING:
    from ibbmaster.streaming.buffers import Buffers

SMALL = 32 * 1024  # bytes: fewer do not keep a whole buffer
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
        "framed_bytes",
        "gtids",
        "head",
        "is_inside_event",
        "log_positions",
        "sequence_after",
    )

    def __init__(
        self,
        buffer: Any,
        pool: Buffers | None,
        size: int,
        *,
        sequence_after: int = 0,
        before: Mark,
        after: Mark,
        gtids: tuple[Gtid, ...] = (),
        head: bytes | None = None,
        is_inside_event: bool = False,
        log_positions: LogPositions | None = None,
        descriptor: int | None = None,
        framed_bytes: int | None = None,
    ) -> None:
        self._buffer = buffer
        self._pool = pool
        self._size = size
        self.descriptor = descriptor  # of the file in memory, which is the block's from now on
        self.sequence_after = sequence_after  # the number of the packet that comes next
        self.before = before  # where it begins
        self.after = after
        self.gtids = gtids  # the last one of each (domain, server) pair whose group begins here
        self.head = head  # of the log where it begins, if known: enough to tell which group that is
        self.is_inside_event = is_inside_event  # a part of an event has gone out, and the rest has not
        self.log_positions = log_positions  # behind it, where they are counted
        self.framed_bytes = size if framed_bytes is None else framed_bytes  # and what a pump has sent of them

    def __len__(self) -> int:
        """Bytes of packets."""
        return self._size

    @property
    def begin(self) -> LogPosition:
        """Where it begins; inside a group that is where the group does."""
        return self.before.position

    @property
    def end(self) -> LogPosition:
        """Where it ends; inside a group that is where the group begins."""
        return self.after.position

    @property
    def begins_inside_group(self) -> bool:
        return self.before.is_inside_group

    @property
    def ends_inside_group(self) -> bool:
        return self.after.is_inside_group

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


def plain_block(data: Buffer, at: Mark) -> Block:
    """Packets that end where the log was read to before."""
    return Block(data, None, len(data), before=at, after=at)


def check_continues(block: Block, at: Mark) -> None:
    """Whether a block begins at a place.

    Raises:
        DumpError: it does not, so something would be lost or come twice.
    """
    if block.before != at:
        raise not_continuous(str(at), str(block.before))


def one_skipped(blocks: list[Block]) -> Block:
    """Blocks without packets that follow each other, as one."""
    last = {(gtid.domain_id, gtid.server_id): gtid for block in blocks for gtid in block.gtids}
    first = blocks[0]
    return Block(
        b"", None, 0, before=first.before, after=blocks[-1].after, gtids=tuple(last.values()), head=first.head or b""
    )


def joined(pieces: list[Block]) -> Block:
    """Blocks that follow each other as one, where the system can send it from; the first of them if that fails.

    Raises:
        DumpError: they do not follow each other.
    """
    first, last = pieces[0], pieces[-1]
    for one, other in pairwise(pieces):
        check_continues(other, one.after)
    size = sum(map(len, pieces))
    buffer = descriptor = None
    if size < SMALL:
        buffer = b"".join(piece.data() for piece in pieces)
    else:
        descriptor = _file_of(pieces)
        if descriptor is None:
            return first
    return Block(
        buffer,
        None,
        size,
        sequence_after=last.sequence_after,
        before=first.before,
        after=last.after,
        gtids=tuple(gtid for piece in pieces for gtid in piece.gtids),
        head=first.head,
        is_inside_event=last.is_inside_event,
        log_positions=last.log_positions,
        descriptor=descriptor,
    )


def _file_of(pieces: list[Block]) -> int | None:
    """A file in memory with the packets; None where there are too many open files, or too little memory."""
    try:
        descriptor = os.memfd_create("ibbmaster block")
    except OSError:
        return None
    try:
        for piece in pieces:
            view = memoryview(piece.data())
            while view:
                view = view[os.write(descriptor, view) :]
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
