"""What the dumps of one primary share: blocks, the end of the log, and the steps of many at one place."""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ibbmaster.kernel.loading import kernels
from ibbmaster.logs.classic.binlog import ClassicGroups
from ibbmaster.logs.log.interface import EventGroups, are_paged, changes_of, files_end_of, files_of
from ibbmaster.logs.player.repeated_log import RepeatedFiles
from ibbmaster.position import LogPosition
from .block import Block, BlockMaker, joined, sent_block

if TYPE_CHECKING:
    from ibbmaster.kernel.calls import Kernels
    from ibbmaster.replication.dump.session import DumpSession
    from .block_cache import BlockCache


BYTES_MAX = 32 * 1024  # of more, sending itself takes long
PACKETS_MAX = 32  # each is numbered for each of them
HEADER_BYTES, NUMBER_AT = 4, 3  # of a packet


EndPlace = tuple[int, LogPosition]  # the follower's generation, and a position


@dataclass(slots=True, eq=False)
class EndProbe:
    place: EndPlace
    has_others: bool = False


class SharedStep:
    """The packets from one place to the next, for all dumps there with the same `BlockSource.standing`."""

    def __init__(
        self, block: Block, sequence: int, numbers: list[int], after: Hashable, probe: EndProbe | None
    ) -> None:
        """`numbers` are the offsets of the packet numbers, `sequence` the first; `probe` is of the dump at the end."""
        self.block = block
        self.after = after
        self.probe = probe
        self.packets = len(numbers)
        self._data = bytearray(block.data())
        self._numbers = numbers
        self._sequence = sequence

    def numbered(self, sequence: int) -> bytearray:
        """With other packet numbers; good until the next call."""
        if sequence != self._sequence:
            self._sequence = sequence
            for number, place in enumerate(self._numbers, sequence):
                self._data[place] = number & 0xFF
        return self._data


class SentSteps:
    """Joined once for all dumps that have missed them."""

    def __init__(self, steps: Sequence[SharedStep]) -> None:
        self._blocks = [step.block for step in steps]

    @cached_property
    def block(self) -> Block:
        """Without packets and a valid number. Raises DumpError: the steps do not follow each other."""
        return sent_block(self._blocks, 0)


def shared_step(blocks: Sequence[Block], sequence: int, after: Hashable, probe: EndProbe | None) -> SharedStep | None:
    """Blocks that one dump has got, for others, unless each has to get them itself. Raises DumpError: they do not
    follow each other.
    """
    if not 0 < sum(map(len, blocks)) <= BYTES_MAX:
        return None
    if any(block.begins_inside_group or block.ends_inside_group or block.before == block.after for block in blocks):
        return None
    whole = joined(blocks)
    data, numbers, offset = whole.data(), list[int](), 0
    while offset < len(data) and len(numbers) <= PACKETS_MAX:
        numbers.append(offset + NUMBER_AT)
        offset += HEADER_BYTES + int.from_bytes(data[offset : offset + NUMBER_AT], "little")
    if offset != len(data) or len(numbers) > PACKETS_MAX:
        return None
    return SharedStep(whole, sequence, numbers, after, probe)


class SharedBlocks:
    """One for each primary; closed after the last dump."""

    def __init__(self) -> None:
        self._cache: BlockCache | None = None
        self.known_end: EndPlace | None = None
        self.probe: EndProbe | None = None  # the latest one

    def close(self) -> None:
        if self._cache is not None:
            self._cache.clear()

    def maker(self, groups: EventGroups, session: DumpSession) -> tuple[BlockMaker, BlockCache] | None:
        """From the files of these groups, and their cache; None if there can be none."""
        files = files_of(groups)
        if files is None or (ready := kernels()) is None:
            return None
        from .block_cache import BlockCache

        if self._cache is None:
            self._cache = BlockCache()
        make = partial(_maker_of, groups, self._cache, ready, makes_events=session.makes_events)
        maker = make()
        if maker is None:
            return None
        if type(files) is RepeatedFiles:  # quicker than isinstance of a protocol
            from .changed_blocks import RepeatedBlocks

            maker = RepeatedBlocks(files.groups, maker, make)
        return maker, self._cache


def import_makers() -> None:
    """Once there are kernels: else the first dump waits."""
    for name in ("block_cache", "page_blocks", "classic_blocks"):
        importlib.import_module(f"ibbmaster.primary.streaming.{name}")


def _maker_of(groups: EventGroups, cache: BlockCache, ready: Kernels, *, makes_events: bool) -> BlockMaker | None:
    """Of a repeated recording for its round; None: the kernels cannot."""
    files, stages = files_of(groups), changes_of(groups)
    recording = files.groups if type(files) is RepeatedFiles else None
    if recording is not None:
        files = recording.recorded_files

    def find_end() -> LogPosition | None:
        end = files_end_of(groups)
        return end if end is None or recording is None else recording.there(end)

    assert files is not None
    maker: BlockMaker
    if are_paged(files):
        from .page_blocks import PageBlocks

        maker = PageBlocks(files, cache, ready, find_end)
    else:
        from .classic_blocks import ClassicBlocks

        assert isinstance(files, ClassicGroups)
        maker = ClassicBlocks(files, cache, ready, find_end)
    if not stages and not makes_events:
        return maker
    from .changed_blocks import ChangedBlocks
    from .packet_changes import change_of

    changes = [change for stage in stages if (change := change_of(stage, ready)) is not None]
    return ChangedBlocks(maker, stages, changes, cache, ready) if len(changes) == len(stages) else None
