"""What a run of the scorecard has found, as values and as JSON."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import ibbmaster
from ibbmaster.errors import ConfigurationError
from ibbmaster.testkit.given import naming, parsed, read, read_small_file
from .grade import Grade

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
