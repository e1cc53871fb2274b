"""Faults done to real connections: between the source of a dump and its socket, and at each step before."""

from __future__ import annotations

import array
import contextlib
import fcntl
import math
import re
import termios
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import trio

from ibbmaster.errors import ConfigurationError, IbbMasterError
from ibbmaster.primary.server.options import ConnectionStep
from ibbmaster.primary.server.registry import EndReason, Session
from ibbmaster.primary.streaming.block import Block, plain_block
from ibbmaster.primary.streaming.sink import Send
from ibbmaster.replication.wire.command import AnyCommand, BinlogDump, QueryCommand, RegisterReplica
from ibbmaster.replication.wire.response import ColumnDefinition, Eof, Err, FieldType, Ok, Response, ResultSet
from . import action as actions
from .action import PrimaryAction
from .fault import FaultPlan, FaultRecord, PlannedFault
from .incident import Incidents, close_by_reset
from .place import Landmark, Side
from .stream_editor import StreamEditor

POLL_S = 0.005
DRAIN_S = 5.0  # a slower client loses what it has not read
DRIP_PIECES_PER_S = 1000  # above this rate several bytes are a piece
_SET_FAULT = re.compile(
    rb"\s*SET\s+GLOBAL\s+ibb_fault\s*=\s*(?:'((?:[^'\\]|\\.|'')*)'|\"([^\"\\]*)\")\s*;?\s*", re.I | re.S
)
_EARLY = {
    ConnectionStep.ACCEPTED: (Side.BEFORE, Landmark.HANDSHAKE),
    ConnectionStep.GREETED: (Side.AFTER, Landmark.GREETING),
    ConnectionStep.TLS: (Side.BEFORE, Landmark.TLS),
    ConnectionStep.LOGGED_IN: (Side.BEFORE, Landmark.LOGIN),
}
_OF_COMMAND = {QueryCommand: Landmark.STATEMENT, RegisterReplica: Landmark.REGISTRATION, BinlogDump: Landmark.DUMP}


@dataclass(slots=True)
class _Conversation:
    number: int
    has_asked: bool = False
    counts: Counter[tuple[Side, Landmark]] = field(default_factory=Counter)
    counts_of_sql: Counter[tuple[Side, str]] = field(default_factory=Counter)


class Faults(FaultPlan):
    """The faults of one primary, whose options get `stage` and this object.

    With `takes_statements`, `SET GLOBAL ibb_fault = 'cut after gtid; gtid=0-1-7'` over any connection plans a fault,
    and `SET GLOBAL ibb_fault = ''` clears the plan.
    """

    def __init__(self, seed: int = 0, *, takes_statements: bool = False) -> None:
        super().__init__(seed)
        self.takes_statements = takes_statements
        self._primary: Incidents | None = None
        self._conversations: dict[int, _Conversation] = {}
        self._connections = 0
        self._asked_dumps = 0
        self._dumps = 0
        self._is_down = False
        self._one_by_one = threading.Lock()  # of the whole primary

    def attach(self, primary: Incidents) -> None:
        self._primary = primary

    def add(self, place: str | None = None, **given: object) -> PlannedFault:
        """Plan a fault: `add("after gtid", action="cut", gtid="0-1-7", by="end")`. Raises ConfigurationError: a key or
        a value means nothing."""
        return self.add_fault(PlannedFault.of({**({} if place is None else {"place": place}), **given}))

    def add_fault(self, fault: PlannedFault) -> PlannedFault:
        """Plan a fault. Raises ConfigurationError: there are too many, or it has no place."""
        if fault.place is None:
            raise ConfigurationError("what happens at a time belongs into a scenario: expected a place")
        return super().add_fault(fault)

    def set_down(self, is_down: bool) -> None:
        """Whether the primary has crashed: then new connections are reset."""
        self._is_down = is_down

    def wait(self, timeout: float = 10.0) -> None:
        """Wait until every fault planned for a place has happened and changed the primary. Raises TimeoutError: one has
        not, in `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while waiting := self.unfinished:
            if time.monotonic() > deadline:
                raise TimeoutError(f"not happened within {timeout:g} s: {', '.join(map(str, waiting))}")
            time.sleep(POLL_S)

    def act(self, fault: PlannedFault) -> None:
        """Not from its event loop."""
        assert isinstance(fault.action, PrimaryAction)
        with self._one_by_one:
            problem = ""
            try:
                if self._primary is None:
                    raise ConfigurationError("there is no primary this could happen to")
                fault.action.happen(self._primary)
            except IbbMasterError as error:
                problem = str(error)
            if problem or fault.place is None:  # a place has noted it already
                self.note(FaultRecord(fault=fault, problem=problem))
        self.finish(fault)

    def stage(self, session: Session) -> FaultStage:
        self._dumps += 1
        return FaultStage(self, session, self._dumps)

    async def reached(
        self, step: ConnectionStep, session: Session, command: AnyCommand | None
    ) -> Sequence[Response] | None:
        """An observer's part: everything before the stream."""
        if self._is_down:
            close_by_reset(session)
            raise trio.BrokenResourceError("the primary has crashed")
        conversation = self._conversations.get(session.connection_id)
        if step is ConnectionStep.ACCEPTED or conversation is None:
            self._connections += 1
            conversation = self._conversations[session.connection_id] = _Conversation(self._connections)
        if step is ConnectionStep.ASKED and self.takes_statements and isinstance(command, QueryCommand):
            answer = self._answer_to_admin(command.sql)
            if answer is not None:
                return (answer,)
        landmarks = []
        if step is ConnectionStep.ASKED and not conversation.has_asked:
            conversation.has_asked = True
            landmarks.append((Side.AFTER, Landmark.HANDSHAKE))
        if step in _EARLY:
            landmarks.append(_EARLY[step])
        elif step is not ConnectionStep.DUMPING and type(command) in _OF_COMMAND:
            landmarks.append((Side.BEFORE if step is ConnectionStep.ASKED else Side.AFTER, _OF_COMMAND[type(command)]))
        for side, landmark in landmarks:
            answer = await self._happen(session, conversation, side, landmark, command)
            if answer is not None:
                return (answer,)
        return None

    def left(self, session: Session) -> None:
        self._conversations.pop(session.connection_id, None)

    async def do(self, fault: PlannedFault, session: Session) -> Response | None:
        """Do a fault to a connection; a response replaces what would come. Raises trio.BrokenResourceError: the
        connection shall end."""
        match fault.action:
            case actions.CutConnection(by="silence"):
                await _wait(session, math.inf)
                raise trio.BrokenResourceError(f"fault: {fault}")
            case actions.CutConnection(by=by):
                if session.socket is not None:
                    await drain(session.socket)
                if by == "reset":
                    close_by_reset(session)
                raise trio.BrokenResourceError(f"fault: {fault}")
            case actions.Stall(seconds=seconds):
                await _wait(session, seconds)
            case actions.EndDump():
                return Eof()
            case actions.SendError(code=code, state=state, text=text):
                return Err(code=code, sqlstate=state, text=text)
            case actions.AnswerOtherwise(value=value):
                return _row(value)
            case actions.SendGarbage(count=count):
                await _send_raw(session, self.random_bytes(fault, count))
            case actions.KillConnection(query=False):
                session.scope.cancel()
                await trio.lowlevel.checkpoint()
            case actions.KillConnection() if session.dump_server_id is None:
                return Err(code=1317, sqlstate="70100", text="Query execution was interrupted")
            case actions.KillConnection():
                session.end_dump(EndReason.KILL_QUERY)
            case actions.TakeOver():
                session.end_dump(EndReason.NEWER_DUMP)
            case PrimaryAction():
                with trio.CancelScope() as session.waiting:  # a stop waits for the dump: no deadlock
                    await trio.to_thread.run_sync(self.act, fault, abandon_on_cancel=True)
                session.waiting = None
                if isinstance(fault.action, actions.RestartPrimary) and session.dump_server_id is not None:
                    session.end_dump(EndReason.SHUTDOWN)  # also if nothing was stopped: nothing more is sent
        return None

    async def _happen(
        self, session: Session, conversation: _Conversation, side: Side, landmark: Landmark, command: AnyCommand | None
    ) -> Response | None:
        sql = command.sql.decode("utf-8", "replace") if isinstance(command, QueryCommand) else ""
        replica = session.replica_server_id
        if isinstance(command, RegisterReplica | BinlogDump):
            replica = command.server_id
        conversation.counts[side, landmark] += 1
        count, which = conversation.counts[side, landmark], conversation.number
        if landmark is Landmark.DUMP:
            which = self._asked_dumps = self._asked_dumps + 1
        seen = {fault.place.sql for fault in self.pending if fault.place is not None and fault.place.sql}
        for text in seen:
            conversation.counts_of_sql[side, text] += text.lower() in sql.lower()

        def is_due(fault: PlannedFault) -> bool:
            place = fault.place
            if place is None or (place.side, place.landmark) != (side, landmark):
                return False
            if (fault.connection or which) != which:
                return False
            if fault.replica is not None and fault.replica != replica:
                return False
            if place.sql is not None:
                number = conversation.counts_of_sql[side, place.sql]
                return place.sql.lower() in sql.lower() and (place.nth or number) == number
            return (place.nth or count) == count

        answer: Response | None = None
        for fault in self.take(is_due):
            self.note(FaultRecord(fault=fault, connection_id=session.connection_id, event=sql.encode()))
            answer = await self.do(fault, session) or answer
        return answer

    def _answer_to_admin(self, sql: bytes) -> Response | None:
        match = _SET_FAULT.fullmatch(sql[: 2 * 4096])
        if match is None:
            return None
        text = re.sub(
            r"\\(.)|''", lambda found: found[1] or "'", (match[1] or match[2] or b"").decode("utf-8", "replace")
        )
        if not text.strip():
            self.clear()
            return Ok()
        try:
            self.add_fault(PlannedFault.parse(text))
        except ConfigurationError as error:
            return Err(code=1231, sqlstate="42000", text=f"ibb_fault: {error}")
        return Ok()


class FaultStage:
    def __init__(self, faults: Faults, session: Session, number: int) -> None:
        self._faults = faults
        self._session = session
        self._editor = StreamEditor(
            faults, connection_id=session.connection_id, number=number, replica=session.dump_server_id
        )
        self._bytes_per_s = 0.0

    async def pass_on(self, block: Block, send: Send) -> None:
        for item in self._editor.edit(block.data()):
            if isinstance(item, bytes):
                await self._send(item, block, send)
            elif isinstance(item.action, actions.Drip):
                self._bytes_per_s = item.action.bytes_per_s
            elif await self._faults.do(item, self._session) is not None:
                raise trio.BrokenResourceError(f"fault: {item}")

    async def _send(self, data: bytes, block: Block, send: Send) -> None:
        if not self._bytes_per_s:
            await send(plain_block(data, block.after))
            return
        size = max(1, round(self._bytes_per_s / DRIP_PIECES_PER_S))
        for start in range(0, len(data), size):
            await send(plain_block(data[start : start + size], block.after))
            await _wait(self._session, size / self._bytes_per_s)


async def _wait(session: Session, seconds: float) -> None:
    if session.end_reason is None:
        with trio.move_on_after(seconds) as session.waiting:
            await trio.sleep_forever()
        session.waiting = None


async def drain(connection: trio.socket.SocketType) -> None:
    """Wait until the other side has what was sent, which a reset would discard."""
    unsent = array.array("i", [1])
    with trio.move_on_after(DRAIN_S):
        while True:
            fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, unsent)
            if not unsent[0]:
                return
            await trio.sleep(0.001)


async def _send_raw(session: Session, data: bytes) -> None:
    """Send bytes past framing and TLS."""
    if session.socket is not None:
        with contextlib.suppress(OSError):
            await session.socket.send(data)


def _row(value: str) -> ResultSet:
    column = ColumnDefinition(name="Value", column_type=FieldType.VAR_STRING, length=4 * len(value))
    return ResultSet(columns=(column,), rows=((value.encode(),),))
