"""Events as the kernel for rows takes them: compressed ones unpacked, and fragments of row events put together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from ibbmaster.arrow.event_batch import EventBatch
from ibbmaster.codec.buffer import Buffer
from ibbmaster.event.header import SIZE_OFFSET, TYPE_OFFSET
from ibbmaster.event.query import unpack, unpacked_size
from ibbmaster.event.rows.large import LargeRows
from ibbmaster.event.rows.partial import PartialRows
from ibbmaster.event.table_map import RowsHeader, decode_rows_header
from ibbmaster.event.types import EventType
from ibbmaster.kernel.fields import EventColumn

COMPRESSED_STEP_V1 = EventType.WRITE_ROWS_COMPRESSED_V1 - EventType.WRITE_ROWS_V1
COMPRESSED_STEP_V2 = EventType.WRITE_ROWS_COMPRESSED - EventType.WRITE_ROWS
COMPRESSED_V1 = range(EventType.WRITE_ROWS_COMPRESSED_V1, EventType.DELETE_ROWS_COMPRESSED_V1 + 1)
COMPRESSED_V2 = range(EventType.WRITE_ROWS_COMPRESSED, EventType.DELETE_ROWS_COMPRESSED + 1)
NOT_PLAIN = (*COMPRESSED_V1, *COMPRESSED_V2, int(EventType.PARTIAL_ROW_DATA))


class PlainEvents:
    """Makes the events of batch after batch plain; holds the fragments of a row event that continues in the next."""

    def __init__(self, large: LargeRows) -> None:
        self._large = large
        self._partial = PartialRows(large)

    def of(self, batch: EventBatch) -> Iterator[EventBatch]:
        """The same events, compressed ones unpacked and fragments put together: a large one is a batch by itself."""
        types = batch.data[batch.events[:, EventColumn.START] + TYPE_OFFSET]
        if not np.isin(types, NOT_PLAIN).any() and not self._partial.is_open:
            yield batch
            return
        data = bytearray()
        rows: list[list[int]] = []
        for number, row in enumerate(batch.events.tolist()):
            with batch.naming_group(number):
                event = self._event(batch.event(number))
            if event is not None and len(event) > self._large.kept_max:
                yield _batch_of(batch, data, rows)
                yield _batch_of(batch, event, [[0, len(event), *row[2:]]])
                data, rows = bytearray(), []
            elif event is not None:
                rows.append([len(data), len(event), *row[2:]])
                data += event
        yield _batch_of(batch, data, rows)

    def _event(self, event: bytes) -> bytes | None:
        whole = self._partial.whole_event(event)
        if whole is None:
            return None
        step = COMPRESSED_STEP_V1 if whole[TYPE_OFFSET] in COMPRESSED_V1 else COMPRESSED_STEP_V2
        if whole[TYPE_OFFSET] not in COMPRESSED_V1 and whole[TYPE_OFFSET] not in COMPRESSED_V2:
            return whole
        return self._unpacked(whole, decode_rows_header(whole), whole[TYPE_OFFSET] - step)

    def _unpacked(self, event: Buffer, header: RowsHeader, event_type: int) -> bytes:
        """A row event with its rows unpacked, which then is of another type."""
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

    def finish(self) -> None:
        """The log ends here.

        Raises:
            EventError: it ends inside the fragments of a row event.
        """
        self._partial.finish()


def _batch_of(batch: EventBatch, data: Buffer, rows: list[list[int]]) -> EventBatch:
    events = np.array(rows, dtype=np.int64).reshape(-1, EventColumn.COLUMNS)
    array = np.frombuffer(data, dtype=np.uint8)
    return dataclasses.replace(batch, data=array if array.flags.writeable else array.copy(), events=events)
