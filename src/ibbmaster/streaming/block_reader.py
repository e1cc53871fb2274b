"""From a place in the log on, blocks of packets: from the cache, renumbered, or framed from pages."""

from __future__ import annotations

from collections.abc import Hashable
from types import ModuleType

from ibbmaster.dump.rewriting import Selection
from ibbmaster.ibb.file_name import format_file_name
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.kernel.fields import Field, Status
from ibbmaster.store.engine import PagedEventGroups
from ibbmaster.store.pages import PageReader
from ibbmaster.streaming.block import Block, Position, make_block, renumbered, shared_block
from ibbmaster.streaming.block_cache import BlockCache
from ibbmaster.streaming.buffers import PAGES_MAX, PAGES_PER_BLOCK, Workspace, pages_to_border

SHARED_BYTES = 4 * PAGES_PER_BLOCK * PAGE_SIZE  # blocks for many readers end at these places of a file
PIECES_MAX = 8
EMPTY_BLOCKS_MAX = 64  # without a packet, passed in one call


class BlockReader:
    """Reads the groups of one reader of the log in blocks, as far as nothing asks for care.

    Blocks of all readers end at the same places, where a group reaches over the border of
    `PAGES_PER_BLOCK` pages, so they can be shared. Not thread-safe.
    """

    def __init__(self, groups: PagedEventGroups, cache: BlockCache, kernels: ModuleType) -> None:
        self._groups = groups
        self._cache = cache
        cache.add_reader(self)
        self._kernels = kernels
        self._position = Position(-1, 0)  # behind the block that was given last
        self._file_no = -1
        self._identity: Hashable = None  # of that file: one of the same name has another

    def identity(self, file_no: int) -> Hashable:
        """What tells a file from one that had its name before; reads the disk if it is another file than before."""
        if file_no != self._file_no:
            self._identity = PageReader(self._groups.disk).header(file_no)
            self._file_no = file_no
        return self._identity

    def next_block(self, selection: Selection, sequence: int, *, only_cached: bool) -> Block | None:
        """The next packets, perhaps none; None where the careful path must go on, or with `only_cached` would wait.

        `sequence` is the number of the first packet.

        Raises:
            PositionPurgedError: the log was reset.
            StoreError: a file cannot be read.
        """
        for _ in range(EMPTY_BLOCKS_MAX):
            block = self._next(selection, sequence, only_cached=only_cached)
            if block is None:
                return None
            self.pass_over(block)
            if block:
                break
        return block

    @property
    def position(self) -> Position:
        """Where the next block begins."""
        if self._position[:2] != self._groups.place:
            self._position = Position(*self._groups.place)
        return self._position

    def pass_over(self, block: Block) -> None:
        """Go on behind a block.

        Raises:
            PositionPurgedError: the log was reset.
        """
        self._groups.check_log()
        assert isinstance(block.after, Position)
        self._position = block.after
        file_no, file_offset, skip_type, _ = block.after
        self._groups.pass_over(file_no, file_offset, block.gtids, is_inside_record=skip_type >= 0)

    def _next(self, selection: Selection, sequence: int, *, only_cached: bool) -> Block | None:
        position = self.position
        if position.file_offset <= PAGE_SIZE or (only_cached and position.file_no != self._file_no):
            return None  # the head of a file, with its state
        key = (self.identity(position.file_no), position, selection, self._cache.is_shared)

        def make(like: tuple[Block, int] | None) -> Block | None:
            if like is not None:
                return renumbered(*like, sequence, kernels=self._kernels, pool=self._cache.buffers)
            block = self._frame(position, selection, sequence, only_cached=only_cached)
            if block is None or not self._cache.is_shared:
                return block
            return self._longer(block, selection, only_cached=only_cached)

        return self._cache.find(key, sequence, make, only_cached=only_cached)

    def _longer(self, block: Block, selection: Selection, *, only_cached: bool) -> Block:
        """A block for many readers: the same and what follows, as each of them costs a turn of its own."""
        pieces = [block]
        after = block.after
        assert isinstance(after, Position)
        border = (after.file_offset // SHARED_BYTES + 1) * SHARED_BYTES - PAGE_SIZE
        while after.file_offset < border and len(pieces) < PIECES_MAX:
            more = self._frame(after, selection, pieces[-1].sequence_after, only_cached=only_cached)
            if more is None:
                break
            pieces.append(more)
            after = more.after
            assert isinstance(after, Position)
        return shared_block(pieces)

    def _frame(self, position: Position, selection: Selection, sequence: int, *, only_cached: bool) -> Block | None:
        workspace = self._cache.buffers.workspace()
        try:
            return self._frame_in(workspace, position, selection, sequence, only_cached=only_cached)
        finally:
            self._cache.buffers.give_back_workspace(workspace)

    def _frame_in(
        self, workspace: Workspace, position: Position, selection: Selection, sequence: int, *, only_cached: bool
    ) -> Block | None:
        name = format_file_name(position.file_no)
        first_page_no, page_offset = divmod(position.file_offset, PAGE_SIZE)
        page_count = pages_to_border(first_page_no)
        pages, state = workspace.pages, workspace.state
        view = memoryview(pages)
        out = self._cache.buffers.take()
        is_used = False
        try:
            while True:
                size = self._groups.disk.read_into(
                    name, first_page_no * PAGE_SIZE, view[: page_count * PAGE_SIZE], only_cached=only_cached
                )
                if not size:
                    return None
                found = size // PAGE_SIZE
                workspace.prepare(selection, sequence)
                state[Field.OFFSET] = page_offset
                state[Field.SKIP_TYPE], state[Field.NESTED_TYPE] = position.skip_type, position.nested_type
                status = self._kernels.frame_groups(
                    pages,
                    found,
                    state,
                    workspace.head,
                    workspace.prefix,
                    workspace.pairs,
                    workspace.scratch,
                    out,
                    workspace.no_segments,
                )
                if state[Field.PAGE] or state[Field.OFFSET] != page_offset:
                    break
                if status != Status.NEED_MORE or found < page_count or page_count + PAGES_PER_BLOCK > PAGES_MAX:
                    return None
                page_count += PAGES_PER_BLOCK  # of a group that is longer
            after = Position(
                position.file_no,
                (first_page_no + int(state[Field.PAGE])) * PAGE_SIZE + int(state[Field.OFFSET]),
                int(state[Field.SKIP_TYPE]),
                int(state[Field.NESTED_TYPE]),
            )
            block = make_block(out, self._cache.buffers, state, after=after, gtids=workspace.gtids())
            is_used = True
            return block
        finally:
            if not is_used:
                self._cache.buffers.give_back(out)
