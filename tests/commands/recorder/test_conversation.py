"""Whoever listens between the ends of a connection understands it, however its bytes are cut."""

import random

import pytest

from ibbmaster.commands.recorder.conversation import (
    ANSWER_MAX,
    COMMAND_MAX,
    PIECE_MAX,
    TAKEN_AWAY,
    Admitted,
    Answered,
    Asked,
    Conversation,
    DumpEnded,
    DumpPiece,
    Greeted,
    Named,
    PassedUnread,
    Phase,
    asked_position,
    greeting_in_clear,
)
from ibbmaster.replication.wire.answer import encode_response
from ibbmaster.replication.wire.capability import SERVER_DEFAULT, Capability, StatusFlag
from ibbmaster.replication.wire.command import BinlogDump, Ping, QueryCommand, Quit, RegisterReplica, StatementPrepare
from ibbmaster.replication.wire.handshake import Greeting, LoginRequest, TlsRequest, decode_greeting, encode_greeting
from ibbmaster.replication.wire.packet import frame_packets
from ibbmaster.replication.wire.response import (
    ColumnDefinition,
    Eof,
    Err,
    FieldType,
    Ok,
    ResultSet,
    encode_eof,
    encode_err,
    encode_ok,
)
from tests.machinery.client_wire import encode_command, encode_login

COLUMN = ColumnDefinition(name="a", column_type=FieldType.VAR_STRING, length=4)
RESULT = ResultSet(columns=(COLUMN, COLUMN), rows=((b"1", None), (b"\xfe" * 7, b"x")))
CLIENT = Capability.PROTOCOL_41 | Capability.SECURE_CONNECTION | Capability.PLUGIN_AUTH
ERR = Err(code=1193, sqlstate="HY000", text="Unknown system variable")
REGISTER = RegisterReplica(server_id=7, host="", user="", password="", port=0)
DUMP = BinlogDump(position=4, flags=2, server_id=7, file_name="")


def greeting(extra=Capability.PROTOCOL_41):
    return encode_greeting(
        Greeting(
            server_version="11.8.6-MariaDB-log",
            connection_id=5,
            seed=b"12345678901234567890",
            capabilities=SERVER_DEFAULT | extra,
            collation_id=45,
        )
    )


def login(capabilities=CLIENT, user="repl"):
    return encode_login(
        LoginRequest(
            capabilities=capabilities, payload_size_max=1 << 24, collation_id=45, user=user, auth_data=b"secret" * 3
        )
    )


def framed(payloads, sequence=0):
    data = b""
    for payload in payloads:
        frame, sequence = frame_packets(payload, sequence)
        data += frame
    return data


def steps():
    query, prepare = QueryCommand(sql=b"SELECT 1"), StatementPrepare(sql=b"SELECT ?")
    prepared = [b"\0" + (1).to_bytes(4, "little") + b"\1\0\1\0" + bytes(3), b"\3def", encode_eof(Eof()), b"\3def"]
    more = encode_eof(Eof(status=StatusFlag.MORE_RESULTS))
    events = [b"\0" + bytes(30), b"\0" + bytes(PIECE_MAX) + b"end"]
    greeted = Greeted(server_version="11.8.6-MariaDB-log", connection_id=5, offered_tls=False)
    yield "primary", framed([greeting()]), [greeted]
    yield "client", framed([login()], 1), [Named(user="repl")]
    yield "primary", framed([b"\xfeed25519\0seed"], 2), []
    yield "client", framed([b"\x03answer that looks like a query"], 3), []
    yield "primary", framed([encode_ok(Ok())], 4), [Admitted()]
    yield "client", framed([encode_command(query)]), [Asked(command=query)]
    yield "primary", framed(list(encode_response(RESULT, CLIENT)), 1), [Answered(command=query)]
    yield "client", framed([encode_command(query)]), [Asked(command=query)]
    several = [b"\1", b"\3def", encode_eof(Eof()), b"\1x", more, encode_ok(Ok())]
    yield "primary", framed(several, 1), [Answered(command=query)]
    yield "client", framed([encode_command(query)]), [Asked(command=query)]
    yield "primary", framed([encode_err(ERR)], 1), [Answered(command=query, err=ERR)]
    yield "client", framed([encode_command(query)]), [Asked(command=query)]
    yield "primary", framed([b"\xff\xff\xff\1\1\2\0\0\0\4copy"], 1), []  # how far an ALTER TABLE has come
    yield "primary", framed([encode_ok(Ok())], 2), [Answered(command=query)]
    yield "client", framed([encode_command(prepare)]), [Asked(command=prepare)]
    yield "primary", framed([*prepared, encode_eof(Eof())], 1), [Answered(command=prepare)]
    yield "client", framed([encode_command(Ping())]), [Asked(command=Ping())]
    yield "primary", framed([encode_ok(Ok())], 1), [Answered(command=Ping())]
    yield "client", framed([encode_command(REGISTER)]), [Asked(command=REGISTER)]
    yield "primary", framed([encode_ok(Ok())], 1), [Answered(command=REGISTER)]
    yield "client", framed([encode_command(DUMP)]), [Asked(command=DUMP)]
    yield "client", b"\0", []  # one client sends a stray byte
    first, last = events[1][:PIECE_MAX], events[1][PIECE_MAX:]
    pieces = [(events[0], True, True), (first, True, False), (last, False, True)]
    yield "primary", framed(events, 1), [DumpPiece(data=one, is_first=a, is_last=b) for one, a, b in pieces]
    yield "primary", framed([encode_eof(Eof())], 3), [DumpEnded(word=Eof())]


@pytest.mark.parametrize("piece", [1, 7, None])
def test_a_conversation_is_understood_however_it_is_cut(piece):
    heard = Conversation()
    for who, data, expected in steps():
        size = piece or len(data)
        size = max(size, len(data) // 5000)  # a large event in as many pieces
        hear = heard.from_primary if who == "primary" else heard.from_client
        found = [part for start in range(0, len(data), size) for part in hear(data[start : start + size])]
        assert found == expected, (who, data[:40])


def test_result_sets_without_eof_are_understood():
    heard = talking(CLIENT | Capability.DEPRECATE_EOF)
    list(heard.from_client(framed([encode_command(QueryCommand(sql=b"SELECT 1"))])))
    last = b"\xfe" + encode_ok(Ok())[1:]
    found = [list(heard.from_primary(framed([each], 1))) for each in (b"\1", b"\3def", b"\1x", last)]
    assert [len(parts) for parts in found] == [0, 0, 0, 1]


def talking(capabilities=CLIENT):
    heard = Conversation()
    list(heard.from_primary(framed([greeting()])))
    list(heard.from_client(framed([login(capabilities)], 1)))
    list(heard.from_primary(framed([encode_ok(Ok())], 2)))
    assert heard.phase is Phase.COMMANDS
    return heard


def test_nothing_of_a_login_is_kept_but_the_name():
    heard = Conversation()
    list(heard.from_primary(framed([greeting()])))
    parts = list(heard.from_client(framed([login()], 1)))
    list(heard.from_client(framed([b"another secret"], 3)))
    assert parts == [Named(user="repl")]
    assert list(heard.from_primary(framed([encode_ok(Ok())], 4))) == [Admitted()]
    assert list(heard.from_client(framed([b"\x11repl\0secret"]))) == []
    assert list(heard.from_client(framed([b"secret"], 2))) == []
    assert list(heard.from_primary(framed([encode_err(ERR)], 3))) == [Admitted(err=ERR)]


@pytest.mark.parametrize("code", [1040, 1045])
def test_a_refusal_is_heard_before_and_after_the_greeting(code):
    err = Err(code=code, sqlstate="HY000", text="no")
    heard = Conversation()
    assert list(heard.from_primary(framed([encode_err(err)]))) == [Admitted(err=err)]
    heard = Conversation()
    list(heard.from_primary(framed([greeting()])))
    assert list(heard.from_primary(framed([encode_err(err)], 2))) == [Admitted(err=err)]


def test_how_much_of_a_packet_has_come_is_known():
    heard = talking()
    list(heard.from_client(framed([encode_command(DUMP)])))
    data = framed([b"\0" + bytes(40)], 1)
    for size in range(len(data)):
        again = talking()
        list(again.from_client(framed([encode_command(DUMP)])))
        list(again.from_primary(data[:size]))
        assert again.begun == (size, max(0, size - 4), data[4:size])
    list(heard.from_primary(data))
    assert heard.begun == (0, 0, b"")


def test_a_client_that_leaves_in_order_is_heard_in_a_dump_too():
    heard = talking()
    list(heard.from_client(framed([encode_command(DUMP)])))
    assert list(heard.from_client(framed([encode_command(Quit())]))) == [Asked(command=Quit())]


UNREADABLE = {
    "TLS that was not offered": encode_login(
        TlsRequest(capabilities=CLIENT | Capability.TLS, payload_size_max=1, collation_id=1)
    ),
    "compression": login(CLIENT | Capability.COMPRESS),
    "an old login": bytes(40),
    "nothing": b"",
}


@pytest.mark.parametrize("payload", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_said_once_and_passed_unread(payload):
    heard = Conversation()
    list(heard.from_primary(framed([greeting()])))
    (part,) = heard.from_client(framed([payload], 1))
    assert isinstance(part, PassedUnread)
    assert heard.phase is Phase.UNREAD
    assert list(heard.from_primary(bytes(100))) == list(heard.from_client(bytes(100))) == []


def test_any_bytes_of_either_side_are_taken_and_little_is_kept():
    for _ in range(200):
        heard = random.choice([Conversation, talking])()
        if heard.phase is Phase.COMMANDS and random.random() < 0.5:
            list(heard.from_client(framed([encode_command(DUMP)])))
        for _ in range(20):
            hear = random.choice([heard.from_primary, heard.from_client])
            data = random.randbytes(random.randrange(2000))
            if random.random() < 0.5:
                data = len(data).to_bytes(3, "little") + b"\0" + data
            list(hear(data))
    heard = talking()
    for _ in range(5):
        list(heard.from_client(b"\xff\xff\xff\0" + b"\3" * 0xFFFFFF))
        list(heard.from_primary(b"\xff\xff\xff\1" + b"\3" * 0xFFFFFF))
    assert len(heard._from_client._data) <= COMMAND_MAX
    assert len(heard._from_primary._data) <= ANSWER_MAX


def test_a_greeting_loses_tls_and_compression_and_nothing_else():
    whole = framed([greeting(TAKEN_AWAY)])
    changed = greeting_in_clear(whole)
    assert len(changed) == len(whole)
    assert decode_greeting(changed[4:]).capabilities == SERVER_DEFAULT & ~TAKEN_AWAY
    assert greeting_in_clear(framed([greeting()])) == framed([greeting()])
    for size in range(30):
        assert greeting_in_clear(whole[:size]) == whole[:size]
    assert greeting_in_clear(framed([encode_err(ERR)])) == framed([encode_err(ERR)])


STATES = {
    b"SET @slave_connect_state='0-1-5'": "0-1-5",
    b'SET @a = 1, @SLAVE_CONNECT_STATE = "1-1-1,0-1-5"': "0-1-5,1-1-1",
    b"SET @slave_connect_state=''": "",
    b"SET @slave_connect_state='0-1'": None,
    b"SET @other = '0-1-5'": None,
}


@pytest.mark.parametrize(("sql", "position"), STATES.items())
def test_the_position_that_is_asked_for_is_read(sql, position):
    found = asked_position(sql)
    assert (None if found is None else str(found)) == position
