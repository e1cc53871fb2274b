"""What a run of the scorecard has found, as values and as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ibbmaster.scorecard.grade import Grade


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerResult:
    """A consumer that was run, or why it was not.

    Attributes:
        version: what it said of itself.
        not_run: why it could not be built or started at all.
    """

    name: str
    title: str
    package: str
    registry: str
    version: str = ""
    not_run: str | None = None


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
    """What one consumer made of one scenario.

    Attributes:
        grade: None: it was not run, `not_run` says why.
        summary: the one thing to know.
        missing: changes that never came; `repeated` and `wrong` alike.
        told: errors that the user was told.
        restarts: how often it ended and was started again with its last position.
        recovered_s: from the first fault to the first new change.
        sent: what the primary sent, an event a line; `arrived` what the consumer made of it.
        log: the end of what it said on standard error.
    """

    consumer: str
    scenario: str
    grade: Grade | None = None
    summary: str = ""
    not_run: str | None = None
    missing: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    restarts: int = 0
    resumes: tuple[Resume, ...] = ()
    recovered_s: float | None = None
    sent: tuple[str, ...] = ()
    arrived: tuple[str, ...] = ()
    bytes: tuple[FaultBytes, ...] = ()
    statements: tuple[str, ...] = ()
    log: str = ""
    seconds: float = 0.0
    confirmed: Confirmation | None = None


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
