"""Blocks of groups that are changed on their way: those of another maker, each changed as a whole by a kernel."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ibbmaster.classic.roles import kernel_roles
from ibbmaster.dump.profile import LogPosRule
from ibbmaster.dump.rewriting import LogPositions, Selection
from ibbmaster.event.group import EventGroup
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.changing import AS_STORED, BORDERS, EVERY, OLD_DOMAIN, OLD_SERVER, SPARE, ChangeOf
from ibbmaster.kernel.fields import LEAVES_OUT_ANNOTATE, LEAVES_OUT_MARKED, Status
from ibbmaster.position import NOWHERE
from ibbmaster.stages.renumbering import OriginMap
from ibbmaster.streaming.block import Block
from ibbmaster.streaming.block_cache import BlockCache
from ibbmaster.streaming.block_maker import BlockMaker, BlockPump
from ibbmaster.streaming.buffers import OUT_BYTES
from ibbmaster.streaming.framing_state import Mark

_LOG_POS = {LogPosRule.STORED: AS_STORED, LogPosRule.EVERY: EVERY, LogPosRule.GROUP_BORDERS: BORDERS}
_NO_NUMBERS = np.zeros((0, 3), dtype=np.int64)
CHECKSUM_BYTES = 4


class ChangedBlocks:
    """A `BlockMaker` whose blocks are those of another one with their events changed.

    Groups that come in parts, and blocks that the kernel does not understand, are left to the reference way.
    """

    def __init__(self, maker: BlockMaker, changes: Sequence[OriginMap], cache: BlockCache, kernels: Kernels) -> None:
        """Groups go through `changes` in their order, and then become what a selection wants made of them."""
        self._maker = maker
        self._changes = tuple(changes)
        self._numbers = [_numbers_of(change) for change in changes]
        self._buffers = cache.buffers
        self._kernels = kernels
        self._left_until = NOWHERE  # what is before this place is left to the reference way

    def identity(self, at: Mark, *, only_cached: bool) -> Hashable:
        return self._maker.identity(at, only_cached=only_cached)

    def large_group(self, group: EventGroup) -> Mark | None:
        return None

    def known_group(self, at: Mark) -> tuple[Gtid, Mark] | None:
        return None

    def frame(
        self,
        at: Mark,
        selection: Selection,
        sequence: int,
        *,
        only_cached: bool,
        is_shared: bool = False,
        is_short: bool = False,
    ) -> Block | None:
        if at.position < self._left_until:
            return None
        whole = Selection(leaves_out_annotate=False, leaves_out_marked=False, prefix=selection.prefix)
        options = {"only_cached": only_cached, "is_shared": is_shared, "is_short": is_short}
        block = self._maker.frame(at, whole, sequence, **options)
        if block is not None and block.ends_inside_group and is_shared:
            block = self._maker.frame(at, whole, sequence, **{**options, "is_shared": False})
        if block is None or block.ends_inside_group:
            return None
        changed = self._changed(block, selection, sequence)
        if changed is None:
            self._left_until = block.end
        return changed

    def renumbered(self, block: Block, was: int, sequence: int) -> Block:
        return self._maker.renumbered(block, was, sequence)

    def skip(self, at: Mark, limits: Iterable[Gtid], *, only_cached: bool) -> Block | None:
        there = [self._original(gtid) for gtid in limits]
        block = self._maker.skip(at, there, only_cached=only_cached)
        return None if block is None else self._with(block, b"", 0)

    @contextlib.contextmanager
    def pump(self, socket: int) -> Iterator[BlockPump]:
        yield _NoPump()

    def _changed(self, block: Block, selection: Selection, sequence: int) -> Block | None:
        """A block after all changes; None where a kernel leaves it to the reference."""
        data, size = np.frombuffer(block.data(), dtype=np.uint8), len(block)
        if not data.flags.writeable:
            data = data.copy()  # a kernel is compiled for one kind of array
        state = _state_of(selection)
        passes = [(_state_of(selection._replace(made=None), filters=0), numbers) for numbers in self._numbers]
        if not passes or state[ChangeOf.FILTERS] or selection.made is not None:
            passes.append((state, _NO_NUMBERS))
        out: Any = None
        for state, numbers in passes:
            state[ChangeOf.SEQUENCE] = sequence
            before, wanted = out, size * 3 // 2 + 2 * SPARE
            out = self._buffers.take() if wanted <= OUT_BYTES else np.empty(wanted, dtype=np.uint8)
            size, status = self._kernels.change_packets(data, size, state, numbers, kernel_roles(), out)
            if before is not None:
                self._buffers.release(before)
            if status != Status.DONE:
                self._buffers.release(out)
                return None
            data = out
        positions = None
        if selection.made is not None:
            positions = LogPositions(int(state[ChangeOf.POSITION]), int(state[ChangeOf.LAST_POSITION]))
        return self._with(block, out, size, int(state[ChangeOf.SEQUENCE]), positions)

    def _with(
        self, block: Block, data: Any, size: int, sequence_after: int = 0, positions: LogPositions | None = None
    ) -> Block:
        return Block(
            data,
            self._buffers if len(data) == OUT_BYTES else None,
            size,
            sequence_after=sequence_after,
            before=block.before,
            after=block.after,
            gtids=tuple(map(self._renamed, block.gtids)),
            stored_gtids=block.gtids,
            head=block.head,
            log_positions=positions,
        )

    def _renamed(self, gtid: Gtid) -> Gtid:
        for change in self._changes:
            gtid = change.renamed(gtid)
        return gtid

    def _original(self, gtid: Gtid) -> Gtid:
        for change in reversed(self._changes):
            gtid = change.original(gtid)
        return gtid


class _NoPump:
    """Nothing goes from a file to a socket without being looked at."""

    def send(self, at: Mark, selection: Selection, sequence: int) -> Block | None:
        return None


def is_changed_in_blocks(stage: object) -> bool:
    """Whether what a stage does can be done here."""
    return isinstance(stage, OriginMap)


def _numbers_of(change: OriginMap) -> Any:
    rows = [(OLD_SERVER, *pair) for pair in change.server_ids.items()]
    rows += [(OLD_DOMAIN, *pair) for pair in change.domain_ids.items()]
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def _state_of(selection: Selection, filters: int | None = None) -> Any:
    state = np.zeros(int(ChangeOf.SIZE), dtype=np.int64)
    chosen = (LEAVES_OUT_ANNOTATE if selection.leaves_out_annotate else 0) | (
        LEAVES_OUT_MARKED if selection.leaves_out_marked else 0
    )
    state[ChangeOf.FILTERS] = chosen if filters is None else filters
    state[ChangeOf.PREFIX_SIZE] = len(selection.prefix)
    if selection.made is not None:
        assert selection.log_positions is not None
        state[ChangeOf.POSITION], state[ChangeOf.LAST_POSITION] = selection.log_positions
        state[ChangeOf.LOG_POS] = _LOG_POS[selection.made.log_pos_rule]
        state[ChangeOf.CHECKSUM_BYTES] = CHECKSUM_BYTES if selection.made.has_checksums else 0
    return state
