"""What a row of the table is, and which rows there are."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

K = TypeVar("K")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """At least (or at most) `value`, or so many times what the peer or the limit in the same row has."""

    value: float
    is_ceiling: bool = False
    of: str = ""  # "peer" or "limit", or "" for a value by itself

    def __str__(self) -> str:
        return f"{'≤' if self.is_ceiling else '≥'} {self.value:g}{f' x {self.of}' if self.of else ''}"

    def is_met(self, figure: Figure) -> bool | None:
        """None if there is nothing to compare with."""
        other = {"peer": figure.peer, "limit": figure.limit}.get(self.of, 1.0)
        if other is None:
            return None
        return figure.ours <= self.value * other if self.is_ceiling else figure.ours >= self.value * other


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One row of the table; `note` says what else is to be known of it."""

    name: str
    unit: str
    ours: float
    spread: float | None = None  # half of largest - smallest, over the median
    peer: float | None = None
    limit: float | None = None
    limit_name: str = ""
    target: Target | None = None
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        """None if there is no target, or nothing to compare with."""
        return None if self.target is None else self.target.is_met(self)

    def cells(self) -> list[str]:
        """As the table shows them."""
        limit = "" if self.limit is None else f"{self.limit_name} {number(self.limit)} ({self.ours / self.limit:.2f})"
        return [
            self.name,
            self.unit,
            number(self.ours) + ("" if self.spread is None else f" ±{self.spread:.0%}"),
            "" if self.peer is None else number(self.peer),
            "" if not self.peer else f"{self.ours / self.peer:.2f}",
            limit,
            "" if self.target is None else str(self.target),
            {None: "", True: "yes", False: "NO"}[self.is_met],
            self.note,
        ]


def number(value: float) -> str:
    """With three digits that mean something, at least."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def percentile(values: Sequence[float], part: float) -> float:
    """The value below which so large a part of all lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def spread(values: Sequence[float]) -> float:
    """Half of largest - smallest, over the median."""
    return (max(values) - min(values)) / statistics.median(values) / 2


def timed(work: Callable[[], object]) -> float:
    """Seconds."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """How the rows are to be measured."""

    base: Path  # where logs are kept from run to run
    peer: str  # version of MariaDB
    repeats: int
    is_quick: bool

    def pick(self, whole: float, quick: float) -> float:
        """A size, for this run."""
        return quick if self.is_quick else whole

    def rounds(
        self, work: Mapping[K, Callable[[], T]], repeats: int | None = None, *, seconds: float = 600
    ) -> dict[K, list[T]]:
        """What each of some gives, one after the other, round by round: all suffer alike from a busy machine.

        After so many seconds no further round begins.
        """
        found: dict[K, list[T]] = {name: [] for name in work}
        until = time.perf_counter() + seconds
        for _ in range(repeats or self.repeats):
            for name, once in work.items():
                found[name].append(once())
            if time.perf_counter() > until:
                break
        return found


Measurement = Callable[[Bench], Iterator[Figure]]
ROWS: dict[str, Measurement] = {}  # by the names that --rows takes, in the order of the table
FURTHER: set[str] = set()  # names of rows that are measured when they are asked for


def rows(
    name: str, *arguments: object, is_further: bool = False
) -> Callable[[Callable[..., Iterator[Figure]]], Callable[..., Iterator[Figure]]]:
    """Add what a function measures to the table, as rows of this name; it gets the arguments behind the `Bench`."""

    def add(measure: Callable[..., Iterator[Figure]]) -> Callable[..., Iterator[Figure]]:
        ROWS[name] = lambda bench: measure(bench, *arguments)
        if is_further:
            FURTHER.add(name)
        return measure

    return add
