"""Events as the kernel for rows takes them: compressed ones unpacked, and fragments of row events put together."""

from __future__ import annotations

import dataclasses

import numpy as np

from ibbmaster.arrow.event_batch import EventBatch
from ibbmaster.errors import EventError
from ibbmaster.event.header import SIZE_OFFSET, TYPE_OFFSET
from ibbmaster.event.query import decompress
from ibbmaster.event.rows.partial import PartialRows
from ibbmaster.event.table_map import decode_rows_header
from ibbmaster.event.types import EventType
from ibbmaster.kernel.fields import EventColumn

COMPRESSED_STEP_V1 = EventType.WRITE_ROWS_COMPRESSED_V1 - EventType.WRITE_ROWS_V1
COMPRESSED_STEP_V2 = EventType.WRITE_ROWS_COMPRESSED - EventType.WRITE_ROWS
COMPRESSED_V1 = range(EventType.WRITE_ROWS_COMPRESSED_V1, EventType.DELETE_ROWS_COMPRESSED_V1 + 1)
COMPRESSED_V2 = range(EventType.WRITE_ROWS_COMPRESSED, EventType.DELETE_ROWS_COMPRESSED + 1)
NOT_PLAIN = (*COMPRESSED_V1, *COMPRESSED_V2, int(EventType.PARTIAL_ROW_DATA))


class PlainEvents:
    """Makes the events of batch after batch plain; holds the fragments of a row event that continues in the next."""

    def __init__(self) -> None:
        self._partial = PartialRows()

    def of(self, batch: EventBatch) -> EventBatch:
        """The same events, compressed ones unpacked and fragments of row events put together."""
        types = batch.data[batch.events[:, EventColumn.START] + TYPE_OFFSET]
        if not np.isin(types, NOT_PLAIN).any() and not self._partial.is_open:
            return batch
        data, rows = bytearray(), []
        for number, row in enumerate(batch.events.tolist()):
            with batch.naming_group(number):
                event = self._event(batch.event(number))
            if event is not None:
                rows.append([len(data), len(event), *row[2:]])
                data += event
        events = np.array(rows, dtype=np.int64).reshape(-1, EventColumn.COLUMNS)
        return dataclasses.replace(batch, data=np.frombuffer(data, dtype=np.uint8), events=events)

    def _event(self, event: bytes) -> bytes | None:
        if event[TYPE_OFFSET] == EventType.PARTIAL_ROW_DATA:
            whole = self._partial.take(event)
            return None if whole is None else self._event(whole)
        step = COMPRESSED_STEP_V1 if event[TYPE_OFFSET] in COMPRESSED_V1 else COMPRESSED_STEP_V2
        if event[TYPE_OFFSET] not in COMPRESSED_V1 and event[TYPE_OFFSET] not in COMPRESSED_V2:
            return event
        offset = decode_rows_header(event).rows_offset
        plain = bytearray(event[:offset] + decompress(event[offset:]))
        plain[TYPE_OFFSET] -= step
        plain[SIZE_OFFSET : SIZE_OFFSET + 4] = len(plain).to_bytes(4, "little")
        return bytes(plain)

    def finish(self) -> None:
        """The log ends here.

        Raises:
            EventError: it ends inside the fragments of a row event.
        """
        if self._partial.is_open:
            raise EventError("the group ends inside the fragments of a row event")
