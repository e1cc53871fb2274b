"""Greeting, login and auth switch, against recorded ones and those of the protocol's description."""

import contextlib
import dataclasses
import functools
import operator
import random
from collections.abc import Callable
from typing import Any

import pytest

from ibbmaster.errors import RemoteProtocolError
from ibbmaster.replication.wire import handshake as wire
from ibbmaster.replication.wire.capability import LOW_MASK, SERVER_DEFAULT, Capability
from tests.machinery.client_wire import decode_auth_switch, encode_login

SEED = bytes(range(0x41, 0x55))

# dump-protocol, transcript 20.1: a 12.3 server and its replica
GREETING = bytes.fromhex(
    "0a 31322e332e322d4d6172696144422d6c6f67 00 07000000 4142434445464748 00 fef7 2d 0200 ff81 15 000000000000"
    "3d000000 494a4b4c4d4e4f5051525354 00 6d7973716c5f6e61746976655f70617373776f7264 00"
)
GREETING_VALUE = wire.Greeting(
    server_version="12.3.2-MariaDB-log",
    connection_id=7,
    seed=SEED,
    capabilities=Capability(0x3D_81FFF7FE),
    collation_id=45,
    status=2,
)
LOGIN = bytes.fromhex(
    "05a22880 9d030040 00" + "00" * 19 + "00000000 7265706c 00 14 5f1b65a213288f05d1746f50a9da935420193888"
    "6d7973716c5f6e61746976655f70617373776f7264 00"
)
LOGIN_VALUE = wire.LoginRequest(
    capabilities=Capability(0x8028A205),
    payload_size_max=0x4000039D,
    collation_id=0,
    user="repl",
    auth_data=bytes.fromhex("5f1b65a213288f05d1746f50a9da935420193888"),
    plugin_name=wire.NATIVE_PASSWORD,
)


def login_with(**changes: Any) -> wire.LoginRequest:
    return dataclasses.replace(LOGIN_VALUE, **changes)


def test_the_described_greeting_and_login_decode_and_encode() -> None:
    assert wire.decode_greeting(GREETING) == GREETING_VALUE
    assert wire.encode_greeting(GREETING_VALUE) == GREETING
    assert wire.decode_login(LOGIN) == LOGIN_VALUE
    assert encode_login(LOGIN_VALUE) == LOGIN


def test_recorded_greetings_decode_and_encode(conversation: Any) -> None:
    payload = conversation.packets[0].payload
    greeting = wire.decode_greeting(payload)
    assert wire.encode_greeting(greeting) == payload
    assert f"thread={greeting.connection_id} " in conversation.packets[0].meaning
    assert f"scramble={greeting.seed.hex()}00 " in conversation.packets[0].meaning


def test_recorded_logins_and_requests_for_tls_decode_and_encode(conversation: Any) -> None:
    for packet in conversation.packets[1:3]:
        if packet.direction == "C>S" and packet.is_whole:
            login = wire.decode_login(packet.payload)
            assert encode_login(login) == packet.payload
            assert isinstance(login, wire.TlsRequest) == packet.meaning.startswith("SSLRequest")
            if isinstance(login, wire.LoginRequest):
                assert f"user='{login.user}' auth={login.auth_data.hex()} db='{login.database or ''}'" in packet.meaning
                assert f"attributes={dict(login.attributes)}" in packet.meaning


@pytest.mark.parametrize("version", ["10.11.19-MariaDB-log", "11.8.6-MariaDB-log", "12.3.2-MariaDB", "100.1-MariaDB"])
def test_a_10_x_version_alone_has_the_old_prefix_and_on_the_wire_only(version: str) -> None:
    greeting = dataclasses.replace(GREETING_VALUE, server_version=version)
    payload = wire.encode_greeting(greeting)
    assert payload[1:].startswith(b"5.5.5-" * version.startswith("10.") + version.encode() + b"\x00")
    assert wire.decode_greeting(payload) == greeting


def test_a_collation_above_255_is_sent_as_255() -> None:
    payload = wire.encode_greeting(dataclasses.replace(GREETING_VALUE, collation_id=2304))
    assert wire.decode_greeting(payload).collation_id == 255


def test_extended_bits_are_not_read_when_the_bit_mysql_is_set() -> None:
    payload = wire.encode_greeting(dataclasses.replace(GREETING_VALUE, capabilities=Capability(0x1D_81FFF7FF)))
    assert wire.decode_greeting(payload).capabilities == 0x81FFF7FF


@pytest.mark.parametrize(("offset", "value", "message"), [(0, 9, "protocol version 9"), (40, 8, "a seed of 8 bytes")])
def test_a_greeting_of_another_kind_is_refused(offset: int, value: int, message: str) -> None:
    with pytest.raises(RemoteProtocolError, match=message):
        wire.decode_greeting(GREETING[:offset] + bytes([value]) + GREETING[offset + 1 :])


BASE = LOGIN_VALUE.capabilities
EXTENDED = BASE & ~Capability.MYSQL | Capability.CACHE_METADATA | Capability.EXTENDED_METADATA
ATTRIBUTES = (("_os", "Linux"), ("program_name", "mysqlbinlog"))
LOGINS = {
    "with a database": login_with(capabilities=BASE | Capability.CONNECT_WITH_DB, database="information_schema"),
    "with attributes": login_with(capabilities=BASE | Capability.CONNECT_ATTRIBUTES, attributes=ATTRIBUTES),
    "with 300 bytes of auth data": login_with(auth_data=bytes(300)),
    "with a length byte for the auth data": login_with(capabilities=BASE & ~Capability.LENENC_AUTH_DATA),
    "with an empty password": login_with(auth_data=b""),
    "without a plugin name": login_with(capabilities=BASE & ~Capability.PLUGIN_AUTH, plugin_name=None),
    "with extended capabilities": login_with(capabilities=EXTENDED),
    "of a user with letters beyond ASCII": login_with(user="rêplika"),
    "of nobody": login_with(user=""),
}


@pytest.mark.parametrize("login", LOGINS.values(), ids=LOGINS)
def test_a_login_decodes_to_what_was_encoded(login: wire.LoginRequest) -> None:
    assert wire.decode_login(encode_login(login)) == login


@pytest.mark.parametrize("count", [1, 2, 3])
def test_optional_parts_may_be_missing_at_the_end_and_bytes_behind_them_are_left_alone(count: int) -> None:
    parts = (Capability.CONNECT_ATTRIBUTES, Capability.PLUGIN_AUTH, Capability.CONNECT_WITH_DB)
    bare = LOGIN_VALUE.capabilities & ~Capability.PLUGIN_AUTH
    payload = encode_login(login_with(capabilities=bare, plugin_name=None))
    login = wire.decode_login(functools.reduce(operator.or_, parts[:count], bare).to_bytes(4, "little") + payload[4:])
    assert (login.database, login.plugin_name, login.attributes) == (None, None, ())
    assert wire.decode_login(LOGIN + b"\x03") == LOGIN_VALUE


def test_a_request_for_tls_is_the_fixed_part_of_a_login() -> None:
    request = wire.TlsRequest(capabilities=Capability(0x8038AA05), payload_size_max=0x4000039D, collation_id=0)
    payload = bytes.fromhex("05aa38809d030040") + bytes(24)  # fixtures/wire/tls_own_ca.11.8-to-11.8
    assert wire.decode_login(payload) == request
    assert encode_login(request) == payload


REFUSED = {
    "shorter than its fixed part": (LOGIN[:31], "lacks 1 bytes"),
    "of protocol 3.20": (b"\x05\xa0" + LOGIN[2:], "older than 4.1"),
    "without any capability": (bytes(4) + LOGIN[4:], "older than 4.1"),
    "with the password answer of 3.23": (b"\x05\x22\x08" + LOGIN[3:], "older than 4.1"),
    "with a user name that does not end": (LOGIN[:36], "not terminated"),
    "with a user name of 385 bytes": (LOGIN[:32] + b"u" * 385 + LOGIN[36:], "longer than 384"),
    "with a user name that is not UTF-8": (LOGIN[:32] + b"r\xe9pl" + LOGIN[36:], "not UTF-8"),
    "with auth data that leads out of it": (LOGIN[:37] + b"\xfd\xff\xff\xff" + LOGIN[38:], "runs"),
    "with a plugin name of 10 KB": (LOGIN[:58] + b"p" * 10_000 + b"\x00", "longer than 192"),
    "with a plugin name that does not end": (LOGIN[:-1], "not terminated"),
    "with a length that starts no number": (LOGIN[:37] + b"\xff" + LOGIN[38:], "0xff"),
}


@pytest.mark.parametrize(("payload", "message"), REFUSED.values(), ids=REFUSED)
def test_a_login_is_refused(payload: bytes, message: str) -> None:
    with pytest.raises(RemoteProtocolError, match=message):
        wire.decode_login(payload)


@pytest.mark.parametrize("block", ["05 01 61", "03 01 61 05", "02 01 61", "04 01 61 fb 00", "fe"], ids=str)
def test_attributes_with_lying_lengths_are_refused(block: str) -> None:
    capabilities = LOGIN_VALUE.capabilities | Capability.CONNECT_ATTRIBUTES
    payload = capabilities.to_bytes(4, "little") + LOGIN[4:] + bytes.fromhex(block)
    with pytest.raises(RemoteProtocolError):
        wire.decode_login(payload)


def test_the_recorded_switch_to_ed25519_decodes_and_encodes(find_packet: Callable[..., Any]) -> None:
    packet = find_packet("auth_ed25519.11.8-to-11.8", "AuthSwitchRequest")
    name, data = decode_auth_switch(packet.payload)
    assert (packet.size, name) == (48, "client_ed25519")
    assert f"data={data.hex()}" in packet.meaning
    assert wire.encode_auth_switch(name, data) == packet.payload


def test_a_switch_to_native_ends_its_seed_with_nul() -> None:
    payload = b"\xfemysql_native_password\x00" + SEED + b"\x00"
    switch = (wire.NATIVE_PASSWORD, SEED + b"\x00")
    assert wire.encode_auth_switch(*switch) == payload
    assert decode_auth_switch(payload) == switch


def test_what_is_no_switch_is_refused() -> None:
    for payload in (b"", b"\x00", b"\xfe", b"\xfemysql"):
        with pytest.raises(RemoteProtocolError):
            decode_auth_switch(payload)


def test_damaged_and_random_packets_are_a_value_or_an_error(damaged: Callable[..., Any], rng: random.Random) -> None:
    full_login = encode_login(
        login_with(
            capabilities=LOGIN_VALUE.capabilities | Capability.CONNECT_ATTRIBUTES | Capability.CONNECT_WITH_DB,
            database="test",
            attributes=(("_os", "Linux"), ("_pid", "1")),
        )
    )
    for decode, payload in (
        (wire.decode_greeting, GREETING),
        (wire.decode_login, full_login),
        (decode_auth_switch, b"\xfeplugin\x00" + SEED),
    ):
        for data in damaged(payload):
            with contextlib.suppress(RemoteProtocolError):
                decode(data)  # type: ignore[operator]
    for _ in range(2000):
        data = rng.randbytes(rng.randrange(200))
        for decode in (wire.decode_greeting, wire.decode_login, decode_auth_switch):
            with contextlib.suppress(RemoteProtocolError):
                decode(data)


def test_the_answer_to_the_seed_does_not_show_in_a_repr() -> None:
    assert "5f1b65" not in repr(LOGIN_VALUE)
    assert repr(LOGIN_VALUE.auth_data) not in repr(LOGIN_VALUE)


REAL_10_11_WITHOUT_TLS = 0x81FFF7FE  # dump-protocol, measured
REAL_11_8_WITH_TLS = 0x81FFFFFE


def test_a_server_offers_what_a_real_one_does_less_what_is_not_implemented() -> None:
    missing = Capability.COMPRESS | Capability.SESSION_TRACK | Capability.DEPRECATE_EOF
    assert REAL_10_11_WITHOUT_TLS & ~missing == SERVER_DEFAULT & LOW_MASK
    assert REAL_11_8_WITH_TLS & ~missing == SERVER_DEFAULT & LOW_MASK | Capability.TLS
    assert SERVER_DEFAULT & ~LOW_MASK == Capability.EXTENDED_METADATA
    assert Capability(2**64 - 1) & SERVER_DEFAULT == SERVER_DEFAULT  # bits that are unknown do no harm


def test_real_servers_offer_only_bits_with_a_name(conversation: Any) -> None:
    offered = conversation.greeting.capabilities
    named = Capability(0)
    for capability in Capability:
        named |= capability
    assert offered & ~named == 0
