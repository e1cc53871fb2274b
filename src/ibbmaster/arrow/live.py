"""A primary as a binlog to read: the groups between two GTID positions, over MariaDB's replication protocol.

Any primary will do: ours, or a MariaDB server. Nothing is said of files: groups have no place there.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ibbmaster.arrow.read_options import ReadOptions
from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import ConfigurationError, EventError, SourceError
from ibbmaster.event.group import EventGroup, GroupBoundary
from ibbmaster.event.gtid_event import decode_gtid
from ibbmaster.event.header import EventHeader, decode_event_header
from ibbmaster.event.types import EventFlag, EventType
from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.log.archive import OnFault
from ibbmaster.log.log_range import LogRange
from ibbmaster.position import NOWHERE, LogPosition

if TYPE_CHECKING:
    import pymysql

COM_BINLOG_DUMP = 0x12
DUMP_HEAD = struct.Struct("<IHI")  # position, flags, server id
SEND_ANNOTATE_ROWS = 2
HEARTBEAT_NS = 5_000_000_000
TIMEOUT_S = 60  # without a byte, heartbeats included
PASSWORD_VARIABLE = "IBBMASTER_PASSWORD"
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
class LiveRange(LogRange):
    """The groups behind one position, up to another."""

    start: str
    end: str


def live_range(start: str, end: str) -> LiveRange:
    """A stretch of a primary's log."""
    return LiveRange(file_no=NOWHERE.file_no, start_offset=0, end_offset=0, start=start, end=end)


class LiveArchive:
    """The log of a running primary; each call opens a connection of its own.

    Raises:
        SourceError: the primary cannot be reached, refuses, or breaks off.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def close(self) -> None:
        """Nothing is kept open."""

    def file_name(self, file_no: int) -> str:
        return ""

    def start_position(self) -> GtidPosition:
        return GtidPosition()

    def end_position(self) -> GtidPosition:
        """What the primary has logged."""
        with connected(self._options) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT @@GLOBAL.gtid_binlog_pos")
            (text,) = cursor.fetchone()
            return GtidPosition.parse(text or "")

    def end_point(self) -> LogPosition:
        return NOWHERE

    def cuts(self, position: GtidPosition) -> dict[int, LogPosition]:
        raise ConfigurationError("a primary has no places; give positions as startingGtid and endingGtid")

    def ranges(self, start: LogPosition, end: LogPosition, *, size: int) -> list[LogRange]:
        """Everything that is logged now, as one stretch: a primary sends in order."""
        end_gtid = self._options.ending_gtid
        return [
            live_range(self._options.starting_gtid or "", str(self.end_position()) if end_gtid is None else end_gtid)
        ]

    def groups(self, log_range: LogRange, *, on_fault: OnFault | None = None) -> Iterator[EventGroup]:
        assert isinstance(log_range, LiveRange)
        start, end = GtidPosition.parse(log_range.start), GtidPosition.parse(log_range.end)
        if str(start) == str(end) or not len(end):
            return
        reached = {gtid.domain_id: gtid for gtid in start.values()}
        with connected(self._options) as connection:
            for group in _groups(_events(connection, start, end, self._options.server_id)):
                assert group.gtid is not None
                reached[group.gtid.domain_id] = group.gtid
                yield group
        self._check_reached(reached, end)

    def _check_reached(self, reached: Mapping[int, Gtid], end: GtidPosition) -> None:
        """A primary, or a proxy before it, may end a dump early: what came would pass for all there is."""
        for wanted in end.values():
            found = reached.get(wanted.domain_id)
            if found is None or found.seq_no < wanted.seq_no:
                place = f"{self._options.host}:{self._options.port}"
                last = found or f"nothing of domain {wanted.domain_id}"
                raise SourceError(f"{place}: the primary ended the stream at {last}, before {wanted}: try again")


@contextlib.contextmanager
def connected(options: ReadOptions) -> Iterator[pymysql.Connection[Any]]:
    """A connection to the primary of some options."""
    import pymysql

    assert options.host is not None
    try:
        with contextlib.closing(
            pymysql.connect(
                host=options.host,
                port=options.port,
                user=options.user,
                password=options.password or os.environ.get(PASSWORD_VARIABLE, ""),
                ssl_disabled=not options.uses_tls,
                connect_timeout=TIMEOUT_S,
                read_timeout=TIMEOUT_S,
                autocommit=True,
            )
        ) as connection:
            yield connection
    except (pymysql.Error, OSError) as error:
        text = str(error.args[1]) if len(error.args) > 1 else str(error)
        raise SourceError(f"{options.host}:{options.port}: {text}") from error


def _events(
    connection: pymysql.Connection[Any], start: GtidPosition, end: GtidPosition, server_id: int
) -> Iterator[tuple[EventHeader, bytes]]:
    """The events of a dump, without checksums; ends where `end` is reached."""
    with connection.cursor() as cursor:
        cursor.execute("SET @mariadb_slave_capability=4, @master_binlog_checksum='NONE'")
        cursor.execute("SET @master_heartbeat_period=%s", (HEARTBEAT_NS,))
        cursor.execute("SET @slave_connect_state=%s, @slave_until_gtid=%s", (str(start), str(end)))
        cursor.execute("SET @slave_gtid_strict_mode=1, @slave_gtid_ignore_duplicates=0")
    connection._execute_command(COM_BINLOG_DUMP, DUMP_HEAD.pack(4, SEND_ANNOTATE_ROWS, server_id))  # type: ignore[attr-defined]
    checksum_size = 0
    while True:
        data = connection._read_packet().get_all_data()  # type: ignore[no-untyped-call]
        if not data or data[0] != 0:
            return  # EOF; errors were raised
        header = decode_event_header(data, 1)
        event = data[1:]
        if header.event_type == EventType.FORMAT_DESCRIPTION:
            checksum_size = (
                4 if event[-5] == 1 and zlib.crc32(event[:-4]) == int.from_bytes(event[-4:], "little") else 0
            )
        elif checksum_size:
            event = _without_checksum(event)
        if header.size != len(data) - 1:
            raise EventError(f"an event of {len(data) - 1} bytes says it has {header.size}")
        yield header, event


def _without_checksum(event: bytes) -> bytes:
    size = len(event) - 4
    if zlib.crc32(event[:size]) != int.from_bytes(event[size:], "little"):
        raise EventError("the checksum of an event is wrong")
    return event[:9] + size.to_bytes(4, "little") + event[13:size]


def _groups(events: Iterator[tuple[EventHeader, bytes]]) -> Iterator[EventGroup]:
    """Groups of a stream; the body of each is read with it."""
    for header, event in events:
        if header.flags & EventFlag.ARTIFICIAL or header.event_type in BETWEEN_GROUPS:
            continue
        if header.event_type != EventType.GTID:
            raise EventError(f"the primary sends an event of type {header.event_type} outside of a group")
        gtid, flags = decode_gtid(header, event)
        body = _body(events, GroupBoundary(flags))
        yield EventGroup(gtid=gtid, gtid_event=event, body=body, start=NOWHERE, end=NOWHERE)
        for _ in body:
            pass


def _body(events: Iterator[tuple[EventHeader, bytes]], boundary: GroupBoundary) -> Iterator[Buffer]:
    for header, event in events:
        if header.event_type == EventType.HEARTBEAT or header.flags & EventFlag.ARTIFICIAL:
            continue
        yield event
        if boundary.ends_with(header, event):
            return
    raise EventError("the primary ended the stream inside a group")
