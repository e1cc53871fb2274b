"""A group with a part out of band, in blocks of packets: node after node, never a whole node in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from itertools import chain, islice, takewhile
from types import ModuleType
from typing import Any

import numpy as np

from ibbmaster.disk.interface import ReadDisk
from ibbmaster.dump.framing import check_event_size
from ibbmaster.dump.rewriting import Selection
from ibbmaster.errors import EventError, RecordError
from ibbmaster.event.header import EVENT_HEADER_SIZE, SIZE_OFFSET
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.kernel.fields import Field, Progress, Status
from ibbmaster.log.event_groups import StoredGroup
from ibbmaster.log.out_of_band import FoundNode, OutOfBandReader, check_stream
from ibbmaster.log.pages import PageReader
from ibbmaster.position import LOG_START, NOWHERE, LogPosition
from ibbmaster.streaming.block import Block, check_continues, longer, make_block, renumbered
from ibbmaster.streaming.block_cache import BlockCache
from ibbmaster.streaming.buffers import Workspace, pages_to_border
from ibbmaster.streaming.framing_state import PartState
from ibbmaster.streaming.pumping import pump_call

BLOCK_BYTES = 192 * 1024  # of packets end a block: with what one more call adds it still fits its buffer
PIECES_SHARED = 5  # blocks that are one for many readers
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
        disk: ReadDisk,
        group: StoredGroup,
        identity: Hashable,
        selection: Selection,
        cache: BlockCache,
        kernels: ModuleType,
    ) -> None:
        for stream in group.streams:
            check_stream(stream, group.start)
        self.group = group
        self._disk = disk
        self._selection = selection
        self._cache = cache
        self._kernels = kernels
        self._key = ("part of", identity, group.start, selection)
        self._out_of_band = OutOfBandReader(disk)
        self._found: Iterator[FoundNode] = chain.from_iterable(map(self._out_of_band.nodes, group.streams))
        self._nodes: list[FoundNode] = []
        self._has_all_nodes = False
        self._rereads_left = REREADS
        self._at: PartState | None = PartState(0, LOG_START, (0,) * (Field.SIZE - FIRST_FIELD), b"")

    @property
    def is_finished(self) -> bool:
        """Whether every part was given."""
        return self._at is None

    def next_part(self, sequence: int, *, only_cached: bool) -> Block | None:
        """The next block; `sequence` is the number of the packet that comes next. None with `only_cached`: would wait.

        Raises:
            FormatError: nodes are damaged, or do not make up events.
            DumpError: an event is larger than MariaDB sends, or a part does not begin where the last ended.
            StoreError: a file cannot be read.
        """
        at = self._at
        assert at is not None
        cache = self._cache

        def follow(block: Block) -> Block | None:
            if not isinstance(block.after, PartState):
                return None
            return self._frame(block.after, block.sequence_after, only_cached=only_cached)

        def make(like: tuple[Block, int] | None) -> Block | None:
            if like is not None:
                first = at.fields[Field.PACKET_LEFT - FIRST_FIELD] if _is_inside_event(at) else 0
                return renumbered(*like, sequence, kernels=self._kernels, pool=cache.buffers, first=first)
            block = self._frame(at, sequence, only_cached=only_cached)
            if block is None or not cache.is_shared:
                return block
            return longer(block, follow, pieces_max=PIECES_SHARED)

        block = cache.find((*self._key, at, cache.is_shared), sequence, make, only_cached=only_cached)
        if block is None:
            return None
        check_continues(block, at)
        assert block.after is None or isinstance(block.after, PartState)
        self._at = block.after
        return block

    def pump(self, sequence: int, socket: int, *, check_log: Callable[[], None]) -> tuple[Block, int] | None:
        """Send parts to a socket; returns what it did not take, and the bytes framed. For a worker thread.

        None where it does not go, or not without trouble: `next_part` names it.
        """
        at = self._at
        if at is None or at.node == 0:
            return None
        node = self._node(at.node, only_cached=False)
        if node is None or at.position.file_no not in (node.position.file_no, NOWHERE.file_no):
            return None
        file_no = node.position.file_no
        nodes = list(takewhile(lambda node: node.position.file_no == file_no, self._nodes[at.node - 1 :]))
        with pump_call(
            self._disk, file_no, self._cache.buffers, self._selection, sequence, check_log=check_log
        ) as call:
            if call is None:
                return None
            workspace, progress = call.workspace, call.progress
            self._resume(workspace, at)
            if at.position != NOWHERE:
                workspace.state[Field.OFFSET] = at.position.page_offset
                progress[Progress.FILE_OFFSET], progress[Progress.IS_BEGUN] = at.position.page_no * PAGE_SIZE, 1
            self._kernels.pump_nodes(
                call.file,
                socket,
                progress,
                np.array([(node.position.offset, node.header_size) for node in nodes], dtype=np.int64),
                workspace.pages,
                workspace.state,
                workspace.head,
                workspace.prefix,
                call.out,
                workspace.segments,
                workspace.wanted,
                call.rest,
            )
            number = at.node + int(progress[Progress.NODE])
            if progress[Progress.IS_BEGUN]:
                offset = int(progress[Progress.FILE_OFFSET] + workspace.state[Field.OFFSET])
                after = _part_state(workspace, number, LogPosition(file_no, offset))
            else:
                after = _part_state(workspace, number, NOWHERE)
            self._at = after
            return call.result(at, after, is_inside_event=_is_inside_event(after))

    def _frame(self, at: PartState, sequence: int, *, only_cached: bool) -> Block | None:
        buffers = self._cache.buffers
        with buffers.workspace() as workspace:
            workspace.prepare(self._selection, sequence)
            out = buffers.take()
            after: PartState | None = at
            is_full = False
            try:
                while after is not None and not is_full and workspace.state[Field.OUT] < BLOCK_BYTES:
                    after, is_full = self._step(workspace, after, out, only_cached=only_cached)
            except _WouldWaitError:
                buffers.give_back(out)
                return None
            is_inside = after is not None and _is_inside_event(after)
            return make_block(out, buffers, workspace.state, before=at, after=after, is_inside_event=is_inside)

    def _resume(self, workspace: Workspace, at: PartState) -> None:
        """Have the framing go on at a place."""
        workspace.state[FIRST_FIELD:] = at.fields
        if at.head:
            workspace.head[: len(at.head)] = memoryview(at.head)

    def _step(
        self, workspace: Workspace, at: PartState, out: object, *, only_cached: bool
    ) -> tuple[PartState | None, bool]:
        """One call of a kernel; returns the place behind it, None at the end, and whether the output is full."""
        self._resume(workspace, at)
        state, head = workspace.state, workspace.head
        if at.node == 0:
            data = np.frombuffer(bytearray(self.group.gtid_event + self.group.payload), dtype=np.uint8)
            stopped, status = self._kernels.frame_bytes(
                data, at.position.offset, len(data), state, head, workspace.prefix, out, workspace.none
            )
            if status == Status.CAREFUL:
                raise self._event_problem(workspace)
            if status == Status.FULL:
                return _part_state(workspace, 0, LogPosition(0, stopped)), True
            return _part_state(workspace, 1, NOWHERE), False
        node = self._node(at.node, only_cached=only_cached)
        if node is None:
            self._check_complete(state)
            return None, False
        position = at.position
        if position == NOWHERE:
            position = node.position
            state[Field.CHUNK_LEFT], state[Field.IS_LAST] = 0, 0
            state[Field.TO_SKIP], state[Field.IS_FIRST], state[Field.NESTED_TYPE] = node.header_size, 1, -1
        file_no, page_no = position.file_no, position.page_no
        state[Field.PAGE], state[Field.OFFSET] = 0, position.page_offset
        page_count = pages_to_border(page_no)
        target = memoryview(workspace.pages)[: page_count * PAGE_SIZE]
        name = format_file_name(file_no)
        size = self._disk.read_into(name, page_no * PAGE_SIZE, target, only_cached=only_cached)
        if size is None:
            raise _WouldWaitError
        found = size // PAGE_SIZE
        if not found:
            if not state[Field.IS_FIRST] and PageReader(self._disk).header(file_no + 1) is not None:
                return _part_state(workspace, at.node, LogPosition(file_no + 1, PAGE_SIZE)), False
            raise self._node_problem(node)
        status = self._kernels.frame_record(workspace.pages, found, state, head, workspace.prefix, out, workspace.none)
        page_no += int(state[Field.PAGE])
        behind = _part_state(workspace, at.node, LogPosition.on_page(file_no, page_no, int(state[Field.OFFSET])))
        match status:
            case Status.DONE:
                return _part_state(workspace, at.node + 1, NOWHERE), False
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

    def _node(self, number: int, *, only_cached: bool) -> FoundNode | None:
        """The node of a number from 1 on; None behind the last."""
        while len(self._nodes) < number and not self._has_all_nodes:
            if only_cached:
                raise _WouldWaitError
            ahead = list(islice(self._found, NODES_AHEAD))
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

    def _node_problem(self, node: FoundNode) -> RecordError:
        """What is wrong with a node, as the careful path finds it."""
        for _ in self._out_of_band.node_data(node.position):
            pass
        return RecordError(node.position.location, "an out-of-band record cannot be read")


class _WouldWaitError(Exception):
    """The bytes are not in memory."""


def _part_state(workspace: Workspace, node: int, position: LogPosition) -> PartState:
    fields = tuple(workspace.state[FIRST_FIELD:].tolist())
    head = workspace.head[: workspace.state[Field.HEAD_HELD]].tobytes()
    return PartState(node, position, fields, head)


def _is_inside_event(at: PartState) -> bool:
    """Whether a part of an event has gone out and the rest has not."""
    return at.fields[Field.EVENT_LEFT - FIRST_FIELD] > 0 and not at.fields[Field.IS_DROPPED - FIRST_FIELD]
