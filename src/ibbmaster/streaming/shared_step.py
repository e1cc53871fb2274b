"""What one of many that wait has got, for the others at its place: the same packets with other numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from ibbmaster.position import LogPosition
from ibbmaster.streaming.block import Block

BYTES_MAX = 32 * 1024  # of what many get at once: of more, sending is what takes long
PACKETS_MAX = 32  # each is numbered for each of them
HEADER_BYTES, NUMBER_AT = 4, 3  # of a packet


EndPlace = tuple[int, LogPosition]  # the follower's generation, and a position


class EndProbe:
    """A dump is looking, in a worker thread, what comes at a position; others need not do so, too."""

    def __init__(self, place: EndPlace) -> None:
        self.place = place
        self.has_others = False  # a dump relies on it


class SharedPlace:
    """An end of the log where dumps wait that get the same next; `step` is that, once the first has got it."""

    __slots__ = ("__weakref__", "generation", "step")

    def __init__(self) -> None:
        self.generation = -1  # of the follower, when the step was made
        self.step: SharedStep | None = None


class SharedStep:
    """The packets from one shared place to another. `probe` is of the dump that looks whether that is the end."""

    __slots__ = ("_data", "_numbers", "_sequence", "after", "blocks", "packets", "probe")

    def __init__(
        self, blocks: Sequence[Block], sequence: int, numbers: list[int], after: SharedPlace, probe: EndProbe | None
    ) -> None:
        """`numbers` are the places of the packet numbers; that of the first is `sequence`."""
        self.blocks = tuple(blocks)
        self.packets = len(numbers)
        self.after = after
        self.probe = probe
        self._data = bytearray().join(block.data() for block in blocks)
        self._numbers = numbers
        self._sequence = sequence

    def numbered(self, sequence: int) -> bytearray:
        """The packets, the first with this number; good until the next call."""
        if sequence != self._sequence:
            self._sequence = sequence
            for number, place in enumerate(self._numbers, sequence):
                self._data[place] = number & 0xFF
        return self._data


def shared_step(
    blocks: Sequence[Block], sequence: int, after: SharedPlace, probe: EndProbe | None
) -> SharedStep | None:
    """Blocks that one dump has got one after the other; None if each has to get them by itself."""
    size = sum(map(len, blocks))
    if not 0 < size <= BYTES_MAX or any(block.begins_inside_group or block.ends_inside_group for block in blocks):
        return None
    numbers: list[int] = []
    offset = end = 0
    for block in blocks:
        data, begin = block.data(), end
        end += len(block)
        while offset < end and len(numbers) <= PACKETS_MAX:
            numbers.append(offset + NUMBER_AT)
            header = data[offset - begin : offset - begin + NUMBER_AT]
            offset += HEADER_BYTES + int.from_bytes(header, "little")
        if offset != end or len(numbers) > PACKETS_MAX or block.before == block.after:
            return None
    return SharedStep(blocks, sequence, numbers, after, probe)


def passed(steps: Sequence[SharedStep], sequence: int) -> Block:
    """A block without packets, of the way of some steps that went out; `sequence` is the number of what comes next."""
    blocks = list(chain.from_iterable(step.blocks for step in steps))
    last = blocks[-1]
    return Block(
        b"",
        None,
        0,
        sequence_after=sequence,
        before=blocks[0].before,
        after=last.after,
        gtids=tuple(chain.from_iterable(block.gtids for block in blocks)),
        stored_gtids=tuple(chain.from_iterable(block.stored_gtids for block in blocks)),
        head=blocks[0].head,
        log_positions=last.log_positions,
        framed_bytes=sum(block.framed_bytes for block in blocks),
    )
