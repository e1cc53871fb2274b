"""The TABLE_MAP events of a part of a log, equal ones once."""

import bisect
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ibbmaster.kernel.calls import Kernels
from ibbmaster.kernel.fields import EventColumn
from ibbmaster.logs.log.group_content import RowReader, TableDecoder, group_events
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.header import TYPE_OFFSET
from ibbmaster.replication.event.table_map import SAYS_OFFSET
from ibbmaster.replication.event.types import EventType
from ibbmaster.schema.model import SchemaPlace
from .event_batch import EventBatch

FEW = 100  # events: a plan of these needs no `pyarrow.compute`, 0.05 s


class SeenMap(NamedTuple):
    place: SchemaPlace
    event: bytes


def seen_maps(batches: Iterable[EventBatch], boundaries: Sequence[SchemaPlace], kernels: Kernels) -> list[SeenMap]:
    """In order; a boundary between two makes them different. Errors as the batches."""
    found: dict[tuple[int, bytes], SeenMap] = {}
    for batch in batches:
        types = batch.data[batch.events[:, EventColumn.START] + TYPE_OFFSET]
        for numbers in _between(batch, np.flatnonzero(types == EventType.TABLE_MAP), boundaries):
            for number in last_of_each(batch, numbers, SAYS_OFFSET, kernels):
                _note(found, boundaries, SeenMap(batch.schema_place(number), batch.event(number)))
    return sorted(found.values())


def seen_maps_by_reference(groups: Iterable[EventGroup], boundaries: Sequence[SchemaPlace]) -> list[SeenMap]:
    found: dict[tuple[int, bytes], SeenMap] = {}
    for group in groups:
        for number, event in enumerate(group_events(group)):
            if event[TYPE_OFFSET] == EventType.TABLE_MAP:
                _note(found, boundaries, SeenMap(SchemaPlace(group.start, number), event))
    return sorted(found.values())


def last_decoder(maps: Sequence[SeenMap], reader: RowReader) -> TableDecoder | None:
    """Reads a reader's table as the last of these events has it."""
    for place, event in reversed(maps):
        found = reader.decoder(event, place)
        if found is not None:
            return found
    return None


def _note(found: dict[tuple[int, bytes], SeenMap], boundaries: Sequence[SchemaPlace], seen: SeenMap) -> None:
    found[bisect.bisect_right(boundaries, seen.place), seen.event[SAYS_OFFSET:]] = seen


def _between(batch: EventBatch, numbers: Any, boundaries: Sequence[SchemaPlace]) -> Iterator[Any]:
    start = 0
    while start < len(numbers):
        passed = bisect.bisect_right(boundaries, batch.schema_place(numbers[start]))
        end = len(numbers)
        if passed < len(boundaries):
            end = bisect.bisect_left(numbers, boundaries[passed], lo=start, key=batch.schema_place)
        yield numbers[start:end]
        start = end


def last_of_each(batch: EventBatch, numbers: Any, offset: int, kernels: Kernels) -> list[int]:
    """The last of events with equal bytes from an offset on, in the order of the first ones."""
    if len(numbers) <= FEW:
        return list({batch.event(number)[offset:]: number for number in numbers.tolist()}.values())
    import pyarrow as pa

    from .arrays import string_array

    starts = batch.events[numbers, EventColumn.START] + offset
    sizes = np.maximum(batch.events[numbers, EventColumn.SIZE] - offset, 0)
    texts = string_array(pa.binary(), batch.data, starts, sizes, np.ones(len(numbers), dtype=np.uint8), kernels)
    encoded = texts.dictionary_encode()
    indices = np.frombuffer(encoded.indices.buffers()[1], dtype=np.int32)  # `to_numpy` imports pandas: half a second
    last = np.zeros(len(encoded.dictionary), dtype=np.int64)
    last[indices[: len(numbers)]] = numbers
    return last.tolist()
