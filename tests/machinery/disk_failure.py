"""A disk that says no once, or is full for a while, at a moment that a seed decides."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from ibbmaster.errors import DiskFullError, StoreError
from tests.machinery.simulated_disk import SimulatedDisk

FINAL_VERBS = ("sync", "sync", "sync", "write", "create", "allocate", "truncate", "sync_dir", "unlink")
NEED_ROOM = ("write", "create", "allocate")
CALLS_MAX = {"sync": 60, "write": 90}  # which call of a verb fails at the latest; of the rare ones the first few
RARE_CALLS_MAX = 4
FULL_TIMES_MAX = 12


@dataclass(slots=True)
class DiskFailure:
    """Set as the `fail` of a disk: the `first` call of one of `verbs`, and `times - 1` behind it, raise `error`.

    `hit` says which calls that were, with their file; `count` how many calls of those verbs there were."""

    verbs: tuple[str, ...]
    first: int
    times: int
    error: type[StoreError]
    hit: list[str] = field(default_factory=list)
    count: int = 0

    @classmethod
    def draw(cls, rng: random.Random) -> DiskFailure:
        if rng.random() < 0.25:
            return cls(NEED_ROOM, rng.randrange(1, CALLS_MAX["write"]), rng.randrange(1, FULL_TIMES_MAX), DiskFullError)
        verb = rng.choice(FINAL_VERBS)
        return cls((verb,), rng.randrange(1, CALLS_MAX.get(verb, RARE_CALLS_MAX)), 1, StoreError)

    def __call__(self, verb: str, name: str) -> None:
        if verb not in self.verbs:
            return
        self.count += 1
        if self.first <= self.count < self.first + self.times:
            self.hit.append(f"{verb} {name}")
            raise self.error(f"{name}: planted")

    @property
    def is_final(self) -> bool:
        """Whether a call has failed after which nothing may be written; a file that a purge keeps is none."""
        return bool(self.hit) and self.error is not DiskFullError and self.verbs != ("unlink",)

    def end(self, disk: SimulatedDisk) -> None:
        disk.fail = lambda verb, name: None
