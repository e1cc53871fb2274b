"""Rows in arrays, as long as many change at once. The reference, which takes all else: `fold.kept_rows`."""

from __future__ import annotations

import contextlib
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from ibbmaster.kernel.fields import KEY_MAX, ChangeOp
from .kept_rows import EVERYTHING, Interval, KeptRows, RowFile, WrongChangeError
from .sorted_rows import RowChanges, SortedRows, keys_of

WAITING_MAX = 1 << 20
SORTED_BYTES_MAX = 128 << 20  # of keys and places in memory; tables with more are in a file


class FastKeptRows(KeptRows):
    """Notices late, by `conclude` or a question, that changes contradict each other, and undoes nothing. A question
    that only keys in a file answer moves its table there."""

    def __init__(self, rows: RowFile, database: sqlite3.Connection | None = None) -> None:
        super().__init__(rows, database)
        self._sorted: dict[int, SortedRows] = {}
        self._waiting: dict[int, list[RowChanges]] = {}
        self._counts: dict[int, int] = {}
        self._lasts: dict[int, int] = {}  # last numbers of tables without a key

    def fork(self) -> Self:
        self.conclude()
        other = super().fork()
        other._sorted, other._lasts = dict(self._sorted), dict(self._lasts)
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
        return f"r{number}" not in self._tables

    def change(self, number: int, ops: Any, keys: Any, places: Any) -> None:
        """Change rows with a key, see `RowChanges`. Raises WrongChangeError: changes contradict each other."""
        changes = RowChanges(ops if ops.any() else None, keys, places)
        if self.is_sorted(number):
            self._wait(number, changes)
        else:
            with self._at_once():
                self._change_in_file(number, changes)

    def append(self, number: int, places: Any) -> None:
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
        for number in list(self._waiting):
            self._conclude(number)

    def _conclude(self, number: int) -> SortedRows:
        waiting = self._waiting.pop(number, None)
        found = self._sorted.get(number) or SortedRows()
        if waiting:
            self._counts.pop(number)
            found = self._sorted[number] = found.changed(waiting)
            if sum(each.size for each in self._sorted.values()) > SORTED_BYTES_MAX:
                self._make(number)
        return found

    def _change_in_file(self, number: int, changes: RowChanges) -> None:
        keys, places = SortedRows(changes.keys).key_bytes(), changes.places.tolist()
        ops = np.zeros(len(keys), dtype=np.int8) if changes.ops is None else changes.ops
        starts = [0, *(np.flatnonzero(np.diff(ops)) + 1).tolist()]
        for start, end in zip(starts, [*starts[1:], len(keys)], strict=True):
            if not self._change_alike(number, ops[start], keys[start:end], places[start:end]):
                raise WrongChangeError

    def _change_alike(self, number: int, op: int, keys: list[bytes], places: list[int]) -> bool:
        if op == ChangeOp.DELETE:
            return self.delete(number, keys)
        return (self.insert if op == ChangeOp.INSERT else self.move)(number, keys, places)

    def _make(self, number: int) -> None:
        found = self._conclude(number) if self._has_arrays(number) else None
        is_moved = self._sorted.pop(number, None) is not None
        super()._make(number)
        if found is not None and is_moved:
            keys, places = found.key_bytes(), found.places.tolist()
            with self._at_once():
                super().insert(number, keys, places)
                if number in self._lasts:
                    self._make_digests(number)
                    self._add_digests(number, map(self.digest_of[number], places), keys)

    @contextlib.contextmanager
    def _at_once(self) -> Iterator[None]:
        self._database.execute("SAVEPOINT many")
        try:
            yield
        finally:
            self._database.execute("RELEASE many")

    # As the reference -------------------------------------------------------------------------

    def numbers(self) -> list[int]:
        return sorted({*super().numbers(), *self._sorted, *self._waiting})

    def drop(self, number: int) -> None:
        super().drop(number)
        for known in (self._sorted, self._waiting, self._counts, self._lasts):
            known.pop(number, None)

    def insert(self, number: int, keys: Sequence[bytes], places: Sequence[int]) -> bool:
        return self._waits(number, ChangeOp.INSERT, keys, places) or super().insert(number, keys, places)

    def move(self, number: int, keys: Sequence[bytes], places: Sequence[int]) -> bool:
        return self._waits(number, ChangeOp.REPLACE, keys, places) or super().move(number, keys, places)

    def delete(self, number: int, keys: Sequence[bytes]) -> bool:
        return self._waits(number, ChangeOp.DELETE, keys, [0] * len(keys)) or super().delete(number, keys)

    def _waits(self, number: int, op: ChangeOp, keys: Sequence[bytes], places: Sequence[int]) -> bool:
        """Change rows in arrays; False if the table has to be in a file."""
        if not self.is_sorted(number) or max(map(len, keys), default=0) >= KEY_MAX:
            return False
        if keys:
            ops = None if op is ChangeOp.INSERT else np.full(len(keys), op, dtype=np.int8)
            self._wait(number, RowChanges(ops, keys_of(keys), np.array(places, dtype=np.int64)))
        return True

    def _has_arrays(self, number: int) -> bool:
        return number in self._sorted or number in self._waiting

    def all_places(self, number: int) -> array[int]:
        return self._conclude(number).all_places() if self._has_arrays(number) else super().all_places(number)

    def places(
        self, number: int, interval: Interval = EVERYTHING, *, is_descending: bool = False, limit: int | None = None
    ) -> Iterator[int]:
        if not self._has_arrays(number):
            return super().places(number, interval, is_descending=is_descending, limit=limit)
        found = self._conclude(number)
        places = found.places[found.rows_in(interval)]
        return iter((places[::-1] if is_descending else places)[:limit].tolist())

    def count_in(self, number: int, interval: Interval = EVERYTHING) -> int:
        if not self._has_arrays(number):
            return super().count_in(number, interval)
        rows = self._conclude(number).rows_in(interval)
        return int(max(rows.stop - rows.start, 0))

    def _copy(self, number: int, rows: RowFile) -> None:
        if not self._has_arrays(number):
            super()._copy(number, rows)
            return
        found = self._conclude(number)
        places = [self._copied(place, rows) for place in found.places.tolist()]
        self._sorted[number] = SortedRows(found.keys, np.array(places, dtype=np.int64))

    def all_rows(self, number: int) -> Iterable[tuple[bytes, int]]:
        if not self._has_arrays(number):
            return super().all_rows(number)
        found = self._conclude(number)
        return zip(found.key_bytes(), found.places.tolist(), strict=True)
