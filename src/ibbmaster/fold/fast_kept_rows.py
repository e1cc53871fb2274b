"""Rows in arrays as long as they are changed many at once. The reference, which takes all else: `fold.kept_rows`."""

from __future__ import annotations

import contextlib
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ibbmaster.fold.kept_rows import EVERYTHING, Interval, KeptRows, WrongChangeError
from ibbmaster.fold.row_file import RowFile
from ibbmaster.fold.sorted_rows import RowChanges, SortedRows, keys_of
from ibbmaster.kernel.fields import KEY_MAX, ChangeOp

WAITING_MAX = 1 << 20  # changes of a table that wait to be sorted
SORTED_BYTES_MAX = 128 << 20  # of keys and places in memory; tables with more are in a file, as the reference has them


class FastKeptRows(KeptRows):
    """As `KeptRows`, but what changes contradict is seen late: by `conclude`, or when rows are asked for. There is no
    way back to a savepoint."""

    def __init__(
        self,
        rows: RowFile,
        database: sqlite3.Connection | None = None,
        sorted_rows: dict[int, SortedRows] | None = None,
    ) -> None:
        super().__init__(rows, database)
        self._sorted: dict[int, SortedRows] = {} if sorted_rows is None else sorted_rows
        self._waiting: dict[int, list[RowChanges]] = {}
        self._counts: dict[int, int] = {}  # of what waits
        self._lasts: dict[int, int] = {}  # of a table without a key: its last number

    def fork(self) -> FastKeptRows:
        """As `KeptRows.fork`."""
        self.conclude()
        other = FastKeptRows(self.rows, self._copied_database(), dict(self._sorted))
        other._lasts = dict(self._lasts)
        return other

    def savepoint(self, name: str) -> None:
        """Nothing is undone here."""

    def release(self, name: str) -> None:
        """Nothing is undone here."""

    def undo(self, name: str) -> None:
        """Raises WrongChangeError: nothing is undone here."""
        raise WrongChangeError

    # Many changes at once ---------------------------------------------------------------------

    def is_sorted(self, number: int) -> bool:
        """Whether a table is kept in arrays."""
        return f"r{number}" not in self._tables

    def change(self, number: int, ops: Any, keys: Any, places: Any) -> None:
        """Change rows with a key: see `RowChanges`. Raises WrongChangeError: they are not as these or earlier changes
        say."""
        changes = RowChanges(ops if ops.any() else None, keys, places)
        if self.is_sorted(number):
            self._wait(number, changes)
        else:
            with self._at_once():
                self._change_in_file(number, changes)

    def append(self, number: int, places: Any) -> None:
        """Add rows without a key after all others."""
        if not self.is_sorted(number):
            self.add(number, [self.digest_of[number](place) for place in places.tolist()], places.tolist())
            return
        last = self._lasts.get(number, 0)
        keys = np.arange(last + 1, last + 1 + len(places), dtype=np.uint64)
        self._lasts[number] = last + len(places)
        self._wait(number, RowChanges(None, keys, places))

    def _wait(self, number: int, changes: RowChanges) -> None:
        self._note(number)
        self._waiting.setdefault(number, []).append(changes)
        count = self._counts[number] = self._counts.get(number, 0) + len(changes.keys)
        if count >= max(WAITING_MAX, len(self._sorted.get(number, ()))):
            self._conclude(number)

    def conclude(self) -> None:
        """Have nothing wait. Raises WrongChangeError: changes contradict each other."""
        for number in list(self._waiting):
            self._conclude(number)

    def _conclude(self, number: int) -> SortedRows:
        waiting = self._waiting.pop(number, None)
        found = self._sorted.get(number) or SortedRows()
        if waiting:
            self._counts.pop(number)
            found = self._sorted[number] = found.changed(waiting)
            if sum(each.size for each in self._sorted.values()) > SORTED_BYTES_MAX:
                self._move_to_file(number)
        return found

    def _change_in_file(self, number: int, changes: RowChanges) -> None:
        keys = SortedRows(changes.keys).key_bytes()
        if changes.ops is None:
            self._expect(self.insert(number, keys, changes.places.tolist()))
            return
        cuts = np.flatnonzero(np.diff(changes.ops)) + 1
        starts = [0, *cuts.tolist()]
        for start, end in zip(starts, [*starts[1:], len(keys)], strict=True):
            part, places = keys[start:end], changes.places[start:end].tolist()
            if changes.ops[start] == ChangeOp.INSERT:
                self._expect(self.insert(number, part, places))
            elif changes.ops[start] == ChangeOp.REPLACE:
                self._expect(self.move(number, part, places))
            else:
                self._expect(self.delete(number, part))

    @staticmethod
    def _expect(is_right: bool) -> None:
        if not is_right:
            raise WrongChangeError

    def _move_to_file(self, number: int) -> None:
        """Keep a table as the reference does, from now on."""
        if not self.is_sorted(number):
            return
        found = self._conclude(number)
        if not self.is_sorted(number):
            return
        keys, places = found.key_bytes(), found.places.tolist()
        self._sorted.pop(number, None)
        with self._at_once():
            super().insert(number, keys, places)
            if number in self._lasts:
                digests = map(self.digest_of[number], places)
                self._make_digests(number)
                self._database.executemany(f"INSERT INTO d{number} VALUES (?, ?)", zip(digests, keys, strict=True))

    @contextlib.contextmanager
    def _at_once(self) -> Iterator[None]:
        """Changes of the database are one transaction, which takes less time than many."""
        self._database.execute("SAVEPOINT many")
        try:
            yield
        finally:
            self._database.execute("RELEASE many")

    # As the reference -------------------------------------------------------------------------

    def has(self, number: int) -> bool:
        """As `KeptRows.has`."""
        return bool(len(self._conclude(number))) if self._has_arrays(number) else super().has(number)

    def count(self, number: int) -> int:
        """As `KeptRows.count`."""
        return len(self._conclude(number)) if self._has_arrays(number) else super().count(number)

    def numbers(self) -> list[int]:
        """As `KeptRows.numbers`."""
        return sorted({*super().numbers(), *self._sorted, *self._waiting})

    def drop(self, number: int) -> None:
        """As `KeptRows.drop`."""
        super().drop(number)
        for known in (self._sorted, self._waiting, self._counts, self._lasts):
            known.pop(number, None)

    def insert(self, number: int, keys: Sequence[bytes], places: Sequence[int]) -> bool:
        """As `KeptRows.insert`, but what is wrong is seen later."""
        return self._changed(number, ChangeOp.INSERT, keys, places) or super().insert(number, keys, places)

    def move(self, number: int, keys: Sequence[bytes], places: Sequence[int]) -> bool:
        """As `KeptRows.move`, but what is wrong is seen later."""
        return self._changed(number, ChangeOp.REPLACE, keys, places) or super().move(number, keys, places)

    def delete(self, number: int, keys: Sequence[bytes]) -> bool:
        """As `KeptRows.delete`, but what is wrong is seen later."""
        return self._changed(number, ChangeOp.DELETE, keys, [0] * len(keys)) or super().delete(number, keys)

    def _changed(self, number: int, op: ChangeOp, keys: Sequence[bytes], places: Sequence[int]) -> bool:
        """Change rows in arrays, if they may be there."""
        if not self.is_sorted(number):
            return False
        if max(map(len, keys), default=0) >= KEY_MAX:
            self._move_to_file(number)
            return False
        if keys:
            ops = None if op is ChangeOp.INSERT else np.full(len(keys), op, dtype=np.int8)
            self._wait(number, RowChanges(ops, keys_of(keys), np.array(places, dtype=np.int64)))
        return True

    def place(self, number: int, key: bytes) -> int | None:
        """As `KeptRows.place`."""
        self._move_to_file(number)
        return super().place(number, key)

    def add(self, number: int, digests: Sequence[bytes], places: Sequence[int]) -> None:
        """As `KeptRows.add`."""
        self._move_to_file(number)
        super().add(number, digests, places)

    def remove(self, number: int, digest: bytes) -> bool:
        """As `KeptRows.remove`."""
        self._move_to_file(number)
        return super().remove(number, digest)

    def replace(self, number: int, digest: bytes, new_digest: bytes, place: int) -> bool:
        """As `KeptRows.replace`."""
        self._move_to_file(number)
        return super().replace(number, digest, new_digest, place)

    def place_of(self, number: int, digest: bytes) -> int | None:
        """As `KeptRows.place_of`."""
        self._move_to_file(number)
        return super().place_of(number, digest)

    def _has_arrays(self, number: int) -> bool:
        return number in self._sorted or number in self._waiting

    def all_places(self, number: int) -> array[int]:
        """As `KeptRows.all_places`."""
        return self._conclude(number).all_places() if self._has_arrays(number) else super().all_places(number)

    def places(
        self, number: int, interval: Interval = EVERYTHING, *, is_descending: bool = False, limit: int | None = None
    ) -> Iterator[int]:
        """As `KeptRows.places`."""
        if not self._has_arrays(number):
            return super().places(number, interval, is_descending=is_descending, limit=limit)
        found = self._conclude(number)
        places = found.places[found.rows_in(interval)]
        return iter((places[::-1] if is_descending else places)[:limit].tolist())

    def count_in(self, number: int, interval: Interval) -> int:
        """As `KeptRows.count_in`."""
        if not self._has_arrays(number):
            return super().count_in(number, interval)
        found = self._conclude(number)
        rows = found.rows_in(interval)
        return int(max(rows.stop - rows.start, 0))

    def _copy(self, number: int, rows: RowFile) -> None:
        if not self._has_arrays(number):
            super()._copy(number, rows)
            return
        found = self._conclude(number)
        places = [self._copied(place, rows) for place in found.places.tolist()]
        self._sorted[number] = SortedRows(found.keys, np.array(places, dtype=np.int64))

    def all_rows(self, number: int) -> Iterable[tuple[bytes, int]]:
        """As `KeptRows.all_rows`."""
        if not self._has_arrays(number):
            return super().all_rows(number)
        found = self._conclude(number)
        return zip(found.key_bytes(), found.places.tolist(), strict=True)
