"""What a primary saw of its replicas, written in its event loop and read by the test, in any thread."""

from __future__ import annotations

import contextlib
import fcntl
import socket
import struct
import termios
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import trio

from ibbmaster.errors import EventError, RemoteProtocolError
from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.primary.server.options import ConnectionStep
from ibbmaster.primary.server.registry import Session
from ibbmaster.primary.streaming.block import Block
from ibbmaster.primary.streaming.sink import Send, Stage
from ibbmaster.replication.event.types import type_name
from ibbmaster.replication.wire.command import AnyCommand, BinlogDump, InitDb, Ping, QueryCommand, RegisterReplica
from ibbmaster.replication.wire.packet import EVENT_STATUS, PacketReader
from ibbmaster.replication.wire.response import Response
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.codec.printable import address
from .clock import FixtureClock
from .fault_stage import Faults
from .stream_places import StreamPlaces

SIOCOUTQ = termios.TIOCOUTQ  # unacknowledged bytes of a socket
TCP_ESTABLISHED = 1  # both sides may send
PAYLOAD_MAX = 1 << 40  # bytes: any
LINGER = struct.Struct("ii")  # whether it is on, and how long
RESETS = LINGER.pack(1, 0)  # a close discards what is not acknowledged
POLL_S = 0.002  # between looks at acknowledgements


@dataclass(frozen=True, slots=True)
class SeenStatement:
    """A statement of a client as its text; another command by its name in capitals."""

    text: str
    at: float  # of the fixture's clock, in seconds since 1970
    after_s: float  # since the connection began, in real time


@dataclass(frozen=True, slots=True)
class SentEvent:
    """An event that was sent whole; `end` counts the bytes of the dump to its end."""

    type: str
    gtid: Gtid | None  # of its group; None between groups
    ends_group: bool
    end: int


@dataclass(slots=True, eq=False)
class SeenConnection:
    """One connection as the primary saw it.

    Attributes:
        user: the account; empty before the login.
        server_id: of the replica: from its registration, or its dump.
        statements: every command but the dump, in order.
        dump_start: its GTID position before the dump; None if it asked by file, or for none.
        dump_file: the file and the offset that its dump asked for.
        sent: the events it was sent, also those outside of groups.
        sent_bytes: of the dump.
        reason: why it ended, as far as the primary knows; None: it is connected.
    """

    number: int  # from 1, in the order in which they came
    host: str
    port: int
    user: str = ""
    server_id: int | None = None
    statements: list[SeenStatement] = field(default_factory=list)
    dump_start: GtidPosition | None = None
    dump_file: tuple[str, int] | None = None
    sent: list[SentEvent] = field(default_factory=list)
    sent_bytes: int = 0
    reason: str | None = None
    _is_dumping: bool = False
    _unacknowledged: Callable[[], int | None] = lambda: None
    _began: float = field(default_factory=time.monotonic)

    @property
    def is_connected(self) -> bool:
        return self.reason is None

    @property
    def is_dumping(self) -> bool:
        return self._is_dumping and self.is_connected

    @property
    def sent_gtids(self) -> list[Gtid]:
        """The groups it was sent whole, in order."""
        return [event.gtid for event in list(self.sent) if event.ends_group and event.gtid is not None]

    @property
    def last_event(self) -> SentEvent | None:
        return self.sent[-1] if self.sent else None

    @property
    def acknowledged_bytes(self) -> int | None:
        """Bytes of the dump that the other system has; None where unknown: under TLS, and after an orderly end with
        some on their way."""
        waiting = self._unacknowledged()
        return None if waiting is None else max(0, self.sent_bytes - waiting)

    @property
    def acknowledged_gtids(self) -> list[Gtid] | None:
        size = self.acknowledged_bytes
        if size is None:
            return None
        events = list(self.sent)
        known = events[: bisect_right(events, size, key=lambda event: event.end)]
        return [event.gtid for event in known if event.ends_group and event.gtid is not None]

    def has(self, gtid: Gtid) -> bool:
        """Whether it had a group before its dump, or has it now as far as known."""
        before = None if self.dump_start is None else self.dump_start.get(gtid.domain_id)
        if before is not None and before.seq_no >= gtid.seq_no:
            return True
        acknowledged = self.acknowledged_gtids
        return gtid in (self.sent_gtids if acknowledged is None else acknowledged)

    def __str__(self) -> str:
        who = f"connection {self.number} of {self.user or 'nobody yet'}@{address(self.host, self.port)}"
        if self.server_id is not None:
            who += f" (server id {self.server_id})"
        if self.dump_file is None:
            last = f"last said {self.statements[-1].text[:60]!r}" if self.statements else "has said nothing"
            doing = f"asked for no dump and {last}"
        elif not self._is_dumping:
            doing = "asked for a dump that did not begin"
        else:
            start = f"after [{self.dump_start}]" if self.dump_start is not None else f"at {self.dump_file}"
            gtids, last_event = self.sent_gtids, self.last_event
            shown = "no group" if not gtids else f"{len(gtids)} groups up to {gtids[-1]}"
            event = "" if last_event is None else f", {last_event.type} as the last event"
            doing = f"dumps from {start}: {shown} sent{event}, {self.sent_bytes} bytes"
            acknowledged = self.acknowledged_bytes
            if acknowledged is not None:
                doing += f" of which its system has {acknowledged}"
        if self.reason is not None:
            doing += f"; ended: {self.reason or 'the client left, or was cut off'}"
        return f"{who} {doing}"


class Witness:
    """Notes everything, then lets faults happen."""

    def __init__(self, clock: FixtureClock, faults: Faults) -> None:
        self.connections: list[SeenConnection] = []
        self.faults = faults
        self._clock = clock
        self._seen: dict[Session, SeenConnection] = {}
        self._changed = threading.Condition()

    # In the event loop

    async def reached(
        self, step: ConnectionStep, session: Session, command: AnyCommand | None
    ) -> Sequence[Response] | None:
        with self._changed:
            self._note(step, session, command)
            self._changed.notify_all()
        return await self.faults.reached(step, session, command)

    def left(self, session: Session) -> None:
        with self._changed:
            seen = self._seen.pop(session, None)
            if seen is not None:
                waiting = seen._unacknowledged()
                if waiting and _delivers_the_rest(session):
                    waiting = None
                seen._unacknowledged = lambda: waiting
                seen.reason = session.reason
            self._changed.notify_all()
        self.faults.left(session)

    @property
    def stages(self) -> tuple[Callable[[Session], Stage | None], ...]:
        return self.faults.stage, lambda session: _SentStage(self._seen[session], self._changed)

    def _note(self, step: ConnectionStep, session: Session, command: AnyCommand | None) -> None:
        if step is ConnectionStep.ACCEPTED:
            self._begin(session)
        seen = self._seen[session]
        match step, command:
            case ConnectionStep.LOGGED_IN, _:
                seen.user = session.user
            case ConnectionStep.TLS, _:
                seen._unacknowledged = lambda: None
            case ConnectionStep.ASKED, BinlogDump():
                seen.dump_file = command.file_name, command.position
                seen.server_id = command.server_id or seen.server_id
            case ConnectionStep.ASKED, RegisterReplica():
                seen.server_id = command.server_id
                self._add_statement(seen, "REGISTER REPLICA")
            case ConnectionStep.ASKED, QueryCommand():
                self._add_statement(seen, command.sql.decode("utf-8", "replace"))
            case ConnectionStep.ASKED, InitDb():
                self._add_statement(seen, f"USE {command.database}")
            case ConnectionStep.ASKED, Ping():
                self._add_statement(seen, "PING")
            case ConnectionStep.ASKED, _:
                self._add_statement(seen, type(command).__name__.upper())
            case ConnectionStep.DUMPING, _:
                seen.dump_start = session.dump_start
                seen._is_dumping = True

    def _begin(self, session: Session) -> None:
        stream = session.socket
        assert stream is not None
        seen = SeenConnection(number=len(self.connections) + 1, host=session.host, port=stream.getpeername()[1])
        seen._unacknowledged = lambda: _unacknowledged(stream)
        self.connections.append(seen)
        self._seen[session] = seen

    def _add_statement(self, seen: SeenConnection, text: str) -> None:
        seen.statements.append(SeenStatement(text, self._clock.now, time.monotonic() - seen._began))

    # In the test

    def of(self, replica: SeenConnection | int | str) -> list[SeenConnection]:
        """Those of a server id, of a user, or the given one."""
        if isinstance(replica, SeenConnection):
            return [replica]
        return [
            seen
            for seen in list(self.connections)
            if (seen.server_id if isinstance(replica, int) else seen.user) == replica
        ]

    def has(self, replica: SeenConnection | int | str, gtid: Gtid) -> bool:
        return any(seen.dump_file is not None and seen.has(gtid) for seen in self.of(replica))

    def wait(self, is_so: Callable[[], bool], timeout: float) -> bool:
        """Wait until a condition holds; false if it does not in time."""
        deadline = time.monotonic() + timeout
        while not is_so():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            with self._changed:
                self._changed.wait(min(left, POLL_S))  # nothing announces acknowledgements
        return True

    def told(self, replica: SeenConnection | int | str) -> str:
        found = self.of(replica)
        others = found or list(self.connections)
        lines = "; ".join(map(str, others)) or "nobody has connected"
        return lines if found or not others else f"no connection of {replica!r}, but {lines}"


class _SentStage:
    """Reads what the faults let through to one replica."""

    def __init__(self, seen: SeenConnection, changed: threading.Condition) -> None:
        self._seen = seen
        self._changed = changed
        self._reader: PacketReader | None = PacketReader(limit=PAYLOAD_MAX, next_sequence=1)
        self._places = StreamPlaces()

    async def pass_on(self, block: Block, send: Send) -> None:
        await send(block)
        with self._changed:
            self._read(block.data())
            self._changed.notify_all()

    def _read(self, data: Buffer) -> None:
        self._seen.sent_bytes += len(data)
        if self._reader is None:
            return
        self._reader.receive_data(data)
        try:
            while (payload := self._reader.next_payload()) is not None:
                self._add(payload, self._seen.sent_bytes - self._reader.unread_size)
        except RemoteProtocolError:
            self._reader = None

    def _add(self, payload: bytes, end: int) -> None:
        name, ends_group = {b"\xff": "ERROR", b"\xfe": "EOF"}.get(payload[:1], "UNKNOWN PACKET"), False
        if payload[:1] == EVENT_STATUS:
            name = "DAMAGED EVENT"
            with contextlib.suppress(EventError):
                seen = self._places.look(payload)
                if seen.header is not None:
                    name, ends_group = type_name(seen.header.event_type), seen.ends_group
        gtid = None if self._places.gtid is None else Gtid.parse(self._places.gtid)
        self._seen.sent.append(SentEvent(name, gtid, ends_group, end))
        if ends_group:
            self._places.end_group()


def _delivers_the_rest(session: Session) -> bool:
    """Whether the system will, after the socket is closed."""
    assert session.socket is not None
    try:
        (state,) = session.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
        linger = session.socket.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER.size)
    except OSError:
        return False
    return state == TCP_ESTABLISHED and linger != RESETS


def _unacknowledged(stream: trio.socket.SocketType) -> int | None:
    try:
        found = fcntl.ioctl(stream.fileno(), SIOCOUTQ, b"\0\0\0\0")
    except (OSError, ValueError):
        return None
    return int(struct.unpack("i", found)[0])
