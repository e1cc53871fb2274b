"""PARTIAL_ROW_DATA: row events cut into fragments, put together again. Layout: protocol/event/rows.md."""

from __future__ import annotations

import struct

from ibbmaster.codec.buffer import Buffer
from ibbmaster.errors import EventError
from ibbmaster.event.header import decode_body
from ibbmaster.event.types import EventType

FIXED = struct.Struct("<IIB")  # number of fragments, this one from 1, flags
FLAG_WHOLE_SIZE = 0x01  # the size of the whole row event follows; on the first fragment
WHOLE_SIZE = struct.Struct("<Q")
WHOLE_SIZE_MAX = 1 << 30  # as `max_allowed_packet`


class PartialRows:
    """Takes the fragments of row events in order; holds at most one row event."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._next = 1
        self._size = 0

    @property
    def is_open(self) -> bool:
        """Whether a row event has begun and not ended."""
        return self._next > 1

    def take(self, event: Buffer) -> bytes | None:
        """Take one whole fragment event without checksum; the row event once it is complete.

        Raises:
            EventError: another type, a fragment is missing, or they do not come to the announced size.
        """
        _, body = decode_body(event, EventType.PARTIAL_ROW_DATA)
        if len(body) < FIXED.size:
            raise EventError(f"PARTIAL_ROW_DATA with a body of {len(body)} bytes, expected at least {FIXED.size}")
        count, number, flags = FIXED.unpack_from(body)
        offset = FIXED.size
        if number != self._next or number > count:
            raise EventError(f"row event fragment {number} of {count}, expected {self._next}")
        if flags & FLAG_WHOLE_SIZE:
            if len(body) < offset + WHOLE_SIZE.size:
                raise EventError("PARTIAL_ROW_DATA ends inside the size of its row event")
            (self._size,) = WHOLE_SIZE.unpack_from(body, offset)
            offset += WHOLE_SIZE.size
        if self._size > WHOLE_SIZE_MAX or len(self._data) + len(body) - offset > self._size:
            raise EventError(f"row event fragments of more than {min(self._size, WHOLE_SIZE_MAX)} bytes")
        self._data += body[offset:]
        self._next += 1
        if number < count:
            return None
        whole = bytes(self._data)
        if len(whole) != self._size:
            raise EventError(f"row event fragments of {len(whole)} bytes, expected {self._size}")
        self._data.clear()
        self._next, self._size = 1, 0
        return whole
