"""The server's end of a connection: greeting, TLS, login, then commands. Order: protocol/wire/handshake.md.

It has no socket and no clock. The driver hands over the bytes it received, asks for events until there are none, and
sends the answers:

    socket.send(connection.data_to_send())  # also without an event: an auth switch is none
    connection.receive_data(socket.receive(connection.receive_size_max))
    while (event := connection.next_event()) is not None: ...

What must stay true:
- before the login it takes at most `LOGIN_SIZE_MAX` bytes, and does nothing costly
- an unknown user, a wrong password, an address from which the account may not come, and a login in clear where TLS is
  required look the same to the client
- it never takes bytes that came in clear for encrypted ones
- after RemoteProtocolError, LoginFailed and the end of a dump it reads nothing
"""

import enum
import hashlib
import hmac
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from ibbmaster.errors import LocalProtocolError, PacketOrderError, PacketTooLargeError, RemoteProtocolError
from ibbmaster.storage.codec.buffer import Buffer
from .answer import encode_response, framed_response
from .auth import Account, certificate_proof
from .capability import SERVER_DEFAULT, Capability
from .command import AnyCommand, BinlogDump, Command, Quit, decode_command
from .handshake import (
    NATIVE_PASSWORD,
    TLS_REQUEST_SIZE,
    Greeting,
    LoginRequest,
    TlsRequest,
    decode_login,
    encode_auth_switch,
    encode_greeting,
)
from .packet import PACKET_HEADER_SIZE, SEQUENCE_MASK, PacketReader, PacketStream, frame_packets
from .response import (
    COLLATION_DEFAULT,
    BlockResultSet,
    Eof,
    Err,
    Ok,
    Response,
    encode_eof,
    encode_err,
    encode_ok,
    with_more_results,
)

LOGIN_SIZE_MAX = 64 * 1024  # bytes of all that comes before the login is done
COMMAND_SIZE_MAX = 16 * 1024 * 1024  # MariaDB's default for max_allowed_packet
RECEIVE_SIZE = 16 * 1024  # bytes to take from the socket at a time
ANSWER_PIECE_SIZE = 64 * 1024  # a long result set is handed over in pieces of about this size

BAD_HANDSHAKE = Err(code=1043, sqlstate="08S01", text="Bad handshake")
OLD_CLIENT = Err(
    code=1251,
    sqlstate="08004",
    text="Client does not support authentication protocol requested by server; consider upgrading MariaDB client",
)
QUIT_PACKET = frame_packets(bytes((Command.QUIT,)), 0)[0]
PACKET_TOO_LARGE = Err(code=1153, sqlstate="08S01", text="Got a packet bigger than 'max_allowed_packet' bytes")
PACKETS_OUT_OF_ORDER = Err(code=1156, sqlstate="08S01", text="Got packets out of order")


@dataclass(frozen=True, slots=True)
class NeedTls:
    """Begin TLS on the socket as its server, then call `tls_started`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedIn:
    """The client has proved its user; commands follow."""

    user: str
    database: str | None
    collation_id: int  # as far as the login has it; 0: choose one
    capabilities: Capability  # those agreed on
    attributes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginFailed:
    user: str
    reason: str  # for our log; the client gets less


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReceived:
    """Answer it before the next event."""

    command: AnyCommand


@dataclass(frozen=True, slots=True)
class Closed:
    """The client left: by COM_QUIT, or without."""


Event: TypeAlias = NeedTls | LoggedIn | LoginFailed | CommandReceived | Closed


class State(enum.Enum):
    LOGIN = "the login, or a request for TLS"
    TLS = "the driver, which sets up TLS"
    TLS_LOGIN = "the login inside TLS"
    AUTH_ANSWER = "the answer to an auth switch"
    COMMAND = "a command"
    DUMP = "nothing: a dump is the last answer of a connection"
    CLOSED = "nothing"


TRANSITIONS: dict[State, frozenset[State]] = {
    State.LOGIN: frozenset({State.TLS, State.AUTH_ANSWER, State.COMMAND, State.CLOSED}),
    State.TLS: frozenset({State.TLS_LOGIN, State.CLOSED}),
    State.TLS_LOGIN: frozenset({State.AUTH_ANSWER, State.COMMAND, State.CLOSED}),
    State.AUTH_ANSWER: frozenset({State.COMMAND, State.CLOSED}),
    State.COMMAND: frozenset({State.DUMP, State.CLOSED}),
    State.DUMP: frozenset({State.CLOSED}),
    State.CLOSED: frozenset({State.CLOSED}),
}
BEFORE_LOGIN = frozenset({State.LOGIN, State.TLS, State.TLS_LOGIN, State.AUTH_ANSWER})


class ServerConnection:
    """`seed` (20 printable bytes, no NUL) and `nonce` (32 bytes) must be new and unpredictable for every connection.
    Errors name the client's address as `peer_host`.
    """

    def __init__(
        self,
        *,
        connection_id: int,
        server_version: str,
        accounts: Sequence[Account],
        seed: bytes,
        nonce: bytes,
        peer_host: str,
        offers_tls: bool = False,
        capabilities: Capability = SERVER_DEFAULT,
        collation_id: int = COLLATION_DEFAULT,
        command_size_max: int = COMMAND_SIZE_MAX,
    ) -> None:
        assert accounts
        self.state = State.LOGIN
        self.capabilities = Capability(0)
        self._accounts = tuple(accounts)
        self._seed = seed
        self._nonce = nonce
        self._peer_host = peer_host
        self._offered = capabilities | (Capability.TLS if offers_tls else Capability(0))
        self._command_size_max = command_size_max
        self._fingerprint: bytes | None = None  # of the certificate, once the connection is encrypted
        self._login: LoginRequest | None = None
        self._login_bytes_left = LOGIN_SIZE_MAX
        self._is_at_end = False
        self._has_quit = False  # during a dump
        self._reader = PacketReader(limit=LOGIN_SIZE_MAX, next_sequence=1)
        self._stream = PacketStream(sequence=0)
        self._out = bytearray()
        greeting = Greeting(
            server_version=server_version,
            connection_id=connection_id,
            seed=seed,
            capabilities=self._offered,
            collation_id=collation_id,
        )
        self._send(encode_greeting(greeting))

    @property
    def receive_size_max(self) -> int:
        """The most bytes to take from the socket: those after a request for TLS belong to its layer."""
        if self.state is State.LOGIN and self._offered & Capability.TLS:
            received = LOGIN_SIZE_MAX - self._login_bytes_left
            return max(PACKET_HEADER_SIZE + TLS_REQUEST_SIZE - received, 0) or RECEIVE_SIZE
        return RECEIVE_SIZE

    @property
    def unread_size(self) -> int:
        return self._reader.unread_size

    @property
    def has_quit(self) -> bool:
        """Whether COM_QUIT has come right after the command being answered, or during a dump."""
        return self._has_quit or self._reader.begins_with(QUIT_PACKET)

    @property
    def has_data_to_send(self) -> bool:
        return bool(self._out)

    def data_to_send(self) -> bytes:
        """A second call returns only newer bytes."""
        data = bytes(self._out)
        self._out.clear()
        return data

    def receive_data(self, data: Buffer) -> None:
        """Take bytes from the socket, cut anywhere; none: the client closed it. A dump drops all: one client sends a
        stray byte after its command, and semi-synchronous replicas acknowledge without a request. Raises
        RemoteProtocolError: too much before the login, or bytes in clear after a request for TLS.
        """
        if not len(data):
            self._is_at_end = True
        elif self.state is State.COMMAND:
            self._reader.receive_data(data)
        elif self.state is State.DUMP:
            self._has_quit = self._has_quit or bytes(data[-len(QUIT_PACKET) :]) == QUIT_PACKET
        elif self.state in BEFORE_LOGIN:
            self._login_bytes_left -= len(data)
            if self._login_bytes_left < 0:
                self._fail(PACKET_TOO_LARGE, PacketTooLargeError(f"more than {LOGIN_SIZE_MAX} bytes before the login"))
            if self.state is State.TLS:
                self._fail(BAD_HANDSHAKE, RemoteProtocolError("bytes in clear behind a request for TLS"))
            self._reader.receive_data(data)

    def tls_started(self, certificate_der: bytes) -> None:
        """Continue inside TLS, after showing this certificate. Raises LocalProtocolError: not asked for."""
        if self.state is not State.TLS:
            raise LocalProtocolError(f"TLS started while the connection waited for {self.state.value}")
        self._fingerprint = hashlib.sha256(certificate_der).digest()
        self._enter(State.TLS_LOGIN)

    def next_event(self) -> Event | None:
        """None if more bytes are needed. Raises RemoteProtocolError: the client broke the protocol: send the answer and
        close.
        """
        match self.state:
            case State.COMMAND:
                event = self._next_command()
            case State.LOGIN | State.TLS_LOGIN:
                event = self._next_login()
            case State.AUTH_ANSWER:
                event = self._next_auth_answer()
            case _:
                event = None
        if event is None and self._is_at_end and self.state is not State.CLOSED:
            self._enter(State.CLOSED)
            return Closed()
        return event

    def answer(self, *responses: Response) -> Iterator[Buffer]:
        """Yields the packets that answer the last command, in pieces; several responses answer several statements.
        Nothing happens, and no row is read, before the first piece is asked for.
        """
        marked = [with_more_results(response) for response in responses[:-1]]
        return self.answer_each([*marked, *responses[-1:]])

    def answer_at_once(self, *responses: Response) -> bytes:
        """As `answer`, in one piece, for small answers without rows to wait for."""
        if len(responses) == 1:
            self._check_answering()
            framed = framed_response(responses[0], self._stream.sequence, self.capabilities)
            if framed is not None:
                data, self._stream.sequence = framed
                return data
        return b"".join(self.answer(*responses))

    def answer_each(self, responses: Iterable[Response]) -> Iterator[Buffer]:
        """As `answer`; each response but the last says itself that another follows, and is handed over before the next
        one is asked for.
        """
        self._check_answering()
        return self._answer(responses)

    def _check_answering(self) -> None:
        if self.state is not State.COMMAND and self.state is not State.DUMP:
            raise LocalProtocolError(f"an answer while the connection waits for {self.state.value}")

    def close(self, last: Err | Eof | None = None, *, is_reading: bool = False) -> None:
        """Read no more; queue `last` if given, with `is_reading` to a part of a command."""
        if self.state is State.CLOSED:
            return
        if is_reading:
            self._stream.sequence = (self._reader.next_sequence + 1) & SEQUENCE_MASK
        if last is not None:
            self._send(encode_eof(last) if isinstance(last, Eof) else encode_err(last))
        self._enter(State.CLOSED)

    def _answer(self, responses: Iterable[Response]) -> Iterator[Buffer]:
        piece = bytearray()
        for response in responses:
            for payload in encode_response(response, self.capabilities):
                piece += self._stream.frame(payload)
                if len(piece) >= ANSWER_PIECE_SIZE:
                    yield bytes(piece)
                    piece.clear()
            if isinstance(response, BlockResultSet):
                yield bytes(piece)
                piece.clear()
                piece += yield from self._send_blocks(response)
        if piece:
            yield bytes(piece)

    def _send_blocks(self, result: BlockResultSet) -> Generator[Buffer, None, bytes]:
        """Returns the packet after the rows."""
        with closing(result.blocks):
            while isinstance(found := result.blocks.next_block(self._stream.sequence), tuple):
                block, self._stream.sequence = found
                yield block
        end = encode_eof(Eof(status=result.status)) if found is None else encode_err(found)
        return self._stream.frame(end)

    def _next_payload(self) -> bytes | None:
        try:
            payload = self._reader.next_payload()
        except (PacketOrderError, PacketTooLargeError) as error:
            self._stream.sequence = self._reader.next_sequence
            self._fail(PACKETS_OUT_OF_ORDER if isinstance(error, PacketOrderError) else PACKET_TOO_LARGE, error)
        if payload is not None:
            self._stream.sequence = self._reader.next_sequence
        return payload

    def _next_login(self) -> Event | None:
        payload = self._next_payload()
        if payload is None:
            return None
        try:
            login = decode_login(payload)
        except RemoteProtocolError as error:
            self._fail(BAD_HANDSHAKE, error)
        if isinstance(login, TlsRequest):
            return self._begin_tls()
        self.capabilities = login.capabilities & self._offered
        self._login = login
        account, _ = self._find_account(login)
        if account.plugin_name == NATIVE_PASSWORD and login.plugin_name in (None, NATIVE_PASSWORD):
            return self._judge(self._seed, login.auth_data)
        if not login.capabilities & Capability.PLUGIN_AUTH:
            self._fail(OLD_CLIENT, RemoteProtocolError(f"a client that cannot do {account.plugin_name}"))
        self._switch_plugin(account)
        return None

    def _begin_tls(self) -> NeedTls:
        if self.state is not State.LOGIN or not self._offered & Capability.TLS:
            self._fail(BAD_HANDSHAKE, RemoteProtocolError("a request for TLS that was not offered"))
        if self._reader.unread_size:
            self._fail(BAD_HANDSHAKE, RemoteProtocolError("bytes in clear behind a request for TLS"))
        self._enter(State.TLS)
        return NeedTls()

    def _switch_plugin(self, account: Account) -> None:
        data = self._seed + b"\x00" if account.plugin_name == NATIVE_PASSWORD else self._nonce
        self._send(encode_auth_switch(account.plugin_name, data))
        self._reader.next_sequence = self._stream.sequence
        self._enter(State.AUTH_ANSWER)

    def _next_auth_answer(self) -> Event | None:
        assert self._login is not None
        payload = self._next_payload()
        if payload is None:
            return None
        account, _ = self._find_account(self._login)
        nonce = self._seed if account.plugin_name == NATIVE_PASSWORD else self._nonce
        return self._judge(nonce, payload)

    def _find_account(self, login: LoginRequest) -> tuple[Account, bool]:
        """For an unknown user any account, for the same work."""
        user = login.user.encode()
        found, is_known = self._accounts[0], False
        for account in self._accounts:
            if hmac.compare_digest(account.user.encode(), user):
                found, is_known = account, True
        return found, is_known

    def _judge(self, nonce: bytes, answer: bytes) -> Event:
        assert self._login is not None
        login = self._login
        account, is_known = self._find_account(login)
        is_proved = account.verify(nonce, answer)
        reason = ""
        if not is_known:
            reason = "unknown user"
        elif not account.allows(self._peer_host):
            reason = "its account may not come from this address"
        elif account.requires_tls and self._fingerprint is None:
            reason = "TLS is required"
        elif not is_proved:
            reason = "wrong password"
        if reason:
            return self._refuse(reason, used_password=bool(answer))
        proof = b""
        if self._fingerprint is not None:
            proof = certificate_proof(account, self._seed, self._fingerprint)
        self._send(encode_ok(Ok(message=proof)))
        self._reader.limit = self._command_size_max
        self._enter(State.COMMAND)
        return LoggedIn(
            user=login.user,
            database=login.database,
            collation_id=login.collation_id,
            capabilities=self.capabilities,
            attributes=login.attributes,
        )

    def _refuse(self, reason: str, *, used_password: bool) -> LoginFailed:
        assert self._login is not None
        user = self._login.user
        used = "YES" if used_password else "NO"
        text = f"Access denied for user '{user}'@'{self._peer_host}' (using password: {used})"
        self._send(encode_err(Err(code=1045, sqlstate="28000", text=text)))
        self._enter(State.CLOSED)
        return LoginFailed(user=user, reason=reason)

    def _next_command(self) -> Event | None:
        if self._reader.is_between_payloads:
            self._reader.next_sequence = 0
        payload = self._next_payload()
        if payload is None:
            return None
        command = decode_command(payload)
        match command:
            case Quit():
                self._enter(State.CLOSED)
                return Closed()
            case BinlogDump():
                self._enter(State.DUMP)
        return CommandReceived(command=command)

    def _fail(self, answer: Err, error: RemoteProtocolError) -> NoReturn:
        self._send(encode_err(answer))
        self._enter(State.CLOSED)
        raise error

    def _enter(self, state: State) -> None:
        assert state in TRANSITIONS[self.state], (self.state, state)
        self.state = state

    def _send(self, payload: bytes) -> None:
        self._out += self._stream.frame(payload)
