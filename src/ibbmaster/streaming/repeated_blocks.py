"""Blocks of a recording that comes again and again: those of its files, with the places of the round they come in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from ibbmaster.dump.rewriting import Selection
from ibbmaster.gtid import Gtid
from ibbmaster.player.repeated_log import RepeatedGroups
from ibbmaster.position import LogPosition
from ibbmaster.streaming.block import Block
from ibbmaster.streaming.block_maker import BlockMaker
from ibbmaster.streaming.framing_state import FramingState, Mark


class RepeatedBlocks(BlockMaker):
    """A `BlockMaker` that has another one in each round, which knows of that round alone.

    Large groups, and where a round begins and ends, are left to the reference way.
    """

    def __init__(self, groups: RepeatedGroups, maker: BlockMaker, make: Callable[[], BlockMaker | None]) -> None:
        """`make` gives who makes the blocks of the round in which `groups` are, all of which end between groups.

        `maker` is what it gave for this round.
        """
        self._groups = groups
        self._make = make
        self._round_no = groups.round_no
        self._maker = maker

    def identity(self, at: Mark, *, only_cached: bool) -> Hashable:
        if self._groups.recorded_files is None:
            return None
        return self._current().identity(self._there(at), only_cached=only_cached)

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
        block = self._current().frame(
            self._there(at), selection, sequence, only_cached=only_cached, is_shared=is_shared, is_short=is_short
        )
        return self._as_here(block)

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
