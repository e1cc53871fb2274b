"""One dump of a recorded session: its present place, and its groups on their way to the log."""

from __future__ import annotations

import zlib
from dataclasses import replace

from ibbmaster.api.writing import OpenGroup
from ibbmaster.errors import EventError, IbbMasterError
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.logs.capture.client import BETWEEN_GROUPS
from ibbmaster.replication.event.control import decode_gtid_list
from ibbmaster.replication.event.format_description import ChecksumAlgorithm
from ibbmaster.replication.event.gtid_event import decode_gtid
from ibbmaster.replication.event.header import (
    CHECKSUM_SIZE,
    EVENT_HEADER_SIZE,
    HEADER,
    EventHeader,
    decode_event_header,
    has_valid_checksum,
)
from ibbmaster.replication.event.types import EventFlag, EventType
from ibbmaster.replication.wire.command import BinlogDump, DumpFlag
from ibbmaster.testkit.place import Landmark
from ibbmaster.testkit.stream_places import SeenPacket, StreamPlaces
from .conversation import DumpPiece
from .recording import Recording
from .redaction import event_without_secrets

TYPE_END = 5  # bytes of an event after which its type is known
_IN_GROUP_ONCE = (Landmark.GTID, Landmark.COMMIT)
_OPENING = (Landmark.OPENING_ROTATE, Landmark.OPENING_FORMAT, Landmark.OPENING_GTID_LIST)


class RecordedDump:
    def __init__(self, recording: Recording, command: BinlogDump, start: GtidState | None) -> None:
        self.number = 0  # once an event came
        self.server_id = command.server_id
        self.is_non_blocking = bool(command.flags & DumpFlag.NON_BLOCKING)
        self._recording = recording
        self._start = start
        self._places = StreamPlaces()
        self._has_checksums = False
        self._begins_with_rotate = False
        self._place: tuple[Landmark, int, str | None] | None = None
        self._gtid: Gtid | None = None
        self._gtid_event = b""
        self._group: OpenGroup | None = None
        self._is_doubtful = False  # an event of the group has a wrong checksum
        self._held: tuple[OpenGroup, Gtid, bytes] | None = None  # such a group, until the next one comes
        self._large: _LargeEvent | None = None
        self._large_ends_group = False

    @property
    def has_begun(self) -> bool:
        return self._place is not None

    def _count(self) -> None:
        if not self.number:
            self.number = self._recording.begin_dump(self.server_id)
            if self._start is not None and (gap := self._recording.expect_start(self._start)):
                self._recording.warn(f"dump {self.number}: {gap}")

    def take(self, piece: DumpPiece) -> bool:
        """Take a packet, or a piece of one; whether its checksum is wrong. Raises EventError: it is no event."""
        self._count()
        if not piece.is_first:
            return self._take_more(piece)
        seen = self._places.look(piece.data)
        if seen.header is None:
            raise EventError(f"a packet of {len(piece.data)} bytes that is no event")
        self._note_place(seen)
        if not piece.is_last:
            self._large = _LargeEvent(seen.event, self._has_checksums)
            self._large_ends_group = seen.ends_group
            self._write(self._large.head())
            return False
        is_wrong = self._take_event(seen, seen.header)
        if seen.ends_group:
            self._end_group()
        return is_wrong

    def _take_event(self, seen: SeenPacket, header: EventHeader) -> bool:
        event = seen.event
        if header.event_type == EventType.FORMAT_DESCRIPTION:
            algorithm = event[-CHECKSUM_SIZE - 1]
            self._has_checksums = algorithm == ChecksumAlgorithm.CRC32 and has_valid_checksum(event)
            self._recording.know_primary(server_id=header.server_id)
            return False
        is_wrong = self._has_checksums and not has_valid_checksum(event)
        if header.event_type == EventType.HEARTBEAT:
            self._recording.is_live = True
            return is_wrong
        if header.flags & EventFlag.ARTIFICIAL or header.event_type in BETWEEN_GROUPS:
            if header.event_type == EventType.ROTATE and self._places.is_opening:
                self._begins_with_rotate = True
            if header.event_type == EventType.GTID_LIST and self._places.is_opening and self._start is None:
                self._start = GtidState(decode_gtid_list(self._plain(event)).gtids)
            return is_wrong
        plain = self._plain(event)
        if header.event_type == EventType.GTID:
            self._begin_group(header, event, plain)
        elif self._gtid is None:
            raise EventError(f"an event of type {header.event_type} outside of a group")
        else:
            self._write(event_without_secrets(plain))
        self._is_doubtful = self._is_doubtful or is_wrong
        return is_wrong

    def _plain(self, event: bytes) -> bytes:
        size = len(event) - (CHECKSUM_SIZE if self._has_checksums else 0)
        return HEADER.pack(*decode_event_header(event)._replace(size=size, log_pos=0)) + event[EVENT_HEADER_SIZE:size]

    def _begin_group(self, header: EventHeader, event: bytes, plain: bytes) -> None:
        if self._held is not None:  # the consumer goes on: it has taken it
            self._recording.commit(*self._held)
            self._held = None
        if self._group is not None:  # it has no end: it is left out
            self._group.roll_back()
        gtid, _ = decode_gtid(header, event)
        shape = "classic" if header.log_pos else "compat" if self._begins_with_rotate else "engine"
        self._recording.know_primary(shape=shape)
        if self._start is None:  # by file and position: the best guess
            before = [] if gtid.seq_no <= 1 else [replace(gtid, seq_no=gtid.seq_no - 1)]
            self._start = GtidState(before)
        self._gtid, self._gtid_event, self._is_doubtful = gtid, plain, False
        self._group = self._recording.open_group(gtid, self._start)

    def _write(self, data: bytes) -> None:
        if self._group is not None and data:
            try:
                self._group.write(data)
            except (IbbMasterError, OSError) as error:
                self._recording.fail(error)

    def _end_group(self) -> None:
        if self._group is not None and self._gtid is not None:
            whole = (self._group, self._gtid, self._gtid_event)
            if self._is_doubtful:
                self._held = whole
            else:
                self._recording.commit(*whole)
        self._group = self._gtid = None
        self._places.end_group()

    def _take_more(self, piece: DumpPiece) -> bool:
        assert self._large is not None
        self._write(self._large.take(piece.data))
        if not piece.is_last:
            return False
        is_wrong = self._large.is_wrong
        self._is_doubtful = self._is_doubtful or is_wrong
        self._large = None
        if self._large_ends_group:
            self._end_group()
        return is_wrong

    def drop(self) -> None:
        """The dump has ended: nothing incomplete is logged."""
        for group in (self._group, self._held and self._held[0]):
            if group:
                group.roll_back()
        self._group = self._held = self._gtid = None

    # Places

    def _note_place(self, seen: SeenPacket) -> None:
        landmark, gtid = seen.landmarks[0], self._places.gtid
        if gtid is None and landmark not in (*_OPENING, Landmark.HEARTBEAT) and self._place is not None:
            return  # files end where they do, in a replay elsewhere
        counts = self._places.in_dump if gtid is None else self._places.in_group
        self._place = landmark, counts[landmark], gtid

    def place(self, side: str = "after") -> dict[str, object]:
        assert self._place is not None
        landmark, count, gtid = self._place
        number = "" if landmark in (*_IN_GROUP_ONCE, *_OPENING) else f" {count}"
        name = f"{side} {landmark.value}{number}"
        return {"place": name, "connection": self.number} if gtid is None else {"place": name, "gtid": gtid}

    def place_of_end(self, begun: tuple[int, int, bytes]) -> dict[str, object]:
        """The keys of the place where the stream breaks off, perhaps inside of a packet."""
        self._count()
        raw_size, size, data = begun
        if not raw_size:
            return self.place()
        prefix = 3 if data.startswith(b"\x00\xef") else 1
        if self._large is None and (len(data) < prefix + TYPE_END or self._places.gtid is None):
            number = self._places.in_dump[Landmark.PACKET] + 1
            return {"place": f"inside packet {number} at byte {raw_size}", "connection": self.number}
        number = self._places.in_group[Landmark.EVENT] + (self._large is None)
        return {"place": f"inside event {number} at byte {size - prefix}", "gtid": self._places.gtid}


class _LargeEvent:
    def __init__(self, first: bytes, has_checksum: bool) -> None:
        self._has_checksum = has_checksum
        self._first = first
        self._checksum = 0
        self._tail = b""

    def head(self) -> bytes:
        header = decode_event_header(self._first)
        size = header.size - (CHECKSUM_SIZE if self._has_checksum else 0)
        changed = HEADER.pack(*header._replace(size=size, log_pos=0))
        self._checksum = zlib.crc32(self._first[:EVENT_HEADER_SIZE])
        return changed + self.take(self._first[EVENT_HEADER_SIZE:])

    def take(self, data: bytes) -> bytes:
        """The next bytes for the log, without the checksum at the end."""
        if not self._has_checksum:
            return data
        data = self._tail + data
        data, self._tail = data[:-CHECKSUM_SIZE], data[-CHECKSUM_SIZE:]
        self._checksum = zlib.crc32(data, self._checksum)
        return data

    @property
    def is_wrong(self) -> bool:
        return self._has_checksum and int.from_bytes(self._tail, "little") != self._checksum
