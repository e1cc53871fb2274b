"""Stands between consumers and a primary, and passes every byte on; listeners may change, hold up or cut.

Each client gets its own connection to the primary. Each direction has one task, which sends what it read before it
reads on: back pressure reaches the other end. An end passes on as what it is: a half close, or a reset after everything
that was sent before it.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
from collections.abc import Awaitable, Callable

import trio

from ibbmaster.errors import ConfigurationError
from ibbmaster.storage.codec.printable import address
from ibbmaster.testkit.fault_stage import drain
from ibbmaster.testkit.incident import BY_RESET

log = logging.getLogger(__name__)

PIECE = 1 << 16  # bytes that are read at once
CONNECTIONS_MAX = 64
CONNECT_S = 10.0
BACKLOG = 128
ACCEPT_RETRY_S = 0.1
_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

Send = Callable[[bytes], Awaitable[None]]


class RelayedConnection:
    """Listens to one connection; only `send` passes bytes on. Cancelling `scope` closes both ends."""

    scope: trio.CancelScope

    async def from_primary(self, data: bytes, waited_s: float, send: Send) -> None:
        """Bytes for the client, after waiting that long for the primary."""

    async def from_client(self, data: bytes, send: Send) -> None:
        """Bytes for the primary."""

    async def primary_left(self, by: str) -> None:
        """The primary was the first to end: by "end" or "reset"."""

    async def client_left(self, by: str, silent_s: float) -> None:
        """The client was the first to end, after the primary was silent that long."""

    async def connected(self) -> None:
        """The primary has taken the connection."""

    async def refused(self) -> None:
        """The primary is not there: the client is reset."""

    def closed(self) -> None:
        """The connection is over; the client's socket is still open."""


class Relay:
    """Listens for consumers of one primary. `begin` makes the listener of a connection, from its socket and its
    peer."""

    def __init__(
        self,
        primary: tuple[str, int],
        begin: Callable[[trio.socket.SocketType, str], RelayedConnection],
        *,
        max_connections: int = CONNECTIONS_MAX,
    ) -> None:
        self._primary = primary
        self._begin = begin
        self._places = trio.CapacityLimiter(max_connections)

    async def serve(
        self,
        listeners: list[trio.SocketListener],
        *,
        task_status: trio.TaskStatus[tuple[str, int]] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Relay what comes to these listeners until it is cancelled, and close them."""
        async with contextlib.AsyncExitStack() as stack:
            for listener in listeners:
                stack.push_async_callback(listener.aclose)
            bound = listeners[0].socket.getsockname()
            task_status.started((bound[0], bound[1]))
            async with trio.open_nursery() as nursery:
                for listener in listeners:
                    nursery.start_soon(self._accept, listener.socket, nursery)

    async def _accept(self, listener: trio.socket.SocketType, nursery: trio.Nursery) -> None:
        while True:
            try:
                client, peer = await listener.accept()
            except OSError as error:
                if error.errno in _SHORTAGES:  # of descriptors, say: others go on
                    await trio.sleep(ACCEPT_RETRY_S)
                continue
            if self._places.available_tokens < 1:
                log.warning("a connection of %s is refused: %d are there", peer[0], self._places.total_tokens)
                _reset(client)
                continue
            place = object()
            self._places.acquire_on_behalf_of_nowait(place)
            nursery.start_soon(self._relay, client, address(*peer[:2]), place)

    async def _relay(self, client: trio.socket.SocketType, peer: str, place: object) -> None:
        try:
            with client, contextlib.ExitStack() as stack:
                with contextlib.suppress(OSError):
                    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                heard = self._begin(client, peer)
                stack.callback(heard.closed)
                stack.enter_context(heard.scope)
                try:
                    with trio.fail_after(CONNECT_S):
                        primary = await self._connect()
                except (OSError, trio.TooSlowError) as error:
                    if isinstance(error, ConnectionResetError):  # it was there
                        await heard.connected()
                        await heard.primary_left("reset")
                    else:
                        await heard.refused()
                    _reset(client)
                    return
                with primary, contextlib.suppress(trio.BrokenResourceError):
                    await heard.connected()
                    await _Ends(client, primary, heard).run()
        finally:
            self._places.release_on_behalf_of(place)

    async def _connect(self) -> trio.socket.SocketType:
        problem: OSError = OSError(errno.EHOSTUNREACH, "no address")
        found = await trio.socket.getaddrinfo(*self._primary, type=socket.SOCK_STREAM)
        for family, kind, protocol, _, place in found:
            primary = trio.socket.socket(family, kind, protocol)
            try:
                await primary.connect(place)
                primary.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return primary
            except OSError as error:
                primary.close()
                problem = error
            except BaseException:
                primary.close()
                raise
        raise problem


async def listen_on(host: str, port: int) -> list[trio.SocketListener]:
    """Listen on an address; clients wait until a relay serves. Raises ConfigurationError: the address cannot be
    listened on."""
    try:
        return await trio.open_tcp_listeners(port, host=host, backlog=BACKLOG)
    except OSError as error:
        raise ConfigurationError(f"cannot listen on {address(host, port)}: {error.strerror or error}") from None


class _GoneError(trio.BrokenResourceError):
    """An end takes nothing more."""


class _Ends:
    def __init__(
        self, client: trio.socket.SocketType, primary: trio.socket.SocketType, heard: RelayedConnection
    ) -> None:
        self._client, self._primary, self._heard = client, primary, heard
        self._scope = trio.CancelScope()
        self._has_ended = False
        self._silent_since = trio.current_time()

    async def run(self) -> None:
        with self._scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._pass_on, self._primary, self._client, True)
                nursery.start_soon(self._pass_on, self._client, self._primary, False)

    async def _pass_on(
        self, source: trio.socket.SocketType, sink: trio.socket.SocketType, is_from_primary: bool
    ) -> None:
        async def send(data: bytes) -> None:
            await self._send(sink, data, is_to_client=is_from_primary)

        while True:
            if is_from_primary:
                self._silent_since = trio.current_time()
            try:
                data = await source.recv(PIECE)
            except trio.ClosedResourceError:  # by the other direction
                return
            except OSError:
                await self._ended(is_from_primary, "reset")
                await drain(sink)
                _reset(sink)
                self._scope.cancel()
                return
            if not data:
                await self._ended(is_from_primary, "end")
                with contextlib.suppress(OSError):
                    sink.shutdown(socket.SHUT_WR)
                return
            try:
                if is_from_primary:
                    waited_s = trio.current_time() - self._silent_since
                    await self._heard.from_primary(data, waited_s, send)
                else:
                    await self._heard.from_client(data, send)
            except _GoneError:
                if is_from_primary:
                    self._scope.cancel()
                return  # what a primary sent before is still to come
            except trio.BrokenResourceError:  # the listener has cut it
                self._scope.cancel()
                return

    async def _send(self, sink: trio.socket.SocketType, data: bytes, *, is_to_client: bool) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[await sink.send(view) :]
        except OSError as error:
            if is_to_client:  # it has gone, which is known here first
                await self._ended(False, "reset")
                _reset(self._primary)
            raise _GoneError("the other end has gone") from error

    async def _ended(self, is_primary: bool, by: str) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        if is_primary:
            await self._heard.primary_left(by)
        else:
            await self._heard.client_left(by, trio.current_time() - self._silent_since)


def _reset(one: trio.socket.SocketType) -> None:
    with contextlib.suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, BY_RESET)
        one.close()
