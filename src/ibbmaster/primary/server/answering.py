"""Answers to the commands of a client: on the event loop, or by work in a thread."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import trio

from ibbmaster.primary.dialogue.show import Note
from ibbmaster.primary.dialogue.statement import Act, Answer, Kill, Shutdown
from ibbmaster.replication.wire import command as commands
from ibbmaster.replication.wire.refusal import broken_off
from ibbmaster.replication.wire.response import Eof, Ok, Response, Text
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.codec.printable import printable
from ibbmaster.work import BreakReason, BrokenOffError, Work
from .administration import NAMES
from .client import ConnectedClient

log = logging.getLogger(__name__)

LOGGED_MAX = 200  # bytes of a statement


class Answers:
    """All of one client but dumps."""

    def __init__(self, client: ConnectedClient) -> None:
        self._client = client
        self._shutdown: Shutdown | None = None  # it begins once its answer is sent

    async def send(self, command: commands.AnyCommand) -> None:
        """In a worker thread if that may read the disk, or take long."""
        answer = self.at_once(command)
        if answer is not None:
            await self._client.sender.send(answer)
        else:
            await self.by_work(command)

    def at_once(self, command: commands.AnyCommand) -> bytes | None:
        """None: it needs the disk, or takes long; nothing was done."""
        dialog = self._client.dialog
        responses: tuple[Response, ...]
        match command:
            case commands.QueryCommand(sql=sql):
                if log.isEnabledFor(logging.DEBUG):
                    log.debug("%s: %s", self._client, printable(sql[:LOGGED_MAX].decode("utf-8", "replace")))
                answers = dialog.query_at_once(sql)
                if answers is None:
                    return None
                responses = tuple(self._ended(answer) for answer in answers)
            case commands.InitDb() | commands.StatementPrepare() | commands.StatementExecute() | commands.BinlogDump():
                return None
            case commands.StatementLongData():
                dialog.prepared.add_piece(command.statement_id, command.parameter_no, command.data)
                responses = ()
            case commands.StatementClose(statement_id=statement_id):
                dialog.prepared.close(statement_id)
                responses = ()
            case commands.StatementReset(statement_id=statement_id):
                responses = tuple(map(self._ended, dialog.prepared.reset(statement_id)))
            case commands.StatementFetch(statement_id=statement_id):
                responses = tuple(map(self._ended, dialog.prepared.fetch(statement_id)))
            case commands.Ping():
                responses = (Ok(),)
            case commands.ResetConnection():
                dialog.reset()
                responses = (Ok(),)
            case commands.SetOption():
                responses = (Eof(),)
            case commands.Statistics():
                responses = (Text(text=self._client.primary.facts.statistics()),)
            case commands.ProcessKill(connection_id=connection_id):
                responses = (self._ended(dialog.kill(connection_id, query_only=False)),)
            case commands.RegisterReplica():
                self._client.session.replica_server_id = command.server_id
                self._client.session.replica_host, self._client.session.replica_port = command.host, command.port
                responses = (Ok(),)
            case commands.UnsupportedCommand(answer=answer) | commands.MalformedCommand(answer=answer):
                responses = (answer,)
            case _:
                responses = ()
        return self._client.wire.answer_at_once(*responses)

    async def by_work(self, command: commands.AnyCommand) -> None:
        dialog = self._client.dialog
        match command:
            case commands.QueryCommand(sql=sql):
                self._client.session.note("Query", "", time.monotonic())
                await self._work(functools.partial(dialog.answers, sql))
            case commands.InitDb(database=database):
                await self._work(functools.partial(dialog.use, database))
            case commands.StatementPrepare(sql=sql):
                await self._work(functools.partial(dialog.prepared.prepare, sql))
            case commands.StatementExecute(statement_id=statement_id, parameters=parameters):
                self._client.session.note("Execute", "", time.monotonic())
                await self._work(functools.partial(dialog.prepared.execute, statement_id, parameters))

    async def _work(self, ask: Callable[[], Iterable[Answer]]) -> None:
        """Answer in worker threads, a piece at a time, until it is broken off. Raises trio.BrokenResourceError: the
        client has left."""
        client, session = self._client, self._client.session
        work = session.work = Work(time.monotonic, client.primary.options.statement_s)
        pieces = client.wire.answer_each(self._carried_out(ask))

        def leave() -> None:
            work.break_off(BreakReason.LEFT)
            scope.cancel()

        with trio.CancelScope() as scope:
            try:
                with client.noticing(leave):
                    while not work.is_noticed and (piece := await self._next_piece(work, pieces)) is not None:
                        await client.sender.send(piece)  # an error, if it was broken off
            except BrokenOffError as error:  # before the next piece
                await client.sender.send(client.wire.answer_at_once(broken_off(error.reason).err))
            finally:
                session.work = None
                if self._shutdown is not None:
                    client.primary.stop(self._shutdown.waits)
        if scope.cancelled_caught:
            raise trio.BrokenResourceError("the client has left")

    async def _next_piece(self, work: Work, pieces: Iterator[Buffer]) -> Buffer | None:
        session = self._client.session
        return await self._client.primary.workers.run(work, session.user, next, pieces, None, is_admin=session.is_admin)

    def _carried_out(self, ask: Callable[[], Iterable[Answer]]) -> Iterator[Response]:
        """In a worker thread: do what answers ask for, before them."""
        for answer in ask():
            match answer:
                case Kill():
                    yield trio.from_thread.run_sync(self._ended, answer)
                case Act():
                    yield self._client.dialog.acted(answer, functools.partial(self._acted, answer))
                case _:
                    yield answer

    def _acted(self, act: Act) -> Sequence[Note]:
        notes = self._client.primary.administration.carry_out(act.what)
        log.info("%s: %s", self._client, NAMES[type(act.what)][0])
        if isinstance(act.what, Shutdown):
            self._shutdown = act.what
        return notes

    def _ended(self, answer: Answer) -> Response:
        assert not isinstance(answer, Act), "none is answered at once"
        if not isinstance(answer, Kill):
            return answer
        self._client.primary.registry.kill(answer.connection_id, query_only=answer.query_only)
        return answer.answer
