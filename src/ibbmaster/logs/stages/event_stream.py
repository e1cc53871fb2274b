"""The events of a group one after the other; a reader looks at the first bytes of each and then decides."""

import functools
from collections.abc import Iterable, Iterator

from ibbmaster.errors import EventError
from ibbmaster.replication.event.header import EVENT_HEADER_SIZE, EventHeader, decode_event_header
from ibbmaster.replication.event.table_map import TABLE_ID_SIZE
from ibbmaster.sqltext.table_name import TableName
from ibbmaster.storage.codec.buffer import Buffer

NAMES_OFFSET = EVENT_HEADER_SIZE + TABLE_ID_SIZE + 2  # of a TABLE_MAP, after its flags
HEAD_SIZE = 80  # bytes: header, table and flags of a row event, also of one in its first fragment


class EventStream:
    """Takes a body cut anywhere; holds an event as a whole only on demand. After `next_event` there are `head`, its
    first bytes, and one of `whole`, `pieces`, or nothing, which skips it."""

    def __init__(self, body: Iterable[Buffer]) -> None:
        self._source = iter(body)
        self._data = memoryview(b"")  # of the body, not read yet
        self._left = 0
        self.head = b""

    def next_event(self) -> EventHeader | None:
        """None after the last. Raises EventError: the body ends inside an event."""
        if self._left:
            for _ in self.pieces():
                pass
        data = self._data
        if len(data) < EVENT_HEADER_SIZE:
            self._hold(EVENT_HEADER_SIZE)
            data = self._data
            if not len(data):
                return None
        header = decode_event_header(data)
        size = self._left = header.size
        wanted = min(size, HEAD_SIZE)
        if len(data) < wanted:
            self._hold(wanted)
            data = self._data
            if len(data) < wanted:
                raise self._cut()
        self.head = bytes(data[:wanted])
        return header

    def pieces(self) -> Iterator[memoryview]:
        """The rest of the event, in views that last until the next one."""
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
        left, data = self._left, self._data
        if len(data) < left:
            return b"".join(self.pieces())
        self._left, self._data = 0, data[left:]  # the usual case, without a generator
        return bytes(data[:left])

    def _hold(self, size: int) -> None:
        while len(self._data) < size:
            piece = next(self._source, None)
            if piece is None:
                return
            self._data = memoryview(bytes(self._data) + bytes(piece)) if len(self._data) else memoryview(piece)

    def _cut(self) -> EventError:
        return EventError(f"the group ends inside an event, {self._left - len(self._data)} bytes early")


def mapped_table(event: bytes) -> TableName:
    """The table of a TABLE_MAP event. Raises EventError: it ends inside its names."""
    at = NAMES_OFFSET
    if len(event) > at:
        database = event[at + 1 : at + 1 + event[at]]
        at += len(database) + 2
        if len(event) > at:
            table = event[at + 1 : at + 1 + event[at]]
            if len(event) > at + 1 + len(table) and event[at] == len(table):
                return _full_name(database, table)
    raise EventError(f"TABLE_MAP of {len(event)} bytes ends inside its names")


@functools.lru_cache(maxsize=4096)
def _full_name(database: bytes, table: bytes) -> TableName:
    return TableName(database.decode("utf-8", "replace"), table.decode("utf-8", "replace"))
