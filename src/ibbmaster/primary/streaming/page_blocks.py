"""Blocks of packets from pages of `.ibb` files, made by kernels."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from collections.abc import Hashable, Iterable, Iterator
from itertools import takewhile
from typing import Any, NamedTuple

from ibbmaster.errors import FormatError, MissingFileError, StoreError
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import (
    Field,
    NodeColumn,
    Progress,
    Status,
)
from ibbmaster.kernel.plain_memory import NOTHING, number_rows, numbers
from ibbmaster.logs.log.event_groups import GLANCE_SIZE, StoredGroup
from ibbmaster.logs.log.interface import PagedEventGroups
from ibbmaster.logs.log.pages import PageReader, read_cached
from ibbmaster.position import NOWHERE, LogPosition
from ibbmaster.replication.dump.rewriting import Selection
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.storage.ibb.chunk import CHUNK_HEADER_SIZE, CONT, FILLER, LAST, TYPE_MASK, RecordType
from ibbmaster.storage.ibb.file_header import SHORT_SIZE
from ibbmaster.storage.ibb.file_name import format_file_name
from ibbmaster.storage.ibb.page import PAGE_SIZE
from .block import NO_PACKETS, Block, BlockShape, FindEnd, FramingState, Groups, Mark, Packets, file_end
from .block_cache import BlockCache, KnownWay
from .buffers import PAGES_MAX, PAGES_PER_BLOCK, SHARED_BYTES, Workspace, framed_packets, pages_to_border, renumbered
from .large_group import LargeGroup, PartState, PassedRun, resume

EVERYTHING = Selection(leaves_out_annotate=False, leaves_out_marked=False, prefix=b"")
SKIPPED_PAGES = 128  # at most in one call: a state interval of MariaDB, 2 MiB, takes 0.3 ms
SKIPPED_AT_FIRST = 8  # the way may be short, and a hole come after it
SKIPPED_AT_ONCE = 32  # then: half a MiB stays in a core's cache, and less is read in vain
SHORT_PAGES = 2  # 32 KiB: sent in a fifth of the time of a whole block
PAGES_PER_READ = 32  # of a block for many readers
BUDGET_BYTES = 16 << 20  # in one call of a pump: beside that a hop to a thread costs nothing


class Framed(NamedTuple):
    after: FramingState
    head: bytes
    is_stopped: bool = False  # by what comes next, not by the end of the pages


class PageBlocks:
    """The `BlockMaker` of `.ibb` files. All dumps' blocks end where a group reaches over a border of `PAGES_PER_BLOCK`
    pages, so they can be shared.
    """

    def __init__(self, groups: PagedEventGroups, cache: BlockCache, kernels: Kernels, find_end: FindEnd) -> None:
        self.find_end = find_end
        self._groups = groups
        self._disk = groups.disk
        self.check_log = groups.check_log
        self.cache = cache
        self.kernels = kernels
        self._file_no = -1
        self._identity: Hashable = None  # of that file: one of the same name has another
        self.way: PassedRun | None = None  # that a pump has found, and sends

    def identity(self, at: Mark, *, only_cached: bool) -> Hashable:
        if isinstance(at, PartState):
            return at.group
        file_no, offset = at.position
        if offset <= PAGE_SIZE or self._groups.log_identity is None:
            return None  # the head of a file; or not to be read now
        try:
            return self._identity_of(file_no, only_cached=only_cached)
        except (BlockingIOError, FormatError, StoreError):
            return None  # gone, or begun again: the reference way handles it

    def large_group(self, group: EventGroup) -> PartState | None:
        if not isinstance(group, StoredGroup):
            return None
        key = self._identity_of(group.start.file_no), group.start
        found = self.cache.large_group(key, lambda: LargeGroup(self._disk, group, self.kernels))
        return None if found is None else found.begin()

    def known_group(self, at: Mark) -> tuple[Gtid, PartState] | None:
        file_no = at.position.file_no
        group = self.cache.large_group((self._identity, at.position)) if file_no == self._file_no else None
        if group is None or group.gtid is None or group.end.file_no != file_no:
            return None
        return group.gtid, group.begin()

    def frame(self, at: Mark, selection: Selection, sequence: int, wanted: BlockShape) -> Block | None:
        buffers = self.cache.buffers
        if self.way is not None and at != self.way.begin:
            if wanted.only_cached:
                return None
            self.check_way()
        self.way = None
        if isinstance(at, PartState):
            return at.group.frame(at, selection, sequence, buffers, wanted)
        assert isinstance(at, FramingState)
        with buffers.workspace() as workspace:
            out = buffers.take(is_shared=wanted.is_shared)
            framed = self._frame_in(workspace, out, at, selection, sequence, wanted)
            if framed is None:
                buffers.release(out)
                return None
            after, head, _ = framed
            return Block(framed_packets(out, buffers, workspace.state), at, after, Groups(workspace.gtids()), head)

    def renumbered(self, block: Block, was: int, sequence: int) -> Block:
        first = block.before.packet_left if isinstance(block.before, PartState) else 0
        return renumbered(block, was, sequence, kernels=self.kernels, pool=self.cache.buffers, first=first)

    def skip(self, at: Mark, limits: Iterable[Gtid], *, only_cached: bool) -> Block | None:
        assert isinstance(at, FramingState)
        if at.position.offset <= PAGE_SIZE:
            return None
        skips = _rows_of(tuple(limits))
        with self.cache.buffers.workspace() as workspace:
            skipped = self._skip_in(workspace, at, skips, only_cached=only_cached)
            if skipped is None:
                return None
            groups = Groups(workspace.gtids(), is_in_order=workspace.is_in_order)
            return Block(NO_PACKETS, at, skipped.after, groups, skipped.head, is_stopped=skipped.is_stopped)

    def check_way(self) -> None:
        """Check the rest of the way to the group that a pump sends, which now goes another way. Raises FormatError,
        StoreError: as `PassedRun.check`.
        """
        if self.way is not None:
            self.check_part(self.way)
            self.way = None

    def check_part(self, way: PassedRun, start: FramingState | None = None) -> None:
        try:
            way.check(start)
        except Exception:
            self.cache.ways.forget(self._identity_of(way.commit.file_no))
            raise

    def known_way(self, at: FramingState, end: int) -> KnownWay:
        """To the next large group, if found; `end` as `KnownWays` takes it."""
        return self.cache.ways.next_from(self._identity_of(at.position.file_no), at.position.offset, end)

    def begin_way(self, begin: FramingState, commit: int) -> None:
        """A pump has found, where parts begin, their commit record at this file offset."""
        self.way = PassedRun(self._disk, self.kernels, self.cache.buffers, begin, commit)
        self.cache.ways.note(self._identity_of(begin.position.file_no), KnownWay(begin.position.offset, commit))

    @contextlib.contextmanager
    def pump(self, socket: int) -> Iterator[PagePump]:
        pump = PagePump(self, socket)
        try:
            yield pump
        finally:
            pump.close()

    def open(self, file_no: int) -> int | None:
        return self._disk.open(format_file_name(file_no))

    def _identity_of(self, file_no: int, *, only_cached: bool = False) -> Hashable:
        def judge() -> Hashable:
            header = PageReader(self._disk, only_cached=only_cached).header(file_no)
            return None if header is None else dataclasses.astuple(header)  # sooner hashed

        if file_no != self._file_no:
            header = self.cache.identity((file_no, self._short_header(file_no, only_cached)), judge)
            self._identity = None if header is None else (self._groups.log_identity, header)
            self._file_no = file_no
        return self._identity

    def _short_header(self, file_no: int, only_cached: bool) -> bytes:
        name = format_file_name(file_no)
        try:
            return read_cached(self._disk, name, 0, SHORT_SIZE) if only_cached else self._disk.read(name, 0, SHORT_SIZE)
        except MissingFileError:
            return b""

    def _frame_in(
        self,
        workspace: Workspace,
        out: Any,
        at: FramingState,
        selection: Selection,
        sequence: int,
        wanted: BlockShape,
    ) -> Framed | None:
        """To a number of pages, or a border; None if that goes no step."""
        (file_no, offset), page_no = at.position, at.position.page_no
        name, state = format_file_name(file_no), workspace.state
        count = SHORT_PAGES if wanted.is_short else pages_to_border(page_no)
        border = page_no + count
        if wanted.is_shared:
            count, border = PAGES_PER_READ, page_no + pages_to_border(page_no, SHARED_BYTES // PAGE_SIZE)
        end, framing = file_end(self.find_end(), at.position), workspace.framing(out, NOTHING)
        after, head, status = at, b"", int(Status.NEED_MORE)
        while page_no < border and status == Status.NEED_MORE and not 0 < end <= max(page_no * PAGE_SIZE, offset):
            if after == at:
                workspace.prepare(selection, sequence)
                workspace.go_to(at)
            count = min(count, border - page_no)
            target = memoryview(workspace.pages)[: count * PAGE_SIZE]
            size = self._disk.read_into(name, page_no * PAGE_SIZE, target, only_cached=wanted.only_cached)
            if size is None:
                return None
            head = head or _head(workspace, at)
            state[Field.PAGE], state[Field.END] = 0, end and end - page_no * PAGE_SIZE
            status = self.kernels.frame_table(workspace.pages, size // PAGE_SIZE, framing)
            page_no += int(state[Field.PAGE])
            before, after = after, workspace.framing_state(file_no, page_no)
            if after == before:
                if after != at or size < len(target) or count + PAGES_PER_BLOCK > PAGES_MAX:
                    break
                count += PAGES_PER_BLOCK
                border = max(border, page_no + count)
            elif not wanted.is_shared:
                break
        return None if after.position == at.position else Framed(after, head)

    def _skip_in(self, workspace: Workspace, at: FramingState, skips: Any, *, only_cached: bool) -> Framed | None:
        """To a border, after a look at few pages; None if that goes no step."""
        (file_no, offset), page_no = at.position, at.position.page_no
        name, state = format_file_name(file_no), workspace.state
        end = file_end(self.find_end(), at.position)
        if end and end <= offset:
            return None
        workspace.prepare(EVERYTHING, 0)
        workspace.go_to(at)
        framing = workspace.framing(NOTHING, NOTHING)
        border = page_no - page_no % SKIPPED_PAGES + SKIPPED_PAGES
        page_count, after, head, status = min(SKIPPED_AT_FIRST, border - page_no), at, b"", int(Status.NEED_MORE)
        while page_count and status == Status.NEED_MORE:
            target = memoryview(workspace.pages)[: page_count * PAGE_SIZE]
            size = self._disk.read_into(name, page_no * PAGE_SIZE, target, only_cached=only_cached)
            if not size:
                break
            if not head:
                head = _head(workspace, at)
                if not at.position.page_offset and self._groups.may_begin_inside:
                    state[Field.SKIP_TYPE] = _type_inside(workspace.pages)
            state[Field.PAGE], state[Field.END] = 0, end and end - page_no * PAGE_SIZE
            status = self.kernels.skip_table(workspace.pages, size // PAGE_SIZE, framing, skips)
            page_no += int(state[Field.PAGE])
            before, after = after, workspace.framing_state(file_no, page_no)
            left = border - page_no
            is_over = size < len(target) or (end and page_no * PAGE_SIZE >= end)
            if after == before:
                longest = min(left, PAGES_MAX)
                page_count = 0 if is_over or longest <= page_count else longest
            else:
                page_count = 0 if is_over else min(left, SKIPPED_AT_ONCE)
        return None if after.position == at.position else Framed(after, head, status in (Status.FALLBACK, Status.DONE))


@functools.lru_cache(64)
def _rows_of(gtids: tuple[Gtid, ...]) -> Any:
    rows = [(gtid.domain_id, gtid.server_id, gtid.seq_no) for gtid in gtids]
    return number_rows(rows, 3)


def _head(workspace: Workspace, at: FramingState) -> bytes:
    offset = at.position.page_offset
    return bytes(memoryview(workspace.pages)[offset : offset + GLANCE_SIZE])


def _type_inside(page: Any) -> int:
    """Of the record that goes on where a page begins, or after the state there; else -1."""
    offset = 0
    if page[0] == RecordType.GTID_STATE | LAST:
        offset = min(CHUNK_HEADER_SIZE + int.from_bytes(page[1:CHUNK_HEADER_SIZE].tobytes(), "little"), PAGE_SIZE - 1)
    type_byte = int(page[offset])
    return type_byte & TYPE_MASK if type_byte & CONT and type_byte != FILLER else -1


class OpenFile(NamedTuple):
    file_no: int
    descriptor: int
    progress: Any


class PagePump:
    """An open file was checked to be of this log, whatever happens to its name."""

    def __init__(self, maker: PageBlocks, socket: int) -> None:
        self._maker = maker
        self._socket = socket
        self._buffers = maker.cache.buffers
        self._kernels = maker.kernels
        self._stack = contextlib.ExitStack()
        self._workspace = self._stack.enter_context(self._buffers.workspace())
        self._out = self._buffers.take()
        self._stack.callback(self._buffers.release, self._out)
        self._file: OpenFile | None = None
        self._stuck_at: FramingState | None = None  # what comes here goes another way

    def close(self) -> None:
        self._stack.close()
        if self._file is not None:
            os.close(self._file.descriptor)
            self._file = None

    def send(self, at: Mark, selection: Selection, sequence: int) -> Block | None:
        if isinstance(at, PartState):
            return self._send_nodes(at, selection, sequence)
        assert isinstance(at, FramingState)
        file_no, offset = at.position
        if offset <= PAGE_SIZE or at == self._stuck_at or self.commit_ahead(at) is not None:
            return None
        file = self._file_of(file_no)
        if file is None:
            return None
        workspace, progress, rest = self._workspace, file.progress, self._buffers.take()
        workspace.prepare(selection, sequence)
        workspace.go_to(at)
        progress[Progress.FILE_OFFSET] = at.position.page_no * PAGE_SIZE
        end = progress[Progress.END] = file_end(self._maker.find_end(), at.position)
        progress[Progress.KNOWN_BEGIN], progress[Progress.KNOWN_COMMIT] = self._maker.known_way(at, end)
        sending = workspace.sending(file.descriptor, self._socket, progress, rest)
        status = self._kernels.pump(workspace.pages, workspace.framing(self._out, workspace.segments), sending)
        after = workspace.framing_state(file_no, int(progress[Progress.FILE_OFFSET]) // PAGE_SIZE)
        self._stuck_at = None if status == Status.FULL else after
        if progress[Progress.COMMIT]:
            self._maker.begin_way(after, int(progress[Progress.COMMIT]))
        return Block(self._left(progress, rest), at, after, Groups(workspace.gtids()))

    def commit_ahead(self, at: Mark) -> LogPosition | None:
        way = self._maker.way
        return way.commit if way is not None and way.begin == at else None

    def check_way(self) -> None:
        self._maker.check_way()

    def _send_nodes(self, at: PartState, selection: Selection, sequence: int) -> Block | None:
        group, first = at.group, max(at.node, 1)
        way = self._way_of(at)
        ahead = group.nodes_from(first)
        if not ahead and way is None:
            return None
        file_no = ahead[0][NodeColumn.FILE_NO] if way is None else way.commit.file_no
        if at.place.file_no not in (file_no, NOWHERE.file_no):
            return None
        nodes = list(takewhile(lambda node: node[NodeColumn.FILE_NO] == file_no, ahead))
        file = self._file_of(file_no)
        if file is None:
            return None
        workspace, progress = self._workspace, file.progress
        workspace.prepare(selection, sequence)
        resume(workspace, at)
        progress[Progress.NODE] = progress[Progress.IS_BEGUN] = 0
        if at.node == 0:
            if not group.frame_inline(workspace, at, self._out):
                return None
        elif at.place != NOWHERE:
            progress[Progress.IS_BEGUN] = 1
            workspace.state[Field.OFFSET] = at.place.page_offset
            progress[Progress.FILE_OFFSET] = at.place.page_no * PAGE_SIZE
        pump = self._kernels.pump_nodes
        if way is not None:
            pump = self._kernels.pump_way
            workspace.go_to(way.at)
            progress[Progress.FILE_OFFSET] = way.at.position.page_no * PAGE_SIZE
            progress[Progress.COMMIT] = way.commit.offset
            progress[Progress.HAS_MORE] = first + len(nodes) <= group.node_count
        rest = self._buffers.take()
        status = pump(
            number_rows(nodes, NodeColumn.COLUMNS),
            workspace.pages,
            workspace.framing(self._out, workspace.segments),
            workspace.sending(file.descriptor, self._socket, progress, rest),
        )
        place = NOWHERE
        if progress[Progress.IS_BEGUN]:
            place = LogPosition(file_no, int(progress[Progress.FILE_OFFSET] + workspace.state[Field.OFFSET]))
        after = group.part_state(workspace, first + int(progress[Progress.NODE]), place)
        if way is not None:
            way.at = workspace.framing_state(file_no, int(progress[Progress.FILE_OFFSET]) // PAGE_SIZE)
            way.sent_to = after
        if group.is_end(after) and (way is None or status == Status.DONE):
            self._maker.way = None
            return Block(self._left(progress, rest), at, FramingState(group.end))
        return Block(self._left(progress, rest), at, after)

    def _way_of(self, at: PartState) -> PassedRun | None:
        """The way on which a group's parts lie, to be sent in that order, unless it was checked."""
        way, group = self._maker.way, at.group
        if way is None:
            return None
        stream = group.only_stream
        if way.sent_to is None and at.node == 0 and stream is not None and stream.first >= way.begin.position:
            last = FramingState(stream.last)
            self._maker.check_part(way, last)  # before it goes out, with what ends the group
            return way
        if way.sent_to == at:
            return way
        self.check_way()
        return None

    def _file_of(self, file_no: int) -> OpenFile | None:
        """With a budget for one more call, if it can be read."""
        if self._file is None or self._file.file_no != file_no:
            descriptor = self._maker.open(file_no)
            if descriptor is None:
                return None
            if self._file is not None:
                os.close(self._file.descriptor)
            self._file = OpenFile(file_no, descriptor, numbers(Progress.SIZE))
            self._maker.check_log()
        progress = self._file.progress
        progress[Progress.BUDGET], progress[Progress.FRAMED], progress[Progress.REST] = BUDGET_BYTES, 0, 0
        return self._file

    def _left(self, progress: Any, rest: Any) -> Packets:
        size = self._workspace.state[Field.OUT] = progress[Progress.REST]
        return framed_packets(rest, self._buffers, self._workspace.state, int(progress[Progress.FRAMED] - size))
