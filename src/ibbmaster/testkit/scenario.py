"""Scenario files: a log, and what goes wrong while it is served, as TOML. Described in docs/faults.md."""

from __future__ import annotations

import contextlib
import logging
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, Unpack

from ibbmaster.api import opening
from ibbmaster.api.serving_options import ServingOptions
from ibbmaster.api.writing import WritableLog
from ibbmaster.errors import ConfigurationError, IbbMasterError
from .action import CrashPrimary, CutConnection, RestartPrimary, Stall
from .fault import PlannedFault
from .fault_stage import Faults
from .fixture_logs import fixture_log
from .given import expect, naming, only, parsed, read_small_file
from .incident import GroupCopier
from .primary import FixturePrimary
from .written import WrittenGroup, repeated_groups

log = logging.getLogger(__name__)

SCENARIO_SIZE_MAX = 16 << 20  # bytes
_KEYS = ("seed", "clock", "primary", "log", "tables", "group", "fault")
_PRIMARY = {
    **dict.fromkeys(("profile", "server_version", "image", "metadata", "user", "password", "tls"), str),
    **dict.fromkeys(("server_id", "domain", "fragments"), int),
    "compressed": bool,
}
POLL_S = 0.005  # between two looks for the first connection

Value = TypeVar("Value")
Clock = Literal["serving", "connection"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    seed: int = 0
    primary: Mapping[str, Any] = field(default_factory=dict)  # options of `FixturePrimary`
    directory: Path | None = None  # of a log to begin with
    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # columns of each, created first
    groups: tuple[WrittenGroup, ...] = ()  # logged then, or at their times
    faults: tuple[PlannedFault, ...] = ()
    starts_when_connected: bool = False  # times count from the first connection on

    @contextlib.contextmanager
    def serving(self, **serving: Unpack[ServingOptions]) -> Iterator[FixturePrimary]:
        """Write the log, plan the faults and serve; options given here override the scenario's. Clients may plan more
        faults by `SET GLOBAL ibb_fault`. Raises ConfigurationError: an option, the log or a group cannot be used."""
        options: dict[str, Any] = {**self.primary, **serving}
        faults = Faults(self.seed, takes_statements=True)
        with contextlib.ExitStack() as stack:
            into, recorded = None, None
            if self.directory is not None:
                into, recorded = stack.enter_context(_begun_with(self.directory, self._last_recorded))
            primary = FixturePrimary(into, faults=faults, **options)
            stack.callback(primary.close)
            self._write(primary, recorded)
            for fault in self.faults:
                if fault.place is not None:
                    faults.add_fault(fault)
            primary.start()
            over = threading.Event()
            timeline = threading.Thread(
                target=self._follow_clock, args=(primary, recorded, over), name="ibbmaster-scenario", daemon=True
            )
            stack.callback(timeline.join)
            stack.callback(primary.end_incidents)
            stack.callback(over.set)
            timeline.start()
            yield primary

    def at_once(self) -> Scenario:
        """The same without its times: every group is there at first, nothing stalls, no port stays closed."""
        faults = []
        for fault in self.faults:
            action = fault.action
            if isinstance(action, Stall):
                continue
            if isinstance(action, CutConnection) and action.by == "silence":
                action = replace(action, by="end")
            elif isinstance(action, CrashPrimary | RestartPrimary):
                action = replace(action, closed_s=0.0)
            faults.append(replace(fault, at=None if fault.at is None else 0.0, action=action))
        groups = tuple(replace(group, at=None) for group in sorted(self.groups, key=_moment))
        return replace(self, groups=groups, faults=tuple(faults))

    def _write(self, primary: FixturePrimary, recorded: GroupCopier | None) -> None:
        if recorded is not None and self._last_recorded is None:
            recorded.copy_to(primary.log, None)
        for name, columns in self.tables.items():
            with naming(f"tables: {name}"):
                primary.table(name, **columns)
        for number, group in enumerate(self.groups, 1):
            if group.at is None:
                with naming(f"group {number}"):
                    group.write(primary, recorded)

    @property
    def _last_recorded(self) -> str | None:
        named = [group for group in self.groups if group.kind == "recorded"]
        return sorted(named, key=_moment)[-1].what if named else None

    def _follow_clock(self, primary: FixturePrimary, recorded: GroupCopier | None, over: threading.Event) -> None:
        """A warning says what cannot be logged."""
        steps: list[WrittenGroup | PlannedFault] = [*self.groups, *self.faults]
        timed = [(step.at, number, step) for number, step in enumerate(steps) if step.at is not None]
        if self.starts_when_connected:
            while not primary.connections:
                if over.wait(POLL_S):
                    return
        begun = time.monotonic()
        for at, _, step in sorted(timed, key=lambda entry: entry[:2]):
            if over.wait(max(0.0, begun + at - time.monotonic())):
                return
            if isinstance(step, PlannedFault):
                primary.faults.act(step)
                continue
            try:
                step.write(primary, recorded)
            except (IbbMasterError, ValueError) as error:
                log.warning("the group at %g s was not logged: %s", at, error)


def read_scenario(path: Path | str) -> Scenario:
    """A scenario from a file, whose directories are relative to it; errors as `parse_scenario`, or it cannot be
    read."""
    path = Path(path)
    if path.is_dir():
        raise ConfigurationError(f"{path} is a directory: expected a scenario file, as {path / 'scenario.toml'}")
    text = read_small_file(path, SCENARIO_SIZE_MAX)
    with naming(str(path)):
        return parse_scenario(text, path.parent)


def parse_scenario(text: str, base: Path | None = None) -> Scenario:
    """A scenario from its text. Raises ConfigurationError: something in it means nothing; the text names the key."""
    return scenario_of(parsed("TOML", tomllib.loads, text), base)


def scenario_of(given: Mapping[str, Any], base: Path | None = None) -> Scenario:
    """Errors as `parse_scenario`."""
    only("", given, _KEYS)
    log = expect("log", dict, given.get("log", {}))
    only("log", log, ("directory",))
    directory = expect("log.directory", str | None, log.get("directory"))
    return Scenario(
        seed=expect("seed", int, given.get("seed", 0)),
        starts_when_connected=expect("clock", Clock, given.get("clock", "serving")) == "connection",
        primary=_primary(expect("primary", dict, given.get("primary", {}))),
        directory=None if directory is None else (base or Path()) / directory,
        tables=expect("tables", Mapping[str, Mapping[str, str]], given.get("tables", {})),
        groups=tuple(_each("group", given, WrittenGroup.of)),
        faults=tuple(_each("fault", given, PlannedFault.of)),
    )


def _primary(given: Mapping[str, Any]) -> dict[str, Any]:
    only("primary", given, _PRIMARY)
    options = {name: expect(f"primary.{name}", _PRIMARY[name], value) for name, value in given.items()}
    if "compressed" in options:
        options["is_compressed"] = options.pop("compressed")
    if "fragments" in options:
        options["fragment_bytes"] = options.pop("fragments")
    return options


def _each(key: str, given: Mapping[str, Any], make: Callable[[Mapping[str, Any]], Value]) -> Iterator[Value]:
    tables = expect(key, list, given.get(key, []))
    for number, table in enumerate(repeated_groups(tables) if key == "group" else tables, 1):
        with naming(f"{key} {number}"):
            yield make(expect(key, dict, table))


def _moment(group: WrittenGroup) -> float:
    return -1.0 if group.at is None else group.at


@contextlib.contextmanager
def _begun_with(directory: Path, last: str | None) -> Iterator[tuple[WritableLog, GroupCopier]]:
    """A log that begins as another one does, and a copier of the rest."""
    with contextlib.ExitStack() as stack:
        source = opening.open(directory)
        stack.callback(source.engine.close)
        if not source.files:
            raise ConfigurationError(f"log: directory {directory} has no binlog files")
        first = source.engine.start_of_file(source.files[0].file_no)
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="ibbmaster-scenario-"))
        into = fixture_log(Path(scratch), state=first.state, gtid_strict=False)
        stack.callback(into.close)
        yield into, stack.enter_context(contextlib.closing(GroupCopier(source, last)))
