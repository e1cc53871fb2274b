"""PARTIAL_ROW_DATA: row events in fragments. Layout: protocol/event/rows.md."""

import itertools
import struct
from collections.abc import Iterator

from ibbmaster.errors import EventError
from ibbmaster.storage.codec.buffer import Buffer
from .. import header as headers
from ..query import unpack, unpacked_size
from ..split import EventPart
from ..table_map import ROW_EVENT_TYPES, decode_rows_header
from ..types import EventType
from .large import ALL_ROWS, SIZE_MAX, LargeRows, RowSink

FIXED = struct.Struct("<IIB")  # number of fragments, this one from 1, flags
FLAG_WHOLE_SIZE = 0x01  # the size of the whole row event follows; on the first fragment
WHOLE_SIZE = struct.Struct("<Q")
COMPRESSED_V1 = range(EventType.WRITE_ROWS_COMPRESSED_V1, EventType.DELETE_ROWS_COMPRESSED_V1 + 1)
COMPRESSED_V2 = range(EventType.WRITE_ROWS_COMPRESSED, EventType.DELETE_ROWS_COMPRESSED + 1)
NOT_PLAIN = (*COMPRESSED_V1, *COMPRESSED_V2, EventType.PARTIAL_ROW_DATA)
STEP_V1 = EventType.WRITE_ROWS_COMPRESSED_V1 - EventType.WRITE_ROWS_V1
STEP_V2 = EventType.WRITE_ROWS_COMPRESSED - EventType.WRITE_ROWS
HEAD_SIZE_MAX = (
    2 * headers.EVENT_HEADER_SIZE + FIXED.size + WHOLE_SIZE.size
)  # of a fragment, with a header of what is in it


class FragmentOrder:
    """Checks the order and size of fragments, and the row event that the first one announces."""

    def __init__(self) -> None:
        self.size = self._count = self._taken = 0  # of the whole row event
        self._next = 1
        self._head = b""

    @property
    def is_open(self) -> bool:
        return self._next > 1

    def take(self, head: Buffer, size: int) -> tuple[int, bool]:
        """Take a fragment event of `size` bytes, by its first `HEAD_SIZE_MAX` bytes. Returns the offset of its part of
        the row event, and whether that is the last. Raises EventError: another type, a missing fragment, a wrong size
        or event."""
        start = headers.EVENT_HEADER_SIZE + FIXED.size
        if size < start:
            found = size - headers.EVENT_HEADER_SIZE
            raise EventError(f"PARTIAL_ROW_DATA with a body of {found} bytes, expected at least {FIXED.size}")
        count, number, flags = FIXED.unpack_from(head, headers.EVENT_HEADER_SIZE)
        self._expect(count, number, flags)
        if flags & FLAG_WHOLE_SIZE:
            if size < start + WHOLE_SIZE.size:
                raise EventError("PARTIAL_ROW_DATA ends inside the size of its row event")
            (self.size,) = WHOLE_SIZE.unpack_from(head, start)
            self._count = count
            start += WHOLE_SIZE.size
        self._taken += size - start
        if self.size > SIZE_MAX or self._taken > self.size:
            raise EventError(f"row event fragments of more than {min(self.size, SIZE_MAX)} bytes")
        self._head += bytes(memoryview(head)[start : start + headers.EVENT_HEADER_SIZE - len(self._head)])
        self._next += 1
        if number == count:
            self._check_whole()
        return start, number == count

    def finish(self) -> None:
        """End the group, or a run of fragments. Raises EventError: a row event is incomplete."""
        if self.is_open:
            found = f"fragment {self._next} of {self._count} is missing"
            raise EventError(f"the group ends inside the fragments of a row event: {found}")

    def _expect(self, count: int, number: int, flags: int) -> None:
        if number != self._next or number > count:
            raise EventError(f"row event fragment {number} of {count}, expected {self._next}")
        if number == 1:
            self.size = self._count = self._taken = 0
            self._head = b""
        elif flags & FLAG_WHOLE_SIZE:
            raise EventError(
                f"row event fragment {number} of {count} with the size of the whole, which is on the first"
            )
        elif count != self._count:
            raise EventError(f"row event fragment {number} of {count}, the ones before were of {self._count}")

    def _check_whole(self) -> None:
        self._next = 1
        if self._taken != self.size:
            raise EventError(f"row event fragments of {self._taken} bytes, expected {self.size}")
        header = headers.decode_event_header(self._head)
        if header.event_type not in ROW_EVENT_TYPES:
            raise EventError(f"fragments of an event of type {header.event_type}, expected a row event")
        if header.size != self.size:
            raise EventError(f"row event fragments of {self.size} bytes, and an event that says it has {header.size}")


class FragmentChecks:
    """Checks that fragments make whole row events; holds only the first bytes of each."""

    def __init__(self) -> None:
        self._order = FragmentOrder()
        self._head = bytearray()
        self._size = 0  # of the fragment that passes; 0: it is another event

    def take(self, part: EventPart) -> None:
        """Raises EventError: a fragment is lost, repeated, out of order, or wrong."""
        if part.header is not None:
            is_fragment = part.header.event_type == EventType.PARTIAL_ROW_DATA
            if not is_fragment:
                self._order.finish()
            self._size = part.header.size if is_fragment else 0
            self._head.clear()
        if self._size:
            self._head += part.data[: HEAD_SIZE_MAX - len(self._head)]
            if part.is_last:
                self._order.take(self._head, self._size)

    def finish(self) -> None:
        self._order.finish()


class PartialRows:
    """Joins the fragments among the events of a group; keeps at most 64 MiB in memory, or what `large` says."""

    def __init__(self, large: LargeRows = ALL_ROWS) -> None:
        self._large = large
        self._order = FragmentOrder()
        self._kept = bytearray()
        self._held: RowSink | None = None

    @property
    def is_open(self) -> bool:
        return self._order.is_open

    def whole_event(self, event: bytes) -> bytes | None:
        """The event itself, unless it is a fragment; else the row event once complete, perhaps outside of memory: it
        can be read and cut as `bytes` can. Raises EventError: a fragment is missing or wrong, or the row event too
        large."""
        if event[headers.TYPE_OFFSET] == EventType.PARTIAL_ROW_DATA:
            return self.take(event)
        self.finish()
        return event

    def finish(self) -> None:
        self._order.finish()

    def take(self, event: Buffer) -> bytes | None:
        """A fragment event without checksum; returns the row event once complete. Raises EventError."""
        headers.decode_body(event, EventType.PARTIAL_ROW_DATA)
        if not self.is_open:
            self._kept, self._held = bytearray(), None
        start, is_last = self._order.take(event, len(event))
        self._large.check(self._order.size)
        self._keep(memoryview(event)[start:])
        return self._whole() if is_last else None

    def _keep(self, data: memoryview) -> None:
        if self._held is None and (self._large.hold is None or len(self._kept) + len(data) <= self._large.kept_max):
            self._kept += data
            return
        if self._held is None:
            assert self._large.hold is not None
            self._held = self._large.hold()
            self._held.write(self._kept)
            self._kept.clear()
        self._held.write(data)

    def _whole(self) -> bytes:
        whole: Buffer = bytes(self._kept) if self._held is None else self._held.whole()
        self._kept, self._held = bytearray(), None
        return whole  # type: ignore[return-value]


class PlainRows(PartialRows):
    """Restores row events as they were before a server packed or cut them."""

    def whole_event(self, event: bytes) -> bytes | None:
        """The event, or the plain row event that it completes; None for other fragments. Raises EventError, also for
        rows that do not unpack."""
        whole = super().whole_event(event)
        if whole is None:
            return None
        event_type = whole[headers.TYPE_OFFSET]
        if event_type in COMPRESSED_V1:
            return self._unpacked(whole, event_type - STEP_V1)
        return self._unpacked(whole, event_type - STEP_V2) if event_type in COMPRESSED_V2 else whole

    def _unpacked(self, event: Buffer, event_type: int) -> bytes:
        header = decode_rows_header(event)
        packed = memoryview(event)[header.rows_offset :]
        size = header.rows_offset + unpacked_size(packed)[0]
        self._large.check(size)
        head = bytearray(event[: header.rows_offset])
        head[headers.TYPE_OFFSET] = event_type
        head[headers.SIZE_OFFSET : headers.SIZE_OFFSET + 4] = size.to_bytes(4, "little")
        return self._large.joined(itertools.chain((head,), unpack(packed)), size)


def encode_fragments(event: bytes, fragment_bytes: int) -> Iterator[bytes]:
    """Of at most that many bytes. Source: MariaDB 12.3, `binlog_row_event_fragment_threshold`."""
    if len(event) <= fragment_bytes:
        yield event
        return
    timestamp, _, server_id, _, _, flags = headers.HEADER.unpack_from(event)
    count = -(-len(event) // fragment_bytes)
    for number, start in enumerate(range(0, len(event), fragment_bytes), 1):
        body = FIXED.pack(count, number, FLAG_WHOLE_SIZE if number == 1 else 0)
        body += WHOLE_SIZE.pack(len(event)) if number == 1 else b""
        yield headers.encode_event(
            event_type=EventType.PARTIAL_ROW_DATA,
            body=body + event[start : start + fragment_bytes],
            server_id=server_id,
            timestamp=timestamp,
            flags=flags,
        )
