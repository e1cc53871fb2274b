"""Cuts a stream of bytes in any pieces into events."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ibbmaster.errors import EventError
from ibbmaster.storage.codec.buffer import Buffer
from .header import EVENT_HEADER_SIZE, SIZE, SIZE_OFFSET, EventHeader, decode_event_header


class EventPart(NamedTuple):
    """An event's first part has its `header`, and begins with it."""

    header: EventHeader | None
    data: memoryview
    is_last: bool


class EventSplitter:
    """Takes pieces cut anywhere, and holds less than one event header. The data of a part is a view, valid until the
    next piece."""

    __slots__ = ("_head", "_left")

    def __init__(self) -> None:
        self._head = b""  # the beginning of a header that is cut
        self._left = 0  # bytes of the current event still to come

    @property
    def is_between_events(self) -> bool:
        return not self._left and not self._head

    def feed(self, piece: Buffer) -> Iterator[EventPart]:
        """Raises EventError: an event's size does not even hold its header."""
        view = memoryview(piece)
        if self._head:
            view = memoryview(self._head + bytes(view[: EVENT_HEADER_SIZE - len(self._head)]))
            rest = memoryview(piece)[len(view) - len(self._head) :]
            self._head = b""
            yield from self._cut(view)
            view = rest
        yield from self._cut(view)

    def _cut(self, view: memoryview) -> Iterator[EventPart]:
        offset, end = 0, len(view)
        while offset < end:
            header = None
            if not self._left:
                if end - offset < EVENT_HEADER_SIZE:
                    self._head = bytes(view[offset:])
                    return
                header = decode_event_header(view, offset)
                self._left = header.size
            data = view[offset : offset + self._left]
            self._left -= len(data)
            offset += len(data)
            yield EventPart(header, data, not self._left)

    def finish(self) -> None:
        """Raises EventError: the stream ends inside an event."""
        if self._head:
            raise EventError(f"the events end inside an event header, after {len(self._head)} bytes")
        if self._left:
            raise EventError(f"the events end inside an event, {self._left} bytes early")


def event_heads(*parts: Buffer | Iterable[Buffer], size_max: int = 64 * 1024) -> Iterator[bytes]:
    """The first bytes of each event in some bytes, or pieces cut anywhere. Raises EventError: these are no events."""
    splitter = EventSplitter()
    head = bytearray()
    for part in parts:
        for piece in (part,) if isinstance(part, Buffer) else part:
            for _, data, is_last in splitter.feed(piece):
                head += data[: size_max - len(head)]
                if is_last:
                    yield bytes(head)
                    head.clear()
    splitter.finish()


def events_of(pieces: Iterable[Buffer], *, size_max: int) -> Iterator[bytes]:
    """The events in pieces cut anywhere; holds one. Raises EventError: these are none, or one is too long."""
    splitter = EventSplitter()
    parts: list[bytes] = []
    for piece in pieces:
        offset, end = 0, len(piece)
        while end - offset >= EVENT_HEADER_SIZE and splitter.is_between_events:  # whole events, in half the time
            (size,) = SIZE.unpack_from(piece, offset + SIZE_OFFSET)
            if not EVENT_HEADER_SIZE <= size <= min(end - offset, size_max):
                break
            yield bytes(piece[offset : offset + size])
            offset += size
        for header, data, is_last in splitter.feed(piece[offset:]):
            if header is not None and header.size > size_max:
                raise EventError(f"an event of {header.size} bytes, at most {size_max}")
            parts.append(bytes(data))
            if is_last:
                yield parts[0] if len(parts) == 1 else b"".join(parts)
                parts.clear()
    splitter.finish()
