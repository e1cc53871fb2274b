"""A client of MariaDB's replication protocol: the groups of a primary, ours or a server, between two GTID positions.
Groups have no place in files here."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ibbmaster.errors import EventError, RemoteProtocolError, SourceError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.position import NOWHERE
from ibbmaster.replication.event.control import decode_gtid_list, decode_rotate
from ibbmaster.replication.event.format_description import FIXED, ChecksumAlgorithm
from ibbmaster.replication.event.group import EventGroup, GroupBoundary
from ibbmaster.replication.event.gtid_event import decode_gtid
from ibbmaster.replication.event.header import (
    CHECKSUM_SIZE,
    EVENT_HEADER_SIZE,
    TYPE_OFFSET,
    EventHeader,
    decode_event_header,
    has_valid_checksum,
    without_checksum,
)
from ibbmaster.replication.event.types import EventFlag, EventType
from ibbmaster.replication.wire.command import Command
from ibbmaster.replication.wire.packet import EVENT_STATUS, PACKET_HEADER_SIZE, SEQUENCE_MASK, PacketReader
from ibbmaster.storage.codec.buffer import Buffer
from ibbmaster.storage.codec.printable import address

if TYPE_CHECKING:
    import pymysql

ERROR, SEMI_SYNC_MAGIC = b"\xff", b"\xef"
HEAD_BYTES = PACKET_HEADER_SIZE + len(EVENT_STATUS)  # before an event in a packet
SEMI_SYNC_BYTES = 2  # more, of semi-synchronous replication: the magic, and whether an acknowledgement is wanted
PAYLOAD_MAX = (1 << 30) + 1024  # an event of the longest packet that a server allows
RECEIVED_MAX = 1 << 18  # bytes in one read
DUMP_HEAD = struct.Struct("<IHI")  # position, flags, server id
HOST_BYTES_MAX = 60  # of a report-host
NON_BLOCK = 1  # ends with the log: a dump to a lost client would stop purges
SEND_ANNOTATE_ROWS = 2
FATAL_ERROR_READING_BINLOG = 1236
HEARTBEAT_S = 5
FORMAT_SIZE_MIN = EVENT_HEADER_SIZE + FIXED.size + 1 + CHECKSUM_SIZE
TIMEOUT_S = 60  # without a byte, heartbeats included
AFTER_PURGE = (
    "What comes after that position is gone from here: go on with a server or a directory that has it, or begin anew "
    "at another position, a stream with another checkpoint"
)
BETWEEN_GROUPS = (
    EventType.FORMAT_DESCRIPTION,
    EventType.ROTATE,
    EventType.STOP,
    EventType.GTID_LIST,
    EventType.BINLOG_CHECKPOINT,
    EventType.HEARTBEAT,
    EventType.START_ENCRYPTION,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimaryAddress:
    host: str  # or the path of a socket
    port: int
    user: str
    password: str = field(repr=False, compare=False)
    uses_tls: bool
    server_id: int
    verifies: bool = False  # with TLS: whether the certificate has to be of that host
    ca: str | None = None  # file with the certificates of authorities; None: those of the system

    def __str__(self) -> str:
        return self.host if self.is_socket else address(self.host, self.port)

    @property
    def is_socket(self) -> bool:
        return self.host.startswith("/")


def logged_position(primary: PrimaryAddress) -> GtidPosition:
    """Raises SourceError: the primary cannot be reached, or refuses."""
    with connected(primary) as connection:
        return _logged(connection)


def _logged(connection: pymysql.Connection[Any]) -> GtidPosition:
    return GtidPosition.parse(value_of(connection, "gtid_binlog_pos"))


def value_of(connection: pymysql.Connection[Any], variable: str) -> str:
    """A global variable of the primary, as text."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT @@GLOBAL.{variable}")
        (value,) = cursor.fetchone()
        return "" if value is None else str(value)


def shown_value(connection: pymysql.Connection[Any], statement: str) -> str:
    """The second column of a SHOW that has one row; empty without a row."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        row = cursor.fetchone()
        return "" if row is None else str(row[1])


def semi_sync_of(connection: pymysql.Connection[Any]) -> str:
    """ON or OFF; empty: the primary has no semi-synchronous replication."""
    return shown_value(connection, "SHOW VARIABLES LIKE 'rpl_semi_sync_master_enabled'")


def oldest_position(primary: PrimaryAddress) -> GtidPosition:
    """As `oldest_state`, and as a position."""
    return oldest_state(primary).position()


def oldest_state(primary: PrimaryAddress) -> GtidState:
    """The GTID state before the oldest file of a primary; empty if it has purged nothing. A dump of the head of that
    file, which says so, needs only the right to replicate. A primary with an engine binlog sends no files: it is asked
    for its first group. Raises EventError: the primary sends something else than events; SourceError: it cannot be
    reached, refuses, or has purged its first groups and sends no file."""
    try:
        with connected(primary) as connection:
            _announce(connection)
            for header, event in _dumped(connection, DUMP_HEAD.pack(4, NON_BLOCK, primary.server_id)):  # without a name
                if header.event_type == EventType.GTID_LIST:
                    return GtidState(decode_gtid_list(event).gtids)
                if header.event_type == EventType.GTID:
                    break
        raise SourceError(f"{primary}: the primary sends no GTID_LIST event at the head of its oldest file")
    except SourceError as refusal:
        if not _is_refused_dump(refusal):
            raise
    try:
        with connected(primary) as connection, contextlib.closing(_from_first(connection, primary)) as events:
            next(events, None)
    except SourceError as refusal:
        if not _is_refused_dump(refusal):
            raise
        raise SourceError(
            f"{refusal}: its oldest changes are gone, and it does not say which; name a GTID position to begin "
            "at, such as that of a backup"
        ) from None
    return GtidState()


def _is_refused_dump(error: SourceError) -> bool:
    return isinstance(error.__cause__, Exception) and error.__cause__.args[:1] == (FATAL_ERROR_READING_BINLOG,)


def _from_first(connection: pymysql.Connection[Any], primary: PrimaryAddress) -> Generator[tuple[EventHeader, bytes]]:
    """A dump for a replica that has nothing, up to the present end."""
    _announce(connection)
    with connection.cursor() as cursor:
        cursor.execute("SET @slave_connect_state='', @slave_gtid_strict_mode=1, @slave_gtid_ignore_duplicates=0")
    yield from _dumped(connection, DUMP_HEAD.pack(4, NON_BLOCK, primary.server_id))


def groups_between(primary: PrimaryAddress, start: GtidPosition, end: GtidPosition) -> Iterator[EventGroup]:
    """The groups after one position, up to another; the body of each is read with it. Raises EventError: the primary
    sends something else than events; SourceError: it cannot be reached, refuses, has purged what comes next, or breaks
    off."""
    if str(start) == str(end) or not len(end):
        return
    reached = {gtid.domain_id: gtid for gtid in start.values()}
    try:
        with connected(primary) as connection:
            # A primary that took the place of the one that had logged `end` may lack a part of it for ever.
            lost = "the primary has logged {has}, and not {wanted}, which it had before"
            expect_reached(primary, _logged(connection), end, lost)
            begin_dump(connection, primary.server_id, start, end)
            for group in groups_of(_pairs(connection)):
                assert group.gtid is not None
                reached[group.gtid.domain_id] = group.gtid
                yield group
    except SourceError as refusal:
        if _is_refused_dump(refusal) and "purged" in str(refusal):
            raise SourceError(f"{refusal} {AFTER_PURGE}") from refusal.__cause__
        raise
    # A primary, or a proxy before it, may end a dump early.
    ended = "the primary ended the stream at {has}, before {wanted}: try again"
    expect_reached(primary, GtidPosition(reached.values()), end, ended)


def expect_reached(primary: PrimaryAddress, found: GtidPosition, end: GtidPosition, problem: str) -> None:
    """Raises SourceError: a position lacks a GTID of `end`; the first one is `wanted`."""
    for wanted in end.values():
        last = found.get(wanted.domain_id)
        if last is None or last.seq_no < wanted.seq_no:
            has = last or f"nothing of domain {wanted.domain_id}"
            raise SourceError(f"{primary}: {problem.format(has=has, wanted=wanted)}")


@contextlib.contextmanager
def connected(primary: PrimaryAddress, *, timeout_s: int = TIMEOUT_S) -> Iterator[pymysql.Connection[Any]]:
    """Log in. Raises SourceError: the primary cannot be reached, or refuses; `code_of` has the number of its error."""
    import pymysql

    try:
        with contextlib.closing(
            pymysql.connect(
                host=primary.host,
                port=primary.port,
                unix_socket=primary.host if primary.is_socket else None,
                user=primary.user,
                password=primary.password,
                ssl_disabled=not primary.uses_tls or primary.is_socket,
                ssl_ca=primary.ca,
                ssl_verify_cert=primary.verifies or None,
                ssl_verify_identity=primary.verifies or None,
                connect_timeout=TIMEOUT_S,
                read_timeout=timeout_s,
                autocommit=True,
            )
        ) as connection:
            yield connection
    except (pymysql.Error, OSError, RemoteProtocolError) as error:
        text = str(error.args[1]) if len(error.args) > 1 else str(error)
        raise SourceError(f"{primary}: {text}") from error


DENIED = frozenset({1044, 1045, 1698})  # errors of a login


def code_of(error: SourceError) -> int:
    """The number of the error that a primary has answered; 0 if it did not."""
    cause = error.__cause__
    code = cause.args[0] if isinstance(cause, Exception) and cause.args else 0
    return code if isinstance(code, int) else 0


def register(connection: pymysql.Connection[Any], server_id: int) -> None:
    """Have SHOW SLAVE HOSTS list this connection. No dump depends on it: one that is refused says why."""
    import pymysql

    host = socket.gethostname().encode()[:HOST_BYTES_MAX]
    names = bytes((len(host), *host, 0, 0))  # neither user nor password
    with contextlib.suppress(pymysql.MySQLError):
        body = server_id.to_bytes(4, "little") + names + bytes(2 + 4 + 4)  # no port, rank, or primary
        connection._execute_command(Command.REGISTER_REPLICA, body)  # type: ignore[attr-defined]
        connection._read_ok_packet()  # type: ignore[attr-defined]


def begin_dump(
    connection: pymysql.Connection[Any],
    server_id: int,
    start: GtidPosition,
    end: GtidPosition | None = None,
    *,
    with_checksums: bool = False,
    heartbeat_s: int = HEARTBEAT_S,
) -> None:
    """Ask for the events after one position, up to another if it is given; `dumped` has the answer."""
    _announce(connection, "CRC32" if with_checksums else "NONE", heartbeat_s)
    with connection.cursor() as cursor:
        cursor.execute("SET @slave_connect_state=%s", (str(start),))
        if end is not None:
            cursor.execute("SET @slave_until_gtid=%s", (str(end),))
        cursor.execute("SET @slave_gtid_strict_mode=1, @slave_gtid_ignore_duplicates=0")
    _ask(connection, DUMP_HEAD.pack(4, SEND_ANNOTATE_ROWS, server_id))


def _announce(connection: pymysql.Connection[Any], checksums: str = "NONE", heartbeat_s: int = HEARTBEAT_S) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET @mariadb_slave_capability=4, @master_binlog_checksum=%s", (checksums,))
        cursor.execute("SET @master_heartbeat_period=%s", (heartbeat_s * 10**9,))


def _ask(connection: pymysql.Connection[Any], command: bytes) -> None:
    connection._execute_command(Command.BINLOG_DUMP, command)  # type: ignore[attr-defined]


def _dumped(connection: pymysql.Connection[Any], command: bytes) -> Generator[tuple[EventHeader, bytes]]:
    _ask(connection, command)
    yield from _pairs(connection)


def _pairs(connection: pymysql.Connection[Any]) -> Iterator[tuple[EventHeader, bytes]]:
    stream = stream_of(connection)
    return ((header, event) for header, event, _ in dumped(lambda: receive(stream)))


def stream_of(connection: pymysql.Connection[Any]) -> socket.socket:
    """The socket of a dump that has begun."""
    stream: socket.socket = connection._sock  # type: ignore[attr-defined]
    stream.settimeout(TIMEOUT_S)  # the command has left another one
    return stream


def receive(stream: socket.socket) -> bytes:
    """Raises OSError: the primary is gone."""
    data = stream.recv(RECEIVED_MAX)
    if not data:
        raise ConnectionResetError("the primary has closed the connection")
    return data


class PacketWindow:
    """Packets of a dump that have come: a window from the next one on, which moves over whole ones. `packet_no` is the
    number of the next plus 256."""

    position = block_offset = 0
    is_cut = False  # what is left from `position` on is no whole group

    def __init__(self, reader: PacketReader, receive: Callable[[], bytes], checksum_size: int, head_bytes: int) -> None:
        self.block = reader.unread
        self.head_bytes = head_bytes
        self.checksum_size = checksum_size
        self.packet_no = SEQUENCE_MASK + 1 + reader.next_sequence
        self._receive = receive

    def may_begin_group(self) -> bool:
        at = self.head_bytes + TYPE_OFFSET
        return len(self.block) <= at or self.block[at] == EventType.GTID

    def extend(self) -> bool:
        """Wait for more bytes."""
        self.block += self._receive()
        return True


def dumped(
    receive: Callable[[], bytes],
    *,
    has_checksums: bool = False,
    has_heads: bool = False,
    take: Callable[[PacketWindow], bool] = lambda window: False,
) -> Generator[tuple[EventHeader, bytes, bool]]:
    """The events of a dump without their checksums, and whether the primary waits for an acknowledgement of each.

    `has_checksums`: so has an event before the one that says it. `has_heads`: each packet has the header of
    semi-synchronous replication. `receive` waits for the next bytes. `take` may read whole groups itself, and returns
    whether it did. Raises EventError: this is no event, or it was changed on the way; SourceError: the primary refuses,
    or is gone.
    """
    reader = PacketReader(limit=PAYLOAD_MAX, next_sequence=1, checks_numbers=not has_heads)
    head_bytes = HEAD_BYTES + (SEMI_SYNC_BYTES if has_heads else 0)
    while True:
        while reader.is_between_payloads:
            window = PacketWindow(reader, receive, CHECKSUM_SIZE if has_checksums else 0, head_bytes)
            if not take(window):
                break
            reader.forget(window.position, window.packet_no & SEQUENCE_MASK)
            if window.is_cut:  # there is nothing to find before more has come
                reader.receive_data(receive())
        while (data := reader.next_payload()) is None:
            reader.receive_data(receive())
        if data[:1] == ERROR:
            from pymysql.err import raise_mysql_exception

            raise_mysql_exception(data)
        if data[:1] != EVENT_STATUS:
            return  # EOF
        at, needs_answer = 1, False
        if has_heads:
            if data[1:2] != SEMI_SYNC_MAGIC:
                raise EventError("a packet without the header of semi-synchronous replication")
            at, needs_answer = 1 + SEMI_SYNC_BYTES, data[2:3] == b"\1"
        header = decode_event_header(data, at)
        event = data[at:]
        if header.size != len(event):  # it may hide another event after this one
            raise EventError(f"an event of {len(event)} bytes says it has {header.size}")
        if header.event_type == EventType.FORMAT_DESCRIPTION:
            if len(event) < FORMAT_SIZE_MIN:
                raise EventError(f"FORMAT_DESCRIPTION of {len(event)} bytes is too short")
            has_checksums = event[-5] == ChecksumAlgorithm.CRC32 and has_valid_checksum(event)
        elif has_checksums:
            if not has_valid_checksum(event):
                raise EventError("the checksum of an event is wrong")
            event = without_checksum(event)
        if header.event_type == EventType.ROTATE:
            decode_rotate(event)
        yield header, event, needs_answer


def groups_of(events: Iterator[tuple[EventHeader, bytes]]) -> Iterator[EventGroup]:
    for header, event in events:
        if header.flags & EventFlag.ARTIFICIAL or header.event_type in BETWEEN_GROUPS:
            continue
        if header.event_type != EventType.GTID:
            raise EventError(f"the primary sends an event of type {header.event_type} outside of a group")
        gtid, flags = decode_gtid(header, event)
        body = _body(events, gtid, GroupBoundary(flags))
        yield EventGroup(gtid=gtid, gtid_event=event, body=body, start=NOWHERE, end=NOWHERE)
        for _ in body:
            pass


def _body(events: Iterator[tuple[EventHeader, bytes]], gtid: Gtid, boundary: GroupBoundary) -> Iterator[Buffer]:
    for header, event in events:
        if header.event_type == EventType.HEARTBEAT or header.flags & EventFlag.ARTIFICIAL:
            continue
        if header.event_type == EventType.GTID:  # else the rows of both look like those of one
            other, _ = decode_gtid(header, event)
            raise EventError(f"the primary begins group {other} before {gtid} has ended: try again")
        yield event
        if boundary.ends_with(header, event):
            return
    raise EventError("the primary ended the stream inside a group")
