"""The bytes of a connection, in clear; `TlsStream` has those of TLS."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from collections.abc import Awaitable, Callable
from socket import IPPROTO_TCP, TCP_INFO
from typing import TYPE_CHECKING, NamedTuple, Protocol

import trio

from ibbmaster.primary.streaming.sink import Sink, SocketSink
from ibbmaster.storage.codec.buffer import Buffer

if TYPE_CHECKING:
    from ibbmaster.primary.streaming.block import Block

Wait = Callable[[int], Awaitable[object]]
"""Returns when a socket may take more."""
WRITE_TIMEOUT_S = 60.0  # MariaDB's net_write_timeout
BYTES_ACKED_RECEIVED, BYTES_ACKED_AT, TCP_INFO_SIZE = struct.Struct("=QQ"), 120, 136
UNYIELDED_MAX = 1 << 20  # bytes to one socket, before others have their turn


class Traffic(NamedTuple):
    """What the kernel has counted of a connection, in bytes: of TLS as it is on the wire."""

    sent: int  # which the other machine has confirmed
    received: int
    waiting: int  # written, and not confirmed


def traffic_of(socket: trio.socket.SocketType | None) -> Traffic | None:
    """None: it is closed, or the kernel does not say. Source: Linux, tcp.h, struct tcp_info."""
    try:
        if socket is None or len(info := socket.getsockopt(IPPROTO_TCP, TCP_INFO, TCP_INFO_SIZE)) < TCP_INFO_SIZE:
            return None
        (waiting,) = struct.unpack("i", fcntl.ioctl(socket.fileno(), termios.TIOCOUTQ, bytes(4)))
    except (OSError, ValueError):
        return None
    sent, received = BYTES_ACKED_RECEIVED.unpack_from(info, BYTES_ACKED_AT)
    return Traffic(sent, received, waiting)


class ClientStream(Protocol):
    """One task may send while another receives."""

    @property
    def sink(self) -> Sink:
        """Where a thread or a crowd writes while `send_all` does not run."""

    @property
    def version(self) -> str:
        """Of TLS, as TLSv1.3; empty in clear."""

    @property
    def cipher(self) -> str:
        """Empty in clear."""

    @property
    def holds_more(self) -> bool:
        """Received bytes are left of which the socket no longer tells."""

    async def receive_some(self, size: int) -> bytes:
        """As `receive_now`, once something has come."""

    def receive_now(self, size: int) -> bytes | None:
        """At most `size` bytes; b"" if the client has left, None if nothing has come. Raises trio.BrokenResourceError:
        the connection is lost, or its bytes cannot be deciphered."""

    async def send_all(self, data: Buffer, *, wait: Wait) -> None:
        """`data` must not change meanwhile; awaits `wait` while the socket takes nothing. Raises
        trio.BrokenResourceError: the client is gone.
        """


class PlainStream:
    """trio's `send_all` would cost 10 to 15 us a call, several times what a small block takes."""

    version = cipher = ""
    holds_more = False

    def __init__(self, stream: trio.SocketStream) -> None:
        self._descriptor = stream.socket.fileno()
        self.sink: Sink = SocketSink(self._descriptor)

    async def receive_some(self, size: int) -> bytes:
        while True:
            await trio.lowlevel.wait_readable(self._descriptor)  # a client that waits for an answer has sent nothing
            if (data := self.receive_now(size)) is not None:
                return data

    def receive_now(self, size: int) -> bytes | None:
        try:
            return os.read(self._descriptor, size)
        except BlockingIOError:
            return None
        except OSError as error:
            raise trio.BrokenResourceError(error.strerror) from error

    async def send_all(self, data: Buffer, *, wait: Wait) -> None:
        left = memoryview(data)
        while len(left):
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                await wait(self._descriptor)
            except OSError as error:
                raise trio.BrokenResourceError(error.strerror) from error


class Sender:
    """The only sender to a stream; drops a client that takes nothing in time, and lets others have their turn."""

    def __init__(self, stream: ClientStream) -> None:
        self._stream = stream
        self.sink = stream.sink
        self._unyielded = 0

    async def send(self, data: Buffer | Block) -> None:
        """`data` must not change meanwhile. Raises trio.BrokenResourceError: the client is gone; trio.TooSlowError: it
        took nothing for `WRITE_TIMEOUT_S`."""
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
