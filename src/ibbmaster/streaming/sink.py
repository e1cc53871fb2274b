"""Where a dump's packets go: a client's socket, in clear or through TLS."""

from __future__ import annotations

import os
import select
from typing import Protocol

from ibbmaster.codec.buffer import Buffer

PATIENCE_MS = 10  # of a thread that has more to send: to come back to it costs more than to wait


class Sink(Protocol):
    """What packets are written to, by one caller at a time."""

    descriptor: int | None
    """Of the socket, if what is written there goes to the client as it is."""

    @property
    def is_flushed(self) -> bool:
        """Whether nothing of what was taken waits for the socket; else it goes out before what comes next."""

    def write(self, data: Buffer, patience_ms: int = 0) -> int:
        """Write what the socket takes; returns how much of `data` was taken.

        With patience, which is for a thread, it waits so long at most whenever the socket takes nothing. A failure is
        no error here: nothing is taken, and the next to write meets it.
        """


class SocketSink:
    """A socket in clear, which does not block."""

    is_flushed = True

    def __init__(self, descriptor: int) -> None:
        self.descriptor: int | None = descriptor
        self._descriptor = descriptor

    def write(self, data: Buffer, patience_ms: int = 0) -> int:
        try:
            taken = os.write(self._descriptor, data)  # of a small block mostly all
        except OSError:
            taken = 0
        if taken == len(data) or not patience_ms:
            return taken
        return taken + write_now(self._descriptor, memoryview(data)[taken:], patience_ms)


def write_now(descriptor: int, data: Buffer, patience_ms: int) -> int:
    """As `Sink.write`, to a socket that does not block."""
    left = memoryview(data)
    while len(left):
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            if not patience_ms or not is_writable(descriptor, patience_ms):
                break
        except OSError:
            break
    return len(data) - len(left)


def is_writable(descriptor: int, patience_ms: int) -> bool:
    """Whether a socket takes more within a time."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(patience_ms))
