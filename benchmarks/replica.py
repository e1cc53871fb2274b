"""A replica as a primary sees it, which costs next to nothing: its login, statement by statement, and its dump.

Each statement waits for its answer, as a real replica does. What is said is a generator that
takes a packet and gives what to send, so that one connection and a thousand of them speak alike.
"""

from __future__ import annotations

import contextlib
import itertools
import selectors
import socket
import ssl
import struct
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from pymysql._auth import scramble_native_password

from ibbmaster.replication.event.types import EventType

SERVER_IDS = itertools.count(1000)  # each connection has another: a primary ends an older dump of the same
NATIVE_PASSWORD = b"mysql_native_password"
CAPABILITIES = 0x8038A205  # those of a replica
TLS = 0x800
PACKET_MAX = 0x40000000
DUMP, REGISTER, QUERY = b"\x12", b"\x15", b"\x03"
TILL_THE_END = 3  # flags of a dump: end with EOF where a replica would wait; with annotations
FOR_EVER = 2
TYPE_OFFSET = 5  # of an event's type in its packet, behind the OK byte and a timestamp
SEQ_NO_OFFSET = 20  # of a GTID event's number
RECEIVE_BYTES = 1 << 18
TIMEOUT_S = 60.0  # ends what hangs


@dataclass(frozen=True, slots=True)
class Account:
    """Where to log in, and as whom."""

    port: int
    user: str = "bench"
    password: str = "bench"


Conversation = Generator[bytes, bytes, None]


def packet(number: int, body: bytes) -> bytes:
    """With its header."""
    return len(body).to_bytes(3, "little") + bytes((number,)) + body


def statements(position: str) -> list[str]:
    """What a replica of MariaDB 11.8 says between its login and its dump."""
    return [
        "SELECT UNIX_TIMESTAMP()",
        "SHOW VARIABLES LIKE 'SERVER_ID'",
        "SET @master_heartbeat_period= 30000001024",
        "SET @master_binlog_checksum= @@global.binlog_checksum",
        "SELECT @master_binlog_checksum",
        "SET @mariadb_slave_capability=4",
        "SELECT @@GLOBAL.gtid_domain_id",
        f"SET @slave_connect_state='{position}'",
        "SET @slave_gtid_strict_mode=0",
        "SET @slave_gtid_ignore_duplicates=0",
    ]


def conversation(account: Account, position: str, *, is_secret: bool = False) -> Conversation:
    """From the greeting to the answer before the dump, for TLS with the request for it behind the greeting."""
    greeting = yield b""
    seed_at = greeting.index(b"\0", 1) + 5
    seed = greeting[seed_at : seed_at + 8] + greeting[seed_at + 27 : seed_at + 39]
    head = struct.pack("<IIB23x", CAPABILITIES | (TLS if is_secret else 0), PACKET_MAX, 8)
    if is_secret:
        yield packet(1, head)
    proof = scramble_native_password(account.password.encode(), seed)
    names = account.user.encode() + b"\0" + bytes((len(proof),)) + proof + NATIVE_PASSWORD + b"\0\0"
    answer = yield packet(1 + is_secret, head + names)
    if answer[0]:
        raise SystemExit(f"no login as {account.user}: {answer!r}")
    register = struct.pack("<I3xHII", next(SERVER_IDS), 3306, 0, 0)
    for command in (*((QUERY + text.encode()) for text in statements(position)), REGISTER + register):
        answer = yield packet(0, command)
        if answer[0] == 0xFF:
            raise SystemExit(f"{command!r}: {answer!r}")
        ends = 0 if answer[0] else 2  # a result set has an EOF behind its columns, and one behind its rows
        while ends < 2:
            answer = yield b""
            ends += answer[0] == 0xFE and len(answer) < 9


def dump_packet(flags: int) -> bytes:
    """The command that begins the stream."""
    return packet(0, DUMP + struct.pack("<IHI", 4, flags, next(SERVER_IDS)))


def whole_packets(data: bytearray) -> Iterator[bytes]:
    """Take the packets that are complete from the front."""
    while len(data) >= 4 and len(data) >= (end := 4 + int.from_bytes(data[:3], "little")):
        body = bytes(data[4:end])
        del data[:end]
        yield body


class Line:
    """One connection, blocking, in clear or over TLS."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._tls: ssl.SSLObject | None = None
        self._arriving, self._leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._data = bytearray()

    def begin_tls(self) -> None:
        """Shake hands; afterwards the socket carries records of TLS 1.3."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._tls = context.wrap_bio(self._arriving, self._leaving)
        while True:
            try:
                self._tls.do_handshake()
                self.socket.sendall(self._leaving.read())
                return
            except ssl.SSLWantReadError:
                self.socket.sendall(self._leaving.read())
                self._arriving.write(self._receive())

    def _receive(self) -> bytes:
        data = self.socket.recv(RECEIVE_BYTES)
        if not data:
            raise SystemExit("the server closed the connection")
        return data

    def send(self, data: bytes) -> None:
        """All of it."""
        if self._tls is not None:
            self._tls.write(data)
            data = self._leaving.read()
        self.socket.sendall(data)

    def next_packet(self) -> bytes:
        """Wait for one."""
        while (body := next(whole_packets(self._data), None)) is None:
            data = self._receive()
            if self._tls is not None:
                self._arriving.write(data)
                data = b""
                with contextlib.suppress(ssl.SSLWantReadError):
                    while piece := self._tls.read(RECEIVE_BYTES):
                        data += piece
            self._data += data
        return body


def log_in(account: Account, position: str = "", *, is_secret: bool = False) -> Line:
    """A connection that is ready to dump."""
    line = Line(account.port)
    talk = conversation(account, position, is_secret=is_secret)
    next(talk)
    send = talk.send(line.next_packet())
    if is_secret:
        line.send(send)
        line.begin_tls()
        send = next(talk)
    while True:
        if send:
            line.send(send)
        try:
            send = talk.send(line.next_packet())
        except StopIteration:
            return line


def waiting(account: Account, position: str = "", *, is_secret: bool = False) -> socket.socket:
    """A dump that does not end, of all that is behind a position; over TLS records of it come."""
    line = log_in(account, position, is_secret=is_secret)
    line.send(dump_packet(FOR_EVER))
    return line.socket


def first_event_s(account: Account, position: str) -> float:
    """Seconds from the dump command to the first GTID event; in the logs that are asked numbers go up by one."""
    line = log_in(account, position)
    with line.socket:
        begun = time.perf_counter()
        line.send(dump_packet(FOR_EVER))
        while (body := line.next_packet())[TYPE_OFFSET] != EventType.GTID:
            if body[0]:
                raise SystemExit(f"position {position}: {body!r}")
        seconds = time.perf_counter() - begun
    seq_no = int.from_bytes(body[SEQ_NO_OFFSET : SEQ_NO_OFFSET + 8], "little")
    if position and seq_no != int(position.rpartition("-")[2]) + 1:
        raise SystemExit(f"position {position}: the first group is {seq_no}")
    return seconds


def reconnect_s(account: Account, position: str, count: int) -> float:
    """Seconds until so many replicas, all at once, have logged in and got their first GTID event."""
    buffers: dict[int, bytearray] = {}
    talks: dict[int, Conversation | None] = {}
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:
        begun = time.perf_counter()
        for number in range(count):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", account.port), timeout=TIMEOUT_S))
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(one, selectors.EVENT_READ, number)
            buffers[number] = bytearray()
            talks[number] = conversation(account, position)
            next(talks[number])  # type: ignore[arg-type]
        while selector.get_map():
            ready = selector.select(TIMEOUT_S)
            if not ready:
                raise SystemExit(f"{len(selector.get_map())} replicas of {count} got nothing for {TIMEOUT_S:.0f} s")
            for key, _ in ready:
                if not (data := key.fileobj.recv(RECEIVE_BYTES)):  # type: ignore[union-attr]
                    raise SystemExit("the server closed a connection")
                buffers[key.data] += data
                for body in whole_packets(buffers[key.data]):
                    talk = talks[key.data]
                    if talk is None:
                        if body[TYPE_OFFSET] == EventType.GTID:
                            selector.unregister(key.fileobj)
                            break
                        continue
                    try:
                        send = talk.send(body)
                    except StopIteration:
                        talks[key.data], send = None, dump_packet(FOR_EVER)
                    if send:
                        key.fileobj.send(send)  # type: ignore[union-attr]
        return time.perf_counter() - begun
