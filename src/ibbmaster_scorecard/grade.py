"""What a consumer made of a scenario, in one word, from what `matching` finds.

- A flaw is a change that never came, came with other values, under another GTID or after a later one, or was never
  logged; of a consumer that tells of commits also a group without its commit, unless it was prepared only. What is
  missing after the last change that came is left to the end.
- A flaw is *told* if an error follows the change before it. Errors that the library survives (`is_retried`) do not
  count: who reads "connection lost, connecting again" takes it that nothing is lost.
- With a flaw that is not told: "loses silently". Else with a wrong column, key or type of a table that is not told:
  "metadata wrong". Else with a flaw: "loses loudly".
- Without a flaw, and with the marker: "exact", or what it repeats: a whole group, if its changes came equally often.
- Without both, the end counts. The last process ended by a signal, an internal error, or an exit code and no text:
  "crashes". It told a fatal error, ended with an exit code and a text, or told an error since its last progress that it
  did not survive: "loses loudly". Else it "hangs".
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from ibbmaster.facts import rows_of
from .journal import ToldEvent, shown_line
from .matching import LoggedGroup, Matching

LINES_MAX = 20


class Grade(enum.StrEnum):
    """From the best to the worst; an unnoticed loss is worse than an end."""

    EXACT = "exact"
    REPEATS_GROUPS = "repeats whole groups"
    REPEATS_PARTS = "repeats parts"
    LOSES_LOUDLY = "loses loudly"
    CRASHES = "crashes"
    HANGS = "hangs"
    METADATA_WRONG = "metadata wrong"
    LOSES_SILENTLY = "loses silently"

    @property
    def rank(self) -> int:
        return tuple(Grade).index(self)

    @property
    def meaning(self) -> str:
        return _MEANINGS[self.name]


_MEANINGS = {name: meaning for name, meaning, *_ in rows_of(__package__, "grades")}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    exit_code: int | None = None  # of the last process, negative for a signal; None: we had to end it
    has_log: bool = False  # the last process said something on standard error
    connections: int = 0  # to the primary, since its last progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A grade, and what it rests on, at most 20 lines of each. `first` has the number of the line by which each change
    came first."""

    grade: Grade
    summary: str
    first: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()


def judge(groups: Sequence[LoggedGroup], told: Sequence[ToldEvent], end: RunEnd) -> Judgement:
    matching = Matching(groups)
    for number, event in enumerate(told):
        matching.take(number, event)
    flaws, after_last = matching.flaws(), matching.missing_behind()
    missing = [flaw.text for flaw in flaws if flaw.is_missing] + after_last
    wrong = [flaw.text for flaw in flaws if not flaw.is_missing]
    repeats, is_whole = matching.repeats()
    ending, why = _ending(told, end)
    last_told = _last_told(told, end)
    silent = [flaw for flaw in flaws if flaw.since > last_told]
    if silent:
        grade = Grade.LOSES_SILENTLY
        summary = f"{silent[0].text}{_more(len(silent) - 1)}, and nobody was told"
    elif flaws and not after_last:
        grade, summary = Grade.LOSES_LOUDLY, f"{flaws[0].text}{_more(len(flaws) - 1)}; an error said so"
    elif after_last:
        grade = max(ending, Grade.LOSES_LOUDLY, key=lambda grade: grade.rank) if flaws else ending
        summary = f"{why}: {missing[0]}{_more(len(missing) - 1)}"
    elif repeats:
        grade = Grade.REPEATS_GROUPS if is_whole else Grade.REPEATS_PARTS
        summary = f"{repeats[0]}{_more(len(repeats) - 1)}"
    else:
        grade, summary = Grade.EXACT, "every change once, in order"
    metadata = matching.metadata_flaws()
    unnoticed = [flaw for flaw in metadata if flaw.since > last_told]
    if unnoticed and grade is not Grade.LOSES_SILENTLY:
        besides = "" if grade is Grade.EXACT else f"; besides, {summary}"
        summary = f"{unnoticed[0].text}{_more(len(unnoticed) - 1)}, and nobody was told{besides}"
        grade = Grade.METADATA_WRONG
    return Judgement(
        grade=grade,
        summary=shown_line(summary),
        first=matching.first(),
        missing=_lines(missing),
        repeated=_lines(repeats),
        wrong=_lines(wrong),
        metadata=_lines([flaw.text for flaw in metadata]),
    )


def _more(count: int) -> str:
    return f" and {count} more" if count else ""


# Whether it was told


def _last_told(told: Sequence[ToldEvent], end: RunEnd) -> int:
    """The number of the last line that reports a loss; after all of them if the end reports it."""
    if end.exit_code and end.has_log:
        return len(told)
    loud = (number for number, event in enumerate(told) if event.what == "error" and not event.is_retried)
    return max(loud, default=-1)


def _ending(told: Sequence[ToldEvent], end: RunEnd) -> tuple[Grade, str]:
    last_progress = max((number for number, event in enumerate(told) if event.is_progress), default=-1)
    errors = [event for event in told[last_progress + 1 :] if event.what == "error" and not event.is_retried]
    fatal = [event for event in errors if event.is_fatal]
    last = (fatal or errors)[-1:]
    if end.exit_code is not None and end.exit_code < 0:
        return Grade.CRASHES, f"signal {-end.exit_code} ended it"
    if last and last[0].is_internal:
        return Grade.CRASHES, f"an internal error: {last[0].text}"
    if fatal:
        return Grade.LOSES_LOUDLY, f"it ended: {fatal[-1].text}"
    if end.exit_code:
        if end.has_log or errors:
            return Grade.LOSES_LOUDLY, f"it ended with exit code {end.exit_code}"
        return Grade.CRASHES, f"it ended with exit code {end.exit_code} and said nothing"
    if errors:
        return Grade.LOSES_LOUDLY, f"it came no further: {errors[-1].text}"
    if end.exit_code == 0:
        return Grade.HANGS, "it ended and said nothing"
    if end.connections > 1:
        return Grade.HANGS, f"it connected {end.connections} times and came no further"
    return Grade.HANGS, "it came no further and said nothing"


def _lines(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(shown_line(line) for line in lines[:LINES_MAX])
