"""One connection: login, the conversation, and the dump it may end in."""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from ibbmaster.codec.buffer import Buffer
from ibbmaster.dialogue.dialog import Dialog
from ibbmaster.dialogue.kill import Kill
from ibbmaster.dialogue.known_answers import KnownAnswers
from ibbmaster.dialogue.refusal import RefusedError
from ibbmaster.dump.error import DumpError, seeking_failed
from ibbmaster.dump.request import dump_request
from ibbmaster.errors import IbbMasterError, RemoteProtocolError
from ibbmaster.server.dump_opening import DumpOpening, DumpStart
from ibbmaster.server.dumping import begin_dump, run_dump
from ibbmaster.server.facts import PrimaryFacts
from ibbmaster.server.follower import Follower
from ibbmaster.server.logins import LoginGuard
from ibbmaster.server.look_ahead import LookAhead
from ibbmaster.server.memory import SessionMemory, SharedMemory
from ibbmaster.server.observing import ConnectionStep, Observer
from ibbmaster.server.options import PrimaryOptions
from ibbmaster.server.preparation import Preparation
from ibbmaster.server.reactor import Reactor
from ibbmaster.server.registry import Registry, Session
from ibbmaster.server.sending import Sender
from ibbmaster.server.socket_reading import read_now
from ibbmaster.server.working import Workers, watching
from ibbmaster.streaming.shared import SharedBlocks
from ibbmaster.streaming.source import BlockSource
from ibbmaster.streaming.stage import made_stage
from ibbmaster.wire import command as commands
from ibbmaster.wire.answer import encode_response
from ibbmaster.wire.connection import (
    Closed,
    CommandReceived,
    Event,
    LoggedIn,
    LoginFailed,
    NeedTls,
    ServerConnection,
    State,
)
from ibbmaster.wire.handshake import SEED_SIZE
from ibbmaster.wire.packet import PACKET_HEADER_SIZE, frame_packets, frame_payloads
from ibbmaster.wire.response import Eof, Err, Ok, Response, Text, encode_err
from ibbmaster.work import BreakReason, Work

if TYPE_CHECKING:
    from ibbmaster.server.tls_stream import TlsStream

log = logging.getLogger(__name__)

RECEIVE_SIZE = 16 * 1024
LOGIN_TIMEOUT_S = 10.0  # MariaDB's connect_timeout, for the whole login
RESERVED_PART = 10  # one of this number of connections is kept for other accounts
IDLE_TIMEOUT_S = 28800.0  # MariaDB's wait_timeout
IDLE_PARTS = 1000  # a client has so small a part of that more: the end is not moved for each command, which costs 10 us
READ_TIMEOUT_S = 30.0  # MariaDB's net_read_timeout, for the rest of a command of which a part is here
ANSWERED_IN_A_ROW = 8  # commands of a client that does not wait for answers, before others have their turn
UNKNOWN_DUMP = commands.BinlogDump(position=0, flags=0, server_id=0, file_name="")  # before one is asked for
NONCE_SIZE = 32  # of the ed25519 plugin
TOO_MANY_CONNECTIONS = Err(code=1040, sqlstate="08004", text="Too many connections")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimaryParts:
    """The parts of a primary that all its connections share."""

    options: PrimaryOptions
    registry: Registry
    reactor: Reactor
    follower: Follower
    facts: PrimaryFacts
    opening: DumpOpening
    shared_blocks: SharedBlocks
    look_ahead: LookAhead
    pumps: trio.CapacityLimiter
    workers: Workers
    memory: SharedMemory
    known_answers: KnownAnswers
    guard: LoginGuard
    preparation: Preparation


async def serve_connection(stream: trio.SocketStream, session: Session, primary: PrimaryParts) -> None:
    """Talk to one client until one of us is done; what it breaks is logged, and harms no other connection."""
    connection = _Connection(stream, session, primary)
    try:
        await connection.run()
    except RemoteProtocolError as error:
        session.reason = f"it broke the protocol: {error}"
        log.info("%s broke the protocol: %s", connection, error)
        await connection.flush()
    except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
        session.reason = str(error.__cause__ or error or "connection lost")
        log.info("%s disconnected: %s", connection, session.reason)
    except trio.TooSlowError:
        session.reason = "it is too slow"
        log.warning("%s is too slow: dropped", connection)
    finally:
        connection.close()
        if primary.options.observer is not None:
            primary.options.observer.left(session)
        stream.socket.close()


async def refuse_connection(stream: trio.SocketStream) -> None:
    """Refuse one client too many, and close."""
    with trio.move_on_after(1):
        await stream.send_all(frame_packets(encode_err(TOO_MANY_CONNECTIONS), 0)[0])
    await trio.aclose_forcefully(stream)


class _Connection:
    """Moves bytes between a socket and the state machines that know what they mean."""

    def __init__(self, stream: trio.SocketStream, session: Session, primary: PrimaryParts) -> None:
        self.stream: trio.SocketStream | TlsStream = stream
        self._descriptor = stream.socket.fileno()
        self._sender = Sender(stream)
        self._session = session
        self._primary = primary
        self._observer = primary.options.observer
        self._wire = ServerConnection(
            connection_id=session.connection_id,
            server_version=primary.options.profile.server_version,
            accounts=[primary.options.account, *(account for account, _ in primary.options.other_accounts)],
            seed=secrets.token_urlsafe(SEED_SIZE)[:SEED_SIZE].encode(),  # printable
            nonce=secrets.token_bytes(NONCE_SIZE),
            peer_host=session.host,
            offers_tls=primary.options.certificate is not None,
        )
        self._memory = SessionMemory(primary.memory)
        self._idle = trio.CancelScope()  # of the conversation
        self._idle_renewal = -math.inf  # when its end is to be moved, on the monotonic clock
        self._is_reading = False  # a command of which a part is here
        self._unread_size = 0  # bytes of it, also while it is answered
        self._unanswered: Event | None = None  # what was read, and is not answered at once
        self._rest: Buffer | None = None  # of an answer that the socket did not take
        self._may_look_ahead = True
        self._expects_dump = False  # the client has just said where one is to begin
        self._dialog = Dialog(
            primary.facts,
            connection_id=session.connection_id,
            user=session.user,
            host=session.host,
            hold=self._memory.hold,
            ready=primary.known_answers,
        )

    def __str__(self) -> str:
        return f"connection {self._session.connection_id} of {self._session.user}@{self._session.host}"

    async def run(self) -> None:
        if self._observer is not None:
            if await self._replaces_packet(self._observer, ConnectionStep.ACCEPTED):
                return
            await self._observer.reached(ConnectionStep.GREETED, self._session, None)
        login: LoggedIn | LoginFailed | None = None
        with trio.move_on_after(LOGIN_TIMEOUT_S) as login_timer:
            login = await self._login()
        if login_timer.cancelled_caught:
            self._session.reason = f"it did not log in within {LOGIN_TIMEOUT_S:g} s"
            log.info("%s did not log in within %g s", self, LOGIN_TIMEOUT_S)
            return
        is_in = login is not None and await self._is_let_in(login)
        if not is_in or (
            self._observer is not None and await self._replaces_packet(self._observer, ConnectionStep.LOGGED_IN)
        ):
            return
        if (command := await self._converse()) is not None:
            await self._dump(command)

    def close(self) -> None:
        """Give back what the session has kept."""
        self._dialog.close()
        self._memory.close()

    async def flush(self) -> None:
        """Send what is to be sent."""
        if data := self._wire.data_to_send():
            await self._sender.send(data)

    async def _replaces_packet(self, observer: Observer, step: ConnectionStep) -> bool:
        """Send the packet that is ready, or what the observer says instead: then the connection ends."""
        responses = await observer.reached(step, self._session, None)
        if responses is None:
            await self.flush()
            return False
        sequence = self._wire.data_to_send()[PACKET_HEADER_SIZE - 1]
        for response in responses:
            framed, sequence = frame_payloads(encode_response(response, self._wire.capabilities), sequence)
            await self._sender.send(framed)
        return True

    async def _login(self) -> LoggedIn | LoginFailed | None:
        """Who the client is, or claims to be; the answer is ready and not sent."""
        while True:
            await self.flush()
            match await self._next_event():
                case NeedTls():
                    if self._observer is not None:
                        await self._observer.reached(ConnectionStep.TLS, self._session, None)
                    await self._start_tls()
                case LoggedIn() | LoginFailed() as login:
                    return login
                case _:
                    return None

    async def _is_let_in(self, login: LoggedIn | LoginFailed) -> bool:
        """Whether the client may stay; if not, it has its answer."""
        session, is_right = self._session, isinstance(login, LoggedIn)
        session.user = login.user
        delay_s = await self._primary.guard.answer_delay(session.host, login.user, is_right=is_right)
        if delay_s is None:
            session.reason = "too many logins of its address wait, where much was wrong"
            log.info("%s: %s", self, session.reason)
            await self._answer_instead(TOO_MANY_CONNECTIONS)
            return False
        if isinstance(login, LoginFailed):
            session.reason = f"its login was refused: {login.reason}"
            log.info("login of %r from %s refused: %s", login.user, session.host, login.reason)
            await trio.sleep(delay_s)
            await self.flush()
            return False
        if await self._is_one_too_many(login.user):
            return False
        session.is_in = True
        self._begin(login)
        log.debug("%s logged in", self)
        return True

    async def _answer_instead(self, answer: Err) -> None:
        """Send something else than the answer to a login that is ready."""
        sequence = self._wire.data_to_send()[PACKET_HEADER_SIZE - 1]
        await self._sender.send(frame_packets(encode_err(answer), sequence)[0])

    async def _is_one_too_many(self, user: str) -> bool:
        """Whether an account has all the places that are not kept for others; then the client gets an error."""
        options = self._primary.options
        if not options.other_accounts:
            return False
        most = max(options.connections_max - max(options.connections_max // RESERVED_PART, 1), 1)
        if sum(session.is_in and session.user == user for session in self._primary.registry) < most:
            return False
        self._session.reason = "its account has too many connections"
        text = f"User '{user}' has exceeded the 'max_user_connections' resource (current value: {most})"
        log.info("%s: %s", self, text)
        await self._answer_instead(Err(code=1226, sqlstate="42000", text=text))
        return True

    def _begin(self, login: LoggedIn) -> None:
        self._memory.user = login.user
        version = cipher = ""
        if not isinstance(self.stream, trio.SocketStream):
            version, cipher = self.stream.version(), self.stream.cipher()
        self._dialog.begin(
            user=login.user,
            database=login.database,
            held=self._primary.options.held_by(login.user),
            tls_version=version,
            tls_cipher=cipher,
        )

    async def _start_tls(self) -> None:
        from ibbmaster.server.tls_stream import TlsStream

        certificate = self._primary.options.certificate
        assert certificate is not None
        assert isinstance(self.stream, trio.SocketStream)
        await self.flush()
        self.stream = TlsStream(self.stream, certificate.context, self._primary.pumps)
        await self.stream.do_handshake()
        self._sender = Sender(self.stream)
        self._wire.tls_started(certificate.der)

    async def _converse(self) -> commands.BinlogDump | None:
        """Answer what is asked until the client leaves, or asks for a dump."""
        session = self._session
        with self._idle:
            while True:
                if self._wire.has_data_to_send:
                    await self.flush()
                self._note_idle()
                match await (self._next_event() if self._observer is not None else self._unanswered_event()):
                    case CommandReceived(command=commands.BinlogDump() as command):
                        if self._observer is not None and await self._replaces_answer(self._observer, command):
                            return None
                        return command
                    case CommandReceived(command=command):
                        if self._observer is None:
                            await self._work_on(command)
                        elif not await self._replaces_answer(self._observer, command):
                            await self._answer(command)
                            await self._observer.reached(ConnectionStep.ANSWERED, session, command)
                    case _:
                        break
        return None

    def _note_idle(self) -> None:
        """The client may take its time from now on."""
        self._session.note("Sleep", "", now := time.monotonic())
        if now >= self._idle_renewal:
            self._idle.deadline = trio.current_time() + IDLE_TIMEOUT_S + IDLE_TIMEOUT_S / IDLE_PARTS
            self._idle_renewal = now + IDLE_TIMEOUT_S / IDLE_PARTS

    async def _replaces_answer(self, observer: Observer, command: commands.AnyCommand) -> bool:
        """Whether the observer answers a command itself."""
        responses = await observer.reached(ConnectionStep.ASKED, self._session, command)
        if responses is None:
            return False
        for piece in self._wire.answer(*responses):
            await self._sender.send(piece)
        return True

    async def _next_event(self) -> Event:
        wire = self._wire
        event = wire.next_event() if wire.unread_size else None
        while event is None:
            self._note_unread()
            if wire.has_data_to_send:
                await self.flush()  # an auth switch is no event
            wire.receive_data(await self._receive(wire.receive_size_max))
            event = wire.next_event()
        self._is_reading = False
        return event

    async def _unanswered_event(self) -> Event:
        """As `_next_event` between commands; those that can be answered at once are, without this task."""
        has_ended = self._holds_more and self._read_and_answer()
        while True:
            if not has_ended:
                await self._primary.reactor.wait(self._descriptor, self._read_and_answer)
            rest, self._rest = self._rest, None
            if rest is not None:
                await self._sender.send(rest)
            event, self._unanswered = self._unanswered, None
            if event is not None:
                return event
            if rest is None:
                await trio.lowlevel.checkpoint()  # others have their turn
            has_ended = self._read_and_answer()

    def _read_and_answer(self) -> bool:
        """Read what has come, and answer it; True where this connection has to continue by itself.

        Raises:
            RemoteProtocolError, trio.BrokenResourceError: as elsewhere.
        """
        wire, sink = self._wire, self._sender.sink
        for _ in range(ANSWERED_IN_A_ROW):
            event = wire.next_event() if wire.unread_size else None
            if event is None:
                data = self._receive_now(RECEIVE_SIZE)
                if data is None:
                    return False
                wire.receive_data(data)
                event = wire.next_event()
            if event is not None:
                self._is_reading = False
                answer = self._answer_at_once(event.command) if isinstance(event, CommandReceived) else None
                if answer is None:
                    self._unanswered = event
                    return True
                taken = sink.write(answer) if answer else 0
                self._note_idle()
                if taken != len(answer) or not sink.is_flushed:
                    self._rest = answer[taken:]
                    return True
                if self._expects_dump:
                    self._look_ahead()
            self._note_unread()
            if not self._holds_more:
                return False  # epoll tells of what comes later
        return True

    def _look_ahead(self) -> None:
        """Find the way to where a dump would begin, while the client reads its answer; once in a connection."""
        self._expects_dump, self._may_look_ahead = False, False
        self._primary.look_ahead.find_way(functools.partial(self._open_dump, UNKNOWN_DUMP, only_cached=True))

    @property
    def _holds_more(self) -> bool:
        """Whether more of what the client has said is here, and not in the socket."""
        return bool(self._wire.unread_size) or (
            not isinstance(self.stream, trio.SocketStream) and self.stream.holds_more
        )

    def _note_unread(self) -> None:
        """A command of which a part is here takes memory until it is answered, and has to come as a whole.

        Raises:
            RemoteProtocolError: there is no memory left.
        """
        size = self._wire.unread_size
        if size == self._unread_size or self._wire.state is not State.COMMAND:
            return
        if size and not self._is_reading:
            self._is_reading = True
            self._idle.deadline, self._idle_renewal = trio.current_time() + READ_TIMEOUT_S, -math.inf
        self._unread_size = size
        try:
            self._memory.hold("commands", size)
        except RefusedError as error:
            self._wire.close(error.err)
            raise RemoteProtocolError(str(error)) from None

    async def _receive(self, size: int) -> bytes:
        """The client's next bytes, none if it has left.

        Raises:
            trio.BrokenResourceError: the connection is lost.
        """
        if not isinstance(self.stream, trio.SocketStream):
            return await self.stream.receive_some(size)
        while True:
            await trio.lowlevel.wait_readable(self._descriptor)  # who waits for an answer has sent nothing yet
            if (data := read_now(self._descriptor, size)) is not None:
                return data

    def _receive_now(self, size: int) -> bytes | None:
        """As `read_now`; in clear from the socket itself, as `Sender` writes there."""
        if not isinstance(self.stream, trio.SocketStream):
            return self.stream.receive_now(size)
        return read_now(self._descriptor, size)

    async def _answer(self, command: commands.AnyCommand) -> None:
        """Answer a command; in a worker thread if that may read the disk, or take long."""
        answer = self._answer_at_once(command)
        if answer is not None:
            await self._sender.send(answer)
        else:
            await self._work_on(command)

    def _answer_at_once(self, command: commands.AnyCommand) -> bytes | None:
        """The answer to a command, if that takes neither the disk nor long; else None, and nothing was done."""
        dialog = self._dialog
        responses: tuple[Response, ...]
        match command:
            case commands.QueryCommand(sql=sql):
                log.debug("%s: %r", self, sql[:200])
                answers = dialog.query_at_once(sql)
                if answers is None:
                    return None
                self._expects_dump = self._may_look_ahead and self._primary.look_ahead.is_new(sql)
                responses = tuple(answers)  # type: ignore[arg-type]  # none is a KILL
            case commands.InitDb() | commands.StatementPrepare() | commands.StatementExecute() | commands.BinlogDump():
                return None
            case commands.StatementLongData():
                self._dialog.prepared.add_piece(command.statement_id, command.parameter_no, command.data)
                responses = ()
            case commands.StatementClose(statement_id=statement_id):
                self._dialog.prepared.close(statement_id)
                responses = ()
            case commands.StatementReset(statement_id=statement_id):
                responses = tuple(self._carried_out(functools.partial(dialog.prepared.reset, statement_id)))
            case commands.StatementFetch(statement_id=statement_id):
                responses = tuple(self._carried_out(functools.partial(dialog.prepared.fetch, statement_id)))
            case commands.Ping():
                responses = (Ok(),)
            case commands.ResetConnection():
                self._dialog.reset()
                responses = (Ok(),)
            case commands.SetOption():
                responses = (Eof(),)
            case commands.Statistics():
                responses = (Text(text=self._primary.facts.statistics()),)
            case commands.ProcessKill(connection_id=connection_id):
                killing = self._dialog.kill(connection_id, query_only=False)
                if isinstance(killing, Kill):
                    self._primary.registry.kill(connection_id, query_only=False)
                responses = (Ok() if isinstance(killing, Kill) else killing,)
            case commands.RegisterReplica():
                self._session.replica_server_id = command.server_id
                self._session.replica_host, self._session.replica_port = command.host, command.port
                responses = (Ok(),)
            case commands.UnsupportedCommand(answer=answer) | commands.MalformedCommand(answer=answer):
                responses = (answer,)
            case _:
                responses = ()
        return self._wire.answer_at_once(*responses)

    async def _work_on(self, command: commands.AnyCommand) -> None:
        """Answer a command that is not answered at once."""
        dialog = self._dialog
        match command:
            case commands.QueryCommand(sql=sql):
                self._session.note("Query", "", time.monotonic())
                await self._work(functools.partial(dialog.answers, sql))
            case commands.InitDb(database=database):
                await self._work(functools.partial(dialog.use, database))
            case commands.StatementPrepare(sql=sql):
                await self._work(functools.partial(dialog.prepared.prepare, sql))
            case commands.StatementExecute(statement_id=statement_id, parameters=parameters):
                self._session.note("Execute", "", time.monotonic())
                await self._work(functools.partial(dialog.prepared.execute, statement_id, parameters))

    async def _work(self, ask: Callable[[], Iterable[Response | Kill]]) -> None:
        """Answer in worker threads, a piece at a time; what is asked can be broken off."""
        session, workers = self._session, self._primary.workers
        work = session.work = Work(time.monotonic)
        pieces = self._wire.answer_each(self._carried_out(ask))
        try:
            async with watching(functools.partial(work.break_off, BreakReason.LEFT), session.socket):
                while True:
                    piece = await workers.run(work, session.user, next, pieces, None)
                    if piece is None:
                        return
                    await self._sender.send(piece)
        finally:
            session.work = None

    def _carried_out(self, ask: Callable[[], Iterable[Response | Kill]]) -> Iterator[Response]:
        """What the client gets, once connections that shall end are ended; asked for in a worker thread."""
        for answer in ask():
            if isinstance(answer, Kill):
                kill = functools.partial(
                    self._primary.registry.kill, answer.connection_id, query_only=answer.query_only
                )
                trio.from_thread.run_sync(kill)
                yield answer.answer
            else:
                yield answer

    async def _dump(self, command: commands.BinlogDump) -> None:
        """The last answer of a connection: events until one of us ends it."""
        primary, session = self._primary, self._session
        try:
            self._dialog.check_dump()
            if command.server_id:
                primary.registry.end_dumps_of(command.server_id, but=session)
            await primary.preparation.wait()
            try:
                opened = self._prepare_dump(command, only_cached=True)
            except BlockingIOError:
                opened = await trio.to_thread.run_sync(self._prepare_dump, command)
        except IbbMasterError as error:
            refused = error if isinstance(error, DumpError) else seeking_failed(error)
            session.reason = f"its dump was refused: {refused}"
            log.warning("%s (server id %d) refused: %s", self, command.server_id, refused)
            self._wire.close(refused.err)
            await self.flush()
            return
        session.dump_server_id = command.server_id
        if self._observer is not None:
            await self._observer.reached(ConnectionStep.DUMPING, session, command)
        session.note("Binlog Dump", "", time.monotonic())
        await self._run_dump(opened)
        dump = opened.dump
        if dump.error is not None:
            name = str(self)  # a log that is kept shall not keep the connection
            session.reason = f"its dump ended: {dump.error}"
            log.warning("%s (server id %d) ended: %s", name, command.server_id, dump.error)

    async def _run_dump(self, opened: DumpStart) -> None:
        """Send until the dump is finished or the client has left."""
        primary, dump, session = self._primary, opened.dump, self._session
        stage = made_stage(primary.options.stages, session)
        with (
            primary.follower.reading(),
            contextlib.closing(BlockSource(opened.groups, dump, primary.shared_blocks)) as source,
        ):
            await begin_dump(source, dump, primary.follower, session, self._sender, stage)
            server_id = session.dump_server_id  # the first events do not wait for what is logged of them
            log.info("%s (server id %d) dumps from [%s], %s", self, server_id, opened.position, opened.file_name)
            if self._holds_more and self._notice_leaving():
                return
            with (
                trio.CancelScope() as scope,
                primary.reactor.watching(self._descriptor, self._notice_leaving, scope.cancel),
            ):
                await run_dump(source, dump, primary.follower, session, self._sender, primary.pumps, stage)

    def _prepare_dump(self, command: commands.BinlogDump, *, only_cached: bool = False) -> DumpStart:
        """As `DumpOpening.open`; notes where the dump begins."""
        opened = self._open_dump(command, only_cached=only_cached)
        self._session.dump_start = opened.start
        return opened

    def _open_dump(self, command: commands.BinlogDump, *, only_cached: bool) -> DumpStart:
        request = dump_request(
            command,
            self._dialog.variables,
            self._primary.options.profile,
            skip_replication=self._dialog.skip_replication,
            is_registered=self._session.replica_server_id is not None,
        )
        return self._primary.opening.open(request, only_cached=only_cached)

    def _notice_leaving(self) -> bool:
        """Notice when the client of a dump goes; what else it says means nothing now."""
        try:
            data = self._receive_now(RECEIVE_SIZE)
            if data is not None:
                self._wire.receive_data(data)
            if data == b"" or isinstance(self._wire.next_event(), Closed):
                log.info("%s disconnected", self)
                return True
        except trio.BrokenResourceError:
            return True
        return False
