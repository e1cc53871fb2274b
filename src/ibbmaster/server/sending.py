"""Bytes to one client, in as few calls as the socket takes them in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from ibbmaster.codec.buffer import Buffer
from ibbmaster.server.socket_writing import write_all
from ibbmaster.streaming.sink import Sink, SocketSink

if TYPE_CHECKING:
    from ibbmaster.server.tls_stream import TlsStream
    from ibbmaster.streaming.block import Block

WRITE_TIMEOUT_S = 60.0  # MariaDB's net_write_timeout: a client that takes nothing for so long is dropped
UNYIELDED_MAX = 1 << 20  # bytes that a socket may take in a row before others have their turn


class Sender:
    """The only sender to a stream.

    It writes to the socket itself: trio's `send_all` costs 10 to 15 us a call, several times what the kernel takes for
    a small block.
    """

    def __init__(self, stream: trio.SocketStream | TlsStream) -> None:
        self._stream = stream
        self.sink: Sink = SocketSink(stream.socket.fileno()) if isinstance(stream, trio.SocketStream) else stream
        """Where a thread or a crowd writes, while nothing is sent here."""
        self._unyielded = 0

    async def send(self, data: Buffer | Block) -> None:
        """Send all of `data`, which must not change until this returns.

        Raises:
            trio.BrokenResourceError: the client is gone.
            trio.TooSlowError: it took nothing for `WRITE_TIMEOUT_S`.
        """
        buffer = data if isinstance(data, (bytes, bytearray, memoryview)) else data.data()
        if self.sink.descriptor is not None:
            await write_all(self.sink.descriptor, buffer, self._wait_writable)
        else:
            assert not isinstance(self._stream, trio.SocketStream)
            await self._stream.send_all(buffer, wait=self._wait_writable)
        self._unyielded += len(data)
        if self._unyielded >= UNYIELDED_MAX:  # others have their turn
            self._unyielded = 0
            await trio.lowlevel.checkpoint()

    async def _wait_writable(self, descriptor: int) -> None:
        self._unyielded = 0
        with trio.fail_after(WRITE_TIMEOUT_S):
            await trio.lowlevel.wait_writable(descriptor)
