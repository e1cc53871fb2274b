"""Commands of a client. Layout: protocol/wire/commands.md."""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass, field
from typing import TypeAlias

from ibbmaster.codec.buffer import Buffer
from ibbmaster.wire.response import Err

_REGISTER_TAIL = struct.Struct("<HII")  # port, rank, server id of the primary
_DUMP = struct.Struct("<IHI")  # position, flags, server id; the file name follows
_EXECUTE = struct.Struct("<IBI")  # statement, flags, how often; parameters follow
_LONG_DATA = struct.Struct("<IH")  # statement, parameter; data follow
_FETCH = struct.Struct("<II")  # statement, rows
NEWEST_STATEMENT = 0xFFFFFFFF
NUMBER_SIZE = 4
OPTION_SIZE = 2
UNKNOWN_COMMAND = Err(code=1047, sqlstate="08S01", text="Unknown command")
MALFORMED_PACKET = Err(code=1835, sqlstate="HY000", text="Malformed communication packet")


class Command(enum.IntEnum):
    """First byte of a command; those not listed are answered alike. Source: MariaDB 12.3, mysql_com.h,
    enum_server_command."""

    QUIT = 0x01
    INIT_DB = 0x02
    QUERY = 0x03
    STATISTICS = 0x09
    PROCESS_KILL = 0x0C
    PING = 0x0E
    BINLOG_DUMP = 0x12
    REGISTER_REPLICA = 0x15  # COM_REGISTER_SLAVE
    STATEMENT_PREPARE = 0x16
    STATEMENT_EXECUTE = 0x17
    STATEMENT_LONG_DATA = 0x18  # no answer, whatever it holds
    STATEMENT_CLOSE = 0x19  # no answer
    STATEMENT_RESET = 0x1A
    SET_OPTION = 0x1B
    STATEMENT_FETCH = 0x1C
    BINLOG_DUMP_GTID = 0x1E  # MySQL's; MariaDB does not know it
    RESET_CONNECTION = 0x1F


_STATEMENT_SIZES = {  # bytes before what varies, of commands about a prepared statement
    **dict.fromkeys((Command.STATEMENT_CLOSE, Command.STATEMENT_RESET), NUMBER_SIZE),
    Command.STATEMENT_EXECUTE: _EXECUTE.size,
    Command.STATEMENT_LONG_DATA: _LONG_DATA.size,
    Command.STATEMENT_FETCH: _FETCH.size,
}


class DumpFlag(enum.IntFlag):
    """Flags of COM_BINLOG_DUMP; others mean nothing."""

    NON_BLOCKING = 0x0001  # end with EOF when all is sent
    SEND_ANNOTATE_ROWS = 0x0002


@dataclass(frozen=True, slots=True)
class Quit:
    """The client leaves; there is no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InitDb:
    """Choose a default database."""

    database: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryCommand:
    """An SQL text, in the bytes the client sent."""

    sql: bytes


@dataclass(frozen=True, slots=True)
class Statistics:
    """Ask for one line about the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessKill:
    """End another connection."""

    connection_id: int


@dataclass(frozen=True, slots=True)
class Ping:
    """Ask whether the server is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogDump:
    """Ask for the stream of events."""

    position: int
    flags: int
    server_id: int
    file_name: str  # up to the first NUL


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterReplica:
    """Say to the primary who the replica is; only SHOW SLAVE HOSTS uses it."""

    server_id: int
    host: str
    user: str
    password: str = field(repr=False)
    port: int
    rank: int = 0
    primary_id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOption:
    """Switch several statements in one text on (0) or off (1)."""

    option: int


@dataclass(frozen=True, slots=True)
class ResetConnection:
    """Begin a new session on the same connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementPrepare:
    """Read a statement now, and carry it out later, perhaps often."""

    sql: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementExecute:
    """Carry out a prepared statement; `parameters` are read with what is known of it. `statement_id` `NEWEST_STATEMENT`
    is the one that was prepared last."""

    statement_id: int
    flags: int  # a kind of cursor: rows are sent at once all the same
    parameters: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementLongData:
    """A piece of one parameter, sent before the statement is carried out."""

    statement_id: int
    parameter_no: int
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementClose:
    """Forget a prepared statement."""

    statement_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementReset:
    """Forget the pieces of its parameters."""

    statement_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementFetch:
    """More rows of a cursor; there are none."""

    statement_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsupportedCommand:
    """A command this server does not have; `answer` is what MariaDB says to one it does not know."""

    code: int
    answer: Err = UNKNOWN_COMMAND


@dataclass(frozen=True, slots=True, kw_only=True)
class MalformedCommand:
    """A known command whose bytes are too few, or too many; send `answer` and continue."""

    code: int
    answer: Err


_OfStatements: TypeAlias = StatementPrepare | StatementExecute | StatementLongData | StatementClose | StatementReset
_OfSessions: TypeAlias = Quit | InitDb | QueryCommand | Statistics | ProcessKill | Ping | SetOption | ResetConnection
_Others: TypeAlias = StatementFetch | BinlogDump | RegisterReplica | UnsupportedCommand | MalformedCommand
AnyCommand: TypeAlias = _OfSessions | _OfStatements | _Others


def decode_command(payload: Buffer) -> AnyCommand:
    """What a client asks for. Any bytes give a value: see UnsupportedCommand and MalformedCommand. Source: MariaDB
    12.3, sql_parse.cc, dispatch_command(); repl_failsafe.cc, register_slave()."""
    code = payload[0] if len(payload) else 0
    body = bytes(payload[1:])
    match code:
        case Command.QUIT:
            return Quit()
        case Command.INIT_DB:
            return InitDb(database=_text(body))
        case Command.QUERY:
            return QueryCommand(sql=body)
        case Command.STATISTICS:
            return Statistics()
        case Command.PROCESS_KILL:
            if len(body) < NUMBER_SIZE:
                return MalformedCommand(code=code, answer=MALFORMED_PACKET)
            return ProcessKill(connection_id=int.from_bytes(body[:NUMBER_SIZE], "little"))
        case Command.PING:
            return Ping()
        case Command.BINLOG_DUMP:
            return _decode_binlog_dump(body)
        case Command.REGISTER_REPLICA:
            return _decode_register_replica(body)
        case Command.SET_OPTION:
            if len(body) != OPTION_SIZE:
                return MalformedCommand(code=code, answer=MALFORMED_PACKET)
            return SetOption(option=int.from_bytes(body, "little"))
        case Command.RESET_CONNECTION:
            return ResetConnection()
        case Command.STATEMENT_PREPARE:
            return StatementPrepare(sql=body)
        case _ if code in _STATEMENT_SIZES:
            return _decode_statement(Command(code), body)
        case _:
            return UnsupportedCommand(code=code)


def _decode_statement(code: Command, body: bytes) -> AnyCommand:
    """A command about a prepared statement, whose number comes first."""
    if len(body) < _STATEMENT_SIZES[code]:
        if code in (Command.STATEMENT_LONG_DATA, Command.STATEMENT_CLOSE):  # without an answer, as always
            return StatementClose(statement_id=0)
        return MalformedCommand(code=code, answer=MALFORMED_PACKET)
    statement_id = int.from_bytes(body[:NUMBER_SIZE], "little")
    match code:
        case Command.STATEMENT_EXECUTE:
            _, flags, _ = _EXECUTE.unpack_from(body)
            return StatementExecute(statement_id=statement_id, flags=flags, parameters=body[_EXECUTE.size :])
        case Command.STATEMENT_LONG_DATA:
            _, parameter_no = _LONG_DATA.unpack_from(body)
            return StatementLongData(statement_id=statement_id, parameter_no=parameter_no, data=body[_LONG_DATA.size :])
        case Command.STATEMENT_CLOSE:
            return StatementClose(statement_id=statement_id)
        case Command.STATEMENT_RESET:
            return StatementReset(statement_id=statement_id)
        case _:
            return StatementFetch(statement_id=statement_id)


def _decode_binlog_dump(body: bytes) -> BinlogDump | MalformedCommand:
    if len(body) < _DUMP.size:
        return MalformedCommand(code=Command.BINLOG_DUMP, answer=MALFORMED_PACKET)
    position, flags, server_id = _DUMP.unpack_from(body)
    file_name = body[_DUMP.size :].partition(b"\x00")[0]  # one client pads its empty name with NULs
    return BinlogDump(position=position, flags=flags, server_id=server_id, file_name=_text(file_name))


def _decode_register_replica(body: bytes) -> RegisterReplica | MalformedCommand:
    if len(body) < NUMBER_SIZE:
        return MalformedCommand(code=Command.REGISTER_REPLICA, answer=MALFORMED_PACKET)
    offset = NUMBER_SIZE
    texts = []
    for name in ("report-host", "report-user", "report-password"):
        size = body[offset] if offset < len(body) else 0
        end = offset + 1 + size
        if end > len(body):
            answer = Err(code=1105, sqlstate="HY000", text=f"Failed to register slave: too long '{name}'")
            return MalformedCommand(code=Command.REGISTER_REPLICA, answer=answer)
        texts.append(_text(body[offset + 1 : end]))
        offset = end
    if len(body) - offset < _REGISTER_TAIL.size:
        return MalformedCommand(code=Command.REGISTER_REPLICA, answer=MALFORMED_PACKET)
    port, rank, primary_id = _REGISTER_TAIL.unpack_from(body, offset)
    host, user, password = texts
    return RegisterReplica(
        server_id=int.from_bytes(body[:NUMBER_SIZE], "little"),
        host=host,
        user=user,
        password=password,
        port=port,
        rank=rank,
        primary_id=primary_id,
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
