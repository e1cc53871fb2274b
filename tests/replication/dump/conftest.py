"""Groups to dump, and a client that takes the stream of a session apart."""

import dataclasses
import json
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.position import LogPosition
from ibbmaster.replication.dump.profile import PROFILES, Profile
from ibbmaster.replication.dump.request import DumpRequest
from ibbmaster.replication.dump.session import DumpSession
from ibbmaster.replication.dump.start import check_start
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.header import encode_event
from ibbmaster.replication.event.types import EventFlag, EventType
from ibbmaster.replication.wire.packet import PacketReader

#: Events as a 12.3 primary sent them (`opening` to `transaction`); the dummies, by what they replace, and `begin` as
#: 11.8.6 sent them to a client of capability 0, without checksums.
RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text())
FILE_NAME = "binlog-000000.ibb"
NOT_THERE = "Error: connecting slave requested to start from GTID {}, which is not in the master's binlog"
DIVERGED = (
    NOT_THERE
    + ". Since the master's binlog contains GTIDs with higher sequence numbers, it probably means that the slave has "
    "diverged due to executing extra erroneous transactions"
)
HOLE = (
    "The binlog on the master is missing the GTID {} requested by the slave (even though both a prior and a subsequent "
    "sequence number does exist), and GTID strict mode is enabled"
)
TIMESTAMP = 0x6A000000
TRANSACTIONAL = 0x0C  # flags of GTID events as MariaDB writes them
STANDALONE = 0x29


def recorded(name: str) -> bytes:
    return bytes.fromhex(RECORDED[name])


def make_event(event_type: int, body: bytes = b"", *, server_id: int = 1, flags: int = 0) -> bytes:
    return encode_event(event_type=event_type, body=body, server_id=server_id, timestamp=TIMESTAMP, flags=flags)


def make_gtid_event(gtid: str, *, group_flags: int = TRANSACTIONAL, flags: int = EventFlag.SUPPRESS_USE) -> bytes:
    parsed = Gtid.parse(gtid)
    body = struct.pack("<QIB", parsed.seq_no, parsed.domain_id, group_flags).ljust(19, b"\0")
    return make_event(EventType.GTID, body, server_id=parsed.server_id, flags=flags)


def make_group(
    gtid: str,
    *events: bytes,
    group_flags: int = TRANSACTIONAL,
    flags: int = EventFlag.SUPPRESS_USE,
    pieces: Iterable[bytes] | None = None,
    file_name: str = FILE_NAME,
    end_offset: int = 16640,
) -> EventGroup:
    """A group of these events, or of an annotated row change; `pieces` is the body in another cut."""
    if not events and pieces is None:
        events = (
            make_event(EventType.ANNOTATE_ROWS, b"insert into x values(2)"),
            make_event(EventType.TABLE_MAP, bytes(21)),
            make_event(EventType.WRITE_ROWS_V1, bytes(20)),
            make_event(EventType.XID, bytes(8)),
        )
    return EventGroup(
        gtid=Gtid.parse(gtid),
        gtid_event=make_gtid_event(gtid, group_flags=group_flags, flags=flags),
        body=iter(pieces if pieces is not None else [b"".join(events)]),
        start=LogPosition(_file_no(file_name), end_offset - 256),
        end=LogPosition(_file_no(file_name), end_offset),
    )


def _file_no(name: str) -> int:
    return int(re.sub(r"\D", "", name))


def _names_like(name: str) -> Callable[[int], str]:
    return lambda file_no: re.sub(r"\d+", f"{file_no:06d}", name)


def make_request(position: str | None = "", *, until: str | None = None, **changes: object) -> DumpRequest:
    """A request of a MariaDB replica that wants annotations; None: by file and offset."""
    request = DumpRequest(
        replica_server_id=2,
        position=None if position is None else GtidPosition.parse(position),
        until=None if until is None else GtidPosition.parse(until),
        capability=4,
        knows_checksums=True,
        wants_annotate_rows=True,
    )
    return dataclasses.replace(request, **changes)  # type: ignore[arg-type]


class Conversation:
    """A session and its client. The client checks what holds for every stream: the numbers of the packets."""

    def __init__(
        self,
        request: DumpRequest,
        *,
        profile: str | Profile = "engine",
        start_state: str = "",
        current_state: str | None = None,
        file_name: str | Callable[[int], str] = FILE_NAME,
        offset: int = 4,
        **options: object,
    ) -> None:
        """`file_name` is that of the first file; others differ in their number."""
        self.current_state = GtidState.parse(start_state if current_state is None else current_state)
        self.session = DumpSession(
            request,
            check_start(request, self.current_state),
            profile=PROFILES[profile] if isinstance(profile, str) else profile,
            server_id=1,
            start_state=GtidState.parse(start_state),
            current_state=lambda: self.current_state,
            position=LogPosition(_file_no(file_name) if isinstance(file_name, str) else 0, offset),
            file_name=_names_like(file_name) if isinstance(file_name, str) else file_name,
            **options,  # type: ignore[arg-type]
        )
        self.stream = bytearray()
        self._reader = PacketReader(limit=2**31, next_sequence=1)
        self.session.start()
        self.take_queued()

    def send(self, *groups: EventGroup) -> None:
        self.take_queued()
        for group in groups:
            self.receive(self.session.receive_group(group))
        self.take_queued()

    def receive(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            self._take(bytes(piece))

    def reach_end(self, now: float = 0.0) -> None:
        self.session.reached_end(now=now)
        self.take_queued()

    def advance_clock(self, now: float) -> None:
        self.session.advance_clock(now=now)
        self.take_queued()

    def take_queued(self) -> None:
        self._take(self.session.data_to_send())

    def payloads(self) -> list[bytes]:
        self.take_queued()
        found = list(iter(self._reader.next_payload, None))
        assert not self._reader.unread_size
        return found

    def events(self) -> list[bytes]:
        return [payload[1:] if payload[0] == 0 else payload for payload in self.payloads()]

    def _take(self, data: bytes) -> None:
        self.stream += data
        self._reader.receive_data(data)


def _cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


@pytest.fixture
def make() -> SimpleNamespace:
    return SimpleNamespace(
        event=make_event,
        gtid_event=make_gtid_event,
        group=make_group,
        request=make_request,
        cut=_cut,
        TRANSACTIONAL=TRANSACTIONAL,
        STANDALONE=STANDALONE,
    )


@pytest.fixture
def converse() -> Callable[..., Conversation]:
    return Conversation
