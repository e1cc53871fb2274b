"""A client of a primary: who it is, what it talks through, and what it has said."""

from __future__ import annotations

import contextlib
import math
import secrets
import time
from collections.abc import Callable, Iterator

import trio

from ibbmaster.dialogue import privileges
from ibbmaster.dialogue.dialog import Dialog
from ibbmaster.errors import RemoteProtocolError
from ibbmaster.server.client_stream import ClientStream, PlainStream, Sender
from ibbmaster.server.memory import SessionMemory
from ibbmaster.server.primary_parts import PrimaryParts
from ibbmaster.server.registry import Session
from ibbmaster.wire.answer import encode_response
from ibbmaster.wire.connection import Event, LoggedIn, ServerConnection, State
from ibbmaster.wire.handshake import SEED_SIZE
from ibbmaster.wire.packet import PACKET_HEADER_SIZE, frame_payloads
from ibbmaster.wire.refusal import RefusedError
from ibbmaster.wire.response import Response

NONCE_SIZE = 32  # of the ed25519 plugin
RECEIVE_SIZE = 16 * 1024
HEARD_MAX = 4 * RECEIVE_SIZE  # bytes of commands that are kept after one that is carried out
IDLE_TIMEOUT_S = 28800.0  # MariaDB's wait_timeout
IDLE_PARTS = 1000  # a client has so small a part of that more: the end is not moved for each command, which costs 10 us
READ_TIMEOUT_S = 30.0  # MariaDB's net_read_timeout, for the rest of a command of which a part is here


class ConnectedClient:
    """What login, conversation and dump of a connection have in common."""

    def __init__(self, socket: trio.SocketStream, session: Session, primary: PrimaryParts) -> None:
        self.session = session
        self.primary = primary
        self.descriptor = socket.socket.fileno()
        self.stream: ClientStream = PlainStream(socket)
        self.sender = Sender(self.stream)
        self.memory = SessionMemory(primary.memory)
        self.wire = ServerConnection(
            connection_id=session.connection_id,
            server_version=primary.options.profile.server_version,
            accounts=[primary.options.account, *(account for account, _ in primary.options.other_accounts)],
            seed=secrets.token_urlsafe(SEED_SIZE)[:SEED_SIZE].encode(),  # printable
            nonce=secrets.token_bytes(NONCE_SIZE),
            peer_host=session.host,
            offers_tls=primary.options.certificate is not None,
        )
        self.dialog = Dialog(
            primary.facts,
            connection_id=session.connection_id,
            user=session.user,
            host=session.host,
            hold=self.memory.hold,
            ready=primary.known_answers,
        )
        self.idle = trio.CancelScope()
        """Of the conversation: cancelled where the client says nothing for too long."""
        self._idle_renewal = -math.inf  # when its end is to be moved, on the monotonic clock
        self.is_reading = False
        """Whether a part of a command is here."""
        self._unread_size = 0  # bytes of it, also while it is answered
        self._socket = socket

    def __str__(self) -> str:
        return f"connection {self.session.connection_id} of {self.session.user}@{self.session.host}"

    def close(self) -> None:
        """Give back what the session has kept."""
        self.memory.close()

    async def flush(self) -> None:
        """Send what is to be sent."""
        if data := self.wire.data_to_send():
            await self.sender.send(data)

    async def send_instead(self, *responses: Response) -> None:
        """Send something else than the packet that is ready."""
        sequence = self.wire.data_to_send()[PACKET_HEADER_SIZE - 1]
        for response in responses:
            framed, sequence = frame_payloads(encode_response(response, self.wire.capabilities), sequence)
            await self.sender.send(framed)

    async def start_tls(self) -> None:
        """Encrypt from now on. Raises trio.BrokenResourceError: as `TlsStream.do_handshake`."""
        from ibbmaster.server.tls_stream import TlsStream

        certificate = self.primary.options.certificate
        assert certificate is not None
        await self.flush()
        stream = TlsStream(self._socket, certificate.context, self.primary.pumps)
        await stream.do_handshake()
        self.stream, self.sender = stream, Sender(stream)
        self.wire.tls_started(certificate.der)

    def begin(self, login: LoggedIn) -> None:
        """It has logged in."""
        self.memory.user = login.user
        held = self.primary.options.held_by(login.user)
        self.session.is_admin = bool(held & privileges.ADMINISTRATING)
        self.dialog.begin(
            user=login.user,
            database=login.database,
            held=held,
            tls_version=self.stream.version,
            tls_cipher=self.stream.cipher,
        )

    @property
    def holds_more(self) -> bool:
        """Whether more of what it has said is here, and not in the socket."""
        return bool(self.wire.unread_size) or self.stream.holds_more

    async def next_event(self) -> Event:
        """What it says next. Raises RemoteProtocolError: it breaks the protocol, or there is no memory for what it
        says; trio.BrokenResourceError: the connection is lost."""
        wire = self.wire
        event = wire.next_event() if wire.unread_size else None
        while event is None:
            self.note_unread()
            if wire.has_data_to_send:
                await self.flush()  # an auth switch is no event
            wire.receive_data(await self.stream.receive_some(wire.receive_size_max))
            event = wire.next_event()
        self.is_reading = False
        return event

    @contextlib.contextmanager
    def noticing(self, leave: Callable[[], object]) -> Iterator[None]:
        """Call `leave` if the client leaves while the block runs, however it does; its commands are kept for later."""
        reactor = self.primary.reactor
        with reactor.watching(self.descriptor, self._has_left, leave):
            if self.wire.unread_size >= HEARD_MAX:
                reactor.hear_only_of_the_end(self.descriptor)
            elif self.holds_more and self._has_left():
                leave()
            yield

    def _has_left(self) -> bool:
        """Whether the client has left; called where something has come, and where enough has come for the end only."""
        wire = self.wire
        if wire.unread_size >= HEARD_MAX:
            return True
        try:
            while (data := self.stream.receive_now(RECEIVE_SIZE)) is not None:
                wire.receive_data(data)
                if not data or wire.has_quit:
                    return True
                if wire.unread_size >= HEARD_MAX:
                    self.primary.reactor.hear_only_of_the_end(self.descriptor)
                    break
        except trio.BrokenResourceError:
            return True
        return wire.has_quit

    def note_idle(self) -> None:
        """It may take its time from now on."""
        self.session.note("Sleep", "", now := time.monotonic())
        if now >= self._idle_renewal:
            self.idle.deadline = trio.current_time() + IDLE_TIMEOUT_S + IDLE_TIMEOUT_S / IDLE_PARTS
            self._idle_renewal = now + IDLE_TIMEOUT_S / IDLE_PARTS

    def note_unread(self) -> None:
        """A command of which a part is here takes memory until it is answered, and has to come as a whole. Raises
        RemoteProtocolError: there is no memory left."""
        size = self.wire.unread_size
        if size == self._unread_size or self.wire.state is not State.COMMAND:
            return
        if size and not self.is_reading:
            self.is_reading = True
            self.idle.deadline, self._idle_renewal = trio.current_time() + READ_TIMEOUT_S, -math.inf
        self._unread_size = size
        try:
            self.memory.hold("commands", size)
        except RefusedError as error:
            self.wire.close(error.err, is_reading=True)
            raise RemoteProtocolError(str(error)) from None
