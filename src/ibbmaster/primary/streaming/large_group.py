"""A group with a part out of band, framed without holding a whole node; and the way to its commit."""

import os
import threading
from array import array
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

from ibbmaster.errors import ChunkError, EventError, RecordError
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import (
    NODE_HEAD_MIN,
    NODE_HEADER_NUMBERS,
    ChunkColumn,
    Field,
    NodeColumn,
    NodeScan,
    Status,
    UnreadNodeColumn,
)
from ibbmaster.kernel.plain_memory import NOTHING, RowTable, kept, numbers, scratch
from ibbmaster.logs.log.cursor import ChunkCursor
from ibbmaster.logs.log.event_groups import StoredGroup
from ibbmaster.logs.log.out_of_band import FoundNode, OutOfBandReader, check_stream
from ibbmaster.logs.log.pages import REREADS, PageReader
from ibbmaster.position import LOG_START, NOWHERE, LogPosition
from ibbmaster.replication.dump.framing import check_event_size
from ibbmaster.replication.dump.rewriting import Selection
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, SIZE_OFFSET
from ibbmaster.storage.disk.interface import ReadDisk
from ibbmaster.storage.ibb.chunk import TYPE_MASK, RecordType
from ibbmaster.storage.ibb.commit import OobStream
from ibbmaster.storage.ibb.file_name import format_file_name
from ibbmaster.storage.ibb.page import PAGE_SIZE
from .block import Block, BlockShape, FramingState, Mark
from .buffers import SHARED_BYTES, Buffers, Workspace, framed_packets, pages_to_border

BLOCK_BYTES = 192 * 1024  # of packets end a block: what one more call adds still fits the buffer
NUMBER_MAX = 2**62  # of what is looked for by a kernel
NODES_AT_FIRST = 64  # found in one go, from the disk: the first events shall come soon
NODES_AHEAD = 1024  # later: about one call of a pump
FIRST_FIELD = Field.EVENT_LEFT  # from here on the state is of a place inside a group
NodeRow = Sequence[int]  # see NodeColumn


class LargeGroup:
    """All that dumps inside one group share: its inline part, and the places of its nodes. Thread-safe. Raises
    FormatError: references lead nowhere.
    """

    def __init__(self, disk: ReadDisk, group: StoredGroup, kernels: Kernels) -> None:
        for stream in group.streams:
            check_stream(stream, group.start)
        self.gtid, self.start, self.end = group.gtid, group.start, group.end
        self._data = group.gtid_event + group.payload
        self._disk = disk
        self._kernels = kernels
        self._out_of_band = OutOfBandReader(disk)
        self._streams = group.streams
        self.node_count = sum(stream.node_count for stream in group.streams)
        self._nodes: list[NodeRow] = []  # see NodeColumn
        self._ahead = self._search()
        self._lock = threading.Lock()  # for the two above
        self._rereads_left = REREADS

    def begin(self) -> "PartState":
        return PartState(self, 0, LOG_START, (0,) * (Field.SIZE - FIRST_FIELD), b"")

    @property
    def only_stream(self) -> OobStream | None:
        """If it has one alone, in one file."""
        stream, *others = self._streams
        return None if others or stream.first.file_no != stream.last.file_no else stream

    def nodes_from(self, number: int) -> list[NodeRow]:
        """From a number, 1 at least, with known ones after it."""
        self._find(number, only_cached=False)
        return self._nodes[number - 1 :]

    def frame(
        self, at: "PartState", selection: Selection, sequence: int, buffers: Buffers, wanted: BlockShape
    ) -> Block | None:
        """None with `only_cached`: would wait. Raises FormatError: nodes are damaged, or do not make up events;
        DumpError: an event is larger than MariaDB sends; StoreError: a file cannot be read.
        """
        with buffers.workspace() as workspace:
            workspace.prepare(selection, sequence)
            out = buffers.take(is_shared=wanted.is_shared)
            wanted_bytes = SHARED_BYTES if wanted.is_shared else BLOCK_BYTES
            after: PartState | None = at
            is_full = False
            try:
                while after is not None and not is_full and workspace.state[Field.OUT] < wanted_bytes:
                    after, is_full = self._step(workspace, after, out, only_cached=wanted.only_cached)
            except _WouldWaitError:
                buffers.release(out)
                return None
            end = FramingState(self.end) if after is None else after
            return Block(framed_packets(out, buffers, workspace.state), at, end)

    def _step(
        self, workspace: Workspace, at: "PartState", out: Any, *, only_cached: bool
    ) -> "tuple[PartState | None, bool]":
        """Call a kernel once; returns the place after it, None at the end; whether the output is full."""
        resume(workspace, at)
        state = workspace.state
        if at.node == 0:
            stopped, status = self._frame_data(workspace, at, out)
            if status == Status.FALLBACK:
                raise self._event_problem(workspace)
            if status == Status.FULL:
                return self.part_state(workspace, 0, LogPosition(0, stopped)), True
            return self.part_state(workspace, 1, NOWHERE), False
        node = self._find(at.node, only_cached=only_cached)
        if node is None:
            self._check_complete(state)
            return None, False
        position = at.place
        if position == NOWHERE:
            position = node.position
            state[Field.TO_SKIP], state[Field.SKIP_TYPE], state[Field.NESTED_TYPE] = node.header_size, -1, -1
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
            if state[Field.SKIP_TYPE] >= 0 and PageReader(self._disk).header(file_no + 1) is not None:
                return self.part_state(workspace, at.node, LogPosition(file_no + 1, PAGE_SIZE)), False
            raise self._node_problem(node)
        status = self._kernels.frame_node(workspace.pages, found, workspace.framing(out, NOTHING))
        page_no += int(state[Field.PAGE])
        behind = self.part_state(workspace, at.node, LogPosition.on_page(file_no, page_no, int(state[Field.OFFSET])))
        match status:
            case Status.DONE:
                return self.part_state(workspace, at.node + 1, NOWHERE), False
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

    def frame_inline(self, workspace: Workspace, at: "PartState", out: Any) -> bool:
        return self._frame_data(workspace, at, out)[1] == Status.DONE

    def _frame_data(self, workspace: Workspace, at: "PartState", out: Any) -> tuple[int, int]:
        data = kept(self._data)
        return self._kernels.frame_bytes(data, at.place.offset, len(data), workspace.framing(out, NOTHING))

    def is_end(self, at: "PartState") -> bool:
        fields = at.fields
        is_open = fields[Field.EVENT_LEFT - FIRST_FIELD] or fields[Field.HEAD_HELD - FIRST_FIELD]
        return at.node > self.node_count and not is_open

    def part_state(self, workspace: Workspace, node: int, place: LogPosition) -> "PartState":
        fields = tuple(workspace.state[FIRST_FIELD:].tolist())
        head = workspace.head[: workspace.state[Field.HEAD_HELD]].tobytes()
        return PartState(self, node, place, fields, head)

    def _find(self, number: int, *, only_cached: bool) -> FoundNode | None:
        if number > self.node_count:
            return None
        if len(self._nodes) < number:
            if only_cached:
                raise _WouldWaitError
            with self._lock:
                self._find_more(number)
        file_no, offset, header_size = self._nodes[number - 1]
        return FoundNode(LogPosition(file_no, offset), header_size)

    def _find_more(self, number: int) -> None:
        while len(self._nodes) < number:
            try:
                found = list(islice(self._ahead, NODES_AHEAD if self._nodes else NODES_AT_FIRST))
                assert found, "a stream has all nodes that its commit record counts"
            except BaseException:
                self._ahead = self._search()  # the next caller meets the same
                raise
            self._nodes += found

    def _search(self) -> Iterator[NodeRow]:
        nodes_of = partial(_nodes_of, self._disk, self._out_of_band, self._kernels)  # without the group: no cycle
        return islice(chain.from_iterable(map(nodes_of, self._streams)), len(self._nodes), None)

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
        """As the reference finds it."""
        for _ in self._out_of_band.node_data(node.position):
            pass
        return RecordError(node.position, "an out-of-band record cannot be read")


class PartState(NamedTuple):
    """At `place` in a node of a large group, `NOWHERE` before the node's begin. Node 0 is the inline part, whose bytes
    `place` counts. `fields` are the kernel's state from `FIRST_FIELD` on, `head` is of the event that has begun."""

    group: LargeGroup
    node: int
    place: LogPosition
    fields: tuple[int, ...]
    head: bytes

    @property
    def position(self) -> LogPosition:
        return self.group.start

    @property
    def is_inside_group(self) -> bool:
        return True

    @property
    def is_inside_event(self) -> bool:
        return self.fields[Field.EVENT_LEFT - FIRST_FIELD] > 0 and not self.fields[Field.IS_DROPPED - FIRST_FIELD]

    @property
    def packet_left(self) -> int:
        return self.fields[Field.PACKET_LEFT - FIRST_FIELD] if self.is_inside_event else 0

    def __str__(self) -> str:
        name = format_file_name(max(self.place.file_no, 0))
        return f"{name} (node {self.node} of a group) offset {self.place.offset}"


def quick_nodes(disk: ReadDisk, stream: OobStream, kernels: Kernels) -> Iterator[NodeRow]:
    file_no = stream.last.file_no
    if stream.first.file_no != file_no or max(stream.node_count, *stream.first, *stream.last) > NUMBER_MAX:
        return
    bits = stream.node_count.bit_length()
    search, header = numbers(NodeScan.SIZE), numbers(NODE_HEADER_NUMBERS)
    path = RowTable((bits + 1) * (bits + 2), UnreadNodeColumn.COLUMNS).memory
    nodes = RowTable(NODES_AT_FIRST, NodeColumn.COLUMNS)
    page = scratch(PAGE_SIZE + NODE_HEAD_MIN + 8)  # numbers are loaded as eight bytes
    search[NodeScan.FILE_NO], search[NodeScan.FIRST] = stream.first
    search[NodeScan.NODES], search[NodeScan.PATH] = stream.node_count, 1
    path[0, 0], path[0, 1], path[0, 2] = stream.last.offset, stream.node_count - 1, 1
    status = int(Status.FULL)
    while status == Status.FULL:
        descriptor = disk.open(format_file_name(file_no))
        if descriptor is None:
            return
        try:
            count, status = kernels.find_nodes(descriptor, search, path, page, header, nodes.memory)
        finally:
            os.close(descriptor)
        yield from nodes.rows(count)
        if len(nodes.memory) < NODES_AHEAD:
            nodes = RowTable(NODES_AHEAD, NodeColumn.COLUMNS)


class _WouldWaitError(Exception):
    pass


def resume(workspace: Workspace, at: PartState) -> None:
    workspace.state[FIRST_FIELD:] = array("q", at.fields)
    if at.head:
        workspace.head[: len(at.head)] = memoryview(at.head)


def _nodes_of(disk: ReadDisk, out_of_band: OutOfBandReader, kernels: Kernels, stream: OobStream) -> Iterator[NodeRow]:
    count = 0
    for row in quick_nodes(disk, stream, kernels):
        count += 1
        yield row
    if count < stream.node_count:
        for (file_no, offset), header_size in islice(out_of_band.nodes(stream), count, None):
            yield file_no, offset, header_size


class PassedRun:
    """The way from where the out-of-band records begin to their commit record, for one dump: good only once all its
    checksums were checked, in order, by a pump that sends it or by `check`. No group may begin on it.
    """

    def __init__(self, disk: ReadDisk, kernels: Kernels, buffers: Buffers, begin: FramingState, commit: int) -> None:
        """`commit` is the file offset of the commit record."""
        self.begin = begin
        self.commit = LogPosition(begin.position.file_no, commit)
        self.at = begin  # everything before was checked
        self.sent_to: Mark | None = None  # how far the group was sent from the way, if at all
        self._disk = disk
        self._kernels = kernels
        self._buffers = buffers

    def check(self, start: FramingState | None = None) -> None:
        """Check the rest, or from a record on. Raises FormatError: it is damaged, or no way to a commit record;
        StoreError: the file cannot be read.
        """
        with self._buffers.workspace() as workspace:
            at = self.at if start is None else start
            rereads_left = REREADS
            while at.position < self.commit:
                after, status = self._step(workspace, at)
                if status == Status.BAD_PAGE and rereads_left:
                    rereads_left -= 1
                    PageReader(self._disk).fresh_page(after.position.file_no, after.position.page_no)
                elif after == at or status not in (Status.NEED_MORE, Status.NO_DATA, Status.FULL):
                    raise self._problem(after)
                at = after
            if at != FramingState(self.commit):
                raise self._problem(at)

    def _step(self, workspace: Workspace, at: FramingState) -> tuple[FramingState, int]:
        (file_no, _), page_no = at.position, at.position.page_no
        target = memoryview(workspace.pages)[: pages_to_border(page_no) * PAGE_SIZE]
        size = self._disk.read_into(format_file_name(file_no), page_no * PAGE_SIZE, target, only_cached=False)
        assert size is not None, "a read that may wait gives what is there"
        state, table = workspace.state, workspace.table
        state[Field.PAGE] = state[Field.VERIFIED] = 0
        state[Field.END] = self.commit.offset - page_no * PAGE_SIZE
        workspace.go_to(at)
        rows, status = self._kernels.index_chunks(workspace.pages, size // PAGE_SIZE, state, table, 0)
        for row in range(rows):
            if table[row, ChunkColumn.TYPE] & TYPE_MASK != RecordType.COMMIT:
                continue
            start = table[row, ChunkColumn.START]
            return FramingState(LogPosition(file_no, page_no * PAGE_SIZE + start)), Status.FALLBACK
        return workspace.framing_state(file_no, page_no + int(state[Field.PAGE])), status

    def _problem(self, at: FramingState) -> Exception:
        ChunkCursor.at(PageReader(self._disk), at.position).next_chunk()
        return ChunkError(at.position, f"this is not part of the group at {self.commit}")
