"""A place between the source of a dump and its socket, where bytes can be counted, delayed, altered or cut."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from ibbmaster.streaming.block import Block

Send = Callable[[Block], Awaitable[None]]


class Stage(Protocol):
    """What every block of one dump goes through. Without one, a dump pays nothing for it."""

    @property
    def only_counts(self) -> bool:
        """Whether it leaves bytes and their times alone: then a pump may send past it, and tells `note_sent`.

        It may be another thing behind `note_border`.
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
