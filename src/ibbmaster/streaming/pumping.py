"""A replica that is far behind and alone: one call reads, frames and sends many blocks."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

import numpy as np

from ibbmaster.dump.rewriting import Selection
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.kernel.fields import Field
from ibbmaster.kernel.pump import Progress
from ibbmaster.store.disk import Disk
from ibbmaster.streaming.block import Block, Position, make_block
from ibbmaster.streaming.block_reader import BlockReader
from ibbmaster.streaming.buffers import Buffers

BUDGET_BYTES = 16 << 20  # in one call: a hop to a thread costs nothing beside that


def pump_blocks(
    blocks: BlockReader,
    disk: Disk,
    buffers: Buffers,
    kernels: ModuleType,
    *,
    selection: Selection,
    sequence: int,
    socket: int,
) -> tuple[Block, int] | None:
    """Send whole groups from where `blocks` is to a socket; returns what it did not take, and the bytes framed.

    None where nothing can be sent in this way. `blocks` stays where it is: let it pass over
    the block. Takes long: call it in a worker thread.

    Raises:
        StoreError: the file cannot be opened.
    """
    position = blocks.position
    if position.file_offset <= PAGE_SIZE:
        return None
    file = disk.open(format_file_name(position.file_no))
    if file is None:
        return None
    workspace, out, rest = buffers.workspace(), buffers.take(), buffers.take()
    block = None
    try:
        workspace.prepare(selection, sequence)
        state, progress = workspace.state, new_progress()
        first_page_no, state[Field.OFFSET] = divmod(position.file_offset, PAGE_SIZE)
        state[Field.SKIP_TYPE], state[Field.NESTED_TYPE] = position.skip_type, position.nested_type
        progress[Progress.FILE_OFFSET] = first_page_no * PAGE_SIZE
        kernels.pump(
            file,
            socket,
            progress,
            workspace.pages,
            state,
            workspace.head,
            workspace.prefix,
            workspace.pairs,
            workspace.scratch,
            out,
            workspace.segments,
            workspace.wanted,
            rest,
        )
        after = Position(
            position.file_no,
            int(progress[Progress.FILE_OFFSET] + state[Field.OFFSET]),
            int(state[Field.SKIP_TYPE]),
            int(state[Field.NESTED_TYPE]),
        )
        state[Field.OUT] = progress[Progress.REST]
        block = make_block(rest, buffers, state, after=after, gtids=workspace.gtids())
    finally:
        os.close(file)
        buffers.give_back_workspace(workspace)
        buffers.give_back(out)
        if block is None:
            buffers.give_back(rest)
    return block, int(progress[Progress.FRAMED])


def new_progress() -> Any:
    """That of a call with the whole budget."""
    progress = np.zeros(Progress.SIZE, dtype=np.int64)
    progress[Progress.BUDGET] = BUDGET_BYTES
    return progress
