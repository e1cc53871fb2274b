"""The TABLE_MAP events of a part of a log, equal ones once."""

import bisect
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ibbmaster.kernel.calls import Kernels, KnownTables
from ibbmaster.kernel.fields import DELETE, INSERT, UPDATE_BEFORE, EventColumn, MapColumn, OpenColumn, VariantColumn
from ibbmaster.logs.log.group_content import RowReader, TableDecoder, group_events
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.header import TYPE_OFFSET
from ibbmaster.replication.event.rows.changes import KINDS, ChangeKind
from ibbmaster.replication.event.table_map import SAYS_OFFSET, RowsHeader
from ibbmaster.replication.event.types import EventType
from ibbmaster.rows.walk import TABLE_ID, unmapped
from ibbmaster.schema.model import SchemaPlace
from ibbmaster.storage.codec.buffer import Buffer
from .event_batch import EventBatch

KIND_NUMBERS = {ChangeKind.INSERT: INSERT, ChangeKind.UPDATE: UPDATE_BEFORE, ChangeKind.DELETE: DELETE}
NO_TYPES = np.zeros(0, dtype=np.uint8)


class MapStore:
    """Arrays with the columns `MapColumn` and `VariantColumn`, and the bytes they refer to. `map_at` is where in a
    TABLE_MAP event the bytes begin by which its table is known."""

    def __init__(self, map_at: int) -> None:
        self._map_at = map_at
        self._store: Any = np.zeros(1 << 12, dtype=np.uint8)
        self._stored = 0
        self.maps: Any = np.zeros((64, MapColumn.COLUMNS), dtype=np.int64)
        self.map_count = 0
        self.variants: Any = np.zeros((64, VariantColumn.COLUMNS), dtype=np.int64)
        self.variant_count = 0

    def forget(self) -> None:
        """Other tables may follow under the same TABLE_MAP bytes; those of the current group stay."""
        self.maps[:, MapColumn.SIZE] = -1

    def _remember(self, data: bytes) -> int:
        start = self._stored
        self._stored += len(data)
        self._store = with_room(self._store, self._stored)
        self._store[start : self._stored] = memoryview(data)
        return start

    def note_map(self, event: bytes, *, is_wanted: bool) -> None:
        """Know a table, by the next row of `maps`."""
        name = event[self._map_at :]
        self.maps = with_room(self.maps, self.map_count + 1)
        self.maps[self.map_count] = self._remember(name), len(name), is_wanted
        self.map_count += 1

    def note_variant(self, event: Buffer, row: int, header: RowsHeader, cells: tuple[int, ...]) -> None:
        """Know a kind of row event; `cells` end its row of `variants`."""
        bits = header.columns_present + header.columns_after
        kind = KIND_NUMBERS[KINDS[EventType(event[TYPE_OFFSET])]]
        self.variants = with_room(self.variants, self.variant_count + 1)
        head = row, kind, header.column_count, self._remember(bits), len(bits)
        self.variants[self.variant_count, : len(head) + len(cells)] = *head, *cells
        self.variant_count += 1

    def known(self, open_tables: Any, is_other: Any = NO_TYPES) -> KnownTables:
        maps, variants = (self.maps, self.map_count, self._map_at), (self.variants, self.variant_count)
        return KnownTables(open_tables, self._store, *maps, *variants, is_other)


def with_room(array: Any, size: int) -> Any:
    while len(array) < size:
        array = np.concatenate([array, np.zeros_like(array)])
    return array


# Tables that the current group has named -------------------------------------------------------


def new_open_tables(size: int) -> Any:
    """Room for this many, see `OpenColumn`."""
    return np.full((size, OpenColumn.COLUMNS), -1, dtype=np.int64)


def more_open_tables(known: Any, turn: int, kernels: Kernels) -> Any:
    """The same with twice the room; the bytes of the group bound it."""
    found = new_open_tables(2 * len(known))
    for entry in known[known[:, OpenColumn.TURN] == turn]:
        found[kernels.find_open(found, entry[OpenColumn.ID], turn)] = entry
    return found


def open_row(event: Buffer, known: Any, turn: int, kernels: Kernels) -> int:
    """The row of the table that the group named for a row event. Raises EventError: it named none."""
    place = kernels.find_open(known, int.from_bytes(event[TABLE_ID], "little"), turn)
    if known[place, OpenColumn.TURN] != turn:
        raise unmapped(event)
    return int(known[place, OpenColumn.MAP])


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
