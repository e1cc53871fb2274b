"""From the bytes of a group to packets, in bounded memory: events of up to `EVENT_HELD_MAX` bytes are collected and go
out together; larger ones pass through."""

import struct
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Protocol

from ibbmaster.errors import EventError
from ibbmaster.gtid import Gtid
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.header import (
    CHECKSUM,
    CHECKSUM_SIZE,
    EVENT_HEADER_SIZE,
    SIZE_OFFSET,
    EventHeader,
    decode_event_header,
)
from ibbmaster.replication.wire.packet import EVENT_STATUS, PacketStream
from ibbmaster.storage.codec.buffer import Buffer
from .error import EVENT_SIZE_MAX, DumpError
from .rewriting import LogPositions, Rewriter, Selection, gtid_flags

EVENT_HELD_MAX = 64 * 1024
BATCH_SIZE = EVENT_HELD_MAX  # events are framed together up to here
SEMI_SYNC_HEADER = b"\xef\x00"  # its second byte would ask for an acknowledgement

_SIZE = struct.Struct("<I")
_BLANKS = b" " * BATCH_SIZE


class FramedBlock(Protocol):
    """Packets that others framed, as far as the session has to know them."""

    @property
    def framed_bytes(self) -> int: ...

    @property
    def sequence_after(self) -> int: ...

    @property
    def begin(self) -> LogPosition: ...

    @property
    def end(self) -> LogPosition: ...

    @property
    def begins_inside_group(self) -> bool:
        """Then `begin` means nothing."""

    @property
    def ends_inside_group(self) -> bool:
        """Then `end` means nothing."""

    @property
    def is_inside_event(self) -> bool:
        """Whether it ends there."""

    @property
    def gtids(self) -> Iterable[Gtid]:
        """The last of each (domain, server) pair whose group begins in it."""

    @property
    def log_positions(self) -> LogPositions | None:
        """After it, where they are counted."""


class EventFramer:
    def __init__(self, rewriter: Rewriter, *, has_semi_sync: bool) -> None:
        self._rewriter = rewriter
        self._prefix = EVENT_STATUS + (SEMI_SYNC_HEADER if has_semi_sync else b"")
        self._packets = PacketStream()
        self.size_sent = 0  # bytes framed so far
        self.is_inside_event = False  # a large event has begun to go out and is not complete

    @property
    def selection(self) -> Selection | None:
        """For others, if events can be framed elsewhere."""
        return self._rewriter.selection(self._prefix)

    @property
    def sequence(self) -> int:
        return self._packets.sequence

    def note_framed(self, block: FramedBlock) -> None:
        self.size_sent += block.framed_bytes
        self._packets.sequence = block.sequence_after
        self.is_inside_event = block.is_inside_event

    def frame_payload(self, payload: bytes) -> bytes:
        return self._count(self._packets.frame(payload))

    def frame_event(self, event: bytes) -> bytes:
        return self._count(self._packets.frame(self._prefix + event))

    def frame_group(self, gtid_event: bytes, body: Iterable[Buffer]) -> Iterator[Buffer]:
        """Yields the packets of a whole group, whose body may be cut anywhere; each is good until the next. Raises
        DumpError: an event is larger than MariaDB sends, or the replica asks for an offset inside it; EventError: the
        bytes are no events."""
        if self._rewriter.counts_borders:
            self._rewriter.begin_group(gtid_flags(gtid_event))
        pieces: list[Buffer] = [gtid_event]
        size = len(gtid_event)
        body = iter(body)
        for piece in body:
            pieces.append(bytes(piece))
            size += len(piece)
            if size > BATCH_SIZE:
                return self._frame_pieces(chain(pieces, body))
        return iter((self._frame_batch(divide_events(b"".join(pieces))),))

    def _frame_pieces(self, pieces: Iterator[Buffer]) -> Iterator[Buffer]:
        source, held = _Source(pieces), b""
        while data := held + source.read(BATCH_SIZE - len(held)):
            events, end = _whole_events(data, EVENT_HELD_MAX)
            yield self._frame_batch(events)
            held = data[end:]
            if len(held) >= EVENT_HEADER_SIZE and (header := decode_event_header(held)).size > EVENT_HELD_MAX:
                check_event_size(header.size)
                rest = source.take(header.size - len(held))
                yield from self._frame_large(header, chain((held[EVENT_HEADER_SIZE:],), rest))
                held = b""
            elif held and len(data) < BATCH_SIZE:
                raise EventError(f"the events end inside an event, after {len(held)} bytes of it")

    def _frame_batch(self, events: list[bytes]) -> bytes:
        rewriter = self._rewriter
        if rewriter.only_selects:
            events = rewriter.select(events)
        else:
            events = [out for event in events if (out := rewriter.rewrite(event)) is not None]
        return self._count(self._packets.frame_events(events, self._prefix))

    def _frame_large(self, header: EventHeader, body: Iterator[Buffer]) -> Iterator[Buffer]:
        large = self._rewriter.rewrite_large(header)
        if large is None or large.is_replaced:
            for _ in body:
                pass
        if large is None:
            return
        if large.is_replaced:
            body = _blanks(large.size - large.has_checksum * CHECKSUM_SIZE - len(large.head))
        self.is_inside_event = True
        self._packets.begin(len(self._prefix) + large.size)
        yield from self._add(self._prefix)
        checksum = 0
        for data in chain((large.head,), body):
            if large.has_checksum:
                checksum = zlib.crc32(data, checksum)
            yield from self._add(data)
        if large.has_checksum:
            yield from self._add(CHECKSUM.pack(checksum))
        self.is_inside_event = False

    def _add(self, data: Buffer) -> Iterator[Buffer]:
        for part in self._packets.add(data):
            self.size_sent += len(part)
            yield part

    def _count(self, framed: bytes) -> bytes:
        self.size_sent += len(framed)
        return framed


def divide_events(data: bytes) -> list[bytes]:
    """Raises EventError: `data` ends inside an event."""
    events, end = _whole_events(data, len(data))
    if len(data) - end >= EVENT_HEADER_SIZE:
        size = decode_event_header(data, end).size
        check_event_size(size)
        raise EventError(f"the events end inside an event, {end + size - len(data)} bytes early")
    if end != len(data):
        raise EventError(f"the events end inside an event header, after {len(data) - end} bytes")
    return events


def _whole_events(data: bytes, size_max: int) -> tuple[list[bytes], int]:
    """Up to an event that is cut or larger than `size_max`; also returns its offset."""
    events = []
    offset, end = 0, len(data)
    unpack_size = _SIZE.unpack_from
    while end - offset >= EVENT_HEADER_SIZE:
        (size,) = unpack_size(data, offset + SIZE_OFFSET)
        next_offset = offset + size
        if not EVENT_HEADER_SIZE <= size <= size_max or next_offset > end:
            break
        events.append(data[offset:next_offset])
        offset = next_offset
    return events, offset


class _Source:
    def __init__(self, pieces: Iterator[Buffer]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")  # of the current piece

    def read(self, size: int) -> bytes:
        """Fewer than `size` bytes only at the end."""
        return b"".join(map(bytes, self._next(size)))

    def take(self, size: int) -> Iterator[memoryview]:
        """Raises EventError: the pieces end before `size` bytes."""
        for data in self._next(size):
            size -= len(data)
            yield data
        if size:
            raise EventError(f"the events end inside an event, {size} bytes early")

    def _next(self, size: int) -> Iterator[memoryview]:
        while size:
            if not len(self._rest):
                piece = next(self._pieces, None)
                if piece is None:
                    return
                self._rest = memoryview(piece)
            data, self._rest = self._rest[:size], self._rest[size:]
            size -= len(data)
            yield data


def _blanks(size: int) -> Iterator[memoryview]:
    for start in range(0, size, len(_BLANKS)):
        yield memoryview(_BLANKS)[: size - start]


def check_event_size(size: int) -> None:
    """Raises EventError: no event is so small; DumpError: MariaDB sends none that is so large."""
    if size < EVENT_HEADER_SIZE:
        raise EventError(f"event size {size} does not even hold the event header")
    if size > EVENT_SIZE_MAX:
        raise DumpError(
            "log event entry exceeded max_allowed_packet; Increase max_allowed_packet on master",
            f"an event of {size} bytes: at most {EVENT_SIZE_MAX} can be sent",
        )
