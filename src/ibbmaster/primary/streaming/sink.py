"""Between the source of a dump and its client: stages that count, delay, alter or cut bytes, and the socket."""

import os
import select
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from ibbmaster.storage.codec.buffer import Buffer
from .block import Block

PATIENCE_MS = 10  # of a thread: to wait costs less than another hop

Send = Callable[[Block], Awaitable[None]]
Of = TypeVar("Of")


class Sink(Protocol):
    """A client's socket, in clear or through TLS; one caller writes at a time."""

    descriptor: int | None
    """Of the socket, if the client gets unchanged what is written there."""

    @property
    def is_flushed(self) -> bool:
        """The socket has all that was taken; else the rest goes out first."""

    def write(self, data: Buffer, patience_ms: int = 0) -> int:
        """Returns how much was taken, 0 after a failure: the next write meets it. A thread may have patience: each time
        the socket takes nothing, it waits so long at most."""


class SocketSink:
    """Non-blocking, in clear."""

    is_flushed = True

    def __init__(self, descriptor: int) -> None:
        self.descriptor: int | None = descriptor
        self._descriptor = descriptor

    def write(self, data: Buffer, patience_ms: int = 0) -> int:
        try:
            taken = os.write(self._descriptor, data)  # mostly all of a small block
        except OSError:
            return 0 if not patience_ms else self._write_patiently(memoryview(data), patience_ms)
        if taken == len(data) or not patience_ms:
            return taken
        return taken + self._write_patiently(memoryview(data)[taken:], patience_ms)

    def _write_patiently(self, left: memoryview, patience_ms: int) -> int:
        size = len(left)
        while len(left):
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                if not is_writable(self._descriptor, patience_ms):
                    break
            except OSError:
                break
        return size - len(left)


def left_of(data: Buffer, sink: Sink, patience_ms: int = 0) -> bytes | None:
    """Write data as `Sink.write`; returns the rest, or None: empty if the sink took all, and its socket did not."""
    taken = sink.write(data, patience_ms) if len(data) else 0
    return None if taken == len(data) and sink.is_flushed else bytes(data[taken:])


def is_writable(descriptor: int, patience_ms: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(patience_ms))


class Stage(Protocol):
    """Every block of one dump goes through it, if there is one."""

    async def pass_on(self, block: Block, send: Send) -> None:
        """Let a block continue: by `send`, as it is, later, in pieces, changed, or not at all. In its place send a
        `Block`, too: `plain_block(data, block.after)`. Raise `trio.BrokenResourceError` to cut the connection."""


class Stages:
    """What the first sends goes through the second, and so on."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = tuple(stages)

    async def pass_on(self, block: Block, send: Send) -> None:
        for stage in reversed(self._stages):
            send = partial(stage.pass_on, send=send)
        await send(block)


def made_stage(makers: Sequence[Callable[[Of], Stage | None]], of: Of) -> Stage | None:
    """The stages of one dump as one."""
    stages = [stage for make in makers if (stage := make(of)) is not None]
    if len(stages) > 1:
        return Stages(stages)
    return stages[0] if stages else None
