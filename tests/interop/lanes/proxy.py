"""A TCP proxy that cuts connections, each after exactly so many bytes that were sent to the client; and a plan."""

from __future__ import annotations

import contextlib
import enum
import math
import random
import selectors
import socket
import struct
import threading
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

PIECE = 1 << 16
JOIN_TIMEOUT_S = 10.0
COMMAND_OFFSET = 4  # of a packet: its length and number come first
COM_BINLOG_DUMP = 0x12
DUMP_SIZE_MAX = 1000  # bytes: the command and a file name
DIALOG_BYTES = 1200  # about what a primary sends before the dump
OPENING_BYTES = 450  # about what a dump opens with
GROUP_BYTES = 600_000  # more than most groups have
SILENCES_MAX = 2  # of one plan: the replica needs its slave_net_timeout to notice each
NO_LINGERING = struct.pack("ii", 1, 0)  # SO_LINGER: a close resets the connection


class Ending(enum.Enum):
    """What the client sees of the end of a connection."""

    CLOSE = "its end"
    RESET = "a reset, which may take bytes with it that were sent before"
    SILENCE = "nothing: the connection stays open until the client gives up"


@dataclass(slots=True, kw_only=True)
class Cut:
    """The end of one connection: `after_bytes` went to the client, and then nothing more.

    They are counted from the beginning of the connection, or of the dump with `of_dump`. A
    cut between two answers is moved behind the first byte of the second one: where nothing of
    it has come, the client library of a replica connects again by itself and forgets every
    variable it has set, and the replica stops for good; behind a real primary, too.
    With `waits` the connection stays open and silent until `proceed` is set, so that a
    test can do something to the server meanwhile.
    """

    after_bytes: int
    of_dump: bool = False
    ending: Ending = Ending.CLOSE
    waits: bool = False
    reached: threading.Event = field(default_factory=threading.Event)
    proceed: threading.Event = field(default_factory=threading.Event)


class CuttingProxy:
    """Cuts one connection after the other as planned; those behind the last cut pass through whole."""

    host = "127.0.0.1"

    def __init__(self, host: str, port: int, cuts: Iterable[Cut] = ()) -> None:
        self._target = (host, port)
        self._cuts = iter(cuts)
        self._connections: list[_Connection] = []
        self._is_closed = False
        self._lock = threading.Lock()
        self._listener = socket.create_server((self.host, 0))
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self.port: int = self._listener.getsockname()[1]
        self.connection_count = 0

    def __enter__(self) -> CuttingProxy:
        self._acceptor.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._is_closed = True
        end(self._listener)
        for connection in self._connections:
            connection.close()
        self._acceptor.join(JOIN_TIMEOUT_S)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                cut = next(self._cuts, None)
                self.connection_count += 1
                try:
                    server = socket.create_connection(self._target)
                except OSError:  # the server is down: the client sees its connection end
                    end(client)
                    continue
                with self._lock:
                    if self._is_closed:
                        end(client)
                        end(server)
                        return
                    self._connections = [one for one in self._connections if one.is_alive]
                    self._connections.append(_Connection(client, server, cut))


class _Connection:
    """Moves bytes both ways until one side ends it or the cut is reached.

    One thread does both, so that nobody waits for a byte of a socket that is reset.
    """

    def __init__(self, client: socket.socket, server: socket.socket, cut: Cut | None) -> None:
        self._client = client
        self._server = server
        self._cut = cut
        self._left = None if cut is None or cut.of_dump else cut.after_bytes
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def close(self) -> None:
        if self._cut is not None:
            self._cut.proceed.set()
        for one in (self._client, self._server):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._thread.join(JOIN_TIMEOUT_S)

    def _run(self) -> None:
        try:
            with contextlib.suppress(OSError), selectors.DefaultSelector() as selector:
                for one in (self._client, self._server):
                    selector.register(one, selectors.EVENT_READ)
                while self._left != 0 and self._move({key.fileobj for key, _ in selector.select()}):
                    pass
                if self._cut is not None and self._left == 0:
                    self._end_as_planned(self._cut)
        finally:
            end(self._client)
            end(self._server)

    def _move(self, ready: Collection[object]) -> bool:
        """Move what is there; False once a side has ended."""
        if self._client in ready:
            data = self._client.recv(PIECE)
            if not data:
                return False
            if self._cut is not None and self._cut.of_dump and asks_for_dump(data):
                self._left = self._cut.after_bytes
            self._server.sendall(data)
        if self._server in ready:
            data = self._server.recv(PIECE)
            if not data:
                return False
            if self._left is not None and self._left < len(data):
                data, self._left = data[: self._left], 0
            elif self._left is not None:
                self._left = max(self._left - len(data), 0 if self._cut is not None and self._cut.of_dump else 1)
            self._client.sendall(data)
        return True

    def _end_as_planned(self, cut: Cut) -> None:
        cut.reached.set()
        if cut.waits:
            cut.proceed.wait(JOIN_TIMEOUT_S * 6)
        if cut.ending is Ending.SILENCE:
            while self._client.recv(PIECE):
                pass
        if cut.ending is Ending.RESET:
            self._client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGERING)
            self._client.close()


def asks_for_dump(data: bytes) -> bool:
    """Whether a client's packet is COM_BINLOG_DUMP: it sends one packet at a time, and waits for the answer."""
    return data[COMMAND_OFFSET - 1 : COMMAND_OFFSET + 1] == bytes((0, COM_BINLOG_DUMP)) and len(data) <= DUMP_SIZE_MAX


def end(one: socket.socket) -> None:
    """Shut a socket down and close it, whatever state it is in."""
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


class CutPlan:
    """Cuts, one after the other: in the dialog, where a dump opens, in what the replica passes over, and behind it."""

    def __init__(self, rng: random.Random, count: float, *, size_max: int = GROUP_BYTES) -> None:
        self._rng = rng
        self._count = count
        self._size_max = size_max
        self._cuts: list[Cut] = []
        self._silences = SILENCES_MAX

    def __iter__(self) -> Iterator[Cut]:
        while len(self._cuts) < self._count:
            cut = self._next()
            self._cuts.append(cut)
            yield cut

    def stop(self) -> None:
        self._count = 0

    @property
    def done(self) -> int:
        """Cuts that were reached; a dump may have ended before."""
        return sum(cut.reached.is_set() for cut in self._cuts)

    def _next(self) -> Cut:
        rng = self._rng
        ending = rng.choice((Ending.CLOSE, Ending.CLOSE, Ending.RESET))
        if self._silences and rng.random() < 0.1:
            self._silences -= 1
            ending = Ending.SILENCE
        match rng.randrange(10):
            case 0:  # costs the replica a second
                return Cut(after_bytes=rng.randrange(DIALOG_BYTES), ending=ending)
            case 1 | 2 | 3:
                return Cut(after_bytes=rng.randrange(OPENING_BYTES), of_dump=True, ending=ending)
            case _:
                size = int(math.exp(rng.uniform(math.log(OPENING_BYTES), math.log(self._size_max))))
                return Cut(after_bytes=size, of_dump=True, ending=ending)
