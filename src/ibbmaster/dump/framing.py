"""From the bytes of a group to packets, in bounded memory whatever the size of a group or an event.

Events up to `EVENT_HELD_MAX` are put together whole, and many of them go out in one
piece. A larger one is announced by the length in its header and passes through.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain

from ibbmaster.codec.buffer import Buffer
from ibbmaster.dump.error import EVENT_SIZE_MAX, DumpError
from ibbmaster.dump.rewriting import Rewriter, Selection, gtid_flags
from ibbmaster.errors import EventError
from ibbmaster.event.header import (
    CHECKSUM,
    CHECKSUM_SIZE,
    EVENT_HEADER_SIZE,
    SIZE_OFFSET,
    EventHeader,
    decode_event_header,
)
from ibbmaster.wire.packet import EVENT_STATUS, PacketStream

EVENT_HELD_MAX = 64 * 1024
BATCH_SIZE = 64 * 1024  # events are framed together up to here
SEMI_SYNC_HEADER = b"\xef\x00"  # its second byte would ask for an acknowledgement

_SIZE = struct.Struct("<I")
_BLANKS = b" " * BATCH_SIZE


class EventFramer:
    """Numbers and frames everything one dump sends."""

    def __init__(self, rewriter: Rewriter, *, has_semi_sync: bool) -> None:
        self._rewriter = rewriter
        self._prefix = EVENT_STATUS + (SEMI_SYNC_HEADER if has_semi_sync else b"")
        self._packets = PacketStream()
        self.size_sent = 0  # bytes framed so far
        self.is_inside_event = False  # a large event has begun to go out and is not complete

    @property
    def selection(self) -> Selection | None:
        """How events are framed here, if they are not changed."""
        return self._rewriter.selection(self._prefix)

    @property
    def sequence(self) -> int:
        """Number of the next packet."""
        return self._packets.sequence

    def note_framed(self, size: int, sequence: int, *, is_inside_event: bool) -> None:
        """Another sender has framed events by `selection`; `sequence` is the number of the next packet."""
        self.size_sent += size
        self._packets.sequence = sequence
        self.is_inside_event = is_inside_event

    def frame_payload(self, payload: bytes) -> bytes:
        """An answer that is no event: EOF or ERR."""
        return self._count(self._packets.frame(payload))

    def frame_event(self, event: bytes) -> bytes:
        """One event that is ready as it is."""
        return self._count(self._packets.frame(self._prefix + event))

    def frame_group(self, gtid_event: bytes, body: Iterable[Buffer]) -> Iterator[Buffer]:
        """The packets of a whole group, whatever pieces its body comes in.

        A piece that is handed out is good until the next one is asked for.

        Raises:
            DumpError: an event is larger than MariaDB sends, or the replica asks for an offset inside it.
            EventError: the bytes do not divide into events.
        """
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
        source = _Source(pieces)
        cutter = _Cutter()
        while source.advance():
            while len(source.rest):
                source.rest = cutter.take(source.rest)
                if cutter.size >= BATCH_SIZE or cutter.large is not None:
                    yield self._frame_batch(cutter.hand_over())
                if cutter.large is not None:
                    yield from self._frame_large(cutter.large, source)
                    cutter.large = None
        cutter.finish()
        yield self._frame_batch(cutter.hand_over())

    def _frame_batch(self, events: list[bytes]) -> bytes:
        rewriter = self._rewriter
        if rewriter.only_selects:
            events = rewriter.select(events)
        else:
            events = [out for event in events if (out := rewriter.rewrite(event)) is not None]
        return self._count(self._packets.frame_events(events, self._prefix))

    def _frame_large(self, header: EventHeader, source: _Source) -> Iterator[Buffer]:
        """Pass on an event of which the header was taken already."""
        body: Iterator[Buffer] = source.take(header.size - EVENT_HEADER_SIZE)
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
    """The events that lie whole in `data`, one after the other.

    Raises EventError: `data` does not end where an event ends.
    """
    events = []
    offset, end = 0, len(data)
    unpack_size = _SIZE.unpack_from
    while end - offset >= EVENT_HEADER_SIZE:
        (size,) = unpack_size(data, offset + SIZE_OFFSET)
        next_offset = offset + size
        if size < EVENT_HEADER_SIZE or next_offset > end:
            check_event_size(size)
            raise EventError(f"the events end inside an event, {next_offset - end} bytes early")
        events.append(data[offset:next_offset])
        offset = next_offset
    if offset != end:
        raise EventError(f"the events end inside an event header, after {end - offset} bytes")
    return events


class _Source:
    """The pieces of a group's body; `rest` is what is left of the current one."""

    def __init__(self, pieces: Iterator[Buffer]) -> None:
        self._pieces = pieces
        self.rest = memoryview(b"")

    def advance(self) -> bool:
        """Continue to the next piece; False if there is none."""
        piece = next(self._pieces, None)
        self.rest = memoryview(b"" if piece is None else piece)
        return piece is not None

    def take(self, size: int) -> Iterator[memoryview]:
        """The next `size` bytes, piece by piece. Raises EventError: the pieces end before."""
        while size:
            if not len(self.rest) and not self.advance():
                raise EventError(f"the events end inside an event, {size} bytes early")
            data, self.rest = self.rest[:size], self.rest[size:]
            size -= len(data)
            yield data


def _blanks(size: int) -> Iterator[memoryview]:
    for start in range(0, size, len(_BLANKS)):
        yield memoryview(_BLANKS)[: size - start]


class _Cutter:
    """Divides pieces into events; stops after the header of one that is too large to be held."""

    def __init__(self) -> None:
        self._events: list[bytes] = []
        self._held = bytearray()  # the beginning of an event that is cut
        self._held_size = 0  # of that event, once its header is there
        self.size = 0  # of the events that wait
        self.large: EventHeader | None = None

    def take(self, piece: memoryview) -> memoryview:
        """Take events until the piece ends, a batch is full or a large event begins; returns what is left."""
        offset, end = 0, len(piece)
        while offset < end and self.size < BATCH_SIZE:
            if not self._held and end - offset >= EVENT_HEADER_SIZE:
                (size,) = _SIZE.unpack_from(piece, offset + SIZE_OFFSET)
                if EVENT_HEADER_SIZE <= size <= EVENT_HELD_MAX and size <= end - offset:
                    self._append(bytes(piece[offset : offset + size]))
                    offset += size
                    continue
            missing = (self._held_size or EVENT_HEADER_SIZE) - len(self._held)
            data = piece[offset : offset + missing]
            self._held += data
            offset += len(data)
            if len(data) == missing and self._is_complete():
                self._append(bytes(self._held))
                self._forget_held()
            if self.large is not None:
                break
        return piece[offset:]

    def hand_over(self) -> list[bytes]:
        """The events that wait; afterwards none do."""
        events, self._events, self.size = self._events, [], 0
        return events

    def finish(self) -> None:
        """Say that no more pieces come. Raises EventError: they end inside an event."""
        if self._held:
            raise EventError(f"the events end inside an event, after {len(self._held)} bytes of it")

    def _is_complete(self) -> bool:
        """With what was missing there: whether that was all, and not the header only."""
        if self._held_size:
            return True
        header = decode_event_header(self._held)
        check_event_size(header.size)
        if header.size > EVENT_HELD_MAX:
            self._forget_held()
            self.large = header
            return False
        self._held_size = header.size
        return header.size == EVENT_HEADER_SIZE

    def _append(self, event: bytes) -> None:
        self._events.append(event)
        self.size += len(event)

    def _forget_held(self) -> None:
        self._held.clear()
        self._held_size = 0


def check_event_size(size: int) -> None:
    """Whether an event can have this size.

    Raises:
        EventError: it is smaller than an event's header.
        DumpError: it is larger than MariaDB sends.
    """
    if size < EVENT_HEADER_SIZE:
        raise EventError(f"event size {size} does not even hold the event header")
    if size > EVENT_SIZE_MAX:
        raise DumpError(
            "log event entry exceeded max_allowed_packet; Increase max_allowed_packet on master",
            f"an event of {size} bytes: at most {EVENT_SIZE_MAX} can be sent",
        )
