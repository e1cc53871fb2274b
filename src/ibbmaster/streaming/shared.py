"""What the dumps of one primary share: framed blocks, and where the log ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ibbmaster.classic.read_groups import ClassicGroups
from ibbmaster.kernel.loading import kernels
from ibbmaster.kernel.parts import Part
from ibbmaster.log.interface import EventGroups, FramedEventGroups, are_paged, changes_of, files_end_of, files_of
from ibbmaster.position import LogPosition

if TYPE_CHECKING:
    from ibbmaster.dump.session import DumpSession
    from ibbmaster.kernel.calls import Kernels
    from ibbmaster.streaming.block_cache import BlockCache
    from ibbmaster.streaming.block_maker import BlockMaker

EndPlace = tuple[int, LogPosition]  # the follower's generation, and a position


class EndProbe:
    """A dump is looking, in a worker thread, what comes at a position; others need not do so, too."""

    def __init__(self, place: EndPlace) -> None:
        self.place = place
        self.has_others = False  # a dump relies on it


class SharedBlocks:
    """One for each primary; it is closed when no dump reads any longer."""

    def __init__(self) -> None:
        self._cache: BlockCache | None = None
        self.known_end: EndPlace | None = None
        self.probe: EndProbe | None = None  # the latest one

    def close(self) -> None:
        """Let go of the blocks."""
        if self._cache is not None:
            self._cache.clear()

    def maker(self, groups: EventGroups, session: DumpSession) -> tuple[BlockMaker, BlockCache] | None:
        """Who makes blocks from the files of these groups, and where they are kept; None where that cannot be done."""
        files, stages = files_of(groups), changes_of(groups)
        if files is None:
            return None
        is_changed = bool(stages) or session.makes_events
        ready = kernels(Part.PAGES, *[Part.FILES] * (not are_paged(files)), *[Part.CHANGES] * is_changed)
        if ready is None:
            return None
        from ibbmaster.streaming.block_cache import BlockCache

        if self._cache is None:
            self._cache = BlockCache()
        maker = _maker_of(files, partial(files_end_of, groups), self._cache, ready)
        if not is_changed:
            return maker, self._cache
        from ibbmaster.streaming.changed_blocks import ChangedBlocks
        from ibbmaster.streaming.packet_changes import change_of

        changes = [change for stage in stages if (change := change_of(stage, ready)) is not None]
        if len(changes) < len(stages):
            return None
        return ChangedBlocks(maker, stages, changes, self._cache, ready), self._cache


def _maker_of(
    files: FramedEventGroups, find_end: Callable[[], LogPosition | None], cache: BlockCache, ready: Kernels
) -> BlockMaker:
    if are_paged(files):
        from ibbmaster.streaming.page_blocks import PageBlocks

        return PageBlocks(files, cache, ready, find_end)
    assert isinstance(files, ClassicGroups)
    from ibbmaster.streaming.classic_blocks import ClassicBlocks

    return ClassicBlocks(files, cache, ready, find_end)
