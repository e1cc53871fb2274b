"""The server's end of a connection: who gets in, what everybody else is told, and what follows."""

import dataclasses
import hashlib
import random
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from ibbmaster.errors import LocalProtocolError, PacketOrderError, PacketTooLargeError, RemoteProtocolError
from ibbmaster.replication.wire import connection as connections
from ibbmaster.replication.wire.auth import Account, certificate_proof, make_account, parse_hosts
from ibbmaster.replication.wire.capability import SERVER_DEFAULT, Capability
from ibbmaster.replication.wire.command import BinlogDump, MalformedCommand, Ping, QueryCommand, UnsupportedCommand
from ibbmaster.replication.wire.handshake import NATIVE_PASSWORD, LoginRequest, TlsRequest, decode_greeting
from ibbmaster.replication.wire.packet import PacketReader, frame_packets, frame_payloads
from ibbmaster.replication.wire.response import (
    BlockResultSet,
    ColumnDefinition,
    Eof,
    Err,
    Ok,
    ResultSet,
    SharedResultSet,
    decode_err,
    decode_ok,
    encode_eof,
    encode_err,
    encode_ok,
)
from tests.machinery.client_wire import answer_ed25519, answer_native, decode_auth_switch, encode_command, encode_login

SEED = bytes(range(0x41, 0x55))
NONCE = bytes(range(32))
CERTIFICATE = b"DER of a certificate"
FINGERPRINT = hashlib.sha256(CERTIFICATE).digest()
REPL = make_account("repl", "replpw")
OPEN = make_account("repl", "")
SIGNING = make_account("repl", "replpw", plugin="ed25519")
CLIENT = Capability(0x8038A205)  # a real replica's
OK_PAYLOAD = encode_ok(Ok())
DENIED = "Access denied for user '{}'@'127.0.0.1' (using password: {})"

DUMP = encode_command(BinlogDump(position=4, flags=0, server_id=2, file_name=""))


@dataclass(slots=True)
class Client:
    connection: connections.ServerConnection
    sequence: int = 1
    events: list[connections.Event] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)
    error: RemoteProtocolError | None = None

    def send(self, payload: bytes, *, piece_size: int | None = None, sequence: int | None = None) -> None:
        frame, self.sequence = frame_packets(payload, self.sequence if sequence is None else sequence)
        self.send_bytes(frame, piece_size=piece_size)

    def send_bytes(self, data: bytes, *, piece_size: int | None = None) -> None:
        try:
            for offset in range(0, len(data), piece_size or len(data) or 1):
                self.connection.receive_data(data[offset : offset + (piece_size or len(data))])
                while (event := self.connection.next_event()) is not None:
                    self.events.append(event)
        except RemoteProtocolError as error:
            self.error = error
        self.receive(self.connection.data_to_send())

    def receive(self, data: bytes) -> None:
        if data:
            reader = PacketReader(limit=1 << 24, next_sequence=data[3])
            reader.receive_data(data)
            self.answers += list(iter(reader.next_payload, None))
            assert not reader.unread_size
            self.sequence = reader.next_sequence

    @property
    def refusal(self) -> Err:
        """The error that the server said last, before it closed."""
        assert self.connection.state is connections.State.CLOSED
        return decode_err(self.answers[-1])


def connect(*accounts: Account, **options: Any) -> Client:
    connection = connections.ServerConnection(
        connection_id=7,
        server_version="12.3.2-MariaDB-log",
        accounts=accounts or (REPL,),
        seed=SEED,
        nonce=NONCE,
        peer_host="127.0.0.1",
        **options,
    )
    client = Client(connection)
    client.receive(connection.data_to_send())
    return client


def login(user: str = "repl", password: str = "replpw", **changes: Any) -> bytes:
    fields: dict[str, Any] = {
        "capabilities": CLIENT,
        "payload_size_max": 1 << 24,
        "collation_id": 45,
        "user": user,
        "auth_data": answer_native(password, SEED),
        "plugin_name": NATIVE_PASSWORD,
    }
    return encode_login(LoginRequest(**fields | changes))


TLS_REQUEST = encode_login(TlsRequest(capabilities=CLIENT | Capability.TLS, payload_size_max=1 << 24, collation_id=45))


def after(payload: bytes, *accounts: Account, **options: Any) -> Client:
    client = connect(*accounts, **options)
    client.send(payload)
    return client


def in_tls(*accounts: Account) -> Client:
    client = after(TLS_REQUEST, *accounts, offers_tls=True)
    client.connection.tls_started(CERTIFICATE)
    return client


def asked_for_a_signature() -> Client:
    return after(login(), SIGNING)


def logged_in(command: bytes | None = None, **options: Any) -> Client:
    client = after(login(), **options)
    assert isinstance(client.events.pop(), connections.LoggedIn)
    client.sequence = 0
    if command is not None:
        client.send(command)
    return client


def in_a_dump() -> Client:
    return logged_in(DUMP)


def test_a_connection_begins_with_a_greeting_which_offers_tls_when_asked_to() -> None:
    client = connect()
    greeting = decode_greeting(client.answers[0])
    assert (greeting.server_version, greeting.connection_id) == ("12.3.2-MariaDB-log", 7)
    assert (greeting.seed, greeting.capabilities) == (SEED, SERVER_DEFAULT)
    assert client.connection.data_to_send() == b""
    assert decode_greeting(connect(offers_tls=True).answers[0]).capabilities == SERVER_DEFAULT | Capability.TLS


def test_the_right_password_logs_in_with_a_packet_of_nearly_64_kib() -> None:
    attributes, agreed = (("_os", "Linux"), ("filler", "x" * 60_000)), CLIENT & SERVER_DEFAULT
    client = after(login(attributes=attributes))
    assert client.events == [
        connections.LoggedIn(user="repl", database=None, collation_id=45, capabilities=agreed, attributes=attributes)
    ]
    assert client.answers[1:] == [OK_PAYLOAD]
    assert client.connection.state is connections.State.COMMAND
    assert not client.connection.capabilities & Capability.MYSQL


def test_a_login_with_a_database_and_collation_0_is_taken() -> None:
    (event,) = after(login(capabilities=CLIENT | Capability.CONNECT_WITH_DB, database="shop", collation_id=0)).events
    assert isinstance(event, connections.LoggedIn)
    assert (event.database, event.collation_id) == ("shop", 0)


def test_an_account_without_a_password_needs_an_empty_answer() -> None:
    assert after(login(auth_data=b""), OPEN).answers[1:] == [OK_PAYLOAD]
    assert after(login(), OPEN).refusal.text == DENIED.format("repl", "YES")


REFUSED = {
    "a wrong password": (login(password="wrong"), "repl", "YES", "wrong password"),
    "no password": (login(auth_data=b""), "repl", "NO", "wrong password"),
    "an unknown user": (login(user="nobody"), "nobody", "YES", "unknown user"),
    "no user": (login(user=""), "", "YES", "unknown user"),
    "the right user in other letters": (login(user="REPL"), "REPL", "YES", "unknown user"),
    "half an answer": (login(auth_data=answer_native("replpw", SEED)[:19]), "repl", "YES", "wrong password"),
    "a long answer": (login(auth_data=bytes(32)), "repl", "YES", "wrong password"),
    "an answer to another seed": (login(auth_data=answer_native("replpw", b"x" * 20)), "repl", "YES", "wrong password"),
}


@pytest.mark.parametrize(("payload", "user", "used", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_login_is_denied_with_mariadbs_words_for_good(payload: bytes, user: str, used: str, reason: str) -> None:
    client = after(payload)
    client.send(login())  # too late
    assert client.events == [connections.LoginFailed(user=user, reason=reason)]
    assert client.refusal == Err(code=1045, sqlstate="28000", text=DENIED.format(user, used))


def test_each_account_has_its_own_password() -> None:
    admin = make_account("admin", "adminpw")
    for user, password, is_right in (("repl", "replpw", 1), ("admin", "adminpw", 1), ("admin", "replpw", 0)):
        client = after(login(user=user, password=password), REPL, admin)
        assert isinstance(client.events[0], connections.LoggedIn if is_right else connections.LoginFailed)


def test_recorded_logins_get_the_recorded_answers(readable_conversation: Any) -> None:
    passwords = {"repl": "replpw", "admin": "adminpw", "nopw": ""}
    greeting = readable_conversation.greeting
    user = readable_conversation.login.user
    if user not in passwords:
        return
    is_tls_required = readable_conversation.name.startswith("tls_required_but_plain")
    connection = connections.ServerConnection(
        connection_id=greeting.connection_id,
        server_version=greeting.server_version,
        accounts=(make_account(user, passwords[user], requires_tls=is_tls_required),),
        seed=greeting.seed,
        nonce=NONCE,
        peer_host="127.0.0.1",
        capabilities=greeting.capabilities,
        collation_id=greeting.collation_id,
    )
    client = Client(connection)
    client.receive(connection.data_to_send())
    assert client.answers == [readable_conversation.packets[0].payload]
    packet = readable_conversation.login_packet
    if packet.sequence == 2:
        client.send(readable_conversation.packets[1].payload)
        connection.tls_started(CERTIFICATE)
    client.send(packet.payload)
    number = readable_conversation.packets.index(packet) + 1
    if number == len(readable_conversation.packets):
        return  # the recording ends here
    recorded = readable_conversation.packets[number]
    assert recorded.sequence == packet.sequence + 1
    if recorded.payload[0] == 0xFF:
        assert client.answers[-1] == recorded.payload
    else:
        proofs = decode_ok(recorded.payload).message, decode_ok(client.answers[-1]).message
        if not proofs[0] or not proofs[1]:  # 11.8 sends a proof without TLS too
            assert client.answers[-1][:7].hex() in (recorded.payload[:7].hex(), "00000002000000")
        assert all(len(proof) in (0, 65) for proof in proofs)


def test_a_client_that_used_another_plugin_is_asked_again_with_the_seed() -> None:
    client = after(login(plugin_name="caching_sha2_password", auth_data=bytes(32)))
    assert decode_auth_switch(client.answers[-1]) == (NATIVE_PASSWORD, SEED + b"\x00")
    assert client.events == []
    client.send(answer_native("replpw", SEED))
    assert isinstance(client.events[0], connections.LoggedIn)
    assert client.answers[-1] == OK_PAYLOAD


def test_an_ed25519_account_asks_for_the_signature_of_a_nonce() -> None:
    client = asked_for_a_signature()
    assert decode_auth_switch(client.answers[-1]) == ("client_ed25519", NONCE)
    assert len(client.answers[-1]) == 48  # as recorded: no NUL behind it
    client.send(answer_ed25519("replpw", NONCE))
    assert isinstance(client.events[0], connections.LoggedIn)
    assert client.answers[-1] == OK_PAYLOAD


@pytest.mark.parametrize("answer", [b"", bytes(64), bytes(20), bytes(65)], ids=len)
def test_a_wrong_answer_to_a_switch_is_denied(answer: bytes) -> None:
    client = asked_for_a_signature()
    client.send(answer)
    assert client.refusal.text == DENIED.format("repl", "YES" if answer else "NO")


def test_an_unknown_user_is_asked_for_the_same_plugin_as_a_known_one() -> None:
    unknown = after(login(user="nobody"), SIGNING)
    assert unknown.answers[1:] == asked_for_a_signature().answers[1:]
    unknown.send(answer_ed25519("replpw", NONCE))
    assert unknown.refusal.text == DENIED.format("nobody", "YES")


def test_a_client_without_plugins_can_use_the_native_password_and_cannot_be_asked_again() -> None:
    payload = login(capabilities=CLIENT & ~Capability.PLUGIN_AUTH, plugin_name=None)
    assert isinstance(after(payload).events[0], connections.LoggedIn)
    client = after(payload, SIGNING)
    assert client.refusal.code == 1251
    assert isinstance(client.error, RemoteProtocolError)


def test_tls_begins_after_a_request_and_the_login_goes_on_at_2() -> None:
    client = after(TLS_REQUEST, offers_tls=True)
    assert client.events == [connections.NeedTls()]
    assert len(client.answers) == 1  # nothing but the greeting was sent
    client.connection.tls_started(CERTIFICATE)
    client.send(login(capabilities=CLIENT | Capability.TLS))
    assert isinstance(client.events[-1], connections.LoggedIn)
    assert decode_ok(client.answers[-1]).message == certificate_proof(REPL, SEED, FINGERPRINT)
    assert client.sequence == 4


def test_the_proof_is_left_out_without_tls_and_without_a_password() -> None:
    assert after(login(), offers_tls=True).answers[-1] == OK_PAYLOAD
    client = in_tls(OPEN)
    client.send(login(password=""))
    assert client.answers[-1] == OK_PAYLOAD


def test_the_proof_of_ed25519_is_made_with_the_greetings_seed() -> None:
    client = in_tls(SIGNING)
    client.send(login())
    client.send(answer_ed25519("replpw", NONCE))
    assert decode_ok(client.answers[-1]).message == certificate_proof(SIGNING, SEED, FINGERPRINT)


def test_the_first_bytes_of_tls_behind_the_request_are_left_on_the_socket() -> None:
    client = connect(offers_tls=True)
    socket = frame_packets(TLS_REQUEST, 1)[0] + b"\x16\x03\x01 the hello of TLS"
    while not client.events:
        size = client.connection.receive_size_max
        client.send_bytes(socket[: min(size, 5)])
        socket = socket[min(size, 5) :]
    assert client.events == [connections.NeedTls()]
    assert socket == b"\x16\x03\x01 the hello of TLS"
    assert client.connection.receive_size_max == connections.RECEIVE_SIZE


def test_as_much_as_there_is_may_be_taken_where_no_tls_can_begin() -> None:
    assert connect().connection.receive_size_max == connections.RECEIVE_SIZE
    assert logged_in(offers_tls=True).connection.receive_size_max == connections.RECEIVE_SIZE
    client = connect(offers_tls=True)
    client.send_bytes(frame_packets(login(), 1)[0][:36])
    assert client.connection.receive_size_max == connections.RECEIVE_SIZE


@pytest.mark.parametrize("is_together", [True, False])
def test_bytes_in_clear_behind_the_request_for_tls_are_refused(is_together: bool) -> None:
    client = connect(offers_tls=True)
    request, bytes_in_clear = frame_packets(TLS_REQUEST, 1)[0], frame_packets(login(), 2)[0]
    for data in (request + bytes_in_clear,) if is_together else (request, bytes_in_clear):
        client.send_bytes(data)
    assert client.events == ([] if is_together else [connections.NeedTls()])
    assert client.refusal.code == 1043
    assert isinstance(client.error, RemoteProtocolError)


def test_a_request_for_tls_that_is_not_offered_or_comes_twice_is_refused() -> None:
    assert after(TLS_REQUEST).refusal.code == 1043
    client = in_tls()
    client.send(TLS_REQUEST)
    assert client.refusal.code == 1043


def test_an_account_that_requires_tls_logs_in_with_it_alone() -> None:
    account = make_account("repl", "replpw", requires_tls=True)
    client = in_tls(account)
    client.send(login())
    assert isinstance(client.events[-1], connections.LoggedIn)
    for password in ("replpw", "wrong"):
        client = after(login(password=password), account, offers_tls=True)
        assert client.events == [connections.LoginFailed(user="repl", reason="TLS is required")]
        assert client.refusal == Err(code=1045, sqlstate="28000", text=DENIED.format("repl", "YES"))


def test_an_account_from_another_address_and_an_unknown_one_look_the_same() -> None:
    elsewhere = dataclasses.replace(REPL, hosts=parse_hosts("10.0.%"))
    refused = after(login(), elsewhere)
    assert refused.events == [connections.LoginFailed(user="repl", reason="its account may not come from this address")]
    assert refused.answers == after(login(), dataclasses.replace(REPL, user="other")).answers
    assert after(login(), dataclasses.replace(REPL, hosts=parse_hosts("127.0.0.%"))).answers[1:] == [OK_PAYLOAD]


def test_more_than_64_kib_before_the_login_is_refused() -> None:
    client = connect()
    client.send_bytes(b"\x00\x00\x01\x01" + bytes(connections.LOGIN_SIZE_MAX - 4))
    assert client.error is None
    client.send_bytes(b"\x00")
    assert isinstance(client.error, PacketTooLargeError)
    assert client.refusal.code == 1153


@pytest.mark.parametrize("sequence", [0, 2, 255])
def test_a_login_with_a_wrong_number_is_refused(sequence: int) -> None:
    client = connect()
    client.send(login(), sequence=sequence)
    assert isinstance(client.error, PacketOrderError)
    assert client.refusal == Err(code=1156, sqlstate="08S01", text="Got packets out of order")


GARBAGE = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: example\r\n\r\n",
    "a TLS hello": bytes.fromhex("160301020001 0001fc0303") + bytes(500),
    "an SSH banner": b"SSH-2.0-OpenSSH_9.2p1\r\n",
    "zeros": bytes(100),
    "an empty login": b"\x00\x00\x00\x01",
    "a login of one byte": b"\x01\x00\x00\x01\x05",
}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE)
def test_garbage_instead_of_a_login_is_refused_and_nothing_is_read_after_it(data: bytes) -> None:
    client = connect()
    client.send_bytes(data)
    assert isinstance(client.error, RemoteProtocolError)
    assert client.refusal.code in (1043, 1153, 1156)
    said = len(client.answers)
    client.error = None
    client.send_bytes(frame_packets(login(), 1)[0])
    assert client.events == []
    assert client.error is None
    assert len(client.answers) == said
    assert client.connection.state is connections.State.CLOSED


def test_a_damaged_login_is_a_failure_and_nothing_else(damaged: Any) -> None:
    """A flip may leave a login that means the same, such as one of an unused capability."""
    frame = frame_packets(login(), 1)[0]
    for data in damaged(frame):
        client = connect(offers_tls=True)
        client.send_bytes(data)
        for event in client.events:
            assert isinstance(event, connections.LoggedIn | connections.LoginFailed | connections.NeedTls)
            if isinstance(event, connections.LoggedIn):
                assert event.user == "repl"
                assert frame[36:62] == data[36:62]  # user and answer are whole


@pytest.mark.parametrize("account", ["native", "ed25519"])
def test_bytes_one_by_one_lead_to_the_same_end(account: str) -> None:
    ends = []
    for piece_size in (None, 1, 7):
        client = connect(make_account("repl", "replpw", plugin=account), offers_tls=True)
        client.send(TLS_REQUEST, piece_size=piece_size)
        client.connection.tls_started(CERTIFICATE)
        client.send(login(), piece_size=piece_size)
        if account == "ed25519":
            client.send(answer_ed25519("replpw", NONCE), piece_size=piece_size)
        client.send(encode_command(QueryCommand(sql=b"SELECT 1")), piece_size=piece_size, sequence=0)
        client.send(encode_command(Ping()), piece_size=piece_size, sequence=0)
        ends.append((client.events, client.answers))
    assert ends[0] == ends[1] == ends[2]
    assert ends[0][0][-1] == connections.CommandReceived(command=Ping())


@pytest.mark.parametrize("client_in_state", [connect, in_tls, asked_for_a_signature, logged_in, in_a_dump])
def test_random_bytes_in_any_state_do_no_harm(client_in_state: Callable[[], Client], rng: random.Random) -> None:
    for _ in range(2000):
        client = client_in_state()
        state = client.connection.state
        before = len(client.events)
        payload = rng.randbytes(rng.randrange(80))
        if rng.random() < 0.5:
            payload = frame_packets(payload, client.sequence)[0]
        client.send_bytes(payload + b"\x00" * rng.randrange(3))
        if state in connections.BEFORE_LOGIN:
            assert not any(
                isinstance(event, connections.LoggedIn | connections.CommandReceived)
                for event in client.events[before:]
            )


@pytest.mark.usefixtures("alone")
def test_10000_clients_that_leave_after_the_greeting_leave_nothing_behind() -> None:
    tracemalloc.start()
    try:
        for _ in range(100):
            connect().connection.receive_data(b"")
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(10_000):
            client = connect()
            client.connection.receive_data(b"")
            assert client.connection.next_event() == connections.Closed()
        assert tracemalloc.get_traced_memory()[0] - before < 64 * 1024
    finally:
        tracemalloc.stop()


class Blocks:
    def __init__(self, last: Err | None = None) -> None:
        self.blocks = [[b"a"], [b"b", b"c"]]
        self.last = last
        self.is_closed = False

    def next_block(self, sequence: int) -> tuple[bytes, int] | Err | None:
        if not self.blocks:
            return self.last
        return frame_payloads(self.blocks.pop(0), sequence)

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize("last", [None, Err(code=1105, sqlstate="HY000", text="lost")])
def test_rows_in_blocks_are_numbered_with_what_is_around_them(last: Err | None) -> None:
    client = logged_in(encode_command(QueryCommand(sql=b"SELECT a FROM t")))
    blocks = Blocks(last)
    columns = (ColumnDefinition(name="a", column_type=3, length=11),)
    reader = PacketReader(limit=1 << 20, next_sequence=1)
    reader.receive_data(b"".join(client.connection.answer(BlockResultSet(columns=columns, blocks=blocks), Ok())))
    packets = list(iter(reader.next_payload, None))
    assert packets[3:6] == [b"a", b"b", b"c"]
    assert packets[6] == (encode_eof(Eof(status=0x000A)) if last is None else encode_err(last))
    assert packets[7:] == [OK_PAYLOAD]
    assert blocks.is_closed


def test_blocks_are_closed_where_a_client_leaves() -> None:
    client = logged_in(encode_command(QueryCommand(sql=b"SELECT a FROM t")))
    blocks = Blocks()
    pieces = client.connection.answer(BlockResultSet(columns=(), blocks=blocks))
    assert [next(pieces), next(pieces)][1][4:] == b"a"
    del pieces
    assert blocks.is_closed


def test_commands_sent_together_come_one_after_the_other_and_are_answered_from_1_on() -> None:
    client = logged_in()
    ping = frame_packets(encode_command(Ping()), 0)[0]
    client.connection.receive_data(ping + ping)
    for _ in range(2):
        assert client.connection.next_event() == connections.CommandReceived(command=Ping())
        assert b"".join(client.connection.answer(Ok())) == bytes.fromhex("07000001") + OK_PAYLOAD
    assert client.connection.next_event() is None


def test_a_command_with_a_wrong_number_ends_the_connection() -> None:
    client = logged_in()
    client.send(encode_command(Ping()), sequence=1)
    assert isinstance(client.error, PacketOrderError)
    assert client.refusal.code == 1156


def test_unknown_and_malformed_commands_leave_the_connection_usable() -> None:
    client = logged_in()
    for payload, kind in ((b"\x1e" + bytes(22), UnsupportedCommand), (b"\x15\x01\x00\x00\x00", MalformedCommand)):
        client.send(payload, sequence=0)
        event = client.events[-1]
        assert isinstance(event, connections.CommandReceived)
        assert isinstance(event.command, kind)
    client.send(encode_command(Ping()), sequence=0)
    assert client.events[-1] == connections.CommandReceived(command=Ping())


def test_a_command_above_the_limit_which_is_mariadbs_ends_the_connection() -> None:
    assert connections.COMMAND_SIZE_MAX == 16 * 1024 * 1024
    client = logged_in(b"\x03" + b"x" * 999, command_size_max=1000)
    assert isinstance(client.events[-1], connections.CommandReceived)
    client.send(b"\x03" + b"x" * 1000, sequence=0)
    assert isinstance(client.error, PacketTooLargeError)
    assert client.refusal.code == 1153


def test_the_answer_to_a_command_of_two_packets_goes_on_at_2() -> None:
    client = logged_in(b"\x03" + b"x" * 0xFFFFFF, command_size_max=1 << 25)
    assert b"".join(client.connection.answer(Ok()))[3] == 2
    client.send(encode_command(Ping()), sequence=0)
    assert client.events[-1] == connections.CommandReceived(command=Ping())


def test_quit_and_a_closed_socket_both_end_a_connection() -> None:
    client = logged_in(b"\x01")
    assert client.events == [connections.Closed()]
    assert client.connection.state is connections.State.CLOSED
    client = logged_in()
    client.connection.receive_data(frame_packets(encode_command(Ping()), 0)[0])
    client.connection.receive_data(b"")
    assert client.connection.next_event() == connections.CommandReceived(command=Ping())  # it came before
    assert client.connection.next_event() == connections.Closed()
    for client in (logged_in(), in_a_dump()):
        client.connection.receive_data(b"")
        assert client.connection.next_event() == connections.Closed()
        assert client.connection.next_event() is None


def test_an_answer_takes_the_form_that_was_agreed() -> None:
    column = ColumnDefinition(name="x", column_type=3, length=1)
    plain = logged_in(encode_command(QueryCommand(sql=b"x")))
    assert b"".join(plain.connection.answer(ResultSet(columns=(column,))))[:5] == b"\x01\x00\x00\x01\x01"
    offered = SERVER_DEFAULT | Capability.CACHE_METADATA | Capability.EXTENDED_METADATA
    client = after(login(capabilities=offered), capabilities=offered)
    client.send(encode_command(QueryCommand(sql=b"x")), sequence=0)
    assert b"".join(client.connection.answer(ResultSet(columns=(column,))))[:6] == b"\x02\x00\x00\x01\x01\x01"


def test_several_answers_are_numbered_on_and_announce_each_other() -> None:
    client = logged_in(encode_command(QueryCommand(sql=b"SET @a=1; SET @b=2")))
    assert b"".join(client.connection.answer(Ok(), Ok())) == bytes.fromhex(
        "07000001 00000002000000 07000002 00000002000000".replace("02000000 07", "0a000000 07")
    )


@pytest.mark.parametrize("capabilities", [SERVER_DEFAULT, SERVER_DEFAULT | Capability.CACHE_METADATA], ids=str)
def test_an_answer_at_once_is_the_same_as_one_in_pieces(capabilities: Capability) -> None:
    column = ColumnDefinition(name="x", column_type=253, length=4)
    shared = SharedResultSet(columns=(column,), rows=((b"a",), (None,)))
    error = Err(code=1, sqlstate="HY000", text="x")
    for responses in ((Ok(),), (Ok(message=b"m"),), (shared,), (shared,), (shared, Ok()), (), (error,)):
        pieces, at_once = (connect(capabilities=capabilities | Capability.EXTENDED_METADATA) for _ in range(2))
        for client in (pieces, at_once):
            client.send(login(capabilities=capabilities))
            client.send(encode_command(QueryCommand(sql=b"x")), sequence=0)
        expected = b"".join(pieces.connection.answer(*responses))
        assert at_once.connection.answer_at_once(*responses) == expected
        assert at_once.connection.answer_at_once(Ok())[3] == pieces.connection._stream.sequence
    assert len(shared.frames) == 1


def test_a_long_answer_comes_in_pieces_and_reads_its_rows_as_it_goes() -> None:
    client = logged_in(encode_command(QueryCommand(sql=b"SHOW BINLOG EVENTS")))
    read: list[int] = []

    def rows() -> Iterator[tuple[bytes]]:
        for number in range(1000):
            read.append(number)
            yield (bytes(1000),)

    column = ColumnDefinition(name="x", column_type=253, length=1000)
    pieces = client.connection.answer(ResultSet(columns=(column,), rows=rows()))
    assert len(next(pieces)) < 70_000
    assert len(read) < 100
    assert all(len(piece) < 70_000 for piece in pieces)
    assert len(read) == 1000


UNASKED = {
    "TLS": lambda: connect(offers_tls=True).connection.tls_started(CERTIFICATE),
    "an answer before the login": lambda: connect().connection.answer(Ok()),
    "an answer at once before the login": lambda: connect().connection.answer_at_once(Ok()),
}


@pytest.mark.parametrize("begin", UNASKED.values(), ids=UNASKED)
def test_nothing_begins_unasked(begin: Callable[[], object]) -> None:
    with pytest.raises(LocalProtocolError):
        begin()


def test_a_dump_takes_over_the_numbers_of_the_answer() -> None:
    assert b"".join(in_a_dump().connection.answer(Eof())) == bytes.fromhex("05000001 fe00000200")


def test_nothing_a_client_sends_during_a_dump_is_an_error() -> None:
    client = in_a_dump()
    for data in (b"\x00", frame_packets(encode_command(Ping()), 0)[0], b"\xff" * 100_000):
        client.send_bytes(data)
    assert client.error is None
    assert len(client.events) == 1


def test_a_stray_byte_behind_the_dump_command_does_no_harm() -> None:
    client = logged_in()
    client.send_bytes(bytes.fromhex("0e000000 12 04000000 0300 4d000000 000000 00"))  # python-mysql-replication
    (event,) = client.events
    assert event == connections.CommandReceived(command=BinlogDump(position=4, flags=3, server_id=77, file_name=""))


def test_closing_says_a_last_error() -> None:
    client = in_a_dump()
    client.connection.close(Err(code=1053, sqlstate="08S01", text="Server shutdown in progress"))
    client.receive(client.connection.data_to_send())
    assert client.refusal.code == 1053
    client.connection.close()
    assert client.connection.data_to_send() == b""


def test_every_state_has_its_transitions_and_can_be_closed() -> None:
    assert set(connections.TRANSITIONS) == set(connections.State)
    assert all(connections.State.CLOSED in states for states in connections.TRANSITIONS.values())


def test_secrets_do_not_show_in_events_or_errors() -> None:
    denied = after(login(user="nobody"))
    shown = repr(after(login()).events) + repr(denied.events) + repr(denied.error) + denied.refusal.text
    assert "replpw" not in shown
    assert repr(answer_native("replpw", SEED))[2:-1] not in shown
