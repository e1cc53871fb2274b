"""Commands: recorded ones, short ones, and those nobody knows."""

import random
from typing import Any

import pytest

from ibbmaster.replication.wire.command import (
    MALFORMED_PACKET,
    UNKNOWN_COMMAND,
    AnyCommand,
    BinlogDump,
    Command,
    DumpFlag,
    InitDb,
    MalformedCommand,
    Ping,
    ProcessKill,
    QueryCommand,
    Quit,
    RegisterReplica,
    ResetConnection,
    SetOption,
    StatementClose,
    StatementExecute,
    StatementFetch,
    StatementLongData,
    StatementPrepare,
    StatementReset,
    Statistics,
    UnsupportedCommand,
    decode_command,
)
from ibbmaster.replication.wire.response import Err
from tests.machinery.client_wire import encode_command

REGISTER = bytes.fromhex("15 02000000 04 72657032 00 00 ea0c 00000000 00000000")  # dump-protocol, 20.1
DUMP = bytes.fromhex("12 04000000 0200 02000000")

CASES: dict[str, tuple[AnyCommand, bytes]] = {
    "quit": (Quit(), b"\x01"),
    "a database": (InitDb(database="nothere"), b"\x02nothere"),  # raw_misc
    "a query": (QueryCommand(sql=b"SELECT UNIX_TIMESTAMP()"), b"\x03SELECT UNIX_TIMESTAMP()"),
    "statistics": (Statistics(), b"\x09"),
    "kill": (ProcessKill(connection_id=999), bytes.fromhex("0c e7030000")),
    "ping": (Ping(), b"\x0e"),
    "a dump by GTID": (BinlogDump(position=4, flags=DumpFlag.SEND_ANNOTATE_ROWS, server_id=2, file_name=""), DUMP),
    "a dump of a file": (
        BinlogDump(position=4, flags=DumpFlag.NON_BLOCKING, server_id=1001, file_name="binlog.000001"),
        bytes.fromhex("12 04000000 0100 e9030000") + b"binlog.000001",  # raw_misc
    ),
    "a registration": (RegisterReplica(server_id=2, host="rep2", user="", password="", port=3306), REGISTER),
    "an option": (SetOption(option=0), bytes.fromhex("1b 0000")),
    "a reset": (ResetConnection(), b"\x1f"),
    "a statement to prepare": (StatementPrepare(sql=b"SELECT ?"), b"\x16SELECT ?"),
    "a prepared statement": (
        StatementExecute(statement_id=1, flags=0, parameters=bytes.fromhex("00 01 0300 07000000")),
        bytes.fromhex("17 01000000 00 01000000 00 01 0300 07000000"),
    ),
    "a piece of a parameter": (
        StatementLongData(statement_id=1, parameter_no=2, data=b"abc"),
        bytes.fromhex("18 01000000 0200") + b"abc",
    ),
    "a statement to forget": (StatementClose(statement_id=1), bytes.fromhex("19 01000000")),
    "pieces to forget": (StatementReset(statement_id=1), bytes.fromhex("1a 01000000")),
    "rows of a cursor": (StatementFetch(statement_id=1), bytes.fromhex("1c 01000000 01000000")),
    "something unknown": (UnsupportedCommand(code=0x60), b"\x60"),
}


SHORT = (
    *(Command.PROCESS_KILL, Command.BINLOG_DUMP, Command.REGISTER_REPLICA, Command.SET_OPTION),
    *(Command.STATEMENT_EXECUTE, Command.STATEMENT_RESET, Command.STATEMENT_FETCH),
)


@pytest.mark.parametrize(("command", "payload"), CASES.values(), ids=CASES)
def test_a_command_decodes_and_encodes(command: AnyCommand, payload: bytes) -> None:
    assert decode_command(payload) == command
    assert encode_command(command) == payload


def test_recorded_commands_decode_to_what_the_recorder_saw(conversation: Any) -> None:
    for exchange in conversation.exchanges:
        packet = exchange.command
        if not packet.is_whole or packet.payload.startswith(b"\xef"):  # an acknowledgement of semi-sync
            continue
        match decode_command(packet.payload):
            case QueryCommand(sql=sql):
                assert packet.meaning == f"COM_QUERY {sql.decode()!r}"
            case BinlogDump() as dump:
                name = f"file={dump.file_name!r}"
                fields = f"pos={dump.position} flags={dump.flags} server_id={dump.server_id}"
                assert packet.meaning.rstrip("\\x0'") == f"COM_BINLOG_DUMP {fields} {name}".rstrip("'")
            case RegisterReplica() as replica:
                texts = f"host={replica.host!r} user={replica.user!r} password={replica.password!r}"
                numbers = f"port={replica.port} rank={replica.rank} master_id={replica.primary_id}"
                assert packet.meaning == f"COM_REGISTER_SLAVE server_id={replica.server_id} {texts} {numbers}"
            case Quit() | Ping() | Statistics() | ResetConnection() | InitDb() | SetOption() as command:
                assert encode_command(command) == packet.payload
            case UnsupportedCommand(code=code):
                assert code in (0x16, 0x19, Command.BINLOG_DUMP_GTID, 0x60)
            case MalformedCommand():
                assert packet.meaning.startswith("undecoded")
            case ProcessKill():
                pytest.fail("no recorded client sends this")


def test_a_file_name_ends_at_its_first_nul() -> None:
    name = b"\x00\x00\x00\x00"  # python-mysql-replication pads its empty name
    assert decode_command(DUMP + name) == decode_command(DUMP)
    assert decode_command(DUMP + b"binlog.000001\x00rest") == decode_command(DUMP + b"binlog.000001")


@pytest.mark.parametrize("body", [b"", b"\x00", bytes(20)], ids=len)
def test_any_other_byte_is_an_unknown_command(body: bytes) -> None:
    for code in {*range(256)} - {*Command} | {Command.BINLOG_DUMP_GTID}:
        assert decode_command(bytes([code]) + body) == UnsupportedCommand(code=code)
    assert decode_command(b"") == UnsupportedCommand(code=0)
    assert Err(code=1047, sqlstate="08S01", text="Unknown command") == UNKNOWN_COMMAND


@pytest.mark.parametrize("size", [0, 1, 20, 70_000])
def test_every_command_byte_with_any_number_of_zeros_is_a_value(size: int) -> None:
    for code in range(256):
        assert code in SHORT or not isinstance(decode_command(bytes([code]) + bytes(size)), MalformedCommand)


def test_a_short_dump_command_is_malformed() -> None:
    for size in range(1, len(DUMP)):
        assert decode_command(DUMP[:size]) == MalformedCommand(code=Command.BINLOG_DUMP, answer=MALFORMED_PACKET)


@pytest.mark.parametrize("size", range(1, len(REGISTER)))
def test_a_cut_registration_is_malformed(size: int) -> None:
    command = decode_command(REGISTER[:size])
    assert isinstance(command, MalformedCommand)
    if size in range(5, 12):
        part = {10: "user", 11: "password"}.get(size, "host")
        assert command.answer.text == f"Failed to register slave: too long 'report-{part}'"
    else:
        assert command.answer == MALFORMED_PACKET


def test_a_real_primary_answers_a_cut_registration_with_the_same_words(conversation: Any) -> None:
    for exchange in conversation.exchanges:
        if exchange.command.payload == bytes.fromhex("1501000000"):
            assert decode_command(exchange.command.payload).answer.text.encode() == exchange.answer[0].payload[9:]


def test_a_registration_whose_lengths_lie_is_malformed() -> None:
    for offset in (5, 10, 11):
        assert isinstance(decode_command(REGISTER[:offset] + b"\xc8" + REGISTER[offset + 1 :]), MalformedCommand)


def test_texts_that_are_not_utf8_are_values_all_the_same() -> None:
    assert decode_command(b"\x02\xff") == InitDb(database="\ufffd")
    assert decode_command(b"\x03\xff\x00") == QueryCommand(sql=b"\xff\x00")


def test_damaged_and_random_commands_are_values(damaged: Any, rng: random.Random) -> None:
    for payload in (REGISTER, DUMP + b"binlog.000001", bytes.fromhex("0c01000000")):
        for data in damaged(payload):
            decode_command(data)
    for _ in range(2000):
        decode_command(rng.randbytes(rng.randrange(60)))


def test_the_password_of_a_registration_does_not_show_in_a_repr() -> None:
    assert "rp" not in repr(RegisterReplica(server_id=2, host="h", user="u", password="rp", port=1)).replace("repl", "")
