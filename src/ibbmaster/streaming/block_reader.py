"""From a place in the log on, blocks of packets: from the cache, renumbered, or framed from pages."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from types import ModuleType
from typing import Any

import numpy as np

from ibbmaster.dump.rewriting import Selection
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.kernel.fields import Field, Status
from ibbmaster.log.interface import PagedEventGroups
from ibbmaster.log.pages import PageReader
from ibbmaster.position import NOWHERE
from ibbmaster.streaming.block import Block, check_continues, longer, make_block, renumbered
from ibbmaster.streaming.block_cache import BlockCache
from ibbmaster.streaming.buffers import PAGES_MAX, PAGES_PER_BLOCK, Workspace, pages_to_border
from ibbmaster.streaming.framing_state import FramingState

SHARED_BYTES = 4 * PAGES_PER_BLOCK * PAGE_SIZE  # blocks for many readers end at these places of a file
PIECES_MAX = 8
SKIPPED_BLOCKS_MAX = 64  # in one call: about 20 ms
NOTHING = Selection(leaves_out_annotate=False, leaves_out_marked=False, prefix=b"")
EMPTY_BLOCKS_MAX = 8  # without a packet, passed in one call


class BlockReader:
    """Reads the groups of one reader of the log in blocks, as far as nothing asks for care.

    Blocks of all readers end at the same places, where a group reaches over the border of
    `PAGES_PER_BLOCK` pages, so they can be shared. Not thread-safe.
    """

    def __init__(self, groups: PagedEventGroups, cache: BlockCache, kernels: ModuleType) -> None:
        self._groups = groups
        self._cache = cache
        self._kernels = kernels
        self._at = FramingState(NOWHERE)  # behind the block that was given last
        self._care_end = self._at  # behind the block with a group of a watched domain
        self._file_no = -1
        self._identity: Hashable = None  # of that file: one of the same name has another

    def identity(self, file_no: int) -> Hashable:
        """What tells a file from one that had its name before; reads the disk if it is another file than before."""
        if file_no != self._file_no:
            self._identity = PageReader(self._groups.disk).header(file_no)
            self._file_no = file_no
        return self._identity

    def next_block(
        self, selection: Selection, sequence: int, *, watched: Collection[int] = (), only_cached: bool
    ) -> Block | None:
        """The next packets, perhaps none; None where the careful path must go on, or with `only_cached` would wait.

        A block without packets may stand for several. `sequence` is the number of the first
        packet. Groups of `watched` domains are for the careful path.

        Raises:
            PositionPurgedError: the log was reset.
            StoreError: a file cannot be read.
        """
        passed = None
        for _ in range(EMPTY_BLOCKS_MAX):
            block = None if self.needs_care else self._next(selection, sequence, only_cached=only_cached)
            if block is None:
                break
            if any(gtid.domain_id in watched for gtid in block.gtids):
                self._care_end = _end(block)
                break
            self.pass_over(block)
            passed = block
            if block:
                break
        return passed

    @property
    def needs_care(self) -> bool:
        """Whether a group of a watched domain is not far."""
        return self.at < self._care_end

    @property
    def at(self) -> FramingState:
        """Where the next block begins."""
        if self._at.position != self._groups.position:
            self._at = FramingState(self._groups.position)
        return self._at

    def pass_over(self, block: Block) -> None:
        """Go on behind a block.

        Raises:
            DumpError: it does not begin here.
            PositionPurgedError: the log was reset.
        """
        check_continues(block, self.at)
        self._go_to(_end(block), block.gtids)

    def _go_to(self, at: FramingState, gtids: Iterable[Gtid]) -> None:
        self._groups.check_log()
        self._at = at
        is_inside = at.skip_type >= 0
        self._groups.pass_over(at.position, gtids, is_inside_record=is_inside, record_type=at.skip_type)

    def skip(self, limits: Iterable[Gtid]) -> tuple[Gtid, ...]:
        """Go on behind groups that come before the limit of their domain; returns the last of each pair.

        Stops before the first group that is a limit, has none, or needs the careful path, or
        after many.

        Raises:
            PositionPurgedError: the log was reset.
            StoreError: a file cannot be read.
        """
        rows = [(gtid.domain_id, gtid.server_id, gtid.seq_no) for gtid in limits]
        skips = np.array(rows, dtype=np.uint64).astype(np.int64).reshape(-1, 3)
        passed = GtidState()
        for _ in range(SKIPPED_BLOCKS_MAX):
            at = self.at
            if at.position.offset <= PAGE_SIZE:
                break
            with self._cache.buffers.workspace() as workspace:
                nothing = workspace.scratch[:0]
                after = self._frame_in(workspace, nothing, at, NOTHING, 0, only_cached=False, skips=skips)
                gtids = workspace.gtids()
            if after is None:
                break
            self._go_to(after, gtids)
            for gtid in gtids:
                passed.log(gtid)
        return tuple(passed)

    def _next(self, selection: Selection, sequence: int, *, only_cached: bool) -> Block | None:
        at = self.at
        file_no, offset = at.position
        if offset <= PAGE_SIZE or (only_cached and file_no != self._file_no):
            return None  # the head of a file, with its state
        key = (self.identity(file_no), at, selection, self._cache.is_shared)

        def make(like: tuple[Block, int] | None) -> Block | None:
            if like is not None:
                return renumbered(*like, sequence, kernels=self._kernels, pool=self._cache.buffers)
            block = self._frame(at, selection, sequence, only_cached=only_cached)
            if block is None or not self._cache.is_shared:
                return block
            return self._longer(block, selection, only_cached=only_cached)

        return self._cache.find(key, sequence, make, only_cached=only_cached)

    def _longer(self, first: Block, selection: Selection, *, only_cached: bool) -> Block:
        border = (_end(first).position.offset // SHARED_BYTES + 1) * SHARED_BYTES - PAGE_SIZE

        def follow(block: Block) -> Block | None:
            if _end(block).position.offset >= border:
                return None
            return self._frame(_end(block), selection, block.sequence_after, only_cached=only_cached)

        return longer(first, follow, pieces_max=PIECES_MAX)

    def _frame(self, at: FramingState, selection: Selection, sequence: int, *, only_cached: bool) -> Block | None:
        buffers = self._cache.buffers
        with buffers.workspace() as workspace:
            out = buffers.take()
            after = self._frame_in(workspace, out, at, selection, sequence, only_cached=only_cached)
            if after is None:
                buffers.give_back(out)
                return None
            return make_block(out, buffers, workspace.state, before=at, after=after, gtids=workspace.gtids())

    def _frame_in(
        self,
        workspace: Workspace,
        out: Any,
        at: FramingState,
        selection: Selection,
        sequence: int,
        *,
        only_cached: bool,
        skips: Any = None,
    ) -> FramingState | None:
        """Frame, or skip, from a place on; returns where that ended, None if nothing could be done."""
        name = format_file_name(at.position.file_no)
        state = workspace.state
        first_page_no = at.position.page_no
        page_count = pages_to_border(first_page_no)
        while True:
            target = memoryview(workspace.pages)[: page_count * PAGE_SIZE]
            size = self._groups.disk.read_into(name, first_page_no * PAGE_SIZE, target, only_cached=only_cached)
            if not size:
                return None
            found = size // PAGE_SIZE
            workspace.prepare(selection, sequence)
            workspace.go_to(at)
            status = self._kernels.frame_groups(
                workspace.pages,
                found,
                state,
                workspace.head,
                workspace.prefix,
                workspace.pairs,
                workspace.scratch,
                out,
                workspace.none,
                workspace.none if skips is None else skips,
            )
            after = workspace.framing_state(at.position.file_no, first_page_no + int(state[Field.PAGE]))
            if after.position != at.position:
                return after
            if status != Status.NEED_MORE or found < page_count or page_count + PAGES_PER_BLOCK > PAGES_MAX:
                return None
            page_count += PAGES_PER_BLOCK  # of a group that is longer


def _end(block: Block) -> FramingState:
    assert isinstance(block.after, FramingState)
    return block.after
