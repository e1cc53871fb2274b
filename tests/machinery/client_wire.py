"""What a client does with the wire: what it sends, and how it reads what a server sends. Ours only answers."""

import hashlib
import struct

from ibbmaster.errors import EventError, RemoteProtocolError
from ibbmaster.replication.event.control import LONG_POSITION
from ibbmaster.replication.event.header import decode_body
from ibbmaster.replication.event.types import EventType
from ibbmaster.replication.wire import auth, handshake, response
from ibbmaster.replication.wire import command as commands
from ibbmaster.replication.wire.capability import EXTENDED_SHIFT, LOW_MASK, Capability
from ibbmaster.replication.wire.command import Command
from ibbmaster.replication.wire.response import COLUMNS_FOLLOW, EOF_MARK, ColumnDefinition, Eof
from ibbmaster.storage.codec import lenenc
from ibbmaster.storage.codec.buffer import Buffer


def answer_native(password: str, seed: bytes) -> bytes:
    """A client's answer for mysql_native_password (MariaDB 12.3, password.c, scramble()): 20 bytes, or none."""
    if not password:
        return b""
    hashed_once = hashlib.sha1(password.encode()).digest()
    return auth._xor(hashed_once, hashlib.sha1(seed + hashlib.sha1(hashed_once).digest()).digest())


def answer_ed25519(password: str, nonce: bytes) -> bytes:
    """A client's answer for client_ed25519: 64 bytes (RFC 8032, 5.1.6). Raises ConfigurationError: without PyNaCl."""
    scalar, prefix = auth._ed25519_scalar(password), hashlib.sha512(password.encode()).digest()[32:]
    public_key = auth._multiply_base(scalar)
    from nacl import bindings

    r = bindings.crypto_core_ed25519_scalar_reduce(hashlib.sha512(prefix + nonce).digest())
    commitment = auth._multiply_base(r)
    k = bindings.crypto_core_ed25519_scalar_reduce(hashlib.sha512(commitment + public_key + nonce).digest())
    reduced_scalar = bindings.crypto_core_ed25519_scalar_reduce(scalar + bytes(32))
    s = bindings.crypto_core_ed25519_scalar_add(r, bindings.crypto_core_ed25519_scalar_mul(k, reduced_scalar))
    return commitment + bytes(s)


def encode_login(login: handshake.LoginRequest | handshake.TlsRequest) -> bytes:
    capabilities = login.capabilities
    extended = 0 if capabilities & Capability.MYSQL else capabilities >> EXTENDED_SHIFT
    fixed = handshake._LOGIN_FIXED.pack(
        capabilities & LOW_MASK, login.payload_size_max, login.collation_id & handshake.COLLATION_BYTE_MAX, extended
    )
    if isinstance(login, handshake.TlsRequest):
        return fixed
    parts = [fixed, handshake._terminated(login.user)]
    if capabilities & Capability.LENENC_AUTH_DATA:
        parts.append(lenenc.encode_bytes(login.auth_data))
    else:
        parts.append(bytes((len(login.auth_data),)) + login.auth_data)
    if capabilities & Capability.CONNECT_WITH_DB:
        parts.append(handshake._terminated(login.database or ""))
    if capabilities & Capability.PLUGIN_AUTH:
        parts.append(handshake._terminated(login.plugin_name or handshake.NATIVE_PASSWORD))
    if capabilities & Capability.CONNECT_ATTRIBUTES:
        texts = [lenenc.encode_bytes(text.encode()) for pair in login.attributes for text in pair]
        parts.append(lenenc.encode_bytes(b"".join(texts)))
    return b"".join(parts)


def decode_auth_switch(payload: Buffer) -> tuple[str, bytes]:
    fields = handshake._Fields(payload, "an auth switch")
    (mark,) = fields.take(1)
    if mark != handshake.AUTH_SWITCH_MARK:
        raise RemoteProtocolError(f"byte {mark:#04x} where an auth switch was expected")
    return fields.take_text(handshake.NAME_SIZE_MAX), fields.take(fields.left)


def decode_eof(payload: Buffer) -> Eof:
    response._expect_mark(payload, EOF_MARK, "an EOF packet")
    if len(payload) != response._EOF.size:
        raise RemoteProtocolError(f"an EOF packet of {len(payload)} bytes, expected {response._EOF.size}")
    _, warning_count, status = response._EOF.unpack(payload)
    return Eof(status=status, warning_count=warning_count)


def decode_column(payload: Buffer, capabilities: Capability = Capability.PROTOCOL_41) -> ColumnDefinition:
    try:
        texts = []
        offset = 0
        for _ in range(6):
            text, offset = lenenc.decode_bytes(payload, offset)
            texts.append(text.decode("utf-8", "replace"))
        extended_metadata = b""
        if capabilities & Capability.EXTENDED_METADATA:
            extended_metadata, offset = lenenc.decode_bytes(payload, offset)
        fixed = response._COLUMN_TAIL.unpack_from(payload, offset)
    except (ValueError, struct.error) as error:
        raise RemoteProtocolError(f"a column definition that cannot be read: {error}") from None
    tail_size, collation_id, length, column_type, flags, decimals, _ = fixed
    if tail_size != response._COLUMN_TAIL_SIZE or len(payload) != offset + response._COLUMN_TAIL.size:
        raise RemoteProtocolError("a column definition whose fixed part has another size than 12 bytes")
    catalog, schema, table, original_table, name, original_name = texts
    return ColumnDefinition(
        name=name,
        column_type=column_type,
        length=length,
        collation_id=collation_id,
        flags=flags,
        decimals=decimals,
        original_name=original_name,
        schema=schema,
        table=table,
        original_table=original_table,
        catalog=catalog,
        extended_metadata=extended_metadata,
    )


def decode_column_count(payload: Buffer, capabilities: Capability = Capability.PROTOCOL_41) -> int:
    try:
        count, offset = lenenc.decode_int(payload, 0)
    except ValueError as error:
        raise RemoteProtocolError(f"a result set whose head cannot be read: {error}") from None
    rest = bytes(payload[offset:])
    if rest != (COLUMNS_FOLLOW if capabilities & Capability.CACHE_METADATA else b""):
        raise RemoteProtocolError(f"a result set whose head ends in {rest[:8].hex() or 'nothing'}")
    return count


def decode_row(payload: Buffer, column_count: int) -> tuple[bytes | None, ...]:
    values: list[bytes | None] = []
    offset = 0
    try:
        for _ in range(column_count):
            if offset < len(payload) and payload[offset] == lenenc.NULL:
                values.append(None)
                offset += 1
            else:
                value, offset = lenenc.decode_bytes(payload, offset)
                values.append(value)
    except ValueError as error:
        raise RemoteProtocolError(f"a row that cannot be read: {error}") from None
    if offset != len(payload):
        raise RemoteProtocolError(f"a row with {len(payload) - offset} bytes behind its {column_count} values")
    return tuple(values)


_BARE = {
    commands.Quit: Command.QUIT,
    commands.Statistics: Command.STATISTICS,
    commands.Ping: Command.PING,
    commands.ResetConnection: Command.RESET_CONNECTION,
}


def encode_command(command: commands.AnyCommand) -> bytes:
    if isinstance(command, commands.UnsupportedCommand | commands.MalformedCommand):
        return bytes((command.code,))
    code, rest = _parts(command)
    return bytes((code,)) + rest


def _parts(command: commands.AnyCommand) -> tuple[Command, bytes]:
    match command:
        case commands.InitDb():
            return Command.INIT_DB, command.database.encode()
        case commands.QueryCommand():
            return Command.QUERY, command.sql
        case commands.ProcessKill():
            return Command.PROCESS_KILL, command.connection_id.to_bytes(commands.NUMBER_SIZE, "little")
        case commands.BinlogDump():
            fixed = commands._DUMP.pack(command.position, command.flags, command.server_id)
            return Command.BINLOG_DUMP, fixed + command.file_name.encode()
        case commands.RegisterReplica():
            texts = b"".join(map(_short, (command.host, command.user, command.password)))
            tail = commands._REGISTER_TAIL.pack(command.port, command.rank, command.primary_id)
            return Command.REGISTER_REPLICA, command.server_id.to_bytes(commands.NUMBER_SIZE, "little") + texts + tail
        case commands.SetOption():
            return Command.SET_OPTION, command.option.to_bytes(commands.OPTION_SIZE, "little")
        case commands.StatementPrepare():
            return Command.STATEMENT_PREPARE, command.sql
        case commands.StatementExecute():
            fixed = commands._EXECUTE.pack(command.statement_id, command.flags, 1)
            return Command.STATEMENT_EXECUTE, fixed + command.parameters
        case commands.StatementLongData():
            fixed = commands._LONG_DATA.pack(command.statement_id, command.parameter_no)
            return Command.STATEMENT_LONG_DATA, fixed + command.data
        case commands.StatementClose():
            return Command.STATEMENT_CLOSE, command.statement_id.to_bytes(commands.NUMBER_SIZE, "little")
        case commands.StatementReset():
            return Command.STATEMENT_RESET, command.statement_id.to_bytes(commands.NUMBER_SIZE, "little")
        case commands.StatementFetch():
            return Command.STATEMENT_FETCH, commands._FETCH.pack(command.statement_id, 1)
    return _BARE[type(command)], b""


def _short(text: str) -> bytes:
    data = text.encode()
    assert len(data) < 256, text
    return bytes((len(data),)) + data


def decode_heartbeat(event: Buffer) -> tuple[str, int]:
    """File name and position."""
    header, body = decode_body(event, EventType.HEARTBEAT)
    position = header.log_pos
    if position == 0:
        if len(body) < LONG_POSITION.size:
            raise EventError(f"HEARTBEAT without log_pos has a body of {len(body)} bytes, expected at least 8")
        (position,) = LONG_POSITION.unpack_from(body)
        body = body[LONG_POSITION.size :]
    return bytes(body).decode("utf-8", "surrogateescape"), position
