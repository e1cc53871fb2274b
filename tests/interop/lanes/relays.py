"""A relay for each primary that replicas ask for: `ibbmaster serve --from`, started when the first one comes.

A connection arrives at an address that names the port of its primary (redirect.c). It goes on to the relay once that
has what the primary has logged by then: a replica may be there already. RESET MASTER makes another log of a primary,
which needs another relay.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pymysql

from lanes.primary import IbbPrimary
from lanes.proxy import PIECE, end
from tests.case_table import rows_of

LOOK_S = 0.05  # between two looks at a primary while replicas are connected
CAUGHT_UP_WITHIN_S = 20.0
STATE = "SELECT @@pid_file, @@datadir, @@gtid_binlog_pos, @@version, @@global.server_id"
RESETS = "SHOW GLOBAL STATUS LIKE 'Com_reset'"


@dataclass(frozen=True, slots=True)
class Look:
    """What a primary says of its log; see `is_of_the_log_of`."""

    data: int  # when its directory was made
    pid: int
    resets: int
    position: str
    version: str
    server_id: int  # a replica takes another server with its own for itself

    def is_of_the_log_of(self, other: Look) -> bool:
        resets = other.resets if self.pid == other.pid else 0
        return self.data == other.data and self.resets <= resets


@dataclass(slots=True)
class Relay:
    """One, and what its primary's log was like at the last look."""

    served: IbbPrimary
    look: Look
    directory: Path
    connections: set[socket.socket] = field(default_factory=set)


def known_differences(suite: str) -> dict[str, str]:
    """Tests of a suite that end otherwise where their streams come from a relay, each with the reason."""
    return {test: reason for known, test, reason in rows_of(__file__, "relayed_differences") if known == suite}


class Relays:
    """Listens for replicas while it is a context; `port` is where redirect.c sends them. The account is that of the
    primaries and of the relays; `count` says how many of these there were, `problems` what they should not have said.
    """

    def __init__(self, directory: Path, *, user: str = "root", password: str = "") -> None:
        self._directory = directory
        directory.mkdir(exist_ok=True)
        self._account = {"user": user, "password": password}
        self._numbers = itertools.count()
        self._relays: dict[int, Relay] = {}
        self._locks: dict[int, threading.Lock] = {}
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._listener = socket.create_server(("0.0.0.0", 0), backlog=100)
        self.port: int = self._listener.getsockname()[1]
        self.count = 0
        self.problems: list[str] = []

    def __enter__(self) -> Relays:
        for target in (self._accept, self._watch):
            threading.Thread(target=target, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        end(self._listener)
        for port in list(self._relays):
            with self._lock_of(port):
                self._end(port)

    def address_of(self, port: int) -> tuple[str, int]:
        """Where the relay of the primary at a port is to be had."""
        return f"127.{port >> 8}.{port & 255}.1", self.port

    def _lock_of(self, port: int) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(port, threading.Lock())

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        here, high, low, _ = client.getsockname()[0].split(".")
        if here != "127":
            end(client)
            return
        port = int(high) << 8 | int(low)
        try:
            with self._lock_of(port):
                relay = self._relay_of(port)
                server = socket.create_connection((relay.served.host, relay.served.port))
                relay.connections |= {client, server}
        except (OSError, pymysql.Error):  # the primary is down: the replica sees its connection end
            end(client)
            return
        one = threading.Thread(target=_move, args=(client, server), daemon=True)
        one.start()
        _move(server, client)
        one.join()
        with self._lock_of(port):
            relay.connections -= {client, server}
        client.close()
        server.close()

    def _relay_of(self, port: int) -> Relay:
        look = self._look(port)
        relay = self._relays.get(port)
        if relay is not None and not look.is_of_the_log_of(relay.look):
            self._end(port)
            relay = None
        if relay is None:
            directory = self._directory / f"{next(self._numbers)}-{port}"
            source = f"mysql://{self._account['user']}:{quote(self._account['password'])}@127.0.0.1:{port}"
            seen = ("--profile", "compat", "--server-version", look.version, "--server-id", str(look.server_id))
            served = IbbPrimary(directory, "--from", source, *seen)
            served.user, served.password = self._account.values()
            served.start()
            relay = self._relays[port] = Relay(served, look, directory)
            self.count += 1
        relay.look = look
        deadline = time.monotonic() + CAUGHT_UP_WITHIN_S
        while time.monotonic() < deadline and self._position(relay) != self._look(port).position:
            time.sleep(0.01)
        return relay

    def _watch(self) -> None:
        """End relays whose primary has another log."""
        while not self._is_over.wait(LOOK_S):
            for port, relay in list(self._relays.items()):
                with self._lock_of(port), contextlib.suppress(OSError, pymysql.Error):
                    if self._relays.get(port) is relay and not self._look(port).is_of_the_log_of(relay.look):
                        self._end(port)

    def _end(self, port: int) -> None:
        relay = self._relays.pop(port)
        for one in relay.connections:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        relay.served.kill()
        if "Traceback" in relay.served.log_text():
            self.problems.append(relay.served.log_text())
        shutil.rmtree(relay.directory, ignore_errors=True)

    @contextlib.contextmanager
    def _asking(self, port: int) -> Iterator[Any]:
        login = {"host": "127.0.0.1", "port": port, "connect_timeout": 10, "read_timeout": 10}
        with pymysql.connect(**login, **self._account) as connection, connection.cursor() as cursor:
            yield cursor

    def _look(self, port: int) -> Look:
        with self._asking(port) as cursor:
            cursor.execute(STATE)
            pid_file, data, position, *server = cursor.fetchone()
            cursor.execute(RESETS)
            resets = int(cursor.fetchone()[1])
        made = (Path(data) / "mysql" / "global_priv.frm").stat().st_ctime_ns
        return Look(made, int((Path(data) / pid_file).read_text()), resets, position, *server)

    def _position(self, relay: Relay) -> str:
        with self._asking(relay.served.port) as cursor:
            cursor.execute("SELECT @@gtid_binlog_pos")
            return str(cursor.fetchone()[0])


def _move(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(PIECE):
            target.sendall(data)
    for one in (source, target):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
