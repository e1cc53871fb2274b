"""Listens to one connection for a recording: what is asked, what comes, and how it ends."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import replace

import trio

from ibbmaster.api.writing import OpenGroup
from ibbmaster.capture.client import BETWEEN_GROUPS
from ibbmaster.errors import EventError, GtidError, IbbMasterError
from ibbmaster.event.control import decode_gtid_list
from ibbmaster.event.format_description import ChecksumAlgorithm
from ibbmaster.event.gtid_event import decode_gtid
from ibbmaster.event.header import (
    CHECKSUM_SIZE,
    EVENT_HEADER_SIZE,
    HEADER,
    EventHeader,
    decode_event_header,
    has_valid_checksum,
)
from ibbmaster.event.types import EventFlag, EventType
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.testkit.conversation import (
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
)
from ibbmaster.testkit.place import Landmark
from ibbmaster.testkit.recording import Recording
from ibbmaster.testkit.redaction import event_without_secrets, without_secrets
from ibbmaster.testkit.relay import Send
from ibbmaster.testkit.stream_places import SeenPacket, StreamPlaces
from ibbmaster.wire.command import BinlogDump, DumpFlag, QueryCommand, Quit, RegisterReplica, StatementPrepare
from ibbmaster.wire.response import Err

LIVE_S = 0.2  # a primary that had nothing for so long has sent what it had
STALL_PERIODS = 1.5  # silence of so many heartbeat periods is a stall
STALL_MAX_S = 3600.0
SQL_SIZE_MAX = 200  # of a statement that names a place
ERROR_SIZE_MAX = 500
TYPE_END = 5  # bytes of an event behind which its type is known
_STATE = re.compile(rb"@slave_connect_state\s*=\s*'([0-9,\s-]*)'", re.I)
_PERIOD = re.compile(rb"@master_heartbeat_period\s*=\s*'?([0-9]{1,19})", re.I)
_UNTIL = re.compile(rb"@slave_until_gtid\s*=\s*'[0-9]", re.I)
_IN_GROUP_ONCE = (Landmark.GTID, Landmark.COMMIT)
_OPENING = (Landmark.OPENING_ROTATE, Landmark.OPENING_FORMAT, Landmark.OPENING_GTID_LIST)


class RecordedConnection:
    """One connection of a recording; what a relay calls is done in a thread, one call after the other."""

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
        self._has_asked = False
        self._period_s = 0.0  # of heartbeats
        self._start: GtidState | None = None  # where the next dump begins, if it said so by GTID
        self._has_until = False
        self._dump: _RecordedDump | None = None
        self._is_over = False  # how it ends is known

    # What a relay calls --------------------------------------------------------------------------

    async def from_primary(self, data: bytes, waited_s: float, send: Send) -> None:
        """Bytes for the client: the greeting without TLS and compression, all else as it is."""
        came, data = self._greeting.take(data)
        if data:
            await self._record(self._hear_primary, came, waited_s)
            await send(data)

    async def from_client(self, data: bytes, send: Send) -> None:
        """Bytes for the primary, as they are."""
        await self._record(self._hear_client, data)
        await send(data)

    async def primary_left(self, by: str) -> None:
        """The primary has ended the connection."""
        await self._record(self._primary_left, by)

    async def client_left(self, by: str, silent_s: float) -> None:
        """The client has ended it, which is no fault, unless the primary had been silent."""
        await self._record(self._client_left, by, silent_s)

    async def connected(self) -> None:
        """The primary has taken the connection."""
        await self._record(self._connected)

    async def refused(self) -> None:
        """The primary is not there."""
        await self._record(self._refused)

    def closed(self) -> None:
        """The connection is over; how it ended has been told."""

    async def _record(self, act: Callable[..., None], *arguments: object) -> None:
        def call() -> None:
            if self._recording.problem:
                return
            try:
                act(*arguments)
                self._recording.write_if_due()
            except Exception as error:  # whatever is wrong here: the bytes must go on
                self._recording.fail(error)

        if not self._recording.problem:
            await trio.to_thread.run_sync(call, limiter=self._one_by_one)

    # In a thread ---------------------------------------------------------------------------------

    def _connected(self) -> None:
        self._primary_number = self._recording.primary_answered()

    def _hear_primary(self, data: bytes, waited_s: float) -> None:
        if self._dump is not None and self._conversation.phase is Phase.DUMP:
            self._note_wait(self._dump, waited_s)
        for part in self._conversation.from_primary(data):
            self._hear(part)

    def _hear_client(self, data: bytes) -> None:
        for part in self._conversation.from_client(data):
            self._hear(part)

    def _note_wait(self, dump: _RecordedDump, waited_s: float) -> None:
        if waited_s >= LIVE_S:
            self._recording.is_live = True
        if self._is_stall(waited_s):
            seconds = round(min(waited_s, STALL_MAX_S), 3)
            self._add({**self._place_in(dump), "action": "stall", "seconds": seconds}, dump)
            self._tell(f"nothing for {waited_s:.1f} s, no heartbeat either")

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
                self._failed(place, None, err)
                self._is_over = True
            case Asked(command=command):
                self._asked(command)
            case Answered(command=command, err=Err() as err):
                self._failed(*self._step(command), err)
            case DumpPiece() if self._dump is not None:
                self._take(self._dump, part)
            case DumpEnded() if self._dump is not None:
                self._dump_ended(self._dump, part.word)
            case PassedUnread(reason=reason):
                self._recording.warn(f"connection {self._number}: from here on passed on unread: {reason}")

    def _asked(self, command: object) -> None:
        self._has_asked = True
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
                self._dump = _RecordedDump(self._recording, command, state)
                self._tell(f"dump of server {command.server_id} from {where}")
            case Quit():
                self._is_over = True

    def _note_variables(self, sql: bytes) -> None:
        if state := _STATE.search(sql):
            try:
                self._start = GtidState(GtidPosition.parse(state[1].decode()).values())
            except GtidError:
                self._start = None
        if period := _PERIOD.search(sql):
            self._period_s = int(period[1]) / 1e9
        self._has_until = self._has_until or _UNTIL.search(sql) is not None

    def _take(self, dump: _RecordedDump, piece: DumpPiece) -> None:
        try:
            is_wrong = dump.take(piece)
        except EventError as error:
            self._recording.warn(f"dump {dump.number}: from here on passed on unread: {error}")
            dump.drop()
            self._dump = None
            return
        if is_wrong:
            self._add({**dump.place("at"), "action": "checksum", "be": "wrong"}, dump)
            self._tell("an event with a wrong checksum")

    def _dump_ended(self, dump: _RecordedDump, word: object) -> None:
        dump.drop()
        self._is_over = True
        if isinstance(word, Err):
            self._failed_in(dump, word)
        elif not dump.is_non_blocking and not self._has_until:
            self._add({**self._place_in(dump), "action": "eof"}, dump)
            self._tell("the primary ends the dump")

    def _primary_left(self, by: str) -> None:
        if self._is_over:
            self._tell("ended")
            return
        self._is_over = True
        action = {"action": "cut", "by": by}
        if self._dump is not None and self._conversation.phase is Phase.DUMP:
            self._add({**self._place_in(self._dump), **action}, self._dump)
            self._dump.drop()
        else:
            place, sql = self._place_outside()
            self._add({**self._named(place, sql), **action})
        self._tell(f"cut by the primary: {by}")

    def _client_left(self, by: str, silent_s: float) -> None:
        dump, phase = self._dump, self._conversation.phase
        if dump is not None:
            dump.drop()
        if self._is_over:
            return
        self._is_over = True
        if dump is not None and phase is Phase.DUMP and self._is_stall(silent_s):
            self._add({**self._place_in(dump), "action": "cut", "by": "silence"}, dump)
            self._tell(f"left after {silent_s:.1f} s without a byte")
            return
        self._tell(f"left: {by}")
        if phase is Phase.LOGIN and self._offered_tls:
            self._recording.warn(
                f"{self._peer} left before its login: it may insist on TLS, which is taken away here so that the "
                "conversation can be read (MASTER_SSL=0, --skip-ssl)"
            )

    def _refused(self) -> None:
        self._tell("the primary is not there")
        self._recording.primary_refused()

    # What went wrong -----------------------------------------------------------------------------

    def _failed(self, place: str, sql: str | None, err: Err) -> None:
        self._add({**self._named(place, sql), **self._error(err)})
        self._tell(f"error {err.code} {place}")

    def _failed_in(self, dump: _RecordedDump, err: Err) -> None:
        self._add({**self._place_in(dump), **self._error(err)}, dump)
        self._tell(f"error {err.code}: {self._error(err)['text']}")

    def _error(self, err: Err) -> dict[str, object]:
        text = without_secrets(err.text.encode()).decode()
        if b"***" in self._sql:  # it may quote the statement
            text = text.partition("near '")[0]
        return {"action": "error", "code": err.code or 1, "state": err.sqlstate, "text": text[:ERROR_SIZE_MAX]}

    def _step(self, command: object) -> tuple[str, str | None]:
        """The step of a conversation that a command is."""
        if isinstance(command, RegisterReplica):
            return "before registration", None
        return "before statement", self._shown_sql() if isinstance(command, QueryCommand) else None

    def _shown_sql(self) -> str | None:
        """What names the last statement; a password in it is not shown, and cannot be looked for."""
        return self._sql.partition(b"'***'")[0].decode("utf-8", "replace")[:SQL_SIZE_MAX] or None

    def _place_outside(self) -> tuple[str, str | None]:
        match self._conversation.phase:
            case Phase.GREETING:
                return "before handshake", None
            case Phase.LOGIN:
                return ("before login" if self._conversation.has_login else "after greeting"), None
        waiting = self._conversation.waiting
        if waiting is not None:
            return self._step(waiting)
        return ("after statement", self._shown_sql()) if self._sql else ("after handshake", None)

    def _named(self, place: str, sql: str | None = None) -> dict[str, object]:
        return {"place": place, **({"sql": sql} if sql else {}), "connection": self._primary_number}

    def _place_in(self, dump: _RecordedDump) -> dict[str, object]:
        """The keys of the place behind what came last, perhaps inside of a packet."""
        begun = self._conversation.begun
        return dump.place_of_end(begun) if dump.has_begun or begun[0] else self._named("before dump")

    def _add(self, keys: dict[str, object], dump: _RecordedDump | None = None) -> None:
        if dump is None:
            self._recording.add_fault(keys)
        else:
            self._recording.add_fault(keys, dump=dump.number, replica=dump.server_id)

    def _tell(self, line: str) -> None:
        self._recording.tell(self._number, line)


class _RecordedDump:
    """One dump: where in it we are, and the group that is coming."""

    def __init__(self, recording: Recording, command: BinlogDump, start: GtidState | None) -> None:
        self.number = 0  # once an event came
        self.server_id = command.server_id
        self.is_non_blocking = bool(command.flags & DumpFlag.NON_BLOCKING)
        self._recording = recording
        self._start = start
        self._places = StreamPlaces()
        self._has_checksums = False
        self._begins_with_rotate = False
        self._place: tuple[Landmark, int, str | None] | None = None
        self._gtid: Gtid | None = None
        self._gtid_event = b""
        self._group: OpenGroup | None = None
        self._is_doubtful = False  # an event of the group has a wrong checksum
        self._held: tuple[OpenGroup, Gtid, bytes] | None = None  # such a group, until the next one comes
        self._large: _LargeEvent | None = None
        self._large_ends_group = False

    @property
    def has_begun(self) -> bool:
        """Whether an event came."""
        return self._place is not None

    def _count(self) -> None:
        if not self.number:
            self.number = self._recording.begin_dump(self.server_id)
            if self._start is not None and (gap := self._recording.expect_start(self._start)):
                self._recording.warn(f"dump {self.number}: {gap}")

    def take(self, piece: DumpPiece) -> bool:
        """Take a packet, or a piece of one; whether its checksum is wrong.

        Raises:
            EventError: it is no event.
        """
        self._count()
        if not piece.is_first:
            return self._take_more(piece)
        seen = self._places.look(piece.data)
        if seen.header is None:
            raise EventError(f"a packet of {len(piece.data)} bytes that is no event")
        self._note_place(seen)
        if not piece.is_last:
            self._large = _LargeEvent(seen.event, self._has_checksums)
            self._large_ends_group = seen.ends_group
            self._write(self._large.head())
            return False
        is_wrong = self._take_event(seen, seen.header)
        if seen.ends_group:
            self._end_group()
        return is_wrong

    def _take_event(self, seen: SeenPacket, header: EventHeader) -> bool:
        event = seen.event
        if header.event_type == EventType.FORMAT_DESCRIPTION:
            algorithm = event[-CHECKSUM_SIZE - 1]
            self._has_checksums = algorithm == ChecksumAlgorithm.CRC32 and has_valid_checksum(event)
            self._recording.know_primary(server_id=header.server_id)
            return False
        is_wrong = self._has_checksums and not has_valid_checksum(event)
        if header.event_type == EventType.HEARTBEAT:
            self._recording.is_live = True
            return is_wrong
        if header.flags & EventFlag.ARTIFICIAL or header.event_type in BETWEEN_GROUPS:
            if header.event_type == EventType.ROTATE and self._places.is_opening:
                self._begins_with_rotate = True
            if header.event_type == EventType.GTID_LIST and self._places.is_opening and self._start is None:
                self._start = GtidState(decode_gtid_list(self._plain(event)).gtids)
            return is_wrong
        plain = self._plain(event)
        if header.event_type == EventType.GTID:
            self._begin_group(header, event, plain)
        elif self._gtid is None:
            raise EventError(f"an event of type {header.event_type} outside of a group")
        else:
            self._write(event_without_secrets(plain))
        self._is_doubtful = self._is_doubtful or is_wrong
        return is_wrong

    def _plain(self, event: bytes) -> bytes:
        """An event as a log of `.ibb` files has it: without checksum and position."""
        size = len(event) - (CHECKSUM_SIZE if self._has_checksums else 0)
        header = decode_event_header(event)._replace(size=size, log_pos=0)
        return HEADER.pack(*header) + event[EVENT_HEADER_SIZE:size]

    def _begin_group(self, header: EventHeader, event: bytes, plain: bytes) -> None:
        if self._held is not None:  # the consumer goes on: it has taken it
            self._recording.commit(*self._held)
            self._held = None
        if self._group is not None:  # it has no end: it is left out
            self._group.roll_back()
        gtid, _ = decode_gtid(header, event)
        shape = "classic" if header.log_pos else "compat" if self._begins_with_rotate else "engine"
        self._recording.know_primary(shape=shape)
        if self._start is None:  # by file and position: what was before is as good as it can be told
            before = [] if gtid.seq_no <= 1 else [replace(gtid, seq_no=gtid.seq_no - 1)]
            self._start = GtidState(before)
        self._gtid, self._gtid_event, self._is_doubtful = gtid, plain, False
        self._group = self._recording.open_group(gtid, self._start)

    def _write(self, data: bytes) -> None:
        if self._group is not None and data:
            try:
                self._group.write(data)
            except (IbbMasterError, OSError) as error:
                self._recording.fail(error)

    def _end_group(self) -> None:
        if self._group is not None and self._gtid is not None:
            whole = (self._group, self._gtid, self._gtid_event)
            if self._is_doubtful:
                self._held = whole
            else:
                self._recording.commit(*whole)
        self._group = self._gtid = None
        self._places.end_group()

    def _take_more(self, piece: DumpPiece) -> bool:
        assert self._large is not None
        self._write(self._large.take(piece.data))
        if not piece.is_last:
            return False
        is_wrong = self._large.is_wrong
        self._is_doubtful = self._is_doubtful or is_wrong
        self._large = None
        if self._large_ends_group:
            self._end_group()
        return is_wrong

    def drop(self) -> None:
        """The dump has ended: what has not come whole is not logged."""
        for group in (self._group, self._held and self._held[0]):
            if group:
                group.roll_back()
        self._group = self._held = self._gtid = None

    # Places --------------------------------------------------------------------------------------

    def _note_place(self, seen: SeenPacket) -> None:
        landmark, gtid = seen.landmarks[0], self._places.gtid
        if gtid is None and landmark not in (*_OPENING, Landmark.HEARTBEAT) and self._place is not None:
            return  # files end where they do, in a replay elsewhere
        counts = self._places.in_dump if gtid is None else self._places.in_group
        self._place = landmark, counts[landmark], gtid

    def place(self, side: str = "after") -> dict[str, object]:
        """The keys of the place behind what came last, or at it."""
        assert self._place is not None
        landmark, count, gtid = self._place
        number = "" if landmark in (*_IN_GROUP_ONCE, *_OPENING) else f" {count}"
        name = f"{side} {landmark.value}{number}"
        return {"place": name, "connection": self.number} if gtid is None else {"place": name, "gtid": gtid}

    def place_of_end(self, begun: tuple[int, int, bytes]) -> dict[str, object]:
        """The keys of the place where the stream breaks off, perhaps inside of a packet."""
        self._count()
        raw_size, size, data = begun
        if not raw_size:
            return self.place()
        prefix = 3 if data.startswith(b"\x00\xef") else 1
        if self._large is None and (len(data) < prefix + TYPE_END or self._places.gtid is None):
            number = self._places.in_dump[Landmark.PACKET] + 1
            return {"place": f"inside packet {number} at byte {raw_size}", "connection": self.number}
        number = self._places.in_group[Landmark.EVENT] + (self._large is None)
        gtid = self._places.gtid
        return {"place": f"inside event {number} at byte {size - prefix}", "gtid": gtid}


class _LargeEvent:
    """An event that comes in pieces, on its way to the log."""

    def __init__(self, first: bytes, has_checksum: bool) -> None:
        self._has_checksum = has_checksum
        self._first = first
        self._checksum = 0
        self._tail = b""

    def head(self) -> bytes:
        """Its first bytes, as the log has them."""
        header = decode_event_header(self._first)
        size = header.size - (CHECKSUM_SIZE if self._has_checksum else 0)
        changed = HEADER.pack(*header._replace(size=size, log_pos=0))
        self._checksum = zlib.crc32(self._first[:EVENT_HEADER_SIZE])
        return changed + self.take(self._first[EVENT_HEADER_SIZE:])

    def take(self, data: bytes) -> bytes:
        """The next bytes; gives those that the log has: the checksum, which comes last, is held back."""
        if not self._has_checksum:
            return data
        data = self._tail + data
        data, self._tail = data[:-CHECKSUM_SIZE], data[-CHECKSUM_SIZE:]
        self._checksum = zlib.crc32(data, self._checksum)
        return data

    @property
    def is_wrong(self) -> bool:
        """Whether its checksum is wrong, once all of it has come."""
        return self._has_checksum and int.from_bytes(self._tail, "little") != self._checksum
