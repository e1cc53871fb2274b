"""The faults of the test kit between a real primary and its consumer: at each step, and in the bytes of each dump."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import trio

from ibbmaster.commands.recorder.conversation import (
    CONNECT_STATE,
    Admitted,
    Answered,
    Asked,
    Conversation,
    ConversationPart,
    Greeted,
    GreetingEditor,
    Named,
    Phase,
    asked_position,
)
from ibbmaster.commands.recorder.relay import RelayedConnection, Send
from ibbmaster.position import NOWHERE, LogPosition
from ibbmaster.primary.server.options import ConnectionStep
from ibbmaster.primary.server.registry import Registry
from ibbmaster.primary.streaming.block import Block, plain_block
from ibbmaster.primary.streaming.sink import Stage, made_stage
from ibbmaster.replication.wire.answer import encode_response
from ibbmaster.replication.wire.capability import Capability
from ibbmaster.replication.wire.command import AnyCommand, BinlogDump, QueryCommand, Quit, RegisterReplica
from ibbmaster.replication.wire.packet import frame_payloads
from ibbmaster.replication.wire.response import Response
from ibbmaster.testkit.witness import Witness

_GREETING, _LOGIN_OK, _ANSWER = 0, 2, 1  # numbers of first packets


class _Relayed(NamedTuple):
    """The place of the log, which is unknown here."""

    position: LogPosition = NOWHERE
    is_inside_group: bool = False
    is_inside_event: bool = False


class FaultedConnection(RelayedConnection):
    """One connection through a relay: a witness notes it, and faults hold it up, change or cut it."""

    def __init__(self, witness: Witness, registry: Registry, client: trio.socket.SocketType, peer: str) -> None:
        self._witness = witness
        self._registry = registry
        self.session = registry.open(peer.rpartition(":")[0], trio.current_time())
        self.session.socket = client
        self.scope = self.session.scope
        self._client = client
        self._conversation = Conversation()
        self._greeting = GreetingEditor()
        self._stage: Stage | None = None
        self._turn = trio.Lock()  # a step after an answer comes before the client's next words
        self._is_over = False
        self.primary_id = 0  # of the connection, at the primary

    async def connected(self) -> None:
        await self._reach(ConnectionStep.ACCEPTED, None, _GREETING)

    async def from_primary(self, data: bytes, waited_s: float, send: Send) -> None:
        if self._conversation.phase is not Phase.DUMP:
            async with self._turn:
                try:
                    await self._converse(data, send)
                except trio.BrokenResourceError:
                    self._is_over = True
                    raise
            return
        list(self._conversation.from_primary(data))
        if self._stage is None:
            await send(data)
            return

        async def pass_on(block: Block) -> None:
            await send(bytes(block.data()))

        await self._stage.pass_on(plain_block(data, _Relayed()), pass_on)

    async def _converse(self, data: bytes, send: Send) -> None:
        was_greeted = self._conversation.phase is not Phase.GREETING
        came, data = self._greeting.take(data)
        parts = list(self._conversation.from_primary(came))
        for part in parts:
            match part:
                case Greeted(connection_id=connection_id):
                    self.primary_id = connection_id
                case Admitted(err=None):
                    await self._reach(ConnectionStep.LOGGED_IN, None, _LOGIN_OK)
        if data:
            await send(data)
        if not was_greeted and self._conversation.phase is not Phase.GREETING:
            await self._reach(ConnectionStep.GREETED, None, _LOGIN_OK)
        for part in parts:
            if isinstance(part, Answered):
                await self._reach(ConnectionStep.ANSWERED, part.command, _ANSWER)

    async def from_client(self, data: bytes, send: Send) -> None:
        async with self._turn:
            for part in list(self._conversation.from_client(data)):
                if self._is_over or not await self._allows(part):
                    return
        await send(data)

    async def _allows(self, part: ConversationPart) -> bool:
        match part:
            case Named(user=user):
                self.session.user = user
            case Asked(command=Quit()):
                return True
            case Asked(command=command):
                if isinstance(command, RegisterReplica):
                    self.session.replica_server_id = command.server_id
                if await self._reach(ConnectionStep.ASKED, command, _ANSWER):
                    return False
                if isinstance(command, QueryCommand) and CONNECT_STATE.search(command.sql):
                    self.session.dump_start = asked_position(command.sql)
                if isinstance(command, BinlogDump):
                    self.session.dump_server_id = command.server_id
                    await self._reach(ConnectionStep.DUMPING, command, _ANSWER)
                    self._stage = made_stage(self._witness.stages, self.session)
        return True

    async def _reach(self, step: ConnectionStep, command: AnyCommand | None, number: int) -> bool:
        """Whether something was sent instead of what would come. Raises trio.BrokenResourceError: the connection shall
        end."""
        responses = await self._witness.reached(step, self.session, command)
        if responses is None:
            return False
        await self._answer(responses, number)
        if step is not ConnectionStep.ASKED or isinstance(command, BinlogDump):
            raise trio.BrokenResourceError("fault: a last word")
        return True

    async def _answer(self, responses: Sequence[Response], number: int) -> None:
        for response in responses:
            frame, number = frame_payloads(list(encode_response(response, Capability.PROTOCOL_41)), number)
            await self._client.send(frame)

    def closed(self) -> None:
        self._registry.close(self.session)
        self._witness.left(self.session)
