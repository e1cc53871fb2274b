"""One connection: login, the conversation, and the dump it may end in."""

import contextlib
import functools
import logging
import time

import trio

from ibbmaster.errors import IbbMasterError, LogResetError, RemoteProtocolError
from ibbmaster.primary.streaming.sink import left_of, made_stage
from ibbmaster.primary.streaming.source import BlockSource
from ibbmaster.replication.dump.error import DumpError, seeking_failed
from ibbmaster.replication.dump.request import dump_request
from ibbmaster.replication.wire import command as commands
from ibbmaster.replication.wire.connection import Closed, CommandReceived, Event
from ibbmaster.replication.wire.response import Eof
from ibbmaster.storage.codec.buffer import Buffer
from .answering import Answers
from .client import RECEIVE_SIZE, ConnectedClient, PrimaryParts
from .dump_opening import DumpStart
from .dumping import DumpSender
from .login import log_in
from .options import ConnectionStep, Observer
from .registry import Session

log = logging.getLogger(__name__)

ANSWERED_IN_A_ROW = 8  # commands, before others have their turn
UNKNOWN_DUMP = commands.BinlogDump(position=0, flags=0, server_id=0, file_name="")  # before one is asked for


async def serve_dump(client: ConnectedClient, command: commands.BinlogDump) -> None:
    primary, session = client.primary, client.session
    try:
        client.dialog.check_dump()
        if command.server_id:
            primary.registry.end_dumps_of(command.server_id, but=session)
        await primary.preparation.wait()
        try:
            opened = _prepare_dump(client, command, only_cached=True)
        except BlockingIOError:
            opened = await trio.to_thread.run_sync(_prepare_dump, client, command)
    except IbbMasterError as error:
        refused = error if isinstance(error, DumpError) else seeking_failed(error)
        session.reason = f"its dump was refused: {refused}"
        primary.registry.refusals[refused.kind] += 1
        key = session.host, session.user, command.server_id, refused.text
        primary.registry.alike.log(log, key, "%s (server id %d) refused: %s", client, command.server_id, refused)
        comes_back = isinstance(error, LogResetError)  # to be judged anew
        client.wire.close(Eof(status=client.dialog.status) if comes_back else refused.err)
        await client.flush()
        return
    primary.registry.begin_dump(session, command.server_id)
    if primary.options.observer is not None:
        await primary.options.observer.reached(ConnectionStep.DUMPING, session, command)
    session.note("Binlog Dump", "", time.monotonic())
    dump = opened.dump
    try:
        await _run_dump(client, opened)
    finally:
        session.dump = None
        primary.registry.dumps_ended["ok" if dump.error is None else dump.error.kind] += 1
    if dump.error is not None:
        session.reason = f"its dump ended: {dump.error}"
        key = session.host, session.user, command.server_id, dump.error.text
        primary.registry.alike.log(log, key, "%s (server id %d) ended: %s", session, command.server_id, dump.error)


async def _run_dump(client: ConnectedClient, opened: DumpStart) -> None:
    primary, dump, session = client.primary, opened.dump, client.session
    stage = made_stage(primary.options.stages, session)
    with (
        primary.log_end.reading(),
        contextlib.closing(BlockSource(opened.groups, dump, primary.shared_blocks)) as source,
    ):
        sender = DumpSender(source, dump, primary.log_end, session, client.sender, stage)
        session.dump = sender
        await sender.begin()
        server_id = session.dump_server_id  # the first events do not wait for the log
        log.info("%s (server id %d) dumps from [%s], %s", client, server_id, opened.position, opened.file_name)
        if client.holds_more and _notice_leaving(client):
            return
        with (
            trio.CancelScope() as scope,
            primary.reactor.watching(client.descriptor, functools.partial(_notice_leaving, client), scope.cancel),
        ):
            await sender.run(primary.pumps)


def _prepare_dump(client: ConnectedClient, command: commands.BinlogDump, *, only_cached: bool = False) -> DumpStart:
    opened = open_dump(client, command, only_cached=only_cached)
    client.session.dump_start = opened.start
    return opened


def open_dump(client: ConnectedClient, command: commands.BinlogDump, *, only_cached: bool) -> DumpStart:
    request = dump_request(
        command,
        client.dialog.variables,
        client.primary.options.profile,
        skip_replication=client.dialog.skip_replication,
        is_registered=client.session.replica_server_id is not None,
        status=client.dialog.status,
    )
    return client.primary.opening.open(request, only_cached=only_cached)


def _notice_leaving(client: ConnectedClient) -> bool:
    try:
        data = client.stream.receive_now(RECEIVE_SIZE)
        if data is not None:
            client.wire.receive_data(data)
        if data == b"" or client.wire.has_quit or isinstance(client.wire.next_event(), Closed):
            log.info("%s disconnected", client)
            return True
    except trio.BrokenResourceError:
        return True
    return False


async def serve_connection(stream: trio.SocketStream, session: Session, primary: PrimaryParts) -> None:
    """To the end; errors are logged, and harm no other connection."""
    client = ConnectedClient(stream, session, primary)
    try:
        if await log_in(client) and (command := await _Conversation(client).run()) is not None:
            await serve_dump(client, command)
    except RemoteProtocolError as error:
        session.reason = f"it broke the protocol: {error}"
        log.info("%s broke the protocol: %s", client, error)
        await client.flush()
    except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
        session.reason = str(error.__cause__ or error or "connection lost")
        log.info("%s disconnected: %s", client, session.reason)
    except trio.TooSlowError:
        session.reason = "it is too slow"
        log.warning("%s is too slow: dropped", client)
    finally:
        client.close()
        if primary.options.observer is not None:
            primary.options.observer.left(session)
        primary.figures.note_end(session)
        stream.socket.close()


class _Conversation:
    def __init__(self, client: ConnectedClient) -> None:
        self._client = client
        self._answers = Answers(client)
        self._observer = client.primary.options.observer
        self._unanswered: Event | None = None  # what was read, and is not answered at once
        self._rest: Buffer | None = None
        self._may_look_ahead = True

    async def run(self) -> commands.BinlogDump | None:
        """Until the client leaves, or asks for a dump."""
        client, observer = self._client, self._observer
        with client.idle:
            while True:
                if client.wire.has_data_to_send:
                    await client.flush()
                client.note_idle()
                match await (self._unanswered_event() if observer is None else client.next_event()):
                    case CommandReceived(command=commands.BinlogDump() as command):
                        if observer is not None and await self._replaces_answer(observer, command):
                            return None
                        return command
                    case CommandReceived(command=command):
                        if observer is None:
                            await self._answers.by_work(command)
                        elif not await self._replaces_answer(observer, command):
                            await self._answers.send(command)
                            await observer.reached(ConnectionStep.ANSWERED, client.session, command)
                    case _:
                        break
        return None

    async def _replaces_answer(self, observer: Observer, command: commands.AnyCommand) -> bool:
        client = self._client
        responses = await observer.reached(ConnectionStep.ASKED, client.session, command)
        if responses is None:
            return False
        for piece in client.wire.answer(*responses):
            await client.sender.send(piece)
        return True

    async def _unanswered_event(self) -> Event:
        """As `ConnectedClient.next_event`, but the reactor answers what it can without this task."""
        client = self._client
        has_ended = client.holds_more and self._read_and_answer()
        while True:
            if not has_ended:
                await client.primary.reactor.wait(client.descriptor, self._read_and_answer)
            rest, self._rest = self._rest, None
            if rest is not None:
                await client.sender.send(rest)
            event, self._unanswered = self._unanswered, None
            if event is not None:
                return event
            if rest is None:
                await trio.lowlevel.checkpoint()  # others have their turn
            has_ended = self._read_and_answer()

    def _read_and_answer(self) -> bool:
        """True where the task has to continue."""
        client, wire, sink = self._client, self._client.wire, self._client.sender.sink
        for _ in range(ANSWERED_IN_A_ROW):
            event = wire.next_event() if wire.unread_size else None
            if event is None:
                data = client.stream.receive_now(RECEIVE_SIZE)
                if data is None:
                    return False
                wire.receive_data(data)
                event = wire.next_event()
            if event is not None:
                client.is_reading = False
                command = event.command if isinstance(event, CommandReceived) else None
                answer = None if command is None else self._answers.at_once(command)
                if command is None or answer is None:
                    self._unanswered = event
                    return True
                self._rest = left_of(answer, sink)
                client.note_idle()
                if self._rest is not None:
                    return True
                self._look_ahead(command)
            client.note_unread()
            if not client.holds_more:
                return False  # epoll tells of what comes later
        return True

    def _look_ahead(self, command: commands.AnyCommand) -> None:
        """Find once where the dump that a client has just announced begins, while it reads its answer."""
        look_ahead = self._client.primary.look_ahead
        if self._may_look_ahead and isinstance(command, commands.QueryCommand) and look_ahead.is_new(command.sql):
            self._may_look_ahead = False
            look_ahead.find_way(functools.partial(open_dump, self._client, UNKNOWN_DUMP, only_cached=True))
