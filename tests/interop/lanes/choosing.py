"""Something that does one of several things at random, again and again."""

import random
from collections.abc import Callable
from typing import Any


class Choosing:
    """Chooses by `_rng` what it does and which statement it runs."""

    _rng: random.Random
    _run: Callable[..., Any]

    def _do_one_of(self, work: dict[Callable[..., None], int], *arguments: Any) -> None:
        """By their weights."""
        (chosen,) = self._rng.choices(list(work), list(work.values()))
        chosen(*arguments)

    def _run_one_of(self, *statements: str) -> None:
        self._run(self._rng.choice(statements))
