"""Blocks of another maker, with groups that a kernel changes, or in the rounds of a repeated recording."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ibbmaster.errors import IbbMasterError
from ibbmaster.gtid import Gtid
from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import AS_STORED, BORDERS, EVERY, LEAVES_OUT_ANNOTATE, LEAVES_OUT_MARKED, ChangeOf, Status
from ibbmaster.kernel.plain_memory import NOTHING, kept, numbers
from ibbmaster.logs.classic.roles import kernel_roles
from ibbmaster.logs.player.repeated_log import RepeatedGroups
from ibbmaster.logs.stages.stage import GtidTransform
from ibbmaster.position import NOWHERE, LogPosition
from ibbmaster.replication.dump.profile import LogPosRule
from ibbmaster.replication.dump.rewriting import LogPositions, Selection
from .block import NO_PACKETS, Block, BlockMaker, BlockShape, FramingState, Groups, Mark, Packets
from .block_cache import BlockCache
from .packet_changes import Changed, PacketChange

_LOG_POS = {LogPosRule.STORED: AS_STORED, LogPosRule.EVERY: EVERY, LogPosRule.GROUP_BORDERS: BORDERS}
CHECKSUM_BYTES = 4
ROOM = 1024  # bytes, on top of half as many again


class ChangedBlocks(BlockMaker):
    """Changes the events of another maker's blocks; leaves parts of groups, and all the kernel does not understand, to
    the reference way."""

    def __init__(
        self,
        maker: BlockMaker,
        stages: Sequence[object],
        changes: Sequence[PacketChange],
        cache: BlockCache,
        kernels: Kernels,
    ) -> None:
        """Groups go through `changes`, those of `stages`, and then a selection makes events of them."""
        self._maker = maker
        self._renaming = [stage for stage in stages if isinstance(stage, GtidTransform)]
        self._changes = tuple(changes)
        self._buffers = cache.buffers
        self._kernels = kernels
        self._left_until = NOWHERE  # what is before this place is left to the reference way

    def identity(self, at: Mark, *, only_cached: bool) -> Hashable:
        return self._maker.identity(at, only_cached=only_cached)

    def frame(self, at: Mark, selection: Selection, sequence: int, wanted: BlockShape) -> Block | None:
        if at.position < self._left_until:
            return None
        whole = Selection(leaves_out_annotate=False, leaves_out_marked=False, prefix=selection.prefix)
        block = self._maker.frame(at, whole, sequence, wanted)
        if block is not None and block.ends_inside_group and wanted.is_shared:
            block = self._maker.frame(at, whole, sequence, wanted._replace(is_shared=False))
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
        return None if block is None else self._with(block, NO_PACKETS)

    def _changed(self, block: Block, selection: Selection, sequence: int) -> Block | None:
        """None: the reference has to make it, or report an error."""
        data = memoryview(block.data())
        if data.readonly:
            data = kept(data)
        packets = Packets(data, len(block), sequence)
        positions = None
        try:
            for change in self._changes:
                apply = partial(change.change, prefix=selection.prefix, sequence=sequence)
                if (found := self._applied(packets, apply)) is None:
                    return None
                packets = found
            if selection.made is not None or selection.leaves_out_annotate or selection.leaves_out_marked:
                state = _state_of(selection, sequence)
                if (found := self._applied(packets, partial(self._make, state=state))) is None:
                    return None
                packets = found
                if selection.made is not None:
                    positions = LogPositions(int(state[ChangeOf.POSITION]), int(state[ChangeOf.LAST_POSITION]))
        except IbbMasterError:
            return None
        return self._with(block, packets, positions)

    def _applied(self, packets: Packets, change: Callable[..., Changed | None]) -> Packets | None:
        out, pool = self._buffers.room(packets.size * 3 // 2 + ROOM)
        if (found := change(packets, out=out)) is not None:
            return Packets(out, *found, pool)
        if pool is not None:
            pool.release(out)
        return None

    def _make(self, packets: Packets, out: Any, state: Any) -> Changed | None:
        size, status = self._kernels.change_packets(packets.buffer, packets.size, state, NOTHING, kernel_roles(), out)
        return (size, int(state[ChangeOf.SEQUENCE])) if status == Status.DONE else None

    def _with(self, block: Block, packets: Packets, positions: LogPositions | None = None) -> Block:
        gtids = tuple(map(self._renamed, block.gtids))
        is_in_order = len({(gtid.domain_id, gtid.server_id) for gtid in gtids}) == len(gtids)  # no two became one
        groups = Groups(gtids, block.gtids, block.groups.is_in_order and is_in_order)
        return replace(block, packets=packets, groups=groups, log_positions=positions)

    def _renamed(self, gtid: Gtid) -> Gtid:
        for stage in self._renaming:
            gtid = stage.renamed(gtid)
        return gtid

    def _original(self, gtid: Gtid) -> Gtid:
        for stage in reversed(self._renaming):
            gtid = stage.original(gtid)
        return gtid


def _state_of(selection: Selection, sequence: int) -> Any:
    state = numbers(ChangeOf.SIZE)
    state[ChangeOf.SEQUENCE] = sequence
    state[ChangeOf.FILTERS] = (LEAVES_OUT_ANNOTATE if selection.leaves_out_annotate else 0) | (
        LEAVES_OUT_MARKED if selection.leaves_out_marked else 0
    )
    state[ChangeOf.PREFIX_SIZE] = len(selection.prefix)
    if selection.made is not None:
        assert selection.log_positions is not None
        state[ChangeOf.POSITION], state[ChangeOf.LAST_POSITION] = selection.log_positions
        state[ChangeOf.LOG_POS] = _LOG_POS[selection.made.log_pos_rule]
        state[ChangeOf.CHECKSUM_BYTES] = CHECKSUM_BYTES if selection.made.has_checksums else 0
    return state


class RepeatedBlocks(BlockMaker):
    """Another maker for each round; large groups, and the begin and end of rounds, go the reference way."""

    def __init__(self, groups: RepeatedGroups, maker: BlockMaker, make: Callable[[], BlockMaker | None]) -> None:
        """`make` gives a maker for the round of `groups` whose blocks end between groups; `maker` is that of this
        round."""
        self._groups = groups
        self._make = make
        self._round_no = groups.round_no
        self._maker = maker

    def identity(self, at: Mark, *, only_cached: bool) -> Hashable:
        if self._groups.recorded_files is None:
            return None
        return self._current().identity(self._there(at), only_cached=only_cached)

    def frame(self, at: Mark, selection: Selection, sequence: int, wanted: BlockShape) -> Block | None:
        return self._as_here(self._current().frame(self._there(at), selection, sequence, wanted))

    def renumbered(self, block: Block, was: int, sequence: int) -> Block:
        return self._maker.renumbered(block, was, sequence)

    def skip(self, at: Mark, limits: Iterable[Gtid], *, only_cached: bool) -> Block | None:
        return self._as_here(self._current().skip(self._there(at), limits, only_cached=only_cached))

    def _current(self) -> BlockMaker:
        if self._round_no != self._groups.round_no:
            maker = self._make()
            assert maker is not None, "each round goes through the same stages"
            self._maker, self._round_no = maker, self._groups.round_no
        return self._maker

    def _there(self, at: Mark) -> Mark:
        position = self._groups.there(at.position)
        assert position is not None, "a dump is in the round of its reader"
        return _moved(at, position)

    def _as_here(self, block: Block | None) -> Block | None:
        if block is not None:  # as made just now: no other has seen it
            block.before = _moved(block.before, self._groups.place(block.begin))
            block.after = _moved(block.after, self._groups.place(block.end))
        return block


def _moved(mark: Mark, position: LogPosition) -> Mark:
    assert isinstance(mark, FramingState), "blocks end between groups"
    return mark._replace(position=position)
