"""Records one connection: what is asked, what comes, and how it ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import trio

from ibbmaster.errors import EventError
from ibbmaster.gtid import GtidState
from ibbmaster.replication.wire.command import BinlogDump, QueryCommand, Quit, RegisterReplica, StatementPrepare
from ibbmaster.replication.wire.response import Err
from .conversation import (
    CONNECT_STATE,
    Admitted,
    Answered,
    Asked,
    Conversation,
    ConversationPart,
    DumpEnded,
    DumpPiece,
    Greeted,
    GreetingEditor,
    Named,
    PassedUnread,
    Phase,
    asked_position,
)
from .recorded_dump import RecordedDump
from .recording import Recording
from .redaction import without_secrets
from .relay import RelayedConnection, Send

LIVE_S = 0.2  # after this silence a primary has sent what it had
STALL_PERIODS = 1.5  # of heartbeat periods are a stall
STALL_MAX_S = 3600.0
SQL_SIZE_MAX = 200  # of a statement that names a place
ERROR_SIZE_MAX = 500
_PERIOD = re.compile(rb"@master_heartbeat_period\s*=\s*'?([0-9]{1,19})", re.I)
_UNTIL = re.compile(rb"@slave_until_gtid\s*=\s*['\"][0-9]", re.I)


class RecordedConnection(RelayedConnection):
    """One connection of a recording; the calls of its relay run in a thread, one by one."""

    def __init__(self, recording: Recording, one_by_one: trio.CapacityLimiter, peer: str) -> None:
        self.scope = trio.CancelScope()
        self._recording = recording
        self._one_by_one = one_by_one
        self._peer = peer
        self._number = recording.begin_connection(peer)
        self._primary_number = 0  # among those that the primary took
        self._conversation = Conversation()
        self._greeting = GreetingEditor()
        self._offered_tls = False
        self._sql = b""  # the last statement
        self._period_s = 0.0  # of heartbeats
        self._start: GtidState | None = None  # of the next dump, by GTID
        self._has_until = False
        self._dump: RecordedDump | None = None
        self._has_left = False  # the consumer sees nothing more
        self._is_over = False  # how it ends is known

    # What a relay calls

    async def from_primary(self, data: bytes, waited_s: float, send: Send) -> None:
        """Bytes for the client: only the greeting changes, which loses TLS and compression."""
        came, data = self._greeting.take(data)
        if data:
            await self._record(self._hear_primary, came, waited_s)
            await send(data)

    async def from_client(self, data: bytes, send: Send) -> None:
        await self._record(self._hear_client, data)
        await send(data)

    async def primary_left(self, by: str) -> None:
        await self._record(self._primary_left, by)

    async def client_left(self, by: str, silent_s: float) -> None:
        """A fault only if the primary had been silent."""
        await self._record(self._client_left, by, silent_s)

    async def connected(self) -> None:
        await self._record(self._connected)

    async def refused(self) -> None:
        await self._record(self._refused)

    async def _record(self, act: Callable[..., None], *arguments: object) -> None:
        def call() -> None:
            if self._recording.problem:
                return
            try:
                act(*arguments)
                self._recording.write_if_due()
            except Exception as error:  # the bytes must go on
                self._recording.fail(error)

        if not self._recording.problem:
            await trio.to_thread.run_sync(call, limiter=self._one_by_one)

    # In a thread

    def _connected(self) -> None:
        self._primary_number = self._recording.primary_answered()

    def _hear_primary(self, data: bytes, waited_s: float) -> None:
        if self._has_left:
            return
        if self._dump is not None and self._conversation.phase is Phase.DUMP:
            self._note_wait(self._dump, waited_s)
        for part in self._conversation.from_primary(data):
            self._hear(part)

    def _hear_client(self, data: bytes) -> None:
        for part in self._conversation.from_client(data):
            self._hear(part)

    def _note_wait(self, dump: RecordedDump, waited_s: float) -> None:
        if waited_s >= LIVE_S:
            self._recording.is_live = True
        if self._is_stall(waited_s):
            seconds = round(min(waited_s, STALL_MAX_S), 3)
            line = f"nothing for {waited_s:.1f} s, no heartbeat either"
            self._went_wrong(line, self._place_in(dump), dump, action="stall", seconds=seconds)

    def _is_stall(self, waited_s: float) -> bool:
        return self._period_s > 0 and waited_s > STALL_PERIODS * self._period_s

    def _hear(self, part: ConversationPart) -> None:
        match part:
            case Greeted():
                self._offered_tls = part.offered_tls
                self._recording.know_primary(version=part.server_version)
            case Named(user=user):
                self._recording.know_primary(user=user)
                self._tell(f"user {user}")
            case Admitted(err=None):
                pass
            case Admitted(err=Err() as err):
                place = "before login" if self._conversation.phase is not Phase.GREETING else "before handshake"
                self._failed(self._named(place), err)
                self._is_over = True
            case Asked(command=command):
                self._asked(command)
            case Answered(command=command, err=Err() as err):
                self._failed(self._step(command), err)
            case DumpPiece() if self._dump is not None:
                self._take(self._dump, part)
            case DumpEnded() if self._dump is not None:
                self._dump_ended(self._dump, part.word)
            case PassedUnread(reason=reason):
                self._recording.warn(f"connection {self._number}: from here on passed on unread: {reason}")

    def _asked(self, command: object) -> None:
        self._is_over = False  # a dump has ended, and it goes on
        match command:
            case QueryCommand(sql=sql) | StatementPrepare(sql=sql):
                self._sql = without_secrets(sql)
                self._tell(self._sql.decode("utf-8", "replace"))
                self._note_variables(sql)
            case RegisterReplica(server_id=server_id):
                self._tell(f"registers as server {server_id}")
            case BinlogDump():
                state = self._start
                where = f"{command.file_name!r} {command.position}" if state is None else f"GTID [{state}]"
                self._dump = RecordedDump(self._recording, command, state)
                self._tell(f"dump of server {command.server_id} from {where}")
            case Quit():
                self._has_left = self._is_over = True
                self._drop_dump()

    def _note_variables(self, sql: bytes) -> None:
        if CONNECT_STATE.search(sql):
            position = asked_position(sql)
            self._start = None if position is None else GtidState(position.values())
        if period := _PERIOD.search(sql):
            self._period_s = int(period[1]) / 1e9
        self._has_until = self._has_until or _UNTIL.search(sql) is not None

    def _take(self, dump: RecordedDump, piece: DumpPiece) -> None:
        try:
            is_wrong = dump.take(piece)
        except EventError as error:
            self._recording.warn(f"dump {dump.number}: from here on passed on unread: {error}")
            self._drop_dump()
            return
        if is_wrong:
            self._went_wrong("an event with a wrong checksum", dump.place("at"), dump, action="checksum", be="wrong")

    def _dump_ended(self, dump: RecordedDump, word: object) -> None:
        dump.drop()
        self._is_over = True
        if isinstance(word, Err):
            self._failed(self._place_in(dump), word, dump)
        elif not dump.is_non_blocking and not self._has_until:
            self._went_wrong("the primary ends the dump", self._place_in(dump), dump, action="eof")

    def _primary_left(self, by: str) -> None:
        if self._is_over:
            self._tell("ended")
            return
        self._is_over = True
        dump = self._dump if self._conversation.phase is Phase.DUMP else None
        where = self._place_outside() if dump is None else self._place_in(dump)
        self._went_wrong(f"cut by the primary: {by}", where, dump, action="cut", by=by)
        if dump is not None:
            dump.drop()

    def _client_left(self, by: str, silent_s: float) -> None:
        dump, phase = self._dump, self._conversation.phase
        self._drop_dump()
        self._has_left = True
        if self._is_over:
            return
        self._is_over = True
        if dump is not None and phase is Phase.DUMP and self._is_stall(silent_s):
            line = f"left after {silent_s:.1f} s without a byte"
            self._went_wrong(line, self._place_in(dump), dump, action="cut", by="silence")
            return
        self._tell(f"left: {by}")
        if phase is Phase.LOGIN and self._offered_tls:
            self._recording.warn(
                f"{self._peer} left before its login: it may insist on TLS, which is taken away here so that the "
                "conversation can be read (MASTER_SSL=0, --skip-ssl)"
            )

    def _drop_dump(self) -> None:
        if self._dump is not None:
            self._dump.drop()
            self._dump = None

    def _refused(self) -> None:
        self._tell("the primary is not there")
        self._recording.primary_refused()

    # What went wrong

    def _failed(self, where: Mapping[str, object], err: Err, dump: RecordedDump | None = None) -> None:
        text = without_secrets(err.text.encode()).decode()
        if b"***" in self._sql:  # it may quote the statement
            text = text.partition("near '")[0]
        action = {"action": "error", "code": err.code or 1, "state": err.sqlstate, "text": text[:ERROR_SIZE_MAX]}
        self._went_wrong(f"error {err.code} {where['place']}: {text[:ERROR_SIZE_MAX]}", where, dump, **action)

    def _step(self, command: object) -> dict[str, object]:
        if isinstance(command, RegisterReplica):
            return self._named("before registration")
        return self._named("before statement", self._shown_sql() if isinstance(command, QueryCommand) else None)

    def _shown_sql(self) -> str | None:
        return self._sql.partition(b"'***'")[0].decode("utf-8", "replace")[:SQL_SIZE_MAX] or None

    def _place_outside(self) -> dict[str, object]:
        match self._conversation.phase:
            case Phase.GREETING:
                return self._named("before handshake")
            case Phase.LOGIN:
                return self._named("before login" if self._conversation.capabilities else "after greeting")
        if self._conversation.asked is not None:
            return self._step(self._conversation.asked)
        return self._named("after statement", self._shown_sql()) if self._sql else self._named("after handshake")

    def _named(self, place: str, sql: str | None = None) -> dict[str, object]:
        return {"place": place, **({"sql": sql} if sql else {}), "connection": self._primary_number}

    def _place_in(self, dump: RecordedDump) -> dict[str, object]:
        begun = self._conversation.begun
        return dump.place_of_end(begun) if dump.has_begun or begun[0] else self._named("before dump")

    def _went_wrong(
        self, line: str, where: Mapping[str, object], dump: RecordedDump | None = None, **action: object
    ) -> None:
        in_dump = {} if dump is None else {"dump": dump.number, "replica": dump.server_id}
        self._recording.add_fault({**where, **action}, **in_dump)
        self._tell(line)

    def _tell(self, line: str) -> None:
        self._recording.tell(self._number, line)
