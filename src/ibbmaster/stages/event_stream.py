"""The events of a group one after the other, of which a reader looks at the first bytes and then decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import EventError
from ibbmaster.event.header import EVENT_HEADER_SIZE, EventHeader, decode_event_header

HEAD_SIZE = 80  # bytes: header, table and flags of a row event, also of one in its first fragment


class EventStream:
    """Takes a body cut anywhere; an event is held as a whole only by who asks for that.

    After `next_event` there are `head`, its first bytes, and one of: `whole`, `pieces`, or nothing, which skips it.
    """

    def __init__(self, body: Iterable[Buffer]) -> None:
        self._source = iter(body)
        self._data = memoryview(b"")  # of the body, from where the reader is
        self._left = 0  # bytes of the current event, from there on
        self.head = b""

    def next_event(self) -> EventHeader | None:
        """Go to the next event; None after the last.

        Raises:
            EventError: the body ends inside an event.
        """
        for _ in self.pieces():
            pass
        self._hold(EVENT_HEADER_SIZE)
        if not len(self._data):
            return None
        header = decode_event_header(self._data)
        self._hold(min(header.size, HEAD_SIZE))
        self.head = bytes(self._data[: min(header.size, HEAD_SIZE)])
        self._left = header.size
        if len(self.head) < min(header.size, HEAD_SIZE):
            raise self._cut()
        return header

    def pieces(self) -> Iterator[memoryview]:
        """What is left of the event, in views that are good until the next one."""
        while self._left:
            if not len(self._data):
                self._hold(1)
            if not len(self._data):
                raise self._cut()
            piece = self._data[: self._left]
            self._left -= len(piece)
            self._data = self._data[len(piece) :]
            yield piece

    def whole(self) -> bytes:
        """All of the event."""
        return b"".join(self.pieces())

    def _hold(self, size: int) -> None:
        """Have this number of bytes at hand, if there are as many."""
        while len(self._data) < size:
            piece = next(self._source, None)
            if piece is None:
                return
            self._data = memoryview(bytes(self._data) + bytes(piece)) if len(self._data) else memoryview(piece)

    def _cut(self) -> EventError:
        return EventError(f"the group ends inside an event, {self._left - len(self._data)} bytes early")
