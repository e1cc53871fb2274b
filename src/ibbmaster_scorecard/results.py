"""What a run of the scorecard has found, as values and as JSON."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import platform
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import ibbmaster
from ibbmaster.errors import ConfigurationError
from ibbmaster.testkit.small_file import read_small_file
from .grade import Grade

RESULTS_SIZE_MAX = 512 << 20  # bytes
SHOWN_MAX = 80


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
    """A scenario that consumers were put through; `toml` is it as a file for `ibbmaster serve --scenario`."""

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
    """Where a dump began that was not the first: as it was asked, and how long after the first fault."""

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
    """The same scenario with a real primary."""

    server: str
    grade: Grade
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one consumer made of one scenario."""

    consumer: str
    scenario: str
    grade: Grade | None = None  # None: it was not run, `not_run` says why
    summary: str = ""  # the one thing to know
    not_run: str | None = None
    missing: tuple[str, ...] = ()  # changes that never came; `repeated` and `wrong` alike
    repeated: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()  # columns, keys and types of tables that were told wrong
    told: tuple[str, ...] = ()  # errors that the user was told
    restarts: int = 0  # how often it ended and was started again with its last position
    resumes: tuple[Resume, ...] = ()
    position: str = ""  # what its user had stored in the end, as JSON
    recovered_s: float | None = None  # from the first fault to the first new change
    sent: tuple[str, ...] = ()  # what the primary sent, an event a line; `arrived` what the consumer made of it
    arrived: tuple[str, ...] = ()
    bytes: tuple[FaultBytes, ...] = ()
    statements: tuple[str, ...] = ()
    log: str = ""  # the end of what it said on standard error
    seconds: float = 0.0
    confirmed: Confirmation | None = None  # a silent loss beside a real primary; `not_confirmed` says why there is none
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
        """As a text that `read_results` reads."""
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False, indent=1) + "\n"

    def brief(self) -> Results:
        """What a table needs: without what was sent and arrived, and without the texts of scenarios."""
        cells = (dataclasses.replace(cell, sent=(), arrived=(), bytes=(), statements=(), log="") for cell in self.cells)
        scenarios = (dataclasses.replace(scenario, toml="") for scenario in self.scenarios)
        return dataclasses.replace(self, cells=tuple(cells), scenarios=tuple(scenarios))

    def merged(self, older: Results) -> Results:
        """These, and of older ones the consumers, scenarios and cells that are not among them."""
        have = {(cell.consumer, cell.scenario) for cell in self.cells}
        return dataclasses.replace(
            self,
            consumers=_by_name(older.consumers, self.consumers),
            scenarios=_by_name(older.scenarios, self.scenarios),
            cells=(*(cell for cell in older.cells if (cell.consumer, cell.scenario) not in have), *self.cells),
        )


Named = typing.TypeVar("Named", ConsumerResult, ScenarioResult)


def _by_name(older: Iterable[Named], newer: Iterable[Named]) -> tuple[Named, ...]:
    """In the order of the older ones; a newer one takes the place of its older one, and keeps a version it lacks."""
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
    """Results that were made now, on this machine; cells in the order of consumers and scenarios."""
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
    """Results from a file. Raises ConfigurationError: it cannot be read, or holds something else; the text names the
    key."""
    text = read_small_file(path, RESULTS_SIZE_MAX)
    try:
        return parse_results(text)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None


def parse_results(text: str) -> Results:
    """Results from their text. Raises ConfigurationError: it is another one; the text names the key."""
    try:
        given = json.loads(text)
    except RecursionError:
        raise ConfigurationError("no results: nested too deeply") from None
    except ValueError as error:
        raise ConfigurationError(f"no JSON: {error}") from None
    results: Results = _value("", Results, given)
    known = {one.name for one in results.consumers}, {one.name for one in results.scenarios}
    for number, cell in enumerate(results.cells):
        if cell.consumer not in known[0] or cell.scenario not in known[1]:
            raise ConfigurationError(f"cells[{number}]: {cell.consumer!r} and {cell.scenario!r} are not both described")
    return results


def _value(where: str, wanted: Any, given: Any) -> Any:
    """A value of a type, from what JSON has for it."""
    if dataclasses.is_dataclass(wanted) and isinstance(wanted, type):
        return _record(where, wanted, given)
    if isinstance(wanted, types.UnionType):
        if given is None:
            return None
        (wanted,) = (one for one in typing.get_args(wanted) if one is not types.NoneType)
        return _value(where, wanted, given)
    if typing.get_origin(wanted) is tuple:
        if not isinstance(given, list):
            raise ConfigurationError(f"{where} {_shown(given)}: expected a list")
        kind = typing.get_args(wanted)[0]
        return tuple(_value(f"{where}[{number}]", kind, one) for number, one in enumerate(given))
    if wanted is Grade:
        if given not in tuple(Grade):
            raise ConfigurationError(f"{where} {_shown(given)}: expected one of {', '.join(Grade)}")
        return Grade(given)
    if wanted is float and isinstance(given, int) and not isinstance(given, bool):
        return float(given)
    kind = typing.get_origin(wanted) or wanted
    kind = dict if kind is Mapping else kind
    if not isinstance(given, kind) or (isinstance(given, bool) and kind is not bool):
        raise ConfigurationError(f"{where} {_shown(given)}: expected {_TYPES[kind]}")
    return given


def _record(where: str, wanted: type, given: Any) -> Any:
    if not isinstance(given, dict):
        raise ConfigurationError(f"{where or 'results'} {_shown(given)}: expected an object")
    hints = _hints(wanted)
    prefix = f"{where}." if where else ""
    for name in given:
        if name not in hints:
            raise ConfigurationError(f"{prefix}{name[:SHOWN_MAX]} means nothing; expected {', '.join(hints)}")
    for one in dataclasses.fields(wanted):
        if one.name not in given and one.default is one.default_factory is dataclasses.MISSING:
            raise ConfigurationError(f"{prefix}{one.name} is missing")
    return wanted(**{name: _value(f"{prefix}{name}", hints[name], value) for name, value in given.items()})


@functools.cache
def _hints(wanted: type) -> dict[str, Any]:
    return typing.get_type_hints(wanted)


_TYPES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", dict: "an object"}


def _shown(value: object) -> str:
    text = repr(value[: SHOWN_MAX + 1] if isinstance(value, str) else value)
    return text if len(text) <= SHOWN_MAX else f"{text[: SHOWN_MAX - 1]}…"
