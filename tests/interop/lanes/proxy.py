"""A TCP proxy that cuts connections: each at its own number of bytes sent to the client."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

PIECE = 1 << 16
JOIN_TIMEOUT_S = 10.0


@dataclass(slots=True, kw_only=True)
class Cut:
    """The end of one connection: `after_bytes` went to the client, and then nothing more.

    With `waits` the connection stays open and silent until `proceed` is set, so that a
    test can do something to the server meanwhile.
    """

    after_bytes: int
    waits: bool = False
    reached: threading.Event = field(default_factory=threading.Event)
    proceed: threading.Event = field(default_factory=threading.Event)


class CuttingProxy:
    """Cuts the first connections as planned; later ones pass through whole."""

    host = "127.0.0.1"

    def __init__(self, host: str, port: int, cuts: Sequence[Cut] = ()) -> None:
        self._target = (host, port)
        self._cuts = list(cuts)
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._is_closed = False
        self._lock = threading.Lock()
        self._listener = socket.create_server((self.host, 0))
        self.port: int = self._listener.getsockname()[1]
        self.connection_count = 0

    def __enter__(self) -> CuttingProxy:
        self._spawn(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._is_closed = True
        for cut in self._cuts:
            cut.proceed.set()
        for one in (self._listener, *self._sockets):
            end(one)
        for thread in self._threads:
            thread.join(JOIN_TIMEOUT_S)

    def _spawn(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                cut = self._cuts[self.connection_count] if self.connection_count < len(self._cuts) else None
                self.connection_count += 1
                try:
                    server = socket.create_connection(self._target)
                except OSError:  # the server is down: the client sees its connection end
                    end(client)
                    continue
                with self._lock:
                    self._sockets += [client, server]
                    if self._is_closed:
                        end(client)
                        end(server)
                        return
                self._spawn(pump, client, server, None)
                self._spawn(pump, server, client, cut)


def pump(source: socket.socket, target: socket.socket, cut: Cut | None) -> None:
    """Move bytes one way until the source ends or the cut is reached; then both ends are closed."""
    left = cut.after_bytes if cut else None
    with contextlib.suppress(OSError):
        while left is None or left > 0:
            data = source.recv(PIECE if left is None else min(PIECE, left))
            if not data:
                break
            target.sendall(data)
            if left is not None:
                left -= len(data)
    if cut and left == 0:
        cut.reached.set()
        if cut.waits:
            cut.proceed.wait(JOIN_TIMEOUT_S * 6)
    end(source)
    end(target)


def end(one: socket.socket) -> None:
    """Shut a socket down and close it, whatever state it is in."""
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
