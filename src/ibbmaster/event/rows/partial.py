"""PARTIAL_ROW_DATA: row events cut into fragments, and put together again. Layout: protocol/event/rows.md."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Protocol

from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import EventError
from ibbmaster.event.header import (
    HEADER,
    TYPE_OFFSET,
    decode_body,
    decode_event_header,
    encode_event,
)
from ibbmaster.event.table_map import ROW_EVENT_TYPES
from ibbmaster.event.types import EventType

FIXED = struct.Struct("<IIB")  # number of fragments, this one from 1, flags
FLAG_WHOLE_SIZE = 0x01  # the size of the whole row event follows; on the first fragment
WHOLE_SIZE = struct.Struct("<Q")
WHOLE_SIZE_MAX = (1 << 32) - 1  # an event has its size in four bytes
KEPT_SIZE_MAX = 64 << 20  # what is more is held elsewhere: the wholes of a server are more than 1 GiB


class RowSink(Protocol):
    """Where a large row event is put together."""

    def write(self, data: Buffer) -> None:
        """Take its next bytes."""

    def whole(self) -> Buffer:
        """All of them."""


class PartialRows:
    """Takes the events of a group in order, and puts fragments together; keeps at most 64 MiB of a row event.

    What is larger goes where `hold` says, fragment by fragment.
    """

    def __init__(self, hold: Callable[[], RowSink], *, kept_max: int | None = None) -> None:
        self._hold = hold
        self._kept_max = KEPT_SIZE_MAX if kept_max is None else kept_max
        self._kept = bytearray()
        self._held: RowSink | None = None
        self._next = 1
        self._count = self._size = self._taken = 0

    @property
    def is_open(self) -> bool:
        """Whether a row event has begun and not ended."""
        return self._next > 1

    def whole_event(self, event: bytes) -> bytes | None:
        """The event itself, if it is no fragment; else the row event once it is complete.

        One that is held elsewhere is a buffer of bytes that can be read and cut as `bytes` can.

        Raises:
            EventError: a fragment is missing or wrong, or another event comes between two of them.
        """
        if event[TYPE_OFFSET] == EventType.PARTIAL_ROW_DATA:
            return self.take(event)
        self.finish()
        return event

    def finish(self) -> None:
        """The group has ended, or an event that is no fragment comes.

        Raises:
            EventError: that is inside the fragments of a row event.
        """
        if self.is_open:
            found = f"fragment {self._next} of {self._count} is missing"
            raise EventError(f"the group ends inside the fragments of a row event: {found}")

    def take(self, event: Buffer) -> bytes | None:
        """Take one whole fragment event without checksum; the row event once it is complete.

        Raises:
            EventError: another type, a fragment is missing, they do not come to the announced size, or to no row event.
        """
        _, body = decode_body(event, EventType.PARTIAL_ROW_DATA)
        if len(body) < FIXED.size:
            raise EventError(f"PARTIAL_ROW_DATA with a body of {len(body)} bytes, expected at least {FIXED.size}")
        count, number, flags = FIXED.unpack_from(body)
        self._expect(count, number, flags)
        offset = FIXED.size
        if flags & FLAG_WHOLE_SIZE:
            if len(body) < offset + WHOLE_SIZE.size:
                raise EventError("PARTIAL_ROW_DATA ends inside the size of its row event")
            (self._size,) = WHOLE_SIZE.unpack_from(body, offset)
            self._count = count
            offset += WHOLE_SIZE.size
        self._taken += len(body) - offset
        if self._size > WHOLE_SIZE_MAX or self._taken > self._size:
            raise EventError(f"row event fragments of more than {min(self._size, WHOLE_SIZE_MAX)} bytes")
        self._keep(body[offset:])
        self._next += 1
        return None if number < count else self._whole()

    def _expect(self, count: int, number: int, flags: int) -> None:
        if number != self._next or number > count:
            raise EventError(f"row event fragment {number} of {count}, expected {self._next}")
        if number == 1:
            self._forget()
        elif flags & FLAG_WHOLE_SIZE:
            raise EventError(
                f"row event fragment {number} of {count} with the size of the whole, which is on the first"
            )
        elif count != self._count:
            raise EventError(f"row event fragment {number} of {count}, the ones before were of {self._count}")

    def _keep(self, data: memoryview) -> None:
        if self._held is None and self._taken <= self._kept_max:
            self._kept += data
            return
        if self._held is None:
            self._held = self._hold()
            self._held.write(self._kept)
            self._kept.clear()
        self._held.write(data)

    def _whole(self) -> bytes:
        if self._taken != self._size:
            raise EventError(f"row event fragments of {self._taken} bytes, expected {self._size}")
        whole: Buffer = bytes(self._kept) if self._held is None else self._held.whole()
        self._forget()
        header = decode_event_header(whole)
        if header.event_type not in ROW_EVENT_TYPES:
            raise EventError(f"fragments of an event of type {header.event_type}, expected a row event")
        if header.size != len(whole):
            raise EventError(f"row event fragments of {len(whole)} bytes, and an event that says it has {header.size}")
        return whole  # type: ignore[return-value]

    def _forget(self) -> None:
        self._kept = bytearray()
        self._held = None
        self._next, self._count, self._size, self._taken = 1, 0, 0, 0


def encode_fragments(event: bytes, fragment_bytes: int) -> Iterator[bytes]:
    """A row event as fragments that each hold at most so many bytes of it; one that is no longer stays as it is.

    Source: MariaDB 12.3, `binlog_row_event_fragment_threshold`.
    """
    if len(event) <= fragment_bytes:
        yield event
        return
    timestamp, _, server_id, _, _, flags = HEADER.unpack_from(event)
    count = -(-len(event) // fragment_bytes)
    for number, start in enumerate(range(0, len(event), fragment_bytes), 1):
        body = FIXED.pack(count, number, FLAG_WHOLE_SIZE if number == 1 else 0)
        body += WHOLE_SIZE.pack(len(event)) if number == 1 else b""
        yield encode_event(
            event_type=EventType.PARTIAL_ROW_DATA,
            body=body + event[start : start + fragment_bytes],
            server_id=server_id,
            timestamp=timestamp,
            flags=flags,
        )
