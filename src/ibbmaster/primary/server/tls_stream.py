"""The bytes of a connection, in clear or by TLS: a worker thread encrypts and writes large blocks, while the event loop
serves others.

Small ones go out at once, in one call. OpenSSL itself writes each record to the socket: through memory, as
`ssl.SSLObject` and `trio.SSLStream` do, three more copies of each byte cost more than its encryption. The library is
that of `cryptography`: OpenSSL 3.0, of Debian 12, takes nearly twice the time for a record.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import struct
import termios
import threading
from collections.abc import Awaitable, Callable, Iterator
from socket import IPPROTO_TCP, TCP_INFO
from typing import TYPE_CHECKING, NamedTuple, Protocol

import trio
from OpenSSL import SSL

from ibbmaster.primary.streaming.sink import PATIENCE_MS, Sink, SocketSink, is_writable
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


PIECE_BYTES = 1 << 20  # OpenSSL encrypts and writes them in one call
RECORD_BYTES = 1 << 14
THREAD_MIN = 1 << 17  # bytes that are worth a hop to a thread
PARTIAL_WRITE = 1  # SSL_MODE_ENABLE_PARTIAL_WRITE: each call would end after one record
UNEXPECTED_END = (-1, "Unexpected EOF")  # without a farewell, as MariaDB's clients end


def new_context() -> SSL.Context:
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.set_options(SSL.OP_NO_RENEGOTIATION)
    context.set_mode(SSL.MODE_RELEASE_BUFFERS)  # a waiting client takes half the memory, 24 KB
    context.clear_mode(PARTIAL_WRITE)
    return context


class TlsStream:
    def __init__(self, stream: trio.SocketStream, context: SSL.Context, threads: trio.CapacityLimiter) -> None:
        self._threads = threads
        self._socket = stream.socket
        self._is_tcp = stream.socket.family in (socket.AF_INET, socket.AF_INET6)
        self._descriptor = stream.socket.fileno()
        self._connection = SSL.Connection(context, stream.socket)  # type: ignore[arg-type]  # it wants a descriptor
        self._connection.set_accept_state()
        self._lock = threading.Lock()  # for the connection: a thread may send
        self._begun: Buffer = b""  # a piece with some records out: its rest goes first
        self.descriptor: int | None = None  # what is written there has to be encrypted first

    @property
    def sink(self) -> Sink:
        return self

    @property
    def version(self) -> str:
        return self._connection.get_protocol_version_name()

    @property
    def cipher(self) -> str:
        return self._connection.get_cipher_name() or ""

    async def do_handshake(self) -> None:
        """Raises trio.BrokenResourceError: the client left, or speaks another TLS."""
        while True:
            try:
                self._connection.do_handshake()
            except SSL.Error as error:
                if not _is_to_be_called_again(error):
                    raise trio.BrokenResourceError(reason_of(error)) from None
            else:
                return
            if self._connection.want_write():
                await trio.lowlevel.wait_writable(self._descriptor)
            else:
                await trio.lowlevel.wait_readable(self._descriptor)

    async def receive_some(self, size: int) -> bytes:
        while (data := self.receive_now(size)) is None:
            await trio.lowlevel.wait_readable(self._descriptor)
        return data

    @property
    def holds_more(self) -> bool:
        with self._lock:
            return bool(self._connection.pending())

    def receive_now(self, size: int) -> bytes | None:
        try:
            with self._lock:
                return self._connection.recv(size)
        except SSL.Error as error:
            if _is_to_be_called_again(error):
                return None
            if isinstance(error, SSL.ZeroReturnError) or error.args == UNEXPECTED_END:
                return b""
            raise trio.BrokenResourceError(reason_of(error)) from None

    async def send_all(self, data: Buffer, *, wait: Wait) -> None:
        left = memoryview(data)
        while True:
            if len(left) < THREAD_MIN:
                taken = self._sent(left, 0)
            else:
                taken = await trio.to_thread.run_sync(self._sent, left, PATIENCE_MS, limiter=self._threads)
            left = left[taken:]
            if self.is_flushed and not len(left):
                return
            await wait(self._descriptor)

    @property
    def is_flushed(self) -> bool:
        return not len(self._begun)

    def write(self, data: Buffer, patience_ms: int = 0) -> int:
        try:
            return self._sent(memoryview(data), patience_ms)
        except trio.BrokenResourceError:
            return 0

    def _sent(self, data: memoryview, patience_ms: int) -> int:
        """How much of `data` was taken, after the piece that has begun. Raises trio.BrokenResourceError: the client is
        gone."""
        with self._corked(len(self._begun) + len(data) > RECORD_BYTES):
            if not self.is_flushed:
                if not self._is_out(self._begun, patience_ms):
                    return 0
                self._begun = b""
            for begin in range(0, len(data), PIECE_BYTES):
                piece = data[begin : begin + PIECE_BYTES]
                if not self._is_out(piece, patience_ms):
                    self._begun = bytes(piece)  # its owner may use the memory again
                    return begin + len(piece)
        return len(data)

    @contextlib.contextmanager
    def _corked(self, has_many_records: bool) -> Iterator[None]:
        """Send long packets: each record alone would wake the client."""
        if not has_many_records or not self._is_tcp:
            yield
            return
        self._cork(1)
        try:
            yield
        finally:
            self._cork(0)

    def _cork(self, is_in: int) -> None:
        with contextlib.suppress(OSError):  # the next write meets a lost connection
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, is_in)

    def _is_out(self, piece: Buffer, patience_ms: int) -> bool:
        """Send a piece, or more of the one before; whether all is out. Raises trio.BrokenResourceError: as `_sent`."""
        while True:
            try:
                with self._lock:
                    self._connection.send(piece)
            except SSL.Error as error:
                if not _is_to_be_called_again(error):
                    raise trio.BrokenResourceError(reason_of(error)) from None
                if not patience_ms or not is_writable(self._descriptor, patience_ms):
                    return False
            else:
                return True


def _is_to_be_called_again(error: SSL.Error) -> bool:
    """Whether the socket only has or takes nothing now. A lost connection may leave an error in its thread's list,
    which OpenSSL 3.5 also reports for the next one: there only errno is right.
    """
    if isinstance(error, SSL.SysCallError):
        return bool(error.args[0] == errno.EAGAIN)
    return isinstance(error, (SSL.WantReadError, SSL.WantWriteError))


def reason_of(error: SSL.Error) -> str:
    if isinstance(error, SSL.SysCallError):
        return "the client has left" if error.args == UNEXPECTED_END else os.strerror(error.args[0])
    reasons = [reason for *_, reason in error.args[0] if reason] if error.args else []
    return "; ".join(reasons) or "the connection is lost"
