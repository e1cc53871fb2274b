"""Greeting, login and change of the plugin. Layout: protocol/wire/handshake.md."""

import functools
import struct
from dataclasses import dataclass, field

from ibbmaster.errors import RemoteProtocolError
from ibbmaster.storage.codec import lenenc
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.versions import Difference, version_number
from .capability import EXTENDED_SHIFT, LOW_MASK, Capability, StatusFlag

PROTOCOL_VERSION = 10
SEED_SIZE = 20  # bytes, printable and without NUL
SEED_FIRST_SIZE = 8  # the greeting carries the seed in two parts
TLS_REQUEST_SIZE = 32  # the fixed part of a login, alone
AUTH_SWITCH_MARK = 0xFE
COLLATION_BYTE_MAX = 0xFF  # the greeting has one byte for a collation id
USER_SIZE_MAX = 384  # 128 characters of 3 bytes
NAME_SIZE_MAX = 192  # 64 characters of 3 bytes: databases and plugins
NATIVE_PASSWORD = "mysql_native_password"

# quicker than flags
_PROTOCOL_41, _TLS, _LENENC_AUTH_DATA = map(int, (Capability.PROTOCOL_41, Capability.TLS, Capability.LENENC_AUTH_DATA))
_SECURE_CONNECTION, _CONNECT_WITH_DB = int(Capability.SECURE_CONNECTION), int(Capability.CONNECT_WITH_DB)
_PLUGIN_AUTH, _CONNECT_ATTRIBUTES = int(Capability.PLUGIN_AUTH), int(Capability.CONNECT_ATTRIBUTES)

_CONNECTION_ID = struct.Struct("<I")
_GREETING_MIDDLE = struct.Struct("<xHBHHB6xI")  # from the NUL after the seed's first part to the extended capabilities
_LOGIN_FIXED = struct.Struct("<IIB19xI")
_OLD_VERSION_PREFIX = "5.5.5-"  # lets old clients take a 10.x server for one they know


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    server_version: str  # the result of SELECT VERSION(), without the prefix of 10.x on the wire
    connection_id: int
    seed: bytes
    capabilities: Capability
    collation_id: int
    status: int = StatusFlag.AUTOCOMMIT
    plugin_name: str = NATIVE_PASSWORD


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsRequest:
    """The fixed part of a login, sent alone before the encrypted rest."""

    capabilities: Capability
    payload_size_max: int
    collation_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginRequest:
    capabilities: Capability
    payload_size_max: int  # largest payload the client takes
    collation_id: int  # low byte of it; 0 if the client's has none
    user: str
    auth_data: bytes = field(repr=False)
    database: str | None = None
    plugin_name: str | None = None
    attributes: tuple[tuple[str, str], ...] = ()


def encode_greeting(greeting: Greeting) -> bytes:
    assert len(greeting.seed) == SEED_SIZE, len(greeting.seed)
    assert 0 not in greeting.seed
    begin, middle = _of_every_greeting(
        greeting.server_version, greeting.capabilities, greeting.collation_id, greeting.status
    )
    first, second = greeting.seed[:SEED_FIRST_SIZE], greeting.seed[SEED_FIRST_SIZE:] + b"\x00"
    connection_id = _CONNECTION_ID.pack(greeting.connection_id)
    return begin + connection_id + first + middle + second + _terminated(greeting.plugin_name)


@functools.lru_cache(16)
def _of_every_greeting(version: str, capabilities: Capability, collation_id: int, status: int) -> tuple[bytes, bytes]:
    """The bytes before the connection id, and between the parts of the seed: equal for all clients."""
    if Difference.GREETS_AS_OLD.holds(version_number(version)):
        version = _OLD_VERSION_PREFIX + version
    low = capabilities & LOW_MASK
    collation_byte = min(collation_id, COLLATION_BYTE_MAX)
    extended = 0 if low & Capability.MYSQL else capabilities >> EXTENDED_SHIFT
    middle = _GREETING_MIDDLE.pack(low & 0xFFFF, collation_byte, status, low >> 16, SEED_SIZE + 1, extended)
    return bytes((PROTOCOL_VERSION,)) + _terminated(version), middle


def decode_greeting(payload: Buffer) -> Greeting:
    """Raises RemoteProtocolError: it is none of protocol version 10 with a plugin name."""
    fields = _Fields(payload, "a greeting")
    (protocol_version,) = fields.take(1)
    if protocol_version != PROTOCOL_VERSION:
        raise RemoteProtocolError(f"a greeting of protocol version {protocol_version}, expected {PROTOCOL_VERSION}")
    version = fields.take_text(len(payload))
    (connection_id,) = _CONNECTION_ID.unpack(fields.take(_CONNECTION_ID.size))
    seed = fields.take(SEED_FIRST_SIZE)
    low, collation_id, status, high, seed_size, extended = _GREETING_MIDDLE.unpack(fields.take(_GREETING_MIDDLE.size))
    if seed_size != SEED_SIZE + 1:
        raise RemoteProtocolError(f"a greeting with a seed of {seed_size} bytes, expected {SEED_SIZE + 1}")
    seed += fields.take(SEED_SIZE - SEED_FIRST_SIZE)
    fields.take(1)
    return Greeting(
        server_version=version.removeprefix(_OLD_VERSION_PREFIX),
        connection_id=connection_id,
        seed=seed,
        capabilities=_join_capabilities(low | high << 16, extended),
        collation_id=collation_id,
        status=status,
        plugin_name=fields.take_text(NAME_SIZE_MAX),
    )


def decode_login(payload: Buffer) -> LoginRequest | TlsRequest:
    """A client's first packet, or its second if the first asked for TLS. It may end where an optional part would begin,
    or have more bytes. Raises RemoteProtocolError: it is too short, of an older protocol, has a text that is not
    terminated, not UTF-8 or longer than MariaDB allows, or a length that leads out of it. Source: MariaDB 12.3,
    sql_acl.cc, parse_client_handshake_packet()."""
    fields = _Fields(payload, "a login")
    low, payload_size_max, collation_id, extended = _LOGIN_FIXED.unpack(fields.take(_LOGIN_FIXED.size))
    capabilities = _join_capabilities(low, extended)
    if not low & _PROTOCOL_41:
        raise RemoteProtocolError("a login of a protocol older than 4.1")
    if low & _TLS and not fields.left:
        return TlsRequest(capabilities=capabilities, payload_size_max=payload_size_max, collation_id=collation_id)
    user = fields.take_text(USER_SIZE_MAX)
    if low & _LENENC_AUTH_DATA:
        auth_data = fields.take_lenenc()
    elif low & _SECURE_CONNECTION:
        (size,) = fields.take(1)
        auth_data = fields.take(size)
    else:
        raise RemoteProtocolError("a login with a password answer older than 4.1")
    database = plugin_name = None
    attributes: tuple[tuple[str, str], ...] = ()
    if low & _CONNECT_WITH_DB and fields.left:
        database = fields.take_text(NAME_SIZE_MAX)
    if low & _PLUGIN_AUTH and fields.left:
        plugin_name = fields.take_text(NAME_SIZE_MAX)
    if low & _CONNECT_ATTRIBUTES and fields.left:
        attributes = _decode_attributes(fields.take_lenenc())
    return LoginRequest(
        capabilities=capabilities,
        payload_size_max=payload_size_max,
        collation_id=collation_id,
        user=user,
        auth_data=auth_data,
        database=database,
        plugin_name=plugin_name,
        attributes=attributes,
    )


def encode_auth_switch(plugin_name: str, plugin_data: bytes) -> bytes:
    return bytes((AUTH_SWITCH_MARK,)) + _terminated(plugin_name) + plugin_data


@functools.lru_cache(64)  # clients of one kind say the same
def _join_capabilities(low: int, extended: int) -> Capability:
    """Extended bits count only if the bit for "MySQL" is clear."""
    return Capability(low if low & Capability.MYSQL else low | extended << EXTENDED_SHIFT)


def _decode_attributes(block: bytes) -> tuple[tuple[str, str], ...]:
    fields = _Fields(block, "connection attributes")
    attributes = []
    while fields.left:
        key, value = fields.take_lenenc(), fields.take_lenenc()
        attributes.append((key.decode("utf-8", "replace"), value.decode("utf-8", "replace")))
    return tuple(attributes)


def _terminated(text: str) -> bytes:
    data = text.encode()
    assert 0 not in data, text
    return data + b"\x00"


class _Fields:
    """Raises RemoteProtocolError: a field leads out of the payload."""

    def __init__(self, payload: Buffer, what: str) -> None:
        self._payload = bytes(payload)
        self._what = what
        self._offset = 0

    @property
    def left(self) -> int:
        return len(self._payload) - self._offset

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise RemoteProtocolError(f"{self._what} that lacks {size - self.left} bytes")
        start = self._offset
        self._offset += size
        return self._payload[start : self._offset]

    def take_text(self, size_max: int) -> str:
        end = self._payload.find(b"\x00", self._offset, self._offset + size_max + 1)
        if end < 0:
            raise RemoteProtocolError(
                f"{self._what} with a text that is not terminated, or longer than {size_max} bytes"
            )
        data = self.take(end - self._offset)
        self._offset += 1
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise RemoteProtocolError(f"{self._what} with a text that is not UTF-8") from None

    def take_lenenc(self) -> bytes:
        try:
            value, self._offset = lenenc.decode_bytes(self._payload, self._offset)
        except ValueError as error:
            raise RemoteProtocolError(f"{self._what}: {error}") from None
        return value
