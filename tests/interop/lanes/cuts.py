"""Where connections are cut: a seeded plan for a proxy."""

import math
import random
from collections.abc import Iterator

from lanes.proxy import Cut, Ending

DIALOG_BYTES = 1200  # about what a primary sends before the dump
OPENING_BYTES = 450  # about what a dump opens with
GROUP_BYTES = 600_000  # more than most groups have
SILENCES_MAX = 2  # of one plan: the replica needs its slave_net_timeout to notice each


class CutPlan:
    """Cuts, one after the other: in the dialog, where a dump opens, in what the replica passes over, and behind it."""

    def __init__(self, rng: random.Random, count: float, *, size_max: int = GROUP_BYTES) -> None:
        self._rng = rng
        self._count = count
        self._size_max = size_max
        self._cuts: list[Cut] = []
        self._silences = SILENCES_MAX

    def __iter__(self) -> Iterator[Cut]:
        while len(self._cuts) < self._count:
            cut = self._next()
            self._cuts.append(cut)
            yield cut

    def stop(self) -> None:
        """Cut no connection that is not open yet."""
        self._count = 0

    @property
    def done(self) -> int:
        """Cuts that were reached; a dump may have ended before."""
        return sum(cut.reached.is_set() for cut in self._cuts)

    def _next(self) -> Cut:
        rng = self._rng
        ending = rng.choice((Ending.CLOSE, Ending.CLOSE, Ending.RESET))
        if self._silences and rng.random() < 0.1:
            self._silences -= 1
            ending = Ending.SILENCE
        match rng.randrange(10):
            case 0:  # costs the replica a second
                return Cut(after_bytes=rng.randrange(DIALOG_BYTES), ending=ending)
            case 1 | 2 | 3:
                return Cut(after_bytes=rng.randrange(OPENING_BYTES), of_dump=True, ending=ending)
            case _:
                size = int(math.exp(rng.uniform(math.log(OPENING_BYTES), math.log(self._size_max))))
                return Cut(after_bytes=size, of_dump=True, ending=ending)
