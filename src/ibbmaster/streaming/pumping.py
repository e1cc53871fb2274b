"""A replica that is far behind and alone: one call reads, frames and sends many blocks."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ibbmaster.disk.interface import ReadDisk
from ibbmaster.dump.rewriting import Selection
from ibbmaster.gtid import Gtid
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.kernel.fields import Field, Progress
from ibbmaster.log.interface import PagedEventGroups
from ibbmaster.streaming.block import Block, make_block
from ibbmaster.streaming.block_reader import BlockReader
from ibbmaster.streaming.buffers import Buffers, Workspace
from ibbmaster.streaming.framing_state import FramingState, PartState

BUDGET_BYTES = 16 << 20  # in one call: a hop to a thread costs nothing beside that


class PumpCall(NamedTuple):
    """What one call of a pump needs, but the socket."""

    file: int  # descriptor
    workspace: Workspace
    progress: Any
    out: Any
    rest: Any
    buffers: Buffers

    def result(
        self,
        before: FramingState | PartState,
        after: FramingState | PartState,
        *,
        gtids: tuple[Gtid, ...] = (),
        is_inside_event: bool = False,
    ) -> tuple[Block, int]:
        """What the socket did not take, a block that owns `rest` from now on, and how many bytes were framed."""
        state = self.workspace.state
        state[Field.OUT] = self.progress[Progress.REST]
        block = make_block(
            self.rest,
            self.buffers,
            state,
            before=before,
            after=after,
            gtids=gtids,
            is_inside_event=is_inside_event,
        )
        return block, int(self.progress[Progress.FRAMED])


@contextlib.contextmanager
def pump_call(
    disk: ReadDisk,
    file_no: int,
    buffers: Buffers,
    selection: Selection,
    sequence: int,
    *,
    check_log: Callable[[], None],
) -> Iterator[PumpCall | None]:
    """Prepare a call for one file; None if a socket cannot be fed from it.

    `check_log` is asked once the file is open: from then on it is that of this log, whatever
    becomes of its name.

    Raises:
        StoreError: the file cannot be opened.
        PositionPurgedError: the log was reset.
    """
    file = disk.open(format_file_name(file_no))
    if file is None:
        yield None
        return
    try:
        check_log()
        with buffers.workspace() as workspace:
            workspace.prepare(selection, sequence)
            progress = np.zeros(Progress.SIZE, dtype=np.int64)
            progress[Progress.BUDGET] = BUDGET_BYTES
            out = buffers.take()
            yield PumpCall(file, workspace, progress, out, buffers.take(), buffers)
            buffers.give_back(out)
    finally:
        os.close(file)


def pump_blocks(
    blocks: BlockReader,
    groups: PagedEventGroups,
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
        PositionPurgedError: the log was reset.
    """
    before = blocks.at
    file_no = before.position.file_no
    if before.position.offset <= PAGE_SIZE:
        return None
    with pump_call(groups.disk, file_no, buffers, selection, sequence, check_log=groups.check_log) as call:
        if call is None:
            return None
        workspace, progress = call.workspace, call.progress
        workspace.go_to(before)
        progress[Progress.FILE_OFFSET] = before.position.page_no * PAGE_SIZE
        kernels.pump(
            call.file,
            socket,
            progress,
            workspace.pages,
            workspace.state,
            workspace.head,
            workspace.prefix,
            workspace.pairs,
            workspace.scratch,
            call.out,
            workspace.segments,
            workspace.wanted,
            call.rest,
        )
        after = workspace.framing_state(file_no, int(progress[Progress.FILE_OFFSET]) // PAGE_SIZE)
        return call.result(before, after, gtids=workspace.gtids())
