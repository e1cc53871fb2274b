"""What a connection talks through, in clear and over TLS."""

from __future__ import annotations

from typing import Protocol

import trio

from ibbmaster.codec.buffer import Buffer
from ibbmaster.server.socket_io import Wait, read_now, write_all
from ibbmaster.streaming.sink import Sink, SocketSink


class ClientStream(Protocol):
    """The bytes of one client. One task may send while another receives."""

    @property
    def sink(self) -> Sink:
        """Where a thread or a crowd writes, while nothing is sent here."""

    @property
    def version(self) -> str:
        """Of TLS, as TLSv1.3; empty in clear."""

    @property
    def cipher(self) -> str:
        """The name of what encrypts; empty in clear."""

    @property
    def holds_more(self) -> bool:
        """Whether something has come that was not received yet, and which the socket does not tell of any more."""

    async def receive_some(self, size: int) -> bytes:
        """As `receive_now`, once something has come."""

    def receive_now(self, size: int) -> bytes | None:
        """What has come, at most `size` bytes, and none if the client has left; None where nothing has come yet.

        Raises trio.BrokenResourceError: the connection is lost, or what came cannot be deciphered.
        """

    async def send_all(self, data: Buffer, *, wait: Wait) -> None:
        """Send all of `data`, which must not change meanwhile; `wait` is awaited where the socket takes nothing.

        Raises trio.BrokenResourceError: the client is gone.
        """


class PlainStream:
    """A connection that is not encrypted.

    It reads and writes the socket itself: trio's `send_all` costs 10 to 15 us a call, several times what the kernel
    takes for a small block.
    """

    version = cipher = ""
    holds_more = False

    def __init__(self, stream: trio.SocketStream) -> None:
        self._descriptor = stream.socket.fileno()
        self.sink: Sink = SocketSink(self._descriptor)

    async def receive_some(self, size: int) -> bytes:
        while True:
            await trio.lowlevel.wait_readable(self._descriptor)  # who waits for an answer has sent nothing yet
            if (data := self.receive_now(size)) is not None:
                return data

    def receive_now(self, size: int) -> bytes | None:
        return read_now(self._descriptor, size)

    async def send_all(self, data: Buffer, *, wait: Wait) -> None:
        await write_all(self._descriptor, data, wait)
