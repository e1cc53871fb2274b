"""The tables and kinds of row events that a kernel knows, each named once."""

from typing import Any

import numpy as np

from ibbmaster.kernel.calls import Kernels, KnownTables
from ibbmaster.kernel.fields import DELETE, INSERT, UPDATE_BEFORE, MapColumn, OpenColumn, VariantColumn
from ibbmaster.replication.event.header import TYPE_OFFSET
from ibbmaster.replication.event.rows.changes import KINDS, ChangeKind
from ibbmaster.replication.event.table_map import RowsHeader
from ibbmaster.replication.event.types import EventType
from ibbmaster.rows.walk import TABLE_ID, unmapped
from ibbmaster.storage.codec.buffer import Buffer

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
