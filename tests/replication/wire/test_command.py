import random
from typing import Any

import pytest

from ibbmaster.replication.wire import command as wire
from ibbmaster.replication.wire.response import Err
from tests.machinery.client_wire import encode_command

REGISTER = bytes.fromhex("15 02000000 04 72657032 00 00 ea0c 00000000 00000000")  # dump-protocol, 20.1
DUMP = bytes.fromhex("12 04000000 0200 02000000")

CASES: dict[str, tuple[wire.AnyCommand, bytes]] = {
    "quit": (wire.Quit(), b"\x01"),
    "a database": (wire.InitDb(database="nothere"), b"\x02nothere"),  # raw_misc
    "a query": (wire.QueryCommand(sql=b"SELECT UNIX_TIMESTAMP()"), b"\x03SELECT UNIX_TIMESTAMP()"),
    "statistics": (wire.Statistics(), b"\x09"),
    "kill": (wire.ProcessKill(connection_id=999), bytes.fromhex("0c e7030000")),
    "ping": (wire.Ping(), b"\x0e"),
    "a dump by GTID": (
        wire.BinlogDump(position=4, flags=wire.DumpFlag.SEND_ANNOTATE_ROWS, server_id=2, file_name=""),
        DUMP,
    ),
    "a dump of a file": (
        wire.BinlogDump(position=4, flags=wire.DumpFlag.NON_BLOCKING, server_id=1001, file_name="binlog.000001"),
        bytes.fromhex("12 04000000 0100 e9030000") + b"binlog.000001",  # raw_misc
    ),
    "a registration": (wire.RegisterReplica(server_id=2, host="rep2", user="", password="", port=3306), REGISTER),
    "an option": (wire.SetOption(option=0), bytes.fromhex("1b 0000")),
    "a reset": (wire.ResetConnection(), b"\x1f"),
    "a statement to prepare": (wire.StatementPrepare(sql=b"SELECT ?"), b"\x16SELECT ?"),
    "a prepared statement": (
        wire.StatementExecute(statement_id=1, flags=0, parameters=bytes.fromhex("00 01 0300 07000000")),
        bytes.fromhex("17 01000000 00 01000000 00 01 0300 07000000"),
    ),
    "a piece of a parameter": (
        wire.StatementLongData(statement_id=1, parameter_no=2, data=b"abc"),
        bytes.fromhex("18 01000000 0200") + b"abc",
    ),
    "a statement to forget": (wire.StatementClose(statement_id=1), bytes.fromhex("19 01000000")),
    "pieces to forget": (wire.StatementReset(statement_id=1), bytes.fromhex("1a 01000000")),
    "rows of a cursor": (wire.StatementFetch(statement_id=1), bytes.fromhex("1c 01000000 01000000")),
    "something unknown": (wire.UnsupportedCommand(code=0x60), b"\x60"),
}


SHORT = (
    *(wire.Command.PROCESS_KILL, wire.Command.BINLOG_DUMP, wire.Command.REGISTER_REPLICA, wire.Command.SET_OPTION),
    *(wire.Command.STATEMENT_EXECUTE, wire.Command.STATEMENT_RESET, wire.Command.STATEMENT_FETCH),
)


@pytest.mark.parametrize(("command", "payload"), CASES.values(), ids=CASES)
def test_a_command_decodes_and_encodes(command: wire.AnyCommand, payload: bytes) -> None:
    assert wire.decode_command(payload) == command
    assert encode_command(command) == payload


def test_recorded_commands_decode_to_what_the_recorder_saw(conversation: Any) -> None:
    for exchange in conversation.exchanges:
        packet = exchange.command
        if not packet.is_whole or packet.payload.startswith(b"\xef"):  # an acknowledgement of semi-sync
            continue
        match wire.decode_command(packet.payload):
            case wire.QueryCommand(sql=sql):
                assert packet.meaning == f"COM_QUERY {sql.decode()!r}"
            case wire.BinlogDump() as dump:
                name = f"file={dump.file_name!r}"
                fields = f"pos={dump.position} flags={dump.flags} server_id={dump.server_id}"
                assert packet.meaning.rstrip("\\x0'") == f"COM_BINLOG_DUMP {fields} {name}".rstrip("'")
            case wire.RegisterReplica() as replica:
                texts = f"host={replica.host!r} user={replica.user!r} password={replica.password!r}"
                numbers = f"port={replica.port} rank={replica.rank} master_id={replica.primary_id}"
                assert packet.meaning == f"COM_REGISTER_SLAVE server_id={replica.server_id} {texts} {numbers}"
            case (
                wire.Quit()
                | wire.Ping()
                | wire.Statistics()
                | wire.ResetConnection()
                | wire.InitDb()
                | wire.SetOption() as command
            ):
                assert encode_command(command) == packet.payload
            case wire.UnsupportedCommand(code=code):
                assert code in (0x16, 0x19, wire.Command.BINLOG_DUMP_GTID, 0x60)
            case wire.MalformedCommand():
                assert packet.meaning.startswith("undecoded")
            case wire.ProcessKill():
                pytest.fail("no recorded client sends this")


@pytest.mark.parametrize("body", [b"", b"\x00"], ids=len)
def test_a_shutdown_by_command_is_that_of_the_statement(body: bytes) -> None:
    assert wire.decode_command(b"\x08" + body) == wire.QueryCommand(sql=b"SHUTDOWN")


def test_a_file_name_ends_at_its_first_nul() -> None:
    name = b"\x00\x00\x00\x00"  # python-mysql-replication pads its empty name
    assert wire.decode_command(DUMP + name) == wire.decode_command(DUMP)
    assert wire.decode_command(DUMP + b"binlog.000001\x00rest") == wire.decode_command(DUMP + b"binlog.000001")


@pytest.mark.parametrize("body", [b"", b"\x00", bytes(20)], ids=len)
def test_any_other_byte_is_an_unknown_command(body: bytes) -> None:
    for code in {*range(256)} - {*wire.Command} | {wire.Command.BINLOG_DUMP_GTID}:
        assert wire.decode_command(bytes([code]) + body) == wire.UnsupportedCommand(code=code)
    assert wire.decode_command(b"") == wire.UnsupportedCommand(code=0)
    assert Err(code=1047, sqlstate="08S01", text="Unknown command") == wire.UNKNOWN_COMMAND


@pytest.mark.parametrize("size", [0, 1, 20, 70_000])
def test_every_command_byte_with_any_number_of_zeros_is_a_value(size: int) -> None:
    for code in range(256):
        assert code in SHORT or not isinstance(wire.decode_command(bytes([code]) + bytes(size)), wire.MalformedCommand)


def test_a_short_dump_command_is_malformed() -> None:
    for size in range(1, len(DUMP)):
        assert wire.decode_command(DUMP[:size]) == wire.MalformedCommand(
            code=wire.Command.BINLOG_DUMP, answer=wire.MALFORMED_PACKET
        )


@pytest.mark.parametrize("size", range(1, len(REGISTER)))
def test_a_cut_registration_is_malformed(size: int) -> None:
    command = wire.decode_command(REGISTER[:size])
    assert isinstance(command, wire.MalformedCommand)
    if size in range(5, 12):
        part = {10: "user", 11: "password"}.get(size, "host")
        assert command.answer.text == f"Failed to register slave: too long 'report-{part}'"
    else:
        assert command.answer == wire.MALFORMED_PACKET


def test_a_real_primary_answers_a_cut_registration_with_the_same_words(conversation: Any) -> None:
    for exchange in conversation.exchanges:
        if exchange.command.payload == bytes.fromhex("1501000000"):
            assert wire.decode_command(exchange.command.payload).answer.text.encode() == exchange.answer[0].payload[9:]


def test_a_registration_whose_lengths_lie_is_malformed() -> None:
    for offset in (5, 10, 11):
        assert isinstance(
            wire.decode_command(REGISTER[:offset] + b"\xc8" + REGISTER[offset + 1 :]), wire.MalformedCommand
        )


def test_texts_that_are_not_utf8_are_values_all_the_same() -> None:
    assert wire.decode_command(b"\x02\xff") == wire.InitDb(database="\ufffd")
    assert wire.decode_command(b"\x03\xff\x00") == wire.QueryCommand(sql=b"\xff\x00")


def test_damaged_and_random_commands_are_values(damaged: Any, rng: random.Random) -> None:
    for payload in (REGISTER, DUMP + b"binlog.000001", bytes.fromhex("0c01000000")):
        for data in damaged(payload):
            wire.decode_command(data)
    for _ in range(2000):
        wire.decode_command(rng.randbytes(rng.randrange(60)))


def test_the_password_of_a_registration_does_not_show_in_a_repr() -> None:
    assert "rp" not in repr(wire.RegisterReplica(server_id=2, host="h", user="u", password="rp", port=1)).replace(
        "repl", ""
    )
