"""Puts consumers through scenarios: one through one, or a matrix of both.

A run: the primary of the scenario, the consumer, the groups of the scenario written while it follows, and then a
marker, whose commit ends the run. A consumer that ends is started again with its last position, as a supervisor does.
"""

from __future__ import annotations

import dataclasses
import itertools
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import trio

from ibbmaster.errors import ConfigurationError, IbbMasterError
from ibbmaster.testkit.primary import FixturePrimary
from ibbmaster.testkit.scenario import Scenario
from ibbmaster.testkit.tables import RowFormat
from ibbmaster.testkit.witness import SeenConnection
from ibbmaster.testkit.written import WrittenGroup
from .adapter import Adapter, build
from .cards import Card
from .consumer import Supervised
from .journal import ToldEvent
from .logged import logged_behind, logged_groups, of_both
from .matching import LoggedGroup
from .outcome import RunRecord, cell_of
from .results import Cell, ConsumerResult, ScenarioResult

Result = TypeVar("Result", ConsumerResult, ScenarioResult)
Serve = Callable[[Scenario], AbstractContextManager[FixturePrimary]]
MARKER = "ibb_marker.marks"
CONSUMER_ID = 4001
PASSWORD = "of-the-scorecard"  # some libraries cannot log in without one
SILENCE_S = 12.0  # without progress: it hangs
SILENCE_PER_START = 4.0
LIMIT_S = 120.0  # of each stage: until it follows, has what is written, has the marker
START_S = 60.0  # until a process says its first word
QUIET_S = 2.0  # after everything was sent, without anything new
CALM_S = 0.3  # without a new statement, before anything is written
CALM_S_MAX = 3.0
SETTLE_S = 0.4  # after the marker, for more
STEP_S = 0.02
SAME_MAX = 5  # of one line, that count as progress


def described(adapter: Adapter) -> ConsumerResult:
    return _result(ConsumerResult, adapter)


def described_scenario(card: Card) -> ScenarioResult:
    return _result(ScenarioResult, card, profile=card.profile, toml=card.toml())


def _result(kind: type[Result], of: Adapter | Card, **made: Any) -> Result:
    """What results have of the fields of a consumer or a scenario, and what is `made` of others."""
    names = {one.name for one in dataclasses.fields(kind)} & {one.name for one in dataclasses.fields(of)}
    return kind(**{name: getattr(of, name) for name in names}, **made)


def run_card(adapter: Adapter, card: Card, silence_s: float | None = None) -> Cell:
    """Put one consumer through one scenario; the cell of an impossible run says why."""
    return run_and_ask(adapter, card, silence_s)[0]


def served_alone(scenario: Scenario) -> AbstractContextManager[FixturePrimary]:
    return scenario.serving(password=PASSWORD)


def run_and_ask(
    adapter: Adapter,
    card: Card,
    silence_s: float | None = None,
    over: threading.Event | None = None,
    serve: Serve = served_alone,
) -> tuple[Cell, str]:
    """`run_card`, and the consumer's version; `serve` makes the primary. Without progress for `silence_s` it hangs;
    None: for 12 seconds, and four times the adapter's `start_s`. Raises RunOverError: `over` was set meanwhile."""
    begun = time.monotonic()
    try:
        command = build(adapter)
        if card.start is not None and adapter.start != "gtid":
            raise ConfigurationError("it begins where the primary is, and this scenario elsewhere")
        with tempfile.TemporaryDirectory(prefix="ibbmaster-scorecard-", ignore_cleanup_errors=True) as directory:
            if silence_s is None:
                silence_s = SILENCE_S + SILENCE_PER_START * adapter.start_s
            run = _Run(adapter, card, command, Path(directory), silence_s, over, serve)
            return run.cell(begun), run.version
    except (IbbMasterError, OSError, ValueError) as error:  # the other runs go on
        seconds = round(time.monotonic() - begun, 2)
        return Cell(consumer=adapter.name, scenario=card.name, not_run=str(error), seconds=seconds), ""


class RunOverError(Exception):
    """The user ended a run."""


def run_matrix(
    adapters: Sequence[Adapter], cards: Sequence[Card], silence_s: float | None = None, *, jobs: int = 1
) -> Generator[tuple[Cell, str]]:
    """Put each consumer through each scenario, `jobs` at a time; yields each cell when it is ready, and a version.
    Closing it ends what runs."""
    over = threading.Event()
    with ThreadPoolExecutor(jobs, thread_name_prefix="ibbmaster-scorecard") as pool:
        waiting = {pool.submit(run_and_ask, adapter, card, silence_s, over) for adapter in adapters for card in cards}
        try:
            for done in as_completed(waiting):
                yield done.result()
        finally:
            over.set()
            pool.shutdown(wait=False, cancel_futures=True)


@dataclass(slots=True)
class _Run:
    adapter: Adapter
    card: Card
    command: Sequence[str]
    directory: Path
    silence_s: float
    over: threading.Event | None
    serve: Serve
    dumps: list[tuple[float, SeenConnection]] = field(default_factory=list)
    connections: list[float] = field(default_factory=list)
    told: Counter[int] = field(default_factory=Counter)  # lines, by their hash
    fault_at: float | None = None
    progress_at: float = 0.0
    primary: FixturePrimary = field(init=False)
    supervised: Supervised = field(init=False)

    @property
    def version(self) -> str:
        return next((event.text for event in self.supervised.told if event.what == "version"), "")

    def cell(self, begun: float) -> Cell:
        scenario = self.card.scenario()
        scenario = dataclasses.replace(scenario, tables={MARKER: {"id": "int primary key"}, **scenario.tables})
        with self.serve(scenario) as primary:
            self.primary = primary
            first_log = primary.log
            start = str(primary.log.position) if self.card.start is None else self.card.start
            written = logged_behind(primary, start)
            self.supervised = Supervised(self.command, self._request(scenario, start), self.directory)
            try:
                self.supervised.start()
                self._follow_until(self._follows)
                self._follow_until_calm()
                written += self._write_live()
                self._follow_until(lambda: self._has_come_through(written))
                self.silence_s /= 2  # it has had its time
                before, lines = str(primary.log.position), len(self.supervised.told)
                with primary.transaction(format=RowFormat()):
                    primary.table(MARKER).insert(id=1)
                (marker,) = logged_groups(primary, before)
                written.append(marker)
                self._follow_until(lambda: self._has_told_marker(marker, lines))
                self._follow_for(SETTLE_S + self.card.delay_ms / 100)
            finally:
                self.supervised.close(2.0 + self.adapter.start_s)
            if primary.log is not first_log:
                written = of_both(written, logged_groups(primary, ""), self.supervised.request["start"])
        return cell_of(self._record(self._required(written), begun))

    def _request(self, scenario: Scenario, start: str) -> dict[str, Any]:
        return {
            "host": self.primary.host,
            "port": self.primary.port,
            "user": self.primary.user,
            "password": self.primary.password,
            "server_id": CONSUMER_ID,
            "tls": scenario.primary.get("tls", "off") != "off",
            "start": start,
            "delay_ms": self.card.delay_ms,
            "tables": self.card.asks_tables,
        }

    # Writing

    def _write_live(self) -> list[LoggedGroup]:
        """Write the groups of the scenario; those without a time as one, so that the stream sees nothing in between."""
        found: list[LoggedGroup] = []
        begun = time.monotonic()
        for is_timed, groups in itertools.groupby(self.card.live_groups(), lambda group: group.at is not None):
            for batch in [[group] for group in groups] if is_timed else [list(groups)]:
                due = begun + (batch[0].at or 0.0)
                while time.monotonic() < due:
                    self._step()
                found += self._write(batch)
        return found

    def _write(self, groups: Sequence[WrittenGroup]) -> list[LoggedGroup]:
        found: list[LoggedGroup] = []

        def write(_: object = None) -> None:
            for group in groups[len(found) :]:
                before = str(self.primary.log.position)
                group.write(self.primary)
                found.extend(logged_groups(self.primary, before))

        try:
            self.primary.in_loop(write)
        except (ConfigurationError, trio.RunFinishedError):
            write()  # it is down
        return found

    # Following

    def _follow_until(self, is_so: Any) -> None:
        """Follow until something is so, the consumer has ended, or made no progress for too long."""
        self.progress_at = time.monotonic()
        limit = self.progress_at + LIMIT_S + 10 * self.adapter.start_s
        while not is_so():
            now = time.monotonic()
            patience = self.silence_s if self.supervised.has_spoken else START_S + 10 * self.adapter.start_s
            if self.supervised.has_ended or now > self.progress_at + patience or now > limit:
                return
            self._step()

    def _follow_for(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.supervised.has_ended:
            self._step()

    def _follow_until_calm(self) -> None:
        """Let it finish what it does at its start: some log in a second time, to ask for tables."""
        if not self.primary.connections:
            return  # it cannot be seen
        begun = calm_since = time.monotonic()
        asked = 0
        while time.monotonic() < min(calm_since + CALM_S, begun + CALM_S_MAX) and not self.supervised.has_ended:
            self._step()
            now_asked = sum(1 + len(connection.statements) for connection in self.primary.connections)
            if now_asked != asked:
                asked, calm_since = now_asked, time.monotonic()

    def _step(self) -> None:
        if self.over is not None and self.over.is_set():
            raise RunOverError
        starts = self.supervised.starts
        told = self.supervised.poll(STEP_S)
        now = time.monotonic()
        if any(map(self._is_new, told)) or self.supervised.starts > starts:
            self.progress_at = now
        seen = self.primary.connections
        self.connections += [now] * (len(seen) - len(self.connections))
        known = {connection.number for _, connection in self.dumps}
        self.dumps += [(now, one) for one in seen if one.dump_file is not None and one.number not in known]
        if self.fault_at is None and self.primary.faults.done:
            self.fault_at = now

    def _is_new(self, event: ToldEvent) -> bool:
        """Whether a line is progress, and not an endless repetition."""
        line = hash(str(event))
        self.told[line] += 1
        return (event.is_progress or event.what == "version") and self.told[line] <= SAME_MAX

    def _follows(self) -> bool:
        """Whether it follows: a dump has begun, or it tells where it is. A consumer that begins where the primary is
        knows its place only once it has stored it."""
        if any(event.is_progress or event.what == "position" for event in self.supervised.told):
            return True
        return self.adapter.start != "now" and any(connection.sent for _, connection in self.dumps)

    def _has_come_through(self, groups: Sequence[LoggedGroup]) -> bool:
        """Whether the faults have happened and all was told; or all was sent and nothing more comes."""
        if not self.primary.faults.unfinished and self._has_told(groups):
            return True
        if time.monotonic() < self.progress_at + QUIET_S + self.card.delay_ms / 100:
            return False
        wanted = list(self.primary.log.position.values())
        return any(
            connection.is_dumping and all(map(connection.has, wanted)) for connection in self.primary.connections
        )

    def _has_told(self, groups: Sequence[LoggedGroup]) -> bool:
        """Whether enough changes were told, perhaps with other values, or the commit of the last group."""
        told = self.supervised.told
        changes = sum(len(group.changes) for group in groups)
        if sum(event.what in ("change", "statement") for event in told) >= changes:
            return True
        return any(event.what == "commit" and event.gtid == groups[-1].gtid for event in told)

    def _has_told_marker(self, marker: LoggedGroup, lines: int) -> bool:
        """Whether the marker was told; the primary may have lost an earlier group of its GTID."""
        return any(
            event.table == MARKER or (event.what == "commit" and event.gtid == marker.gtid)
            for event in self.supervised.told[lines:]
        )

    # Afterwards

    def _required(self, groups: list[LoggedGroup]) -> list[LoggedGroup]:
        """Those that the card expects, in its order, and the marker."""
        if self.card.expected is None:
            return groups
        by_gtid = {group.gtid: group for group in groups}
        expected = [by_gtid[gtid] for gtid in self.card.expected if gtid in by_gtid]
        return expected + groups[-1:]

    def _record(self, groups: list[LoggedGroup], begun: float) -> RunRecord:
        """What was seen. Raises ConfigurationError: the adapter broke the protocol."""
        supervised, faults = self.supervised, self.primary.faults
        if supervised.problem:
            raise ConfigurationError(supervised.problem)
        return RunRecord(
            consumer=self.adapter.name,
            scenario=self.card.name,
            groups=groups,
            told=supervised.told,
            restarts=supervised.starts - 1,
            exit_code=supervised.exit_code,
            log=supervised.log,
            last_log=supervised.last_log,
            connections=self.primary.connections,
            connected=self.connections,
            dumps=self.dumps,
            faults=faults.done,
            fault_at=self.fault_at,
            unfinished=faults.unfinished,
            seconds=time.monotonic() - begun,
        )
