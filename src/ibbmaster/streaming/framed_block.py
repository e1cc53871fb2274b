"""Blocks out of what a kernel has framed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ibbmaster.dump.rewriting import LogPositions
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import Field
from ibbmaster.streaming.block import SMALL, Block
from ibbmaster.streaming.buffers import OUT_BYTES, Buffers
from ibbmaster.streaming.framing_state import Mark

SEQUENCE_MASK = 0xFF


def make_block(
    out: Any,
    pool: Buffers,
    state: Any,
    *,
    before: Mark,
    after: Mark,
    gtids: tuple[Gtid, ...] = (),
    head: bytes | None = None,
    is_inside_event: bool = False,
    log_positions: LogPositions | None = None,
    framed_bytes: int | None = None,
) -> Block:
    """The block that a kernel has left in `out`, which belongs to it from now on."""
    size = int(state[Field.OUT])
    is_small = size < (SMALL if len(out) == OUT_BYTES else len(out) // 2)
    buffer = out[:size].copy() if is_small else out
    if is_small:
        pool.release(out)
    return Block(
        buffer,
        None if is_small else pool,
        size,
        sequence_after=int(state[Field.SEQUENCE]),
        before=before,
        after=after,
        gtids=gtids,
        head=head,
        is_inside_event=is_inside_event,
        log_positions=log_positions,
        framed_bytes=framed_bytes,
    )


def renumbered(block: Block, was: int, sequence: int, *, kernels: Kernels, pool: Buffers, first: int = 0) -> Block:
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
        stored_gtids=block.stored_gtids,
        head=block.head,
        is_inside_event=block.is_inside_event,
        log_positions=block.log_positions,
    )
