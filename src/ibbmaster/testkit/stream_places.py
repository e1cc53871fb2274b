"""Where in a dump a packet is: landmark, group, number. No clock, no socket."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from ibbmaster.replication.dump.framing import SEMI_SYNC_HEADER
from ibbmaster.replication.event.group import GroupBoundary
from ibbmaster.replication.event.gtid_event import decode_gtid
from ibbmaster.replication.event.header import CHECKSUM_SIZE, EVENT_HEADER_SIZE, EventHeader, decode_event_header
from ibbmaster.replication.event.types import EventFlag, EventType
from ibbmaster.replication.wire.packet import EVENT_STATUS
from .place import Landmark, landmark_of


class SeenPacket(NamedTuple):
    payload: bytes
    prefix: bytes  # what comes before the event
    header: EventHeader | None  # None: it is no event
    landmarks: tuple[Landmark, ...]
    ends_group: bool = False

    @property
    def event(self) -> bytes:
        return self.payload[len(self.prefix) :]


class StreamPlaces:
    """Follows one dump, packet by packet.

    Attributes:
        gtid: the current group; None: between two.
        is_opening: no group came yet.
        in_dump, in_group: counts of each landmark, the current packet included.
        format: the last FORMAT_DESCRIPTION.
    """

    def __init__(self) -> None:
        self.gtid: str | None = None
        self.is_opening = True
        self.in_dump: Counter[Landmark] = Counter()
        self.in_group: Counter[Landmark] = Counter()
        self.format = b""
        self._boundary: GroupBoundary | None = None  # of the current group

    def look(self, payload: bytes) -> SeenPacket:
        """The next packet, or the beginning of a very large one; call `end_group` after the last of a group. Raises
        EventError: an event or its GTID is damaged."""
        prefix = prefix_of(payload)
        if not prefix:
            self.in_dump[Landmark.PACKET] += 1
            return SeenPacket(payload, b"", None, (Landmark.PACKET,))
        event = memoryview(payload)[len(prefix) :]
        header = decode_event_header(event)
        ends_group = False
        if header.event_type == EventType.GTID:
            gtid, flags = decode_gtid(header, event)
            self.gtid, self._boundary, self.is_opening = str(gtid), GroupBoundary(flags), False
            self.in_group.clear()
        elif header.event_type == EventType.FORMAT_DESCRIPTION:
            self.format = bytes(event)
        if self._boundary is not None and header.event_type != EventType.GTID:
            texts = event, event[:-CHECKSUM_SIZE]  # a traditional stream may have a checksum
            ends_group = any(self._boundary.ends_with(header, text) for text in texts)
        landmark = landmark_of(
            header.event_type,
            is_opening=self.is_opening,
            ends_group=ends_group,
            is_artificial=bool(header.flags & EventFlag.ARTIFICIAL),
        )
        self.is_opening = self.is_opening and landmark is not Landmark.FILE_END
        landmarks = (
            (landmark, Landmark.EVENT, Landmark.PACKET)
            if landmark is not Landmark.EVENT
            else (landmark, Landmark.PACKET)
        )
        self.in_dump.update(landmarks)
        if self.gtid is not None:
            self.in_group.update(landmarks)
        return SeenPacket(payload, prefix, header, landmarks, ends_group)

    def end_group(self) -> None:
        self._boundary, self.gtid = None, None


def prefix_of(payload: bytes) -> bytes:
    if not payload.startswith(EVENT_STATUS) or len(payload) < len(EVENT_STATUS) + EVENT_HEADER_SIZE:
        return b""
    size = decode_event_header(payload, 1).size if len(payload) > EVENT_HEADER_SIZE else 0
    semi_sync = EVENT_STATUS + SEMI_SYNC_HEADER
    is_semi_sync = payload.startswith(semi_sync) and size != len(payload) - len(EVENT_STATUS)
    return semi_sync if is_semi_sync else EVENT_STATUS
