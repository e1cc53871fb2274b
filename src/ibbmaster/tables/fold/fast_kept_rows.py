"""Rows in two arrays, keys in order and places, as long as many change at once. The reference, which takes all else:
`fold.kept_rows`.
"""

from __future__ import annotations

import contextlib
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from ibbmaster.kernel.fields import KEY_MAX, ChangeOp
from .kept_rows import EVERYTHING, Interval, KeptRows, RowFile, WrongChangeError

NUMBER_SIZE = 8  # bytes of a key kept as a number
END = b"\1"  # after other keys, so that zeros at their end stay; it changes no order


@dataclass(frozen=True, slots=True)
class RowChanges:
    """In the order of the log; deletions ignore their places. `ops` is None: all insert."""

    ops: Any
    keys: Any
    places: Any


def keys_of(keys: Sequence[bytes]) -> Any:
    """As numbers that compare alike if all have 8 bytes, else as bytes, each with END."""
    if {len(key) for key in keys} <= {NUMBER_SIZE}:
        return np.frombuffer(b"".join(keys), dtype=">u8").astype(np.uint64)
    return np.array([key + END for key in keys])


def keys_in(data: Any, sizes: Any) -> Any:
    """As `keys_of`, from a matrix with a key in each row, filled with zeros, one at least."""
    size = int(sizes.max(initial=NUMBER_SIZE))
    if size == NUMBER_SIZE and int(sizes.min(initial=NUMBER_SIZE)) == NUMBER_SIZE:
        return np.ascontiguousarray(data[:, :NUMBER_SIZE]).view(">u8").ravel().astype(np.uint64)
    found = data[:, : size + 1].copy()
    found[np.arange(len(found)), sizes] = END[0]
    return found.view(f"S{size + 1}").ravel()


def _as_bytes(keys: Any) -> Any:
    if keys.dtype.kind != "u":
        return keys
    found = np.full((len(keys), NUMBER_SIZE + 1), END[0], dtype=np.uint8)
    found[:, :NUMBER_SIZE] = keys.astype(">u8").view(np.uint8).reshape(-1, NUMBER_SIZE)
    return found.view(f"S{NUMBER_SIZE + 1}").ravel()


def _alike(parts: Sequence[Any]) -> list[Any]:
    filled = [part for part in parts if len(part)]
    if len({part.dtype.kind for part in filled}) > 1:
        return [_as_bytes(part) for part in parts]
    return [part if len(part) or not filled else np.empty(0, dtype=filled[0].dtype) for part in parts]


@dataclass(frozen=True, slots=True)
class SortedRows:
    """Unique `keys` in order, and their `places`."""

    keys: Any = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    places: Any = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    _as_array: list[array[int]] = field(default_factory=list)  # none or one

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def size(self) -> int:
        """In bytes."""
        return int(self.keys.nbytes + self.places.nbytes)

    def all_places(self) -> array[int]:
        if not self._as_array:
            self._as_array.append(array("q", self.places.tobytes()))
        return self._as_array[0]

    def rows_in(self, interval: Interval) -> slice:
        first, end = interval
        return slice(self._first_from(first), len(self) if end is None else self._first_from(end))

    def _first_from(self, key: bytes) -> int:
        if self.keys.dtype.kind == "u":
            number = int.from_bytes(key[:NUMBER_SIZE].ljust(NUMBER_SIZE, b"\0"), "big")
            side = "right" if len(key) > NUMBER_SIZE else "left"
            return int(np.searchsorted(self.keys, np.uint64(number), side=side))  # type: ignore[call-overload]
        size = self.keys.dtype.itemsize
        side = "right" if len(key) > size else "left"
        return int(np.searchsorted(self.keys, np.array(key[:size], dtype=f"S{size}"), side=side))  # type: ignore[call-overload]

    def key_bytes(self) -> list[bytes]:
        if self.keys.dtype.kind == "u":
            data = self.keys.astype(">u8").tobytes()
            return [data[start : start + NUMBER_SIZE] for start in range(0, len(data), NUMBER_SIZE)]
        return [key[: -len(END)] for key in self.keys.tolist()]

    def changed(self, parts: Sequence[RowChanges]) -> SortedRows:
        """The rows after changes. Raises WrongChangeError: a change is of a missing row, or inserts a present one."""
        own, *keys = _alike([self.keys, *(part.keys for part in parts)])
        places = [part.places for part in parts]
        if all(part.ops is None for part in parts) and _are_ascending([own, *keys]):
            return SortedRows(np.concatenate([own, *keys]), np.concatenate([self.places, *places]))
        ops = [np.zeros(len(part.keys), dtype=np.int8) if part.ops is None else part.ops for part in parts]
        return self._merged(own, np.concatenate(keys), np.concatenate(ops), np.concatenate(places))

    def _merged(self, own: Any, keys: Any, ops: Any, places: Any) -> SortedRows:
        if not (keys[1:] > keys[:-1]).all():
            order = np.argsort(keys, kind="stable")
            keys, ops, places = keys[order], ops[order], places[order]
        begins = np.concatenate([[True], keys[1:] != keys[:-1]])
        ends = np.concatenate([begins[1:], [True]])
        first_keys = keys[begins]
        at = np.searchsorted(own, first_keys)
        if len(own):
            was_there = own[np.minimum(at, len(own) - 1)] == first_keys
        else:
            was_there = np.zeros(len(first_keys), dtype=bool)
        is_there = np.empty(len(keys), dtype=bool)  # before each change
        is_there[1:] = ops[:-1] != ChangeOp.DELETE
        is_there[begins] = was_there
        if ((ops == ChangeOp.INSERT) == is_there).any():
            raise WrongChangeError
        stays = ops[ends] != ChangeOp.DELETE
        new_places = self.places.copy()
        kept = was_there & stays
        new_places[at[kept]] = places[ends][kept]
        added = ~was_there & stays
        gone = at[was_there & ~stays]
        if len(gone):
            left = np.ones(len(own), dtype=bool)
            left[gone] = False
            at = at - np.searchsorted(gone, at)
            own, new_places = own[left], new_places[left]
        if added.any():
            where = at[added]
            own = np.insert(own.astype(np.promote_types(own.dtype, keys.dtype)), where, first_keys[added])
            new_places = np.insert(new_places, where, places[ends][added])
        return SortedRows(own, new_places)


def _are_ascending(parts: Sequence[Any]) -> bool:
    last: Any = None
    for part in parts:
        if len(part):
            if not (part[1:] > part[:-1]).all() or (last is not None and not part[0] > last):
                return False
            last = part[-1]
    return True


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
