"""Places between the source of a dump and its socket, where bytes can be counted, delayed, altered or cut."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from ibbmaster.streaming.block import Block

Send = Callable[[Block], Awaitable[None]]
Of = TypeVar("Of")


class Stage(Protocol):
    """What every block of one dump goes through. Without one, a dump pays nothing for it."""

    @property
    def only_counts(self) -> bool:
        """Whether it leaves bytes and their times alone: then a pump may send past it, and calls `note_sent`.

        It may change after `note_border`.
        """

    def note_border(self) -> None:
        """What comes next begins between two groups, or ends the dump."""

    async def pass_on(self, block: Block, send: Send) -> None:
        """Let a block continue: by `send`, as it is, later, in pieces, in another form, or not at all.

        What is sent in its place is a `Block`, too: `plain_block(data, block.after)`. Raise
        `trio.BrokenResourceError` to cut the connection.
        """

    def note_sent(self, size: int) -> None:
        """A pump has sent `size` bytes by itself."""


class Counter:
    """A stage that counts what goes to a replica."""

    only_counts = True

    def __init__(self) -> None:
        self.sent_bytes = 0

    def note_border(self) -> None:
        """It counts whatever comes."""

    async def pass_on(self, block: Block, send: Send) -> None:
        """Count a block once it is sent."""
        await send(block)
        self.note_sent(len(block))

    def note_sent(self, size: int) -> None:
        self.sent_bytes += size


class Stages:
    """Stages that follow each other, as one: what the first sends goes through the second, and so on to the socket."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        """`stages` are in the order in which bytes go through them."""
        self._stages = tuple(stages)

    @property
    def only_counts(self) -> bool:
        return all(stage.only_counts for stage in self._stages)

    def note_border(self) -> None:
        for stage in self._stages:
            stage.note_border()

    async def pass_on(self, block: Block, send: Send) -> None:
        """Let a block go through all of them."""
        for stage in reversed(self._stages):
            send = partial(stage.pass_on, send=send)
        await send(block)

    def note_sent(self, size: int) -> None:
        for stage in self._stages:
            stage.note_sent(size)


def made_stage(makers: Sequence[Callable[[Of], Stage | None]], of: Of) -> Stage | None:
    """The stages of one dump as one; a maker may have none for it. None: nothing is between source and socket."""
    stages = [stage for make in makers if (stage := make(of)) is not None]
    if len(stages) > 1:
        return Stages(stages)
    return stages[0] if stages else None
