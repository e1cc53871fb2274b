"""Where a dump's packets go: a client's socket, in clear or through TLS."""

from __future__ import annotations

import os
from typing import Protocol

from ibbmaster.codec.buffer import Buffer


class Sink(Protocol):
    """What a pump sends to, in a worker thread."""

    descriptor: int | None
    """Of the socket, if what is written there goes to the client as it is."""

    def write(self, data: Buffer) -> int:
        """Send what the socket takes now; returns how much of `data` that is.

        A failure is no error here: it takes nothing, and who sends the rest finds that out.
        """


class SocketSink:
    """A socket in clear, which does not block."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor: int | None = descriptor
        self._descriptor = descriptor

    def write(self, data: Buffer) -> int:
        try:
            return os.write(self._descriptor, data)
        except OSError:
            return 0
