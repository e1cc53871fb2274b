"""The packets of one dump in, the same packets with faults in them out. No clock, no socket, no chance.

Without a due fault every byte comes out as it came. Packets after a missing or added one are numbered anew. No more
than one event is held, or two groups to be swapped, up to `HELD_MAX`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ibbmaster.replication.dump.announcing import artificial_rotate
from ibbmaster.replication.dump.error import EVENT_SIZE_MAX
from ibbmaster.replication.dump.framing import SEMI_SYNC_HEADER
from ibbmaster.replication.event.control import encode_heartbeat, encode_stop
from ibbmaster.replication.event.format_description import ChecksumAlgorithm
from ibbmaster.replication.event.header import (
    CHECKSUM_SIZE,
    EVENT_HEADER_SIZE,
    HEADER,
    append_checksum,
    decode_event_header,
    has_valid_checksum,
)
from ibbmaster.replication.event.types import EventType
from ibbmaster.replication.wire.packet import (
    EVENT_STATUS,
    PACKET_HEADER_SIZE,
    PACKET_PAYLOAD_MAX,
    PacketReader,
    frame_packets,
)
from ibbmaster.replication.wire.response import Eof, Err, encode_eof, encode_err
from ibbmaster.storage.codec.buffer import Buffer
from . import action as actions
from .action import FaultAction
from .fault import FaultPlan, FaultRecord, PlannedFault
from .malformed import can_be, malformed
from .place import Landmark, Side
from .stream_places import SeenPacket, StreamPlaces

HELD_MAX = 64 << 20  # bytes of groups that are held back
_EDITS = (
    *(actions.FlipBits, actions.SpoilChecksum, actions.ShortenEvent, actions.LengthenEvent),
    *(actions.LeaveOut, actions.SendTwice, actions.SwapGroups, actions.ChangeHeader),
    actions.SpoilEvent,
)
_OF_GROUPS = (actions.LeaveOut, actions.SendTwice, actions.SwapGroups)
_LAST = (actions.CutConnection, actions.EndDump, actions.SendError)


#: Bytes to send, or a fault that the sender has to do.
Output: TypeAlias = bytes | PlannedFault


@dataclass(slots=True)
class _Piece:
    payload: bytes = b""
    inside: list[tuple[int, FaultRecord]] = field(default_factory=list)  # offsets in the payload
    fault: PlannedFault | None = None
    record: FaultRecord | None = None


class StreamEditor:
    """Edits one dump; `number` counts the dumps of a primary from 1."""

    def __init__(self, plan: FaultPlan, *, connection_id: int, number: int, replica: int | None) -> None:
        self._plan = plan
        self._connection_id, self._number, self._replica = connection_id, number, replica
        self._reader = PacketReader(limit=EVENT_SIZE_MAX + PACKET_PAYLOAD_MAX, next_sequence=1)
        self._sequence = 1
        self._sent_bytes = 0
        self._output: list[bytes] = []
        self._due: list[tuple[int, PlannedFault]] = []  # after which part of the output
        self._is_over = False  # nothing more may be sent
        self._expects_last_word = False  # no events, until the primary says why it ends
        self._is_mute = False
        self._places = StreamPlaces()
        self._of_group: PlannedFault | None = None  # what happens to the current group
        self._held: list[_Piece] = []
        self._held_size = 0
        self._is_holding = False  # a swapped group waits for the next one

    def edit(self, data: Buffer) -> Iterator[Output]:
        """Take packets, cut anywhere; yield what to send and do, in order. Faults planned while one is done apply to
        what follows."""
        self._reader.receive_data(data)
        while not self._is_over and (payload := self._reader.next_payload()) is not None:
            self._take(payload)
            if self._due:
                yield from self._hand_over()
        yield from self._hand_over()

    def _hand_over(self) -> Iterator[Output]:
        output, due = self._output, self._due
        self._output, self._due = [], []
        start = 0
        for end, fault in [*due, (len(output), None)]:
            if start < end:
                yield b"".join(output[start:end])
            start = end
            if fault is not None:
                yield fault

    def _take(self, payload: bytes) -> None:
        seen = self._places.look(payload)
        if seen.header is not None and (
            self._expects_last_word or (self._is_mute and seen.header.event_type == EventType.HEARTBEAT)
        ):
            return
        faults = self._plan.take(lambda fault: self._is_due(fault, seen))
        for fault in faults:
            if fault.place is not None and fault.place.side is Side.BEFORE:
                self._put_between(fault, seen)
        for piece in self._edited(faults, seen):
            self._put(piece)
        for fault in faults:
            if fault.place is not None and fault.place.side is Side.AFTER:
                self._put_between(fault, seen)
        if seen.ends_group:
            self._end_group()

    def _is_due(self, fault: PlannedFault, seen: SeenPacket) -> bool:
        place = fault.place
        if place is None or place.landmark not in seen.landmarks:
            return False
        if (fault.connection or self._number) != self._number or (fault.replica or self._replica) != self._replica:
            return False
        if place.gtid is not None and place.gtid != self._places.gtid:
            return False
        count = (self._places.in_dump if place.gtid is None else self._places.in_group)[place.landmark]
        return (place.nth or count) == count and self._fits(fault, seen)

    def _fits(self, fault: PlannedFault, seen: SeenPacket) -> bool:
        place, size = fault.place, len(seen.event)
        assert place is not None
        if place.byte is not None:
            size += PACKET_HEADER_SIZE if place.landmark is Landmark.PACKET else 0
            return -size <= place.byte < size
        match fault.action:
            case actions.FlipBits(byte=byte):
                return -size <= byte < size
            case actions.SpoilChecksum(be=be):
                return has_valid_checksum(seen.event) is not (be == "unexpected")
            case actions.SpoilEvent(be=be):
                return can_be(seen.event, be)
            case actions.InsertEvent(event="format"):
                return bool(self._places.format)
            case actions.SwapGroups() | actions.SendTwice() | actions.LeaveOut() if Landmark.GTID in seen.landmarks:
                return self._of_group is None and not self._is_holding
        return True

    def _edited(self, faults: list[PlannedFault], seen: SeenPacket) -> list[_Piece]:
        notes, events = [], [seen.event]
        for fault in faults:
            if not isinstance(fault.action, _EDITS):
                continue
            notes.append(_Piece(record=self._record(fault, seen)))
            if isinstance(fault.action, _OF_GROUPS) and Landmark.GTID in seen.landmarks:
                self._of_group, self._held, self._held_size = fault, [], 0
            else:
                events = [changed for event in events for changed in _changed(event, fault.action)]
        pieces = [_Piece(payload=seen.prefix + event) for event in events]
        for fault in faults:
            if fault.place is not None and fault.place.byte is not None and pieces:
                of_packet = fault.place.landmark is Landmark.PACKET
                offset = fault.place.byte + (0 if of_packet else len(seen.prefix))
                if fault.place.byte < 0:
                    offset = len(pieces[0].payload) + fault.place.byte
                elif of_packet:
                    offset -= PACKET_HEADER_SIZE
                pieces[0].inside.append((offset, self._record(fault, seen)))
        return notes + pieces

    def _put_between(self, fault: PlannedFault, seen: SeenPacket) -> None:
        piece = _Piece(fault=fault, record=self._record(fault, seen))
        match fault.action:
            case actions.EndDump():
                self._put(_Piece(payload=encode_eof(Eof()), record=piece.record))
                piece.record = None
            case actions.SendError(code=code, state=state, text=text):
                self._put(_Piece(payload=encode_err(Err(code=code, sqlstate=state, text=text)), record=piece.record))
                piece.record = None
            case actions.InsertEvent() as inserted:
                piece = _Piece(payload=EVENT_STATUS + self._made(inserted), record=piece.record)
                if seen.prefix.endswith(SEMI_SYNC_HEADER):
                    piece.payload = seen.prefix + piece.payload[1:]
        self._put(piece)

    def _made(self, inserted: actions.InsertEvent) -> bytes:
        """With a checksum if the stream has them."""
        has_checksum = self._places.format[-CHECKSUM_SIZE - 1 : -CHECKSUM_SIZE] == bytes([ChecksumAlgorithm.CRC32])
        server_id = decode_event_header(self._places.format).server_id if self._places.format else 1
        name, position = inserted.file, inserted.position
        match inserted.event:
            case "rotate":
                return artificial_rotate(name, position, server_id=server_id, with_checksum=has_checksum)
            case "heartbeat":
                return encode_heartbeat(name, position, server_id=server_id, with_checksum=has_checksum)
            case "stop":
                return encode_stop(server_id=server_id, with_checksum=has_checksum)
        return self._places.format

    def _record(self, fault: PlannedFault, seen: SeenPacket) -> FaultRecord:
        return FaultRecord(fault=fault, connection_id=self._connection_id, gtid=self._places.gtid, event=seen.event)

    def _put(self, piece: _Piece) -> None:
        if self._of_group is None or (piece.record is not None and not piece.payload and piece.fault is None):
            self._send(piece)
            return
        action = self._of_group.action
        self._held_size += len(piece.payload)
        if self._held_size > HELD_MAX and not isinstance(action, actions.LeaveOut):
            self._give_up_holding()
            self._send(piece)
            return
        if isinstance(action, actions.SendTwice):
            self._send(piece)
        if not isinstance(action, actions.LeaveOut):
            self._held.append(piece)

    def _give_up_holding(self) -> None:
        fault, self._of_group = self._of_group, None
        held, self._held = self._held, []
        assert fault is not None
        if isinstance(fault.action, actions.SwapGroups):
            for piece in held:
                self._send(piece)
        problem = f"the group has more than {HELD_MAX} bytes, and was sent as it is"
        self._plan.note(
            FaultRecord(fault=fault, connection_id=self._connection_id, gtid=self._places.gtid, problem=problem)
        )

    def _end_group(self) -> None:
        self._places.end_group()
        ended, self._of_group = None if self._of_group is None else self._of_group.action, None
        if isinstance(ended, actions.SwapGroups):
            self._is_holding = True
            return
        if isinstance(ended, actions.SendTwice) or self._is_holding:
            held, self._held, self._is_holding = self._held, [], False
            for piece in held:
                again = piece if not isinstance(ended, actions.SendTwice) else _Piece(payload=piece.payload)
                self._send(again)

    def _send(self, piece: _Piece) -> None:
        if self._is_over or (self._expects_last_word and piece.payload.startswith(EVENT_STATUS)):
            return
        if piece.record is not None:
            self._plan.note(replace(piece.record, sent_bytes=self._sent_bytes))
        if piece.payload:
            frame, self._sequence = frame_packets(piece.payload, self._sequence)
            start = 0
            for offset, record in sorted(piece.inside, key=lambda pair: pair[0]):
                end = max(start, _in_frame(offset))
                self._emit(frame[start:end])
                start = end
                self._plan.note(replace(record, sent_bytes=self._sent_bytes))
                self._do(record.fault)
                if self._is_over:
                    return
            self._emit(frame[start:])
        if piece.fault is not None:
            self._do(piece.fault)

    def _emit(self, data: bytes) -> None:
        self._sent_bytes += len(data)
        self._output.append(data)

    def _do(self, fault: PlannedFault) -> None:
        match fault.action:
            case actions.SendGarbage(count=count):
                self._emit(self._plan.random_bytes(fault, count))
                return
            case actions.MuteHeartbeats():
                self._is_mute = True
                return
            case actions.KillConnection(query=True) | actions.TakeOver() | actions.RestartPrimary():
                self._expects_last_word = True
            case actions.KillConnection():
                self._is_over = True
            case last if isinstance(last, _LAST):
                self._is_over = True
        self._due.append((len(self._output), fault))


def _in_frame(offset: int) -> int:
    """Negative offsets are in the header."""
    if offset < 0:
        return max(0, PACKET_HEADER_SIZE + offset)
    return offset + PACKET_HEADER_SIZE * (1 + offset // PACKET_PAYLOAD_MAX)


def _changed(event: bytes, action: FaultAction) -> list[bytes]:
    match action:
        case actions.LeaveOut():
            return []
        case actions.SendTwice():
            return [event, event]
        case actions.ShortenEvent(count=count):
            return [event[: max(0, len(event) - count)]]
        case actions.LengthenEvent(count=count):
            return [event + bytes(count)]
        case actions.FlipBits(byte=byte, bits=bits):
            changed = bytearray(event)
            changed[byte] ^= bits
            return [bytes(changed)]
        case actions.SpoilChecksum(be=be):
            return [_with_spoilt_checksum(event, be)]
        case actions.ChangeHeader():
            return [_with_header(event, action)]
        case actions.SpoilEvent(be=be):
            return [malformed(event, be)]
    return [event]


def _with_spoilt_checksum(event: bytes, be: str) -> bytes:
    if be == "wrong":
        return event[:-1] + bytes([event[-1] ^ 0xFF])
    by = -CHECKSUM_SIZE if be == "missing" else CHECKSUM_SIZE
    header = decode_event_header(event)._replace(size=len(event) + by)
    changed = HEADER.pack(*header) + event[EVENT_HEADER_SIZE:]
    return changed[:-CHECKSUM_SIZE] if be == "missing" else append_checksum(changed)


def _with_header(event: bytes, action: actions.ChangeHeader) -> bytes:
    given = {name: value for name, value in vars(action).items() if value is not None}
    body = event[EVENT_HEADER_SIZE:]
    has_checksum = has_valid_checksum(event)
    changed = HEADER.pack(*decode_event_header(event)._replace(**given)) + body
    return append_checksum(changed[:-CHECKSUM_SIZE]) if has_checksum else changed
