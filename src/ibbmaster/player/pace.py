"""When a group of a recording is due."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ibbmaster.errors import ConfigurationError

_FACTOR = re.compile(r"[x×](\d{1,6}(?:\.\d{1,6})?)|(\d{1,6}(?:\.\d{1,6})?)[x×]", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast a recording is played: `factor` times as fast as it was, infinitely fast, or step by step (0)."""

    factor: float

    @classmethod
    def parse(cls, text: str) -> Pace:
        """Read `original`, `x10`, `max` or `step`. Raises ConfigurationError: it is none of them."""
        named = {"original": 1.0, "max": math.inf, "step": 0.0}
        if text in named:
            return cls(factor=named[text])
        match = _FACTOR.fullmatch(text.strip())
        if match is None or float(match[1] or match[2]) <= 0:
            raise ConfigurationError(f"pace {text[:60]!r}: expected original, max, step, or a factor as x10 or x0.5")
        return cls(factor=float(match[1] or match[2]))

    @property
    def is_stepped(self) -> bool:
        return self.factor == 0

    @property
    def is_unlimited(self) -> bool:
        return math.isinf(self.factor)

    def due(self, begun_at: float, first_time: float, time: float) -> float:
        """When a group of a time is due in a recording whose first group is of another, played from a moment on."""
        if self.is_stepped:
            return math.inf
        return begun_at + max(0.0, time - first_time) / self.factor
