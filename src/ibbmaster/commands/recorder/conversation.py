"""What both ends of a connection say, read from its packets by a relay between them. No clock, no socket.

Memory is bounded whatever comes: of an oversized packet only the beginning is kept, and events come in pieces. Of a
login only the user's name is kept.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from ibbmaster.errors import GtidError, RemoteProtocolError
from ibbmaster.gtid import GtidPosition
from ibbmaster.replication.wire.capability import Capability, StatusFlag
from ibbmaster.replication.wire.command import AnyCommand, BinlogDump, Command, Quit, decode_command
from ibbmaster.replication.wire.handshake import (
    PROTOCOL_VERSION,
    SEED_FIRST_SIZE,
    LoginRequest,
    decode_greeting,
    decode_login,
)
from ibbmaster.replication.wire.packet import PACKET_HEADER_SIZE, PACKET_PAYLOAD_MAX
from ibbmaster.replication.wire.response import EOF_MARK, ERR_MARK, OK_MARK, Eof, Err, decode_err, decode_ok, is_eof

PIECE_MAX = 4 << 20  # bytes of an event that are handed over at once
COMMAND_MAX = 64 << 10  # bytes of a command that are kept
ANSWER_MAX = 4 << 10  # bytes of a packet of an answer that are kept
GREETING_MAX = 64 << 10  # bytes that are held until they are a greeting
PROGRESS_CODE = 0xFFFF  # an ERR of this code is no error
LOCAL_FILE_MARK = 0xFB
COM_FIELD_LIST = 0x04
COM_CHANGE_USER = 0x11
#: Taken away from a greeting: after any of these a relay could read no further.
TAKEN_AWAY = Capability.TLS | Capability.COMPRESS | Capability.ZSTD_COMPRESS
CONNECT_STATE = re.compile(rb"@slave_connect_state\s*=\s*['\"]([0-9,\s-]*)['\"]", re.I)
_NO_ANSWER = (Command.QUIT, Command.STATEMENT_CLOSE, Command.STATEMENT_LONG_DATA)
_QUIT_PACKET = bytes((1, 0, 0, 0, Command.QUIT))


class Phase(enum.Enum):
    """How far a connection is."""

    GREETING = "the primary greets first"
    LOGIN = "the client says who it is"
    COMMANDS = "the client asks, and is answered"
    DUMP = "events come"
    UNREAD = "bytes pass unread"


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeted:
    server_version: str
    connection_id: int
    offered_tls: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    err: Err | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    command: AnyCommand


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    command: AnyCommand
    err: Err | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpPiece:
    data: bytes = field(repr=False)
    is_first: bool
    is_last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpEnded:
    word: Err | Eof


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedUnread:
    reason: str


ConversationPart: TypeAlias = Greeted | Named | Admitted | Asked | Answered | DumpPiece | DumpEnded | PassedUnread


class _Payload(NamedTuple):
    data: bytes  # of a large one the beginning, or the next piece
    size: int  # of all of it, so far
    sequence: int
    is_first: bool = True
    is_last: bool = True


class _Cutter:
    """Cuts one direction into payloads, whatever their numbers, and keeps at most `limit` bytes of each. A larger
    payload comes in several pieces if `in_pieces`, else its rest is forgotten."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.in_pieces = False
        self._header = bytearray()
        self._data = bytearray()
        self._left = 0  # bytes missing in the current packet
        self._size = 0  # of the current payload, so far
        self._raw_size = 0  # with the headers of its packets
        self._continues = False  # the last packet was a full one
        self._is_first = True

    def take(self, data: bytes) -> Iterator[_Payload]:
        view, offset = memoryview(data), 0
        while offset < len(view):
            if not self._left:
                taken = view[offset : offset + PACKET_HEADER_SIZE - len(self._header)]
                self._header += taken
                offset += len(taken)
                self._raw_size += len(taken)
                if len(self._header) < PACKET_HEADER_SIZE:
                    return
                self._left = int.from_bytes(self._header[:3], "little")
                self._continues = self._left == PACKET_PAYLOAD_MAX
                if self._left:
                    continue
            piece = view[offset : offset + self._left]
            offset += len(piece)
            self._left -= len(piece)
            self._size += len(piece)
            self._raw_size += len(piece)
            while piece:
                room = self.limit - len(self._data)
                if not room and not self.in_pieces:
                    break
                if not room:
                    yield self._hand_over(is_last=False)
                    continue
                self._data += piece[:room]
                piece = piece[room:]
            is_last = not self._left and not self._continues
            payload = self._hand_over(is_last=True) if is_last else None
            if is_last:
                self._size, self._raw_size, self._is_first = 0, 0, True
            if not self._left:
                self._header.clear()
            if payload is not None:
                yield payload

    def _hand_over(self, *, is_last: bool) -> _Payload:
        sequence = self._header[3]
        payload = _Payload(bytes(self._data), self._size, sequence, self._is_first, is_last)
        self._data.clear()
        self._is_first = False
        return payload

    @property
    def begun(self) -> tuple[int, int, bytes]:
        """Of an incomplete payload: the bytes that came, headers included; those of the payload; the kept ones."""
        return self._raw_size, self._size, bytes(self._data)


class Conversation:
    """One connection, read from both sides; each call yields what its bytes, cut anywhere, complete."""

    def __init__(self) -> None:
        self.phase = Phase.GREETING
        self._from_primary = _Cutter(ANSWER_MAX)
        self._from_client = _Cutter(COMMAND_MAX)
        self.capabilities = Capability(0)  # of the client, once it has named its user
        self.asked: AnyCommand | None = None  # what waits for its answer
        self._answer = _Answer()
        self._has_logged_in = False

    @property
    def begun(self) -> tuple[int, int, bytes]:
        """Of an incomplete packet of the primary: its bytes so far, those of its payload, the kept ones."""
        return self._from_primary.begun

    def from_primary(self, data: bytes) -> Iterator[ConversationPart]:
        if self.phase is Phase.UNREAD:
            return
        for payload in self._from_primary.take(data):
            yield from self._heard_primary(payload)

    def from_client(self, data: bytes) -> Iterator[ConversationPart]:
        if self.phase is Phase.DUMP:  # acknowledgements, or that it leaves
            if data.endswith(_QUIT_PACKET):
                yield Asked(command=Quit())
            return
        if self.phase is Phase.UNREAD:
            return
        for payload in self._from_client.take(data):
            yield from self._heard_client(payload)
            if self.phase in (Phase.UNREAD, Phase.DUMP):
                return

    def _heard_primary(self, payload: _Payload) -> Iterator[ConversationPart]:
        data = payload.data
        mark = data[0] if data and payload.is_first else -1
        err = decode_err(data) if mark == ERR_MARK and len(data) >= 3 else None
        match self.phase:
            case Phase.GREETING if err is not None:
                yield Admitted(err=err)
            case Phase.GREETING:
                try:
                    greeting = decode_greeting(data)
                except RemoteProtocolError as error:
                    yield self._give_up(str(error))
                    return
                self.phase = Phase.LOGIN
                yield Greeted(
                    server_version=greeting.server_version,
                    connection_id=greeting.connection_id,
                    offered_tls=bool(greeting.capabilities & Capability.TLS),
                )
            case Phase.LOGIN if mark == OK_MARK or err is not None:
                self.phase, self._has_logged_in = Phase.COMMANDS, True
                yield Admitted(err=err)
            case Phase.COMMANDS if self.asked is not None:
                if err is not None and err.code == PROGRESS_CODE:
                    return
                if err is not None or self._answer.takes(payload):
                    answered, self.asked = self.asked, None
                    yield Answered(command=answered, err=err)
            case Phase.DUMP if err is not None and payload.is_last:
                self._end_dump()
                yield DumpEnded(word=err)
            case Phase.DUMP if is_eof(data) and payload.is_first and payload.is_last:
                self._end_dump()
                yield DumpEnded(word=Eof())
            case Phase.DUMP:
                yield DumpPiece(data=data, is_first=payload.is_first, is_last=payload.is_last)

    def _end_dump(self) -> None:
        self.phase, self.asked = Phase.COMMANDS, None
        self._from_primary.limit, self._from_primary.in_pieces = ANSWER_MAX, False

    def _heard_client(self, payload: _Payload) -> Iterator[ConversationPart]:
        if self.phase is Phase.GREETING:
            yield self._give_up("the client speaks before it is greeted")
        elif self.phase is Phase.LOGIN and not self._has_logged_in and not self.capabilities:
            try:
                login = decode_login(payload.data)
            except RemoteProtocolError as error:
                yield self._give_up(str(error))
                return
            self.capabilities = login.capabilities
            if login.capabilities & TAKEN_AWAY or not isinstance(login, LoginRequest):
                yield self._give_up("the client begins TLS or compression, which were not offered")
                return
            yield Named(user=login.user)
        elif self.phase is Phase.COMMANDS and payload.sequence == 0 and payload.data:
            code = payload.data[0]
            if code == COM_CHANGE_USER:
                self.phase = Phase.LOGIN  # nothing of it is kept
                return
            command = decode_command(payload.data)
            if code not in _NO_ANSWER:
                self.asked = command
                self._answer = _Answer(code, deprecates_eof=bool(self.capabilities & Capability.DEPRECATE_EOF))
            if isinstance(command, BinlogDump):
                self.phase = Phase.DUMP
                self._from_primary.limit, self._from_primary.in_pieces = PIECE_MAX, True
            yield Asked(command=command)

    def _give_up(self, reason: str) -> PassedUnread:
        self.phase = Phase.UNREAD
        self._from_primary, self._from_client = _Cutter(0), _Cutter(0)
        return PassedUnread(reason=reason)


class _Answer:
    def __init__(self, code: int = Command.QUERY, *, deprecates_eof: bool = False) -> None:
        self._code = code
        self._eofs = 1 if deprecates_eof or code == COM_FIELD_LIST else 2  # of a result
        self._seen_eofs = 0
        self._is_result = code == COM_FIELD_LIST
        self._definitions = -1  # of a prepared statement that are still to come
        self._deprecates_eof = deprecates_eof

    def takes(self, payload: _Payload) -> bool:
        """Take a packet that is no error; whether it was the last."""
        data = payload.data
        if self._code == Command.STATEMENT_PREPARE:
            return self._takes_definition(data)
        if self._code not in (Command.QUERY, Command.STATEMENT_EXECUTE, COM_FIELD_LIST):
            return True
        if not self._is_result:
            if data[:1] == bytes((LOCAL_FILE_MARK,)):
                return False  # the file comes next, and then the answer
            self._is_result = data[:1] != bytes((OK_MARK,))
            return not self._is_result and not _has_more(data)
        is_end = is_eof(data) or (self._deprecates_eof and data[:1] == bytes((EOF_MARK,)))
        if not is_end or payload.size >= PACKET_PAYLOAD_MAX:
            return False
        self._seen_eofs += 1
        if self._seen_eofs < self._eofs:
            return False
        status = int.from_bytes(data[3:5], "little")  # of an EOF
        has_more = _has_more(data) if self._deprecates_eof else bool(status & StatusFlag.MORE_RESULTS)
        self._is_result, self._seen_eofs = False, 0
        return not has_more

    def _takes_definition(self, data: bytes) -> bool:
        if self._definitions < 0:
            columns, parameters = int.from_bytes(data[5:7], "little"), int.from_bytes(data[7:9], "little")
            eofs = 0 if self._deprecates_eof else (columns > 0) + (parameters > 0)
            self._definitions = columns + parameters + eofs
        else:
            self._definitions -= 1
        return not self._definitions


def _has_more(data: bytes) -> bool:
    try:
        return bool(decode_ok(bytes((OK_MARK,)) + data[1:]).status & StatusFlag.MORE_RESULTS)
    except RemoteProtocolError:
        return False


def asked_position(sql: bytes) -> GtidPosition | None:
    found = CONNECT_STATE.search(sql)
    try:
        return None if found is None else GtidPosition.parse(found[1].decode())
    except GtidError:
        return None


class GreetingEditor:
    """Holds the greeting of a primary until it is whole, and changes it."""

    def __init__(self) -> None:
        self._held: bytearray | None = bytearray()

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        """Bytes as they came, and as they are to be sent on; empty until the greeting is whole."""
        if self._held is None:
            return data, data
        self._held += data
        size = PACKET_HEADER_SIZE + int.from_bytes(self._held[:3], "little")
        if (len(self._held) < PACKET_HEADER_SIZE or len(self._held) < size) and size <= GREETING_MAX:
            return b"", b""
        came, self._held = bytes(self._held), None
        return came, greeting_in_clear(came[:size]) + came[size:]


def greeting_in_clear(frame: bytes) -> bytes:
    """A greeting packet without TLS and compression; anything else unchanged."""
    version_end = frame.find(b"\0", PACKET_HEADER_SIZE + 1)
    low = version_end + 1 + 4 + SEED_FIRST_SIZE + 1  # after version, connection id and half the seed
    high = low + 5
    is_greeting = frame[PACKET_HEADER_SIZE : PACKET_HEADER_SIZE + 1] == bytes((PROTOCOL_VERSION,))
    if not is_greeting or version_end < 0 or len(frame) < high + 2:
        return frame
    changed = bytearray(frame)
    for offset, bits in ((low, TAKEN_AWAY & 0xFFFF), (high, TAKEN_AWAY >> 16)):
        value = int.from_bytes(changed[offset : offset + 2], "little") & ~int(bits) & 0xFFFF
        changed[offset : offset + 2] = value.to_bytes(2, "little")
    return bytes(changed)
