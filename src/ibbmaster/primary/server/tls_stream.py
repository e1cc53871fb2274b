"""TLS on a socket: a worker thread encrypts and writes large blocks while the event loop serves others.

Small ones go out at once, in one call. OpenSSL itself writes each record to the socket: through memory, as
`ssl.SSLObject` and `trio.SSLStream` do, three more copies of each byte cost more than its encryption. The library is
that of `cryptography`: OpenSSL 3.0, of Debian 12, takes nearly twice the time for a record.
"""

import contextlib
import errno
import os
import socket
import threading
from collections.abc import Iterator

import trio
from OpenSSL import SSL

from ibbmaster.primary.streaming.sink import PATIENCE_MS, Sink, is_writable
from ibbmaster.storage.codec.buffer import Buffer
from .client_stream import Wait

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
