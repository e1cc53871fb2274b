"""A group with a part out of band, in blocks of packets: node after node, never a whole node in memory."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator
from itertools import chain, islice, takewhile
from types import ModuleType
from typing import Any

import numpy as np

from ibbmaster.dump.framing import check_event_size
from ibbmaster.dump.rewriting import Selection
from ibbmaster.errors import EventError, RecordError
from ibbmaster.event.header import EVENT_HEADER_SIZE, SIZE_OFFSET
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.kernel.fields import Field, Status
from ibbmaster.kernel.pump import Progress
from ibbmaster.store.disk import Disk
from ibbmaster.store.event_groups import StoredGroup
from ibbmaster.store.out_of_band import NodePlace, OutOfBandReader, check_stream
from ibbmaster.store.pages import PageReader
from ibbmaster.streaming.block import Block, PartPosition, make_block, renumbered, shared_block
from ibbmaster.streaming.block_cache import BlockCache
from ibbmaster.streaming.buffers import Workspace, pages_to_border
from ibbmaster.streaming.pumping import new_progress

BLOCK_BYTES = 192 * 1024  # of packets end a block: with what one more call adds it still fits its buffer
PIECES_SHARED = 5  # blocks that are one for many readers
NOT_BEGUN = -1  # file number of a node that was not looked for yet
NODES_AHEAD = 64  # found in one go: that looks at the disk
FIRST_FIELD = Field.EVENT_LEFT  # from here on the state is that of a place inside a group
REREADS = 20  # of a page whose checksum is wrong: a writer may be in the middle of it


class GroupParts:
    """The blocks of one group. `identity` is that of the file of its commit record. Not thread-safe.

    Raises:
        FormatError: references lead nowhere.
    """

    def __init__(
        self,
        disk: Disk,
        group: StoredGroup,
        identity: Hashable,
        selection: Selection,
        cache: BlockCache,
        kernels: ModuleType,
    ) -> None:
        for stream in group.streams:
            check_stream(stream, group.ref)
        self.group = group
        self._disk = disk
        self._selection = selection
        self._cache = cache
        self._kernels = kernels
        self._key = ("part of", identity, group.ref, selection)
        self._out_of_band = OutOfBandReader(disk)
        self._places: Iterator[NodePlace] = chain.from_iterable(map(self._out_of_band.nodes, group.streams))
        self._nodes: list[NodePlace] = []
        self._has_all_nodes = False
        self._rereads_left = REREADS
        self._position: PartPosition | None = PartPosition(0, 0, 0, (0,) * (Field.SIZE - FIRST_FIELD), b"")

    @property
    def is_finished(self) -> bool:
        """Whether every part was given."""
        return self._position is None

    def next_part(self, sequence: int, *, only_cached: bool) -> Block | None:
        """The next block; `sequence` is the number of the packet that comes next. None with `only_cached`: would wait.

        Raises:
            FormatError: nodes are damaged, or do not make up events.
            DumpError: an event is larger than MariaDB sends.
            StoreError: a file cannot be read.
        """
        position = self._position
        assert position is not None
        cache = self._cache

        def make(like: tuple[Block, int] | None) -> Block | None:
            if like is not None:
                first = position.state[Field.PACKET_LEFT - FIRST_FIELD] if _is_inside_event(position.state) else 0
                return renumbered(*like, sequence, kernels=self._kernels, pool=cache.buffers, first=first)
            block = self._frame(position, sequence, only_cached=only_cached)
            if block is None or not cache.is_shared:
                return block
            return self._longer(block, only_cached=only_cached)

        block = cache.find((*self._key, position, cache.is_shared), sequence, make, only_cached=only_cached)
        if block is None:
            return None
        assert block.after is None or isinstance(block.after, PartPosition)
        self._position = block.after
        return block

    def _longer(self, block: Block, *, only_cached: bool) -> Block:
        """A block for many readers: the same and what follows, as each of them costs a turn of its own."""
        pieces = [block]
        while len(pieces) < PIECES_SHARED and isinstance(pieces[-1].after, PartPosition):
            more = self._frame(pieces[-1].after, pieces[-1].sequence_after, only_cached=only_cached)
            if more is None:
                break
            pieces.append(more)
        return shared_block(pieces)

    def pump(self, sequence: int, socket: int) -> tuple[Block, int] | None:
        """Send parts to a socket; returns what it did not take, and the bytes framed. For a worker thread.

        None where it does not go, or not without trouble: `next_part` names it.
        """
        position = self._position
        if position is None or position.node == 0:
            return None
        node = self._node(position.node, only_cached=False)
        file_no = position.file_no if position.file_no != NOT_BEGUN else node.ref.file_no if node is not None else -1
        if node is None or node.ref.file_no != file_no:
            return None
        ahead = self._nodes[position.node - 1 :]
        places = list(takewhile(lambda place: place.ref.file_no == file_no, ahead))
        file = self._disk.open(format_file_name(file_no))
        if file is None:
            return None
        buffers = self._cache.buffers
        workspace, out, rest = buffers.workspace(), buffers.take(), buffers.take()
        block = None
        try:
            workspace.prepare(self._selection, sequence)
            state, progress = workspace.state, new_progress()
            state[FIRST_FIELD:] = position.state
            if position.head:
                workspace.head[: len(position.head)] = memoryview(position.head)
            if position.file_no != NOT_BEGUN:
                page_no, state[Field.OFFSET] = divmod(position.file_offset, PAGE_SIZE)
                progress[Progress.FILE_OFFSET], progress[Progress.IS_BEGUN] = page_no * PAGE_SIZE, 1
            nodes = np.array([(place.ref.file_offset, place.header_size) for place in places], dtype=np.int64)
            self._kernels.pump_nodes(
                file,
                socket,
                progress,
                nodes,
                workspace.pages,
                state,
                workspace.head,
                workspace.prefix,
                out,
                workspace.segments,
                workspace.wanted,
                rest,
            )
            number = position.node + int(progress[Progress.NODE])
            if progress[Progress.IS_BEGUN]:
                after = _place(workspace, number, file_no, int(progress[Progress.FILE_OFFSET] + state[Field.OFFSET]))
            else:
                after = _place(workspace, number, NOT_BEGUN, 0)
            is_inside = _is_inside_event(after.state)
            state[Field.OUT] = progress[Progress.REST]
            block = make_block(rest, buffers, state, after=after, is_inside_event=is_inside)
        finally:
            os.close(file)
            buffers.give_back_workspace(workspace)
            buffers.give_back(out)
            if block is None:
                buffers.give_back(rest)
        self._position = after
        return block, int(progress[Progress.FRAMED])

    def _frame(self, position: PartPosition, sequence: int, *, only_cached: bool) -> Block | None:
        buffers = self._cache.buffers
        workspace, out = buffers.workspace(), buffers.take()
        block = None
        try:
            workspace.prepare(self._selection, sequence)
            after: PartPosition | None = position
            is_full = False
            while after is not None and not is_full and workspace.state[Field.OUT] < BLOCK_BYTES:
                after, is_full = self._step(workspace, after, out, only_cached=only_cached)
            is_inside = after is not None and _is_inside_event(after.state)
            block = make_block(out, buffers, workspace.state, after=after, is_inside_event=is_inside)
        except _WouldWaitError:
            pass
        finally:
            if block is None:
                buffers.give_back(out)
            buffers.give_back_workspace(workspace)
        return block

    def _step(
        self, workspace: Workspace, at: PartPosition, out: object, *, only_cached: bool
    ) -> tuple[PartPosition | None, bool]:
        """One call of a kernel; returns the place behind it, None at the end, and whether the output is full."""
        state, head = workspace.state, workspace.head
        state[FIRST_FIELD:] = at.state
        if at.head:
            head[: len(at.head)] = memoryview(at.head)
        if at.node == 0:
            data = np.frombuffer(bytearray(self.group.gtid_event + self.group.payload), dtype=np.uint8)
            stopped, status = self._kernels.frame_bytes(
                data, at.file_offset, len(data), state, head, workspace.prefix, out, workspace.no_segments
            )
            if status == Status.CAREFUL:
                raise self._event_problem(workspace)
            if status == Status.FULL:
                return _place(workspace, 0, 0, stopped), True
            return _place(workspace, 1, NOT_BEGUN, 0), False
        node = self._node(at.node, only_cached=only_cached)
        if node is None:
            self._check_complete(state)
            return None, False
        file_no, file_offset = at.file_no, at.file_offset
        if file_no == NOT_BEGUN:
            file_no, file_offset = node.ref.file_no, node.ref.file_offset
            state[Field.CHUNK_LEFT], state[Field.IS_LAST] = 0, 0
            state[Field.TO_SKIP], state[Field.IS_FIRST], state[Field.NESTED_TYPE] = node.header_size, 1, -1
        page_no, state[Field.OFFSET] = divmod(file_offset, PAGE_SIZE)
        state[Field.PAGE] = 0
        page_count = pages_to_border(page_no)
        target = memoryview(workspace.pages)[: page_count * PAGE_SIZE]
        name = format_file_name(file_no)
        size = self._disk.read_into(name, page_no * PAGE_SIZE, target, only_cached=only_cached)
        if size is None:
            raise _WouldWaitError
        found = size // PAGE_SIZE
        if not found:
            if not state[Field.IS_FIRST] and PageReader(self._disk).header(file_no + 1) is not None:
                return _place(workspace, at.node, file_no + 1, PAGE_SIZE), False
            raise self._node_problem(node)
        status = self._kernels.frame_record(
            workspace.pages, found, state, head, workspace.prefix, out, workspace.no_segments
        )
        page_no += int(state[Field.PAGE])
        behind = _place(workspace, at.node, file_no, page_no * PAGE_SIZE + int(state[Field.OFFSET]))
        match status:
            case Status.DONE:
                return _place(workspace, at.node + 1, NOT_BEGUN, 0), False
            case Status.NEED_MORE | Status.FULL:
                return behind, status == Status.FULL
            case Status.BAD_PAGE if self._rereads_left:
                self._rereads_left -= 1
                PageReader(self._disk).fresh_page(file_no, page_no)
                return behind, False
            case _ if state[Field.HEAD_HELD] == EVENT_HEADER_SIZE:
                raise self._event_problem(workspace)
            case _:
                raise self._node_problem(node)

    def _node(self, number: int, *, only_cached: bool) -> NodePlace | None:
        """The node of a number from 1 on; None behind the last."""
        while len(self._nodes) < number and not self._has_all_nodes:
            if only_cached:
                raise _WouldWaitError
            ahead = list(islice(self._places, NODES_AHEAD))
            self._has_all_nodes = len(ahead) < NODES_AHEAD
            self._nodes += ahead
        return self._nodes[number - 1] if number <= len(self._nodes) else None

    def _check_complete(self, state: Any) -> None:
        if state[Field.EVENT_LEFT]:
            raise EventError(f"the events end inside an event, {state[Field.EVENT_LEFT]} bytes early")
        if state[Field.HEAD_HELD]:
            raise EventError(f"the events end inside an event, after {state[Field.HEAD_HELD]} bytes of it")

    def _event_problem(self, workspace: Workspace) -> EventError:
        size = int.from_bytes(workspace.head[SIZE_OFFSET : SIZE_OFFSET + 4].tobytes(), "little")
        check_event_size(size)
        return EventError(f"an event of {size} bytes")

    def _node_problem(self, node: NodePlace) -> RecordError:
        """What is wrong with a node, as the careful path finds it."""
        for _ in self._out_of_band.node_data(node.ref):
            pass
        return RecordError(node.ref.location, "an out-of-band record cannot be read")


class _WouldWaitError(Exception):
    """The bytes are not in memory."""


def _place(workspace: Workspace, node: int, file_no: int, file_offset: int) -> PartPosition:
    state = tuple(workspace.state[FIRST_FIELD:].tolist())
    head = workspace.head[: workspace.state[Field.HEAD_HELD]].tobytes()
    return PartPosition(node, file_no, file_offset, state, head)


def _is_inside_event(state: tuple[int, ...]) -> bool:
    """Whether a part of an event has gone out and the rest has not."""
    return state[Field.EVENT_LEFT - FIRST_FIELD] > 0 and not state[Field.IS_DROPPED - FIRST_FIELD]
