"""Bytes to one client, in as few calls as the socket takes them in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from ibbmaster.codec.buffer import Buffer

if TYPE_CHECKING:
    from ibbmaster.server.client_stream import ClientStream
    from ibbmaster.streaming.block import Block

WRITE_TIMEOUT_S = 60.0  # MariaDB's net_write_timeout: a client that takes nothing for so long is dropped
UNYIELDED_MAX = 1 << 20  # bytes that a socket may take in a row before others have their turn


class Sender:
    """The only sender to a stream; a client that takes nothing is dropped in time, and others have their turn."""

    def __init__(self, stream: ClientStream) -> None:
        self._stream = stream
        self.sink = stream.sink
        self._unyielded = 0

    async def send(self, data: Buffer | Block) -> None:
        """Send all of `data`, which must not change until this returns.

        Raises:
            trio.BrokenResourceError: the client is gone.
            trio.TooSlowError: it took nothing for `WRITE_TIMEOUT_S`.
        """
        buffer = data if isinstance(data, (bytes, bytearray, memoryview)) else data.data()
        await self._stream.send_all(buffer, wait=self._wait_writable)
        self._unyielded += len(data)
        if self._unyielded >= UNYIELDED_MAX:
            self._unyielded = 0
            await trio.lowlevel.checkpoint()

    async def _wait_writable(self, descriptor: int) -> None:
        self._unyielded = 0
        with trio.fail_after(WRITE_TIMEOUT_S):
            await trio.lowlevel.wait_writable(descriptor)
