"""Doubts about single rows: about values, or whether they are there."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from .kept_rows import Interval

KEYS_MAX = 1 << 16
ROW = -1  # in place of a column's id: all of a row, also whether it is there


@dataclass(slots=True)
class UnknownRows:
    """Since which group rows, or values of a column, are unknown, and why."""

    gtid: str
    reason: str


@dataclass(slots=True)
class RowDoubts:
    """By key.

    Attributes:
        rows: what is unknown of a row, by column id, or ROW.
        absent: keys without a row, in a table that may have unreported rows.
    """

    rows: dict[bytes, dict[int, UnknownRows]] = field(default_factory=dict)
    absent: set[bytes] = field(default_factory=set)

    def copy(self) -> "RowDoubts":
        return RowDoubts({key: dict(found) for key, found in self.rows.items()}, set(self.absent))

    def clear(self) -> None:
        self.rows.clear()
        self.absent.clear()

    def __bool__(self) -> bool:
        return bool(self.rows or self.absent)

    @property
    def is_full(self) -> bool:
        return len(self.rows) > KEYS_MAX

    def doubt(self, key: bytes, columns: Collection[int], reason: UnknownRows) -> None:
        """Values of a row become unknown, or, with ROW, all of it; the first reason stays."""
        found = self.rows.setdefault(key, {})
        for column in columns:
            found.setdefault(column, reason)
        self.absent.discard(key)

    def report(self, key: bytes, columns: Collection[int] | None = None) -> None:
        """An event shows a row, with values of these columns; None: of all."""
        self.absent.discard(key)
        if columns is None:
            self.rows.pop(key, None)
        elif (found := self.rows.get(key)) is not None:
            for column in columns:
                found.pop(column, None)
            if not found:
                del self.rows[key]

    def gone(self, key: bytes) -> None:
        self.rows.pop(key, None)
        if len(self.absent) < KEYS_MAX:
            self.absent.add(key)

    def inside(self, interval: Interval) -> Iterator[dict[int, UnknownRows]]:
        first, end = interval
        for key, found in self.rows.items():
            if first <= key and (end is None or key < end):
                yield found
