"""Row events as a server wrote them before it packed or cut them: fragments put together, compressed rows unpacked."""

from __future__ import annotations

from ibbmaster.codec.buffer import Buffer
from ibbmaster.event.header import SIZE_OFFSET, TYPE_OFFSET
from ibbmaster.event.query import unpack, unpacked_size
from ibbmaster.event.rows.large import ALL_ROWS, LargeRows
from ibbmaster.event.rows.partial import PartialRows
from ibbmaster.event.table_map import decode_rows_header
from ibbmaster.event.types import EventType

COMPRESSED_V1 = range(EventType.WRITE_ROWS_COMPRESSED_V1, EventType.DELETE_ROWS_COMPRESSED_V1 + 1)
COMPRESSED_V2 = range(EventType.WRITE_ROWS_COMPRESSED, EventType.DELETE_ROWS_COMPRESSED + 1)
NOT_PLAIN = (*COMPRESSED_V1, *COMPRESSED_V2, EventType.PARTIAL_ROW_DATA)
STEP_V1 = EventType.WRITE_ROWS_COMPRESSED_V1 - EventType.WRITE_ROWS_V1
STEP_V2 = EventType.WRITE_ROWS_COMPRESSED - EventType.WRITE_ROWS


class PlainRows:
    """Takes the events of a group in order; what is larger than the memory goes where `large` says."""

    def __init__(self, large: LargeRows = ALL_ROWS) -> None:
        self._large = large
        self._partial = PartialRows(large)

    @property
    def is_open(self) -> bool:
        """Whether a row event has begun and not ended."""
        return self._partial.is_open

    def whole_event(self, event: bytes) -> bytes | None:
        """The event itself, or the plain row event that it ends; None for a fragment that is not the last. Raises
        EventError: a fragment is missing or wrong, rows do not unpack, or are more than they may be."""
        whole = self._partial.whole_event(event)
        if whole is None:
            return None
        event_type = whole[TYPE_OFFSET]
        if event_type in COMPRESSED_V1:
            return self._unpacked(whole, event_type - STEP_V1)
        return self._unpacked(whole, event_type - STEP_V2) if event_type in COMPRESSED_V2 else whole

    def finish(self) -> None:
        """The group ends here. Raises EventError: that is inside the fragments of a row event."""
        self._partial.finish()

    def _unpacked(self, event: Buffer, event_type: int) -> bytes:
        """A row event with its rows unpacked, which then is of another type."""
        header = decode_rows_header(event)
        packed = memoryview(event)[header.rows_offset :]
        size = header.rows_offset + unpacked_size(packed)[0]
        self._large.check(size)
        head = bytearray(event[: header.rows_offset])
        head[TYPE_OFFSET] = event_type
        head[SIZE_OFFSET : SIZE_OFFSET + 4] = size.to_bytes(4, "little")
        if self._large.hold is None or size <= self._large.kept_max:
            return b"".join((head, *unpack(packed)))
        sink = self._large.hold()
        sink.write(head)
        for unpacked in unpack(packed):
            sink.write(unpacked)
        return sink.whole()  # type: ignore[return-value]
