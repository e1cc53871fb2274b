"""Commands of a client. Layout: protocol/wire/commands.md."""

import enum
import struct
from dataclasses import dataclass, field
from typing import TypeAlias

from ibbmaster.storage.codec.buffer import Buffer
from .response import Err

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
    """First byte of a command; all others get one answer. Source: MariaDB 12.3, mysql_com.h, enum_server_command."""

    QUIT = 0x01
    INIT_DB = 0x02
    QUERY = 0x03
    SHUTDOWN = 0x08
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


_SIZES_MIN: dict[int, int] = {  # bytes before the variable part of a command
    Command.PROCESS_KILL: NUMBER_SIZE,
    Command.BINLOG_DUMP: _DUMP.size,
    Command.REGISTER_REPLICA: NUMBER_SIZE,
    Command.STATEMENT_CLOSE: NUMBER_SIZE,
    Command.STATEMENT_RESET: NUMBER_SIZE,
    Command.STATEMENT_EXECUTE: _EXECUTE.size,
    Command.STATEMENT_LONG_DATA: _LONG_DATA.size,
    Command.STATEMENT_FETCH: _FETCH.size,
}
_UNANSWERED = (Command.STATEMENT_LONG_DATA, Command.STATEMENT_CLOSE)


class DumpFlag(enum.IntFlag):
    """Others mean nothing."""

    NON_BLOCKING = 0x0001  # end with EOF when all is sent
    SEND_ANNOTATE_ROWS = 0x0002


@dataclass(frozen=True, slots=True)
class Quit:
    """No answer is awaited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InitDb:
    database: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryCommand:
    sql: bytes


@dataclass(frozen=True, slots=True)
class Statistics:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessKill:
    """End another connection."""

    connection_id: int


@dataclass(frozen=True, slots=True)
class Ping:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogDump:
    position: int
    flags: int
    server_id: int
    file_name: str  # up to the first NUL


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterReplica:
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
    """A new session on the same connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementPrepare:
    sql: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementExecute:
    """The statement's types say how to read `parameters`; `NEWEST_STATEMENT` means the one prepared last."""

    statement_id: int
    flags: int  # a kind of cursor: rows are sent at once all the same
    parameters: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementLongData:
    statement_id: int
    parameter_no: int
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfPrepared:
    statement_id: int


class StatementClose(_OfPrepared):
    pass


class StatementReset(_OfPrepared):
    pass


class StatementFetch(_OfPrepared):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsupportedCommand:
    """`answer` is MariaDB's to unknown ones."""

    code: int
    answer: Err = UNKNOWN_COMMAND


@dataclass(frozen=True, slots=True, kw_only=True)
class MalformedCommand:
    """Too few or too many bytes of a known command; send `answer` and continue."""

    code: int
    answer: Err = MALFORMED_PACKET


_OfStatements: TypeAlias = StatementPrepare | StatementExecute | StatementLongData | StatementClose | StatementReset
_OfSessions: TypeAlias = Quit | InitDb | QueryCommand | Statistics | ProcessKill | Ping | SetOption | ResetConnection
_Others: TypeAlias = StatementFetch | BinlogDump | RegisterReplica | UnsupportedCommand | MalformedCommand
AnyCommand: TypeAlias = _OfSessions | _OfStatements | _Others


_ALONE: dict[int, AnyCommand] = {
    Command.QUIT: Quit(),
    Command.SHUTDOWN: QueryCommand(sql=b"SHUTDOWN"),
    Command.STATISTICS: Statistics(),
    Command.PING: Ping(),
    Command.RESET_CONNECTION: ResetConnection(),
}


def decode_command(payload: Buffer) -> AnyCommand:
    """Of any bytes. Source: MariaDB 12.3, sql_parse.cc, dispatch_command(); repl_failsafe.cc, register_slave()."""
    code = payload[0] if len(payload) else 0
    body = bytes(payload[1:])
    if code == Command.QUERY:
        return QueryCommand(sql=body)
    if code in _ALONE:
        return _ALONE[code]
    if len(body) < _SIZES_MIN.get(code, 0):
        return StatementClose(statement_id=0) if code in _UNANSWERED else MalformedCommand(code=code)
    number = int.from_bytes(body[:NUMBER_SIZE], "little")
    match code:
        case Command.INIT_DB:
            return InitDb(database=_text(body))
        case Command.PROCESS_KILL:
            return ProcessKill(connection_id=number)
        case Command.BINLOG_DUMP:
            position, flags, server_id = _DUMP.unpack_from(body)
            file_name = body[_DUMP.size :].partition(b"\x00")[0]  # one client pads its empty name with NULs
            return BinlogDump(position=position, flags=flags, server_id=server_id, file_name=_text(file_name))
        case Command.REGISTER_REPLICA:
            return _decode_register_replica(body)
        case Command.SET_OPTION:
            return SetOption(option=number) if len(body) == OPTION_SIZE else MalformedCommand(code=code)
        case Command.STATEMENT_PREPARE:
            return StatementPrepare(sql=body)
        case Command.STATEMENT_EXECUTE:
            _, flags, _ = _EXECUTE.unpack_from(body)
            return StatementExecute(statement_id=number, flags=flags, parameters=body[_EXECUTE.size :])
        case Command.STATEMENT_LONG_DATA:
            _, parameter_no = _LONG_DATA.unpack_from(body)
            return StatementLongData(statement_id=number, parameter_no=parameter_no, data=body[_LONG_DATA.size :])
        case Command.STATEMENT_CLOSE:
            return StatementClose(statement_id=number)
        case Command.STATEMENT_RESET:
            return StatementReset(statement_id=number)
        case Command.STATEMENT_FETCH:
            return StatementFetch(statement_id=number)
        case _:
            return UnsupportedCommand(code=code)


def _decode_register_replica(body: bytes) -> RegisterReplica | MalformedCommand:
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
        return MalformedCommand(code=Command.REGISTER_REPLICA)
    port, rank, primary_id = _REGISTER_TAIL.unpack_from(body, offset)
    server_id, (host, user, password) = int.from_bytes(body[:NUMBER_SIZE], "little"), texts
    return RegisterReplica(
        server_id=server_id, host=host, user=user, password=password, port=port, rank=rank, primary_id=primary_id
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
