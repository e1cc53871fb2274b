"""The rows of a table as two arrays, keys in order and places, which change many at a time."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ibbmaster.kernel.fields import ChangeOp
from .kept_rows import Interval, WrongChangeError

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
