"""A run as a cell of the matrix: the grade, and what a person needs to see why."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ibbmaster.testkit.fault import FaultRecord, PlannedFault
from ibbmaster.testkit.witness import SeenConnection
from .journal import ToldEvent, shown_line
from .matching import LoggedGroup
from .results import Cell, FaultBytes, Grade, Resume, RunEnd, judge

LINES_MAX = 200
LOG_MAX = 8192  # characters
TOLD_MAX = 20
FAULTS_MAX = 20
EVENT_MAX = 1024  # bytes
CONNECT_STATE = re.compile(r"@slave_connect_state\s*=\s*['\"]([^'\"]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    consumer: str
    scenario: str
    groups: Sequence[LoggedGroup]  # that a right consumer tells, in order
    told: Sequence[ToldEvent]  # every line
    restarts: int
    exit_code: int | None  # of its last process, negative for a signal; None: it had to be ended
    log: str  # the end of standard error of all its processes
    last_log: str  # of its last process
    connections: Sequence[SeenConnection]  # to the primary, in order
    connected: Sequence[float]  # when each was first seen
    dumps: Sequence[tuple[float, SeenConnection]]  # those that asked for a dump, and when
    faults: Sequence[FaultRecord]  # that happened
    fault_at: float | None  # when the first was seen
    unfinished: Sequence[PlannedFault]  # that did not happen
    seconds: float


def cell_of(run: RunRecord) -> Cell:
    progress = max((event.at for event in run.told if event.is_progress), default=0.0)
    end = RunEnd(
        exit_code=run.exit_code,
        has_log=bool(run.last_log.strip()),
        connections=sum(at > progress for at in run.connected),
    )
    judgement = judge(run.groups, run.told, end)
    waiting = ", ".join(map(str, run.unfinished))
    is_untouched = bool(waiting) and not run.faults and judgement.grade is Grade.EXACT
    return Cell(
        consumer=run.consumer,
        scenario=run.scenario,
        grade=None if is_untouched else judgement.grade,
        not_run=f"it never came to the place of: {waiting}" if is_untouched else None,
        summary=judgement.summary + (f" (what never happened: {waiting})" if waiting else ""),
        missing=judgement.missing,
        repeated=judgement.repeated,
        wrong=judgement.wrong,
        metadata=judgement.metadata,
        told=tuple(dict.fromkeys(shown_line(event.text) for event in run.told if event.what == "error"))[:TOLD_MAX],
        restarts=run.restarts,
        resumes=tuple(
            Resume(position=_asked(connection), after_s=round(at - (run.fault_at or at), 2))
            for at, connection in run.dumps[1:]
        ),
        position=_stored(run.told),
        recovered_s=_recovered_s(run, [run.told[number].at for number in judgement.first]),
        sent=_lines(
            [
                f"connection {connection.number}: {event.type}{f' {event.gtid}' if event.gtid else ''}"
                for connection in run.connections
                for event in list(connection.sent)
            ]
        ),
        arrived=_lines([str(event) for event in run.told if event.what not in ("version", "position")]),
        bytes=tuple(
            FaultBytes(
                fault=str(record.fault),
                gtid=record.gtid,
                sent_bytes=record.sent_bytes,
                event=record.event[:EVENT_MAX].hex(),
            )
            for record in run.faults[:FAULTS_MAX]
        ),
        statements=_lines([statement.text for connection in run.connections for statement in connection.statements]),
        log=run.log[-LOG_MAX:],
        seconds=round(run.seconds, 2),
    )


def _recovered_s(run: RunRecord, first: Sequence[float]) -> float | None:
    """From the first fault to the first new change, of a new dump if there was one."""
    if run.fault_at is None:
        return None
    fault_at = run.fault_at
    since = next((at for at, _ in run.dumps[1:] if at >= fault_at), fault_at)
    new = next((at for at in first if at >= since), None)
    return None if new is None else round(new - fault_at, 2)


def _stored(told: Sequence[ToldEvent]) -> str:
    positions = (event.position for event in reversed(told) if event.what == "position")
    return next((shown_line(json.dumps(position, ensure_ascii=False)) for position in positions), "")


def _asked(connection: SeenConnection) -> str:
    if connection.dump_start is not None:
        return str(connection.dump_start)
    asked = (CONNECT_STATE.search(statement.text) for statement in reversed(connection.statements))
    name, offset = connection.dump_file or ("", 0)
    return next((match[1] for match in asked if match), f"{name}:{offset}")


def _lines(lines: Sequence[str]) -> tuple[str, ...]:
    kept = list(lines)
    if len(kept) > LINES_MAX:
        half = LINES_MAX // 2
        kept = [*kept[:half], f"… {len(kept) - LINES_MAX + 1} more", *kept[-half + 1 :]]
    return tuple(map(shown_line, kept))
