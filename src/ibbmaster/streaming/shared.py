"""What the dumps of one primary share: framed blocks, and where the log ends."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from ibbmaster.classic.binlog import ClassicGroups
from ibbmaster.kernel.loading import kernels
from ibbmaster.kernel.parts import KernelPart
from ibbmaster.log.interface import EventGroups, FramedEventGroups, are_paged, changes_of, files_end_of, files_of
from ibbmaster.player.repeated_log import RepeatedFiles
from ibbmaster.position import LogPosition
from ibbmaster.streaming.shared_step import EndPlace, EndProbe, SharedPlace

if TYPE_CHECKING:
    from ibbmaster.dump.session import DumpSession
    from ibbmaster.kernel.calls import Kernels
    from ibbmaster.streaming.block_cache import BlockCache
    from ibbmaster.streaming.block_maker import BlockMaker


class SharedBlocks:
    """One for each primary; it is closed when no dump reads any longer."""

    def __init__(self) -> None:
        self._cache: BlockCache | None = None
        self.known_end: EndPlace | None = None
        self.probe: EndProbe | None = None  # the latest one
        self._places: WeakValueDictionary[Hashable, SharedPlace] = WeakValueDictionary()  # while a dump waits there

    def close(self) -> None:
        """Let go of the blocks."""
        if self._cache is not None:
            self._cache.clear()

    def place(self, standing: Hashable) -> SharedPlace:
        """Where all dumps wait whose `BlockSource.standing` is this."""
        found = self._places.get(standing)
        if found is None:
            found = self._places[standing] = SharedPlace()
        return found

    def maker(self, groups: EventGroups, session: DumpSession) -> tuple[BlockMaker, BlockCache] | None:
        """Who makes blocks from the files of these groups, and where they are kept; None where that cannot be done."""
        files = files_of(groups)
        if files is None:
            return None
        ready = kernels(*_parts_for(groups, files, session))
        if ready is None:
            return None
        from ibbmaster.streaming.block_cache import BlockCache

        if self._cache is None:
            self._cache = BlockCache()
        make = partial(_maker_of, groups, self._cache, ready, makes_events=session.makes_events)
        maker = make()
        if maker is None:
            return None
        if type(files) is RepeatedFiles:  # sooner seen than an instance of a protocol
            from ibbmaster.streaming.repeated_blocks import RepeatedBlocks

            maker = RepeatedBlocks(files.groups, maker, make)
        return maker, self._cache


def import_makers() -> None:
    """Import what makes blocks, once there are kernels: else the first dump waits for that."""
    for name in ("block_cache", "page_blocks", "classic_blocks"):
        importlib.import_module(f"ibbmaster.streaming.{name}")


def _parts_for(groups: EventGroups, files: FramedEventGroups, session: DumpSession) -> Iterator[KernelPart]:
    """The kernels that make blocks of these groups."""
    yield KernelPart.PAGES
    stored = files.groups.recorded_files if type(files) is RepeatedFiles else files
    if stored is None or not are_paged(stored):
        yield KernelPart.FILES
    if session.makes_events or changes_of(groups):
        yield KernelPart.CHANGES


def _maker_of(groups: EventGroups, cache: BlockCache, ready: Kernels, *, makes_events: bool) -> BlockMaker | None:
    """Who makes blocks of groups, of repeated ones of their round; None where the kernels cannot do so."""
    files, stages = files_of(groups), changes_of(groups)
    find_end = partial(files_end_of, groups)
    if type(files) is RepeatedFiles:
        find_end = partial(_end_in_round, groups, files)
        files = files.groups.recorded_files
    assert files is not None
    maker = _files_maker(files, find_end, cache, ready)
    if not stages and not makes_events:
        return maker
    from ibbmaster.streaming.changed_blocks import ChangedBlocks
    from ibbmaster.streaming.packet_changes import change_of

    changes = [change for stage in stages if (change := change_of(stage, ready)) is not None]
    return ChangedBlocks(maker, stages, changes, cache, ready) if len(changes) == len(stages) else None


def _end_in_round(groups: EventGroups, files: RepeatedFiles) -> LogPosition | None:
    """As `files_end_of`, in the recording."""
    end = files_end_of(groups)
    return None if end is None else files.groups.there(end)


def _files_maker(
    files: FramedEventGroups, find_end: Callable[[], LogPosition | None], cache: BlockCache, ready: Kernels
) -> BlockMaker:
    if are_paged(files):
        from ibbmaster.streaming.page_blocks import PageBlocks

        return PageBlocks(files, cache, ready, find_end)
    assert isinstance(files, ClassicGroups)
    from ibbmaster.streaming.classic_blocks import ClassicBlocks

    return ClassicBlocks(files, cache, ready, find_end)
