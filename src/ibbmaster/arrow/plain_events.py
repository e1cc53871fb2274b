"""Events as the kernel for rows takes them: compressed ones unpacked, and fragments of row events put together."""

import dataclasses
from collections.abc import Iterator

import numpy as np

from ibbmaster.arrow.event_batch import EventBatch, read_only
from ibbmaster.codec.buffer import Buffer
from ibbmaster.event.header import TYPE_OFFSET
from ibbmaster.event.rows.large import LargeRows
from ibbmaster.event.rows.partial import NOT_PLAIN, PlainRows
from ibbmaster.kernel.fields import EventColumn

IS_NOT_PLAIN = np.isin(np.arange(256), NOT_PLAIN)


class PlainEvents:
    """Makes the events of batch after batch plain; holds the fragments of a row event that continues in the next."""

    def __init__(self, large: LargeRows) -> None:
        self._large = large
        self._rows = PlainRows(large)

    def of(self, batch: EventBatch) -> Iterator[EventBatch]:
        """The same events, compressed ones unpacked and fragments put together: a large one is a batch by itself."""
        types = batch.data[batch.events[:, EventColumn.START] + TYPE_OFFSET]
        if not IS_NOT_PLAIN[types].any() and not self._rows.is_open:
            yield batch
            return
        data = bytearray()
        rows: list[list[int]] = []
        for number, row in enumerate(batch.events.tolist()):
            with batch.naming_group(number):
                event = self._rows.whole_event(batch.event(number))
            if event is not None and len(event) > self._large.kept_max:
                yield _batch_of(batch, data, rows)
                yield _batch_of(batch, event, [[0, len(event), *row[2:]]])
                data, rows = bytearray(), []
            elif event is not None:
                rows.append([len(data), len(event), *row[2:]])
                data += event
        yield _batch_of(batch, data, rows)

    def finish(self) -> None:
        """The log ends here. Raises EventError: it ends inside the fragments of a row event."""
        self._rows.finish()


def _batch_of(batch: EventBatch, data: Buffer, rows: list[list[int]]) -> EventBatch:
    events = np.array(rows, dtype=np.int64).reshape(-1, EventColumn.COLUMNS)
    return dataclasses.replace(batch, data=read_only(data), events=events)
