"""TLS on a socket: large blocks are encrypted and written in a worker thread, while the event loop serves others.

Small ones go out at once, in one call. A block is encrypted as a whole number of pieces that stay in the processor's
cache, and each goes to the socket in one call: `trio.SSLStream` encrypts on the event loop.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from typing import Any

import trio

from ibbmaster.codec.buffer import Buffer
from ibbmaster.server.socket_reading import read_now
from ibbmaster.server.socket_writing import Wait, write_all
from ibbmaster.streaming.sink import PATIENCE_MS, write_now

RECEIVE_BYTES = 1 << 16
PIECE_BYTES = 1 << 18  # encrypted, and written, by one call each
THREAD_MIN = 1 << 17  # bytes that are worth a hop to a thread
VERSION_WITH_LATE_TICKETS = "TLSv1.3"


class TlsStream:
    """The server's side of TLS on a connection. One task may send while another receives."""

    def __init__(self, stream: trio.SocketStream, context: ssl.SSLContext, threads: trio.CapacityLimiter) -> None:
        self._stream = stream
        self._threads = threads
        self._descriptor = stream.socket.fileno()
        self._arriving, self._leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._arriving, self._leaving, server_side=True)
        self._lock = threading.Lock()  # for the three: who sends may be in a thread
        self._unsent: Buffer = b""  # encrypted: it goes out first
        self.descriptor: int | None = None  # what is written there has to be encrypted first

    def version(self) -> str:
        """Of the protocol, as TLSv1.3."""
        return self._object.version() or ""

    def cipher(self) -> str:
        """The name of what encrypts."""
        return (self._object.cipher() or ("",))[0]

    async def do_handshake(self) -> None:
        """Agree with the client.

        Raises:
            trio.BrokenResourceError: it left, or does not speak TLS as we do.
        """
        while True:
            is_done = self._asked(self._object.do_handshake) is not None
            if is_done and self.version() == VERSION_WITH_LATE_TICKETS:
                return  # what is left are tickets: a client that only sends next would never read them
            await write_all(self._descriptor, self._leaving.read(), trio.lowlevel.wait_writable)
            if is_done:
                return
            while (data := read_now(self._descriptor, RECEIVE_BYTES)) is None:
                await trio.lowlevel.wait_readable(self._descriptor)
            if not data:
                raise trio.BrokenResourceError("the client left before TLS began")
            self._arriving.write(data)

    async def receive_some(self, size: int) -> bytes:
        """As `receive_now`, once something has come."""
        while (data := self.receive_now(size)) is None:
            await trio.lowlevel.wait_readable(self._descriptor)
        return data

    @property
    def holds_more(self) -> bool:
        """Whether something has come that was not received yet, and which the socket does not tell of any more."""
        return bool(self._arriving.pending or self._object.pending())

    def receive_now(self, size: int) -> bytes | None:
        """What has come, at most `size` bytes, and none if the client has left; None where nothing has come yet.

        Raises:
            trio.BrokenResourceError: the connection is lost, or what came is no TLS.
        """
        while True:
            with self._lock:
                data = self._asked(self._object.read, size)
            if data is not None:
                return bytes(data)
            arrived = read_now(self._descriptor, RECEIVE_BYTES)
            if not arrived:
                return arrived
            with self._lock:
                self._arriving.write(arrived)

    async def send_all(self, data: Buffer, *, wait: Wait) -> None:
        """Send all; `wait` is awaited where the socket takes nothing.

        Raises:
            trio.BrokenResourceError: the client is gone.
        """
        left = memoryview(data)
        while True:
            await write_all(self._descriptor, self._unsent, wait)
            self._unsent = b""
            if not len(left):
                return
            if len(left) < THREAD_MIN:
                self._unsent, left = self._encrypted(left), left[len(left) :]
            else:
                left = left[await trio.to_thread.run_sync(self.write, left, PATIENCE_MS, limiter=self._threads) :]

    @property
    def is_flushed(self) -> bool:
        """As of a `Sink`."""
        return not len(self._unsent)

    def write(self, data: Buffer, patience_ms: int = 0) -> int:
        """As that of a `Sink`: encrypt piece by piece while the socket takes them."""
        left = memoryview(data)
        self._flush(patience_ms)
        while len(left) and self.is_flushed:
            self._unsent, left = self._encrypted(left[:PIECE_BYTES]), left[PIECE_BYTES:]
            self._flush(patience_ms)
        return len(data) - len(left)

    def _flush(self, patience_ms: int) -> None:
        if len(self._unsent):
            taken = write_now(self._descriptor, self._unsent, patience_ms)
            self._unsent = memoryview(self._unsent)[taken:]

    def _encrypted(self, data: memoryview) -> bytes:
        with self._lock:
            while len(data):
                data = data[self._object.write(data) :]
            return self._leaving.read()

    def _asked(self, call: Callable[..., Any], *args: int) -> Any:
        """What a call of the TLS object gives, b"" for nothing; None where it needs what the client sends next."""
        try:
            answer = call(*args)
        except ssl.SSLWantReadError:
            return None
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""
        except (ssl.SSLError, ssl.CertificateError) as error:
            raise trio.BrokenResourceError(str(error)) from error
        return b"" if answer is None else answer
