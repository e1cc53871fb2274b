"""What a consumer made of a scenario, in one word."""

from __future__ import annotations

import enum


class Grade(enum.StrEnum):
    """From the best to the worst; what nobody notices is worse than what stops."""

    EXACT = "exact"
    REPEATS_GROUPS = "repeats whole groups"
    REPEATS_PARTS = "repeats parts"
    LOSES_LOUDLY = "loses loudly"
    CRASHES = "crashes"
    HANGS = "hangs"
    LOSES_SILENTLY = "loses silently"

    @property
    def rank(self) -> int:
        """Its place in this order, 0 is the best."""
        return tuple(Grade).index(self)

    @property
    def meaning(self) -> str:
        """What it says of a consumer, in one sentence."""
        return _MEANINGS[self]


_MEANINGS = {
    Grade.EXACT: "Every change came once, in order, in the right group, with the right values.",
    Grade.REPEATS_GROUPS: "Nothing is missing; whole groups came again.",
    Grade.REPEATS_PARTS: "Nothing is missing; parts of groups came again.",
    Grade.LOSES_LOUDLY: "Something is missing, and an error said so.",
    Grade.CRASHES: "An internal error ended it, and starting it again did not help.",
    Grade.HANGS: "It lives, follows no more, and says nothing.",
    Grade.LOSES_SILENTLY: "Later changes came; earlier ones, their values or their GTIDs did not, and nobody was told.",
}
