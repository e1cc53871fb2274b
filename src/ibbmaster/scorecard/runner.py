"""Puts consumers through scenarios: one through one, or a matrix of both.

A run: the primary of the scenario, the consumer, the groups of the scenario written while it follows, and then a
marker, whose commit ends the run. A consumer that ends is started again with its last position, as a supervisor does.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import trio

from ibbmaster.errors import ConfigurationError, IbbMasterError
from ibbmaster.event.gtid_event import GtidFlag, decode_gtid_event
from ibbmaster.event.query import decode_query
from ibbmaster.event.types import EventType
from ibbmaster.gtid import Gtid
from ibbmaster.scorecard.adapter import Adapter, build
from ibbmaster.scorecard.consumer import Consumer
from ibbmaster.scorecard.grade import Grade, LoggedChange, LoggedGroup, RunEnd, judge
from ibbmaster.scorecard.journal import ToldEvent
from ibbmaster.scorecard.results import Cell, FaultBytes, Resume
from ibbmaster.testkit.primary import FixturePrimary
from ibbmaster.testkit.scenario import Scenario
from ibbmaster.testkit.witness import SeenConnection
from ibbmaster.testkit.written import WrittenGroup

MARKER = "ibb_marker.marks"
CONSUMER_ID = 4001
RESTARTS_MAX = 3
RESTART_S = 0.5  # before the first one; twice as long before each other
SILENCE_S = 12.0  # without progress: it hangs
SILENCE_PER_START = 4.0
LIMIT_S = 120.0
QUIET_S = 2.0  # everything was sent, and nothing comes any more
SETTLE_S = 0.4  # behind the marker, to see whether more comes
FATAL_S = 2.0  # for a consumer to end after it said that it follows no more
STEP_S = 0.02
LINES_MAX = 200
LINE_MAX = 300
STATEMENTS = (EventType.QUERY, EventType.QUERY_COMPRESSED)
FRAMES = ("begin", "commit", "rollback", "savepoint", "xa ", "release savepoint")  # statements that change no row


class ScenarioCard(Protocol):
    """What is needed of a card."""

    name: str
    start: str | None
    delay_ms: int
    expected: tuple[str, ...] | None

    def scenario(self) -> Scenario: ...

    def live_groups(self) -> tuple[WrittenGroup, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """How long a run waits, in seconds; what a machine needs to start a consumer is added.

    Attributes:
        silence_s: without progress, before it is said to hang; None: 12, and four times the adapter's `start_s`.
        limit_s: for all of a run.
    """

    silence_s: float | None = None
    limit_s: float = LIMIT_S

    def silence(self, adapter: Adapter) -> float:
        """Of one consumer."""
        return SILENCE_S + SILENCE_PER_START * adapter.start_s if self.silence_s is None else self.silence_s

    def limit(self, adapter: Adapter) -> float:
        """Of one run."""
        return self.limit_s + 10 * adapter.start_s


def run_card(adapter: Adapter, card: ScenarioCard, times: RunTimes | None = None) -> Cell:
    """Put one consumer through one scenario; what cannot be run is a cell that says why."""
    begun = time.monotonic()
    try:
        command = build(adapter)
        if card.start is not None and adapter.start != "gtid":
            raise ConfigurationError("it begins where the primary is, and this scenario elsewhere")
        with tempfile.TemporaryDirectory(prefix="ibbmaster-scorecard-") as directory:
            run = _Run(adapter, card, command, Path(directory), times or RunTimes())
            return run.cell(begun)
    except IbbMasterError as error:
        return Cell(
            consumer=adapter.name, scenario=card.name, not_run=str(error), seconds=round(time.monotonic() - begun, 2)
        )


@dataclass(slots=True)
class Supervised:
    """A consumer that is started again with its last position when it ends, three times at most.

    Attributes:
        told: every line of all its processes.
        exit_code: of the last process; None: it lives.
        problem: a line that means nothing; it is not started again.
    """

    command: Sequence[str]
    request: Mapping[str, Any]
    directory: Path
    told: list[ToldEvent] = field(default_factory=list)
    starts: int = 0
    exit_code: int | None = None
    problem: str = ""
    log: str = ""
    _consumer: Consumer | None = None
    _due: float | None = None  # when it is started again
    _fatal_at: float | None = None

    def start(self) -> None:
        """Start it, with the last position it told."""
        positions = [event.position for event in self.told if event.what == "position"]
        request = {**self.request, "directory": str(self.directory), "resume": positions[-1] if positions else None}
        self.starts += 1
        self._due = self._fatal_at = self.exit_code = None
        self._consumer = Consumer(self.command, request, directory=self.directory, process=self.starts)

    @property
    def has_ended(self) -> bool:
        """Whether it has ended, and is not started again."""
        return self._consumer is None and self._due is None

    def poll(self, timeout: float) -> list[ToldEvent]:
        """What it has told since; starts it again when that is due."""
        if self._consumer is None:
            if self._due is not None and time.monotonic() >= self._due:
                self.start()
            else:
                time.sleep(timeout)
            return []
        found = self._consumer.events(timeout)
        fatal = next((event.at for event in found if event.what == "error" and event.is_fatal), None)
        self._fatal_at = self._fatal_at or fatal
        is_late = self._fatal_at is not None and time.monotonic() > self._fatal_at + FATAL_S
        self.told += found
        if self._consumer.has_ended or is_late or self._consumer.problem:
            found = found + self._end(0.0)
        return found

    def _end(self, grace_s: float) -> list[ToldEvent]:
        assert self._consumer is not None
        consumer, self._consumer = self._consumer, None
        was_alive = not consumer.has_ended
        rest = consumer.close(grace_s)
        self.told += rest
        self.log += consumer.log
        self.problem = consumer.problem
        self.exit_code = 1 if was_alive and self._fatal_at is not None else consumer.exit_code
        if self.starts <= RESTARTS_MAX and not self.problem:
            self._due = time.monotonic() + RESTART_S * 2 ** (self.starts - 1)
        return rest

    def close(self, grace_s: float) -> None:
        """End it; its exit code stays None if it has lived until now."""
        self._due = None
        if self._consumer is not None:
            consumer, self._consumer = self._consumer, None
            self.told += consumer.close(grace_s)
            self.log += consumer.log
            self.problem = self.problem or consumer.problem


class _Run:
    """One consumer, one scenario."""

    def __init__(
        self, adapter: Adapter, card: ScenarioCard, command: Sequence[str], directory: Path, times: RunTimes
    ) -> None:
        self.adapter = adapter
        self.card = card
        self.command = command
        self.directory = directory
        self.silence_s = times.silence(adapter)
        self.limit_s = times.limit(adapter)
        self.dumps: list[tuple[float, SeenConnection]] = []
        self.connections: list[float] = []
        self.fault_at: float | None = None

    def cell(self, begun: float) -> Cell:
        scenario = self.card.scenario()
        with scenario.serving() as primary:
            self.primary = primary
            first_log = primary.log
            marks = primary.table(MARKER, id="int primary key")
            start = str(primary.log.position) if self.card.start is None else self.card.start
            written = logged_groups(primary, start)
            self.supervised = Supervised(self.command, self._request(scenario, start), self.directory)
            try:
                self.supervised.start()
                self._follow_until(self._is_dumping)
                written += self._write_live()
                self._follow_until(lambda: self._has_come_through(written))
                before = str(primary.log.position)
                marks.insert(id=1)
                marker = logged_groups(primary, before)
                written += marker
                self._follow_until(lambda: self._has_told(marker))
                self._follow_for(SETTLE_S + self.card.delay_ms / 100)
            finally:
                self.supervised.close(2.0 + self.adapter.start_s)
            if primary.log is not first_log:
                written = _of_both(written, logged_groups(primary, ""), self.supervised.request["start"])
        return self._graded(self._required(written), begun)

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
        }

    # Writing --------------------------------------------------------------------------------------

    def _write_live(self) -> list[LoggedGroup]:
        """Write the groups of the scenario, those without a time as one: the stream sees nothing in between."""
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
            write()  # it is down just now
        return found

    # Following ------------------------------------------------------------------------------------

    def _follow_until(self, is_so: Any) -> None:
        """Follow until something is so, the consumer has ended, or made no progress for a time."""
        self.progress_at = time.monotonic()
        limit = self.progress_at + self.limit_s
        while not is_so():
            now = time.monotonic()
            if self.supervised.has_ended or now > self.progress_at + self.silence_s or now > limit:
                return
            self._step()

    def _follow_for(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.supervised.has_ended:
            self._step()

    def _step(self) -> None:
        starts = self.supervised.starts
        told = self.supervised.poll(STEP_S)
        now = time.monotonic()
        if any(event.is_progress for event in told) or self.supervised.starts > starts:
            self.progress_at = now
        seen = self.primary.connections
        self.connections += [now] * (len(seen) - len(self.connections))
        known = {connection.number for _, connection in self.dumps}
        self.dumps += [(now, one) for one in seen if one.dump_file is not None and one.number not in known]
        if self.fault_at is None and self.primary.faults.done:
            self.fault_at = now

    def _is_dumping(self) -> bool:
        return any(connection._is_dumping for _, connection in self.dumps)

    def _has_come_through(self, groups: Sequence[LoggedGroup]) -> bool:
        """Whether the faults have happened and the last group was told; or all was sent and nothing comes."""
        is_done = not self.primary.faults.plan.unfinished
        if is_done and self._has_told(groups[-1:]):
            return True
        if time.monotonic() < self.progress_at + QUIET_S + self.card.delay_ms / 100:
            return False
        wanted = list(self.primary.log.position.values())
        return any(
            connection.is_dumping and all(map(connection.has, wanted)) for connection in self.primary.connections
        )

    def _has_told(self, groups: Sequence[LoggedGroup]) -> bool:
        """Whether everything of some groups was told, perhaps with other values."""
        tables = {change.table for group in groups for change in group.changes}
        gtids = {group.gtid for group in groups}
        for event in reversed(self.supervised.told):
            if (event.what == "commit" and event.gtid in gtids) or (event.what == "change" and event.table == MARKER):
                return event.table in tables or event.what == "commit"
        return not groups

    # Afterwards -----------------------------------------------------------------------------------

    def _required(self, groups: list[LoggedGroup]) -> list[LoggedGroup]:
        """Those that the card expects, in its order, and the marker."""
        if self.card.expected is None:
            return groups
        by_gtid = {group.gtid: group for group in groups}
        expected = [by_gtid[gtid] for gtid in self.card.expected if gtid in by_gtid]
        return expected + groups[-1:]

    def _graded(self, groups: list[LoggedGroup], begun: float) -> Cell:
        supervised = self.supervised
        if supervised.problem:
            raise ConfigurationError(supervised.problem)
        end = RunEnd(
            exit_code=supervised.exit_code, has_log=bool(supervised.log.strip()), connections=tuple(self.connections)
        )
        judgement = judge(groups, supervised.told, end)
        after_fault = [
            event.at for event in supervised.told if event.what == "change" and event.at >= (self.fault_at or 0)
        ]
        return Cell(
            consumer=self.adapter.name,
            scenario=self.card.name,
            grade=judgement.grade,
            summary=judgement.summary,
            missing=judgement.missing,
            repeated=judgement.repeated,
            wrong=judgement.wrong,
            told=tuple(dict.fromkeys(_line(event.text) for event in supervised.told if event.what == "error"))[:20],
            restarts=supervised.starts - 1,
            resumes=tuple(
                Resume(position=_asked(connection), after_s=round(at - (self.fault_at or at), 2))
                for at, connection in self.dumps[1:]
            ),
            recovered_s=None if self.fault_at is None or not after_fault else round(after_fault[0] - self.fault_at, 2),
            sent=_lines(
                [
                    f"connection {connection.number}: {event.type}{f' {event.gtid}' if event.gtid else ''}"
                    for connection in self.primary.connections
                    for event in list(connection.sent)
                ]
            ),
            arrived=_lines([str(event) for event in supervised.told if event.what not in ("version", "position")]),
            bytes=tuple(
                FaultBytes(
                    fault=str(record.fault), gtid=record.gtid, sent_bytes=record.sent_bytes, event=record.event.hex()
                )
                for record in self.primary.faults.done[:20]
            ),
            statements=_lines(
                [statement.text for connection in self.primary.connections for statement in connection.statements]
            ),
            log=supervised.log[-(64 << 10) :],
            seconds=round(time.monotonic() - begun, 2),
        )


def logged_groups(primary: FixturePrimary, after: str) -> list[LoggedGroup]:
    """What a primary has logged behind a position."""
    return [
        LoggedGroup(gtid=str(group.gtid), changes=tuple(_changes(group)))
        for group in (primary.log.groups(after=after) if after else primary.log.groups())
    ]


def _changes(group: Any) -> list[LoggedChange]:
    found = []
    for schema, change in group.rows():
        columns = tuple(column.name for column in schema.columns)
        found.append(
            LoggedChange(
                table=f"{schema.database}.{schema.table}",
                kind=change.kind,
                before=change.before,
                after=change.after,
                columns=columns,
                has_names=not any(name.startswith("@") for name in columns),
            )
        )
    events = [event.data for event in group.events()]
    if GtidFlag.DDL in decode_gtid_event(events[0]).flags:
        return found
    for data in events:
        if data[4] in STATEMENTS:
            sql = decode_query(data).text.decode("utf-8", "replace")
            if not sql.lower().lstrip().startswith(FRAMES):
                found.append(LoggedChange(sql=sql))
    return found


def _of_both(written: list[LoggedGroup], now: list[LoggedGroup], start: str) -> list[LoggedGroup]:
    """What another primary has taken over and added; what it has lost may come or not."""
    kept = {group.gtid for group in now}
    first = {group.gtid for group in written}
    lost = [
        LoggedGroup(gtid=group.gtid, changes=group.changes, is_required=False)
        for group in written
        if group.gtid not in kept
    ]
    begins = {Gtid.parse(one).domain_id: Gtid.parse(one).seq_no for one in start.split(",") if one}
    added = [
        group
        for group in now
        if group.gtid in first or Gtid.parse(group.gtid).seq_no > begins.get(Gtid.parse(group.gtid).domain_id, 0)
    ]
    place = next((number for number, group in enumerate(added) if group.gtid not in first), len(added))
    return added[:place] + lost + added[place:]


def _asked(connection: SeenConnection) -> str:
    if connection.dump_start is not None:
        return str(connection.dump_start)
    name, offset = connection.dump_file or ("", 0)
    return f"{name}:{offset}"


def _lines(lines: Sequence[str]) -> tuple[str, ...]:
    """At most 200, the first and the last of them."""
    kept = list(lines)
    if len(kept) > LINES_MAX:
        half = LINES_MAX // 2
        kept = [*kept[:half], f"… {len(kept) - LINES_MAX + 1} more", *kept[-half + 1 :]]
    return tuple(map(_line, kept))


def _line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LINE_MAX else f"{text[: LINE_MAX - 1]}…"


__all__ = ["Grade", "RunTimes", "ScenarioCard", "Supervised", "logged_groups", "run_card"]
