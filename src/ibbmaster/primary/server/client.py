"""One client: its stream, its session, the memory it may keep, and what it shares with others."""

import contextlib
import functools
import math
import secrets
import threading
import time
from collections.abc import Callable, Iterator

import trio

from ibbmaster.errors import RemoteProtocolError
from ibbmaster.logs.log.history_cache import HistoryCache
from ibbmaster.logs.log.interface import LogEngine
from ibbmaster.primary.dialogue import privileges
from ibbmaster.primary.dialogue.dialog import Dialog
from ibbmaster.primary.dialogue.immediate import KnownAnswers
from ibbmaster.primary.streaming.shared import SharedBlocks
from ibbmaster.replication.wire.answer import encode_response
from ibbmaster.replication.wire.connection import Event, LoggedIn, ServerConnection, State
from ibbmaster.replication.wire.handshake import SEED_SIZE
from ibbmaster.replication.wire.packet import PACKET_HEADER_SIZE, frame_payloads
from ibbmaster.replication.wire.refusal import RefusedError, out_of_memory
from ibbmaster.replication.wire.response import Response
from .administration import LogAdministration
from .client_stream import ClientStream, PlainStream, Sender
from .dump_opening import DumpOpening
from .dumping import PUMPS_MAX, LogEnd
from .facts import PrimaryFacts
from .login_guard import LoginGuard
from .options import PrimaryOptions
from .preparation import LookAhead, Preparation
from .reactor import Reactor
from .registry import Registry, Session
from .working import Workers

OWN_BYTES = 64 << 10  # of each session: more than a replica or CDC client sets before its dump
SHARED_BYTES_MAX = 64 << 20  # of all sessions together
NONCE_SIZE = 32  # of the ed25519 plugin
RECEIVE_SIZE = 16 * 1024
HEARD_MAX = 4 * RECEIVE_SIZE  # bytes of commands kept while one is carried out
IDLE_TIMEOUT_S = 28800.0  # MariaDB's wait_timeout
IDLE_PARTS = 1000  # to move the end costs 10 us: not for each command
READ_TIMEOUT_S = 30.0  # MariaDB's net_read_timeout, for the rest of a command


class SharedMemory:
    """Memory for what sessions keep beyond `OWN_BYTES`; one account can take three quarters, so a session that keeps
    next to nothing always finds room. Thread-safe.
    """

    def __init__(self, size_max: int = SHARED_BYTES_MAX) -> None:
        self._size_max = size_max
        self._taken: dict[str, int] = {}  # by account
        self._lock = threading.Lock()

    def change(self, user: str, size: int) -> bool:
        """Take bytes, or release a negative number; False if there are too few."""
        with self._lock:
            taken = self._taken.get(user, 0) + size
            if size > 0 and (taken > self._size_max * 3 // 4 or self.size + size > self._size_max):
                return False
            self._taken[user] = taken
            if not taken:
                del self._taken[user]
            return True

    @property
    def size(self) -> int:
        return sum(self._taken.values())


class SessionMemory:
    def __init__(self, shared: SharedMemory) -> None:
        self._shared = shared
        self.user = ""  # the account
        self._kept: dict[str, int] = {}
        self._size = 0
        self._taken = 0  # of the store

    def hold(self, what: str, size: int) -> None:
        """Note how many bytes `what` has now. Raises RefusedError: there is no room; what was noted stays."""
        whole = self._size + size - self._kept.get(what, 0)
        wanted = max(whole - OWN_BYTES, 0)
        if wanted != self._taken and not self._shared.change(self.user, wanted - self._taken):
            raise out_of_memory(f"all sessions together keep too much, here in {what}")
        self._kept[what], self._size, self._taken = size, whole, wanted

    def close(self) -> None:
        self._shared.change(self.user, -self._taken)
        self._kept, self._size, self._taken = {}, 0, 0


class PrimaryParts:
    def __init__(
        self, engine: LogEngine, options: PrimaryOptions, cache: HistoryCache | None, *, is_traditional: bool
    ) -> None:
        """`is_traditional` is of the files of the log."""
        self.options = options
        self.registry = Registry()
        self.administration = LogAdministration()
        self.stop: Callable[[bool], None] = lambda for_replicas: None
        self.reactor = Reactor()
        self.log_end = LogEnd(lambda: options.closes_at_end and engine.is_over)
        self.guard = LoginGuard(time.monotonic)
        self.workers = Workers()
        self.memory = SharedMemory()
        self.known_answers = KnownAnswers()
        self.facts = PrimaryFacts(engine, options, self.registry, self.guard, cache)
        self.figures = self.facts.figures
        self.opening = DumpOpening(engine, options, self.facts)
        self.shared_blocks = SharedBlocks()
        self.pumps = trio.CapacityLimiter(PUMPS_MAX)
        self.look_ahead = look_ahead = LookAhead(self.shared_blocks)
        walk = functools.partial(look_ahead.walk_last_file, engine, self.opening.open) if is_traditional else None
        self.preparation = Preparation(engine, has_kernels=options.has_kernels, holds_dumps=is_traditional, walk=walk)


class ConnectedClient:
    """The state that login, conversation and dump of a connection share."""

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
            accounts=primary.options.accounts,
            seed=secrets.token_urlsafe(SEED_SIZE)[:SEED_SIZE].encode(),
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
        self._idle_renewal = -math.inf  # when to move its end, on the monotonic clock
        self.is_reading = False
        """Whether a part of a command is here."""
        self._unread_size = 0  # bytes of it, also while it is answered
        self._socket = socket

    def __str__(self) -> str:
        return str(self.session)

    @property
    def log_fields(self) -> dict[str, object]:
        return self.session.log_fields

    def close(self) -> None:
        self.memory.close()

    async def flush(self) -> None:
        if data := self.wire.data_to_send():
            await self.sender.send(data)

    async def send_instead(self, *responses: Response) -> None:
        sequence = self.wire.data_to_send()[PACKET_HEADER_SIZE - 1]
        for response in responses:
            framed, sequence = frame_payloads(encode_response(response, self.wire.capabilities), sequence)
            await self.sender.send(framed)

    async def start_tls(self) -> None:
        """Raises trio.BrokenResourceError: as `TlsStream.do_handshake`."""
        from .tls_stream import TlsStream

        certificate = self.primary.options.certificate
        assert certificate is not None
        await self.flush()
        stream = TlsStream(self._socket, certificate.context, self.primary.pumps)
        await stream.do_handshake()
        self.stream, self.sender = stream, Sender(stream)
        self.wire.tls_started(certificate.der)

    def begin(self, login: LoggedIn) -> None:
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
        return bool(self.wire.unread_size) or self.stream.holds_more

    async def next_event(self) -> Event:
        """Raises RemoteProtocolError: the client breaks the protocol, or needs too much memory;
        trio.BrokenResourceError: it is gone.
        """
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
        """Call `leave` if the client leaves while the block runs; its commands are kept for later."""
        reactor = self.primary.reactor
        with reactor.watching(self.descriptor, self._has_left, leave):
            if self.wire.unread_size >= HEARD_MAX:
                reactor.hear_only_of_the_end(self.descriptor)
            elif self.holds_more and self._has_left():
                leave()
            yield

    def _has_left(self) -> bool:
        """Read what has come; true as well once that is too much."""
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
        self.session.note("Sleep", "", now := time.monotonic())
        if now >= self._idle_renewal:
            self.idle.deadline = trio.current_time() + IDLE_TIMEOUT_S + IDLE_TIMEOUT_S / IDLE_PARTS
            self._idle_renewal = now + IDLE_TIMEOUT_S / IDLE_PARTS

    def note_unread(self) -> None:
        """Count the memory of a partial command, and limit the time of its rest. Raises RemoteProtocolError: no memory
        is left.
        """
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
