"""What one of many that wait has got, for the others at its place: the same packets with other numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ibbmaster.position import LogPosition
from ibbmaster.streaming.block import Block, joined, sent_block

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

    def step_of(self, generation: int) -> SharedStep | None:
        """The step, if it was made since the log has grown last."""
        return self.step if self.generation == generation else None


class SharedStep:
    """The packets from one shared place to another. `probe` is of the dump that looks whether that is the end."""

    __slots__ = ("_data", "_numbers", "_sequence", "after", "block", "probe")

    def __init__(
        self, block: Block, sequence: int, numbers: list[int], after: SharedPlace, probe: EndProbe | None
    ) -> None:
        """`numbers` are the places of the packet numbers in a block; that of the first is `sequence`."""
        self.block = block
        self.after = after
        self.probe = probe
        self._data = bytearray(block.data())
        self._numbers = numbers
        self._sequence = sequence

    @property
    def packets(self) -> int:
        """How many there are."""
        return len(self._numbers)

    def numbered(self, sequence: int) -> bytearray:
        """The packets, the first with this number; good until the next call."""
        if sequence != self._sequence:
            self._sequence = sequence
            for number, place in enumerate(self._numbers, sequence):
                self._data[place] = number & 0xFF
        return self._data


class SentSteps:
    """Steps that went out one after the other. They are joined once for all who have missed the same of them."""

    def __init__(self, steps: Sequence[SharedStep]) -> None:
        self._blocks = [step.block for step in steps]

    @cached_property
    def block(self) -> Block:
        """All of them, without packets, and with a number after them that says nothing.

        Raises DumpError: they do not follow each other.
        """
        return sent_block(self._blocks, 0)


def shared_step(
    blocks: Sequence[Block], sequence: int, after: SharedPlace, probe: EndProbe | None
) -> SharedStep | None:
    """Blocks that one dump has got one after the other; None if each has to get them by itself.

    Raises DumpError: they do not follow each other.
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
