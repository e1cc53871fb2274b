"""What a run of the scorecard has found, as values and as JSON; and the grade of each: what a consumer made of a
scenario, in one word, from what `matching` finds.

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

from __future__ import annotations

import dataclasses
import enum
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import ibbmaster
from ibbmaster.errors import ConfigurationError
from ibbmaster.facts import rows_of
from ibbmaster.testkit.given import naming, parsed, read, read_small_file
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
        summary = f"{silent[0].text}{_more(len(silent) - 1)}; no error said so"
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
        summary = f"{unnoticed[0].text}{_more(len(unnoticed) - 1)}; no error said so{besides}"
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


RESULTS_SIZE_MAX = 512 << 20  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerResult:
    """A consumer that was run, or why it was not."""

    name: str
    title: str
    package: str
    registry: str
    version: str = ""  # what it said of itself
    not_run: str | None = None  # why it could not be built or started at all


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult:
    """A scenario; `toml` is its file for `ibbmaster serve --scenario`."""

    name: str
    title: str
    family: str
    about: str
    best: Grade
    profile: str
    faults: tuple[str, ...]
    toml: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Where a dump after the first began, as it was asked, and how long after the first fault."""

    position: str
    after_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultBytes:
    """The event at which a fault happened, in hexadecimal digits."""

    fault: str
    gtid: str | None
    sent_bytes: int
    event: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    server: str
    grade: Grade
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    consumer: str
    scenario: str
    grade: Grade | None = None  # None: `not_run` says why
    summary: str = ""
    not_run: str | None = None
    missing: tuple[str, ...] = ()  # changes that never came; `repeated` and `wrong` alike
    repeated: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()  # wrong columns, keys and types of tables
    told: tuple[str, ...] = ()  # errors that the user was told
    restarts: int = 0  # with its last position
    resumes: tuple[Resume, ...] = ()
    position: str = ""  # that its user stored last, as JSON
    recovered_s: float | None = None  # from the first fault to the first new change
    sent: tuple[str, ...] = ()  # an event a line
    arrived: tuple[str, ...] = ()
    bytes: tuple[FaultBytes, ...] = ()
    statements: tuple[str, ...] = ()
    log: str = ""  # the end of standard error
    seconds: float = 0.0
    confirmed: Confirmation | None = None  # of a silent loss, or why not
    not_confirmed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """A matrix of consumers and scenarios; `made` is when, in UTC."""

    made: str
    ibbmaster: str
    machine: Mapping[str, Any] = field(default_factory=dict)
    consumers: tuple[ConsumerResult, ...] = ()
    scenarios: tuple[ScenarioResult, ...] = ()
    cells: tuple[Cell, ...] = ()

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False, indent=1) + "\n"

    def brief(self) -> Results:
        """Without what was sent and arrived, and the texts of scenarios."""
        cells = (dataclasses.replace(cell, sent=(), arrived=(), bytes=(), statements=(), log="") for cell in self.cells)
        scenarios = (dataclasses.replace(scenario, toml="") for scenario in self.scenarios)
        return dataclasses.replace(self, cells=tuple(cells), scenarios=tuple(scenarios))

    def merged(self, older: Results) -> Results:
        """These, with the consumers, scenarios and cells that only older ones have."""
        have = {(cell.consumer, cell.scenario) for cell in self.cells}
        return dataclasses.replace(
            self,
            consumers=_by_name(older.consumers, self.consumers),
            scenarios=_by_name(older.scenarios, self.scenarios),
            cells=(*(cell for cell in older.cells if (cell.consumer, cell.scenario) not in have), *self.cells),
        )


Named = TypeVar("Named", ConsumerResult, ScenarioResult)


def _by_name(older: Iterable[Named], newer: Iterable[Named]) -> tuple[Named, ...]:
    """In the order of the older ones; a newer one keeps a version it lacks."""
    found = {one.name: one for one in older}
    for one in newer:
        before = found.get(one.name)
        if isinstance(one, ConsumerResult) and isinstance(before, ConsumerResult) and not one.version:
            one = dataclasses.replace(one, version=before.version)
        found[one.name] = one
    return tuple(found.values())


def new_results(
    consumers: Iterable[ConsumerResult], scenarios: Iterable[ScenarioResult], cells: Iterable[Cell]
) -> Results:
    """Cells in the order of consumers and scenarios."""
    consumers, scenarios = tuple(consumers), tuple(scenarios)
    order = [*(one.name for one in consumers)], [*(one.name for one in scenarios)]
    return Results(
        made=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        ibbmaster=ibbmaster.__version__,
        machine={
            "cores": len(os.sched_getaffinity(0)),
            "python": platform.python_version(),
            "system": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        },
        consumers=consumers,
        scenarios=scenarios,
        cells=tuple(sorted(cells, key=lambda cell: (order[0].index(cell.consumer), order[1].index(cell.scenario)))),
    )


def read_results(path: Path) -> Results:
    """Raises ConfigurationError: it cannot be read, or holds something else; the text names the key."""
    text = read_small_file(path, RESULTS_SIZE_MAX)
    with naming(str(path)):
        return parse_results(text)


def parse_results(text: str) -> Results:
    """Raises ConfigurationError as `read_results`."""
    results: Results = read("results", Results, parsed("JSON", json.loads, text))
    known = {one.name for one in results.consumers}, {one.name for one in results.scenarios}
    for number, cell in enumerate(results.cells):
        if cell.consumer not in known[0] or cell.scenario not in known[1]:
            raise ConfigurationError(f"cells[{number}]: {cell.consumer!r} and {cell.scenario!r} are not both described")
    return results
