"""From where to where a database is brought, decided by what its server, its backup and a log say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ibbmaster.errors import ConfigurationError, PositionError, RestoreError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.logs.log.interface import LogEngine
from ibbmaster.logs.log.locating import found_group
from ibbmaster.logs.log.time_search import is_time, parse_time, shown_time, time_start
from ibbmaster.replication.dump.start import is_logged
from ibbmaster.versions import Difference, version_number


class TargetFacts(NamedTuple):
    """What a server says of itself; of a new one by default."""

    version: str = "11.8.0-MariaDB"
    server_id: int = 1
    slave_position: GtidPosition = GtidPosition()
    binlog_position: GtidPosition = GtidPosition()
    binlog_state: tuple[Gtid, ...] = ()
    has_tables: bool = False
    primaries: tuple[str, ...] = ()  # that it follows
    skipped_errors: str = "OFF"


class RestorePlan(NamedTuple):
    """A server is brought from `start`, where it is by what `source` names, to `end`; `notes` are for the user."""

    target: str
    start: GtidPosition
    source: str
    end: GtidPosition
    skipped: tuple[Gtid, ...]
    notes: tuple[str, ...]

    def done(self, position: GtidPosition) -> int:
        """How many transactions a position has more than the start, if each domain counts without gaps."""
        return sum(gtid.seq_no - (self.start[one].seq_no if one in self.start else 0) for one, gtid in position.items())


def end_of(log: LogEngine, until: str, *, before: bool) -> tuple[GtidPosition, tuple[str, ...]]:
    """The position after, or before, a transaction or second, and notes. Domains that `until` does not name end at the
    place of its last GTID. Raises ConfigurationError: a time is outside of the log, or there is nothing to end at;
    GtidError: a text is no position; PositionError: a GTID is not in the log."""
    if is_time(until):
        start = time_start(log, parse_time("--until", until), passes=not before)
        if start.group is None and start.given.seconds > start.found.last:
            ends = shown_time(start.found.last, start.given)
            raise ConfigurationError(
                f"--until {start.given} is after this log, which ends at {ends}: --until {start.position} takes it all"
            )
        return start.position, start.notes
    wanted = GtidPosition.parse(until)
    if not wanted or (before and len(wanted) > 1):
        raise ConfigurationError(
            f"--until {until!r}: expected {'one GTID' if before else 'a GTID'}, as 0-1-100, or a time"
        )
    places = {}
    for gtid in wanted.values():
        with found_group(log, gtid) as (state, group):
            places[gtid] = group.start, state.position()
    _, position = places[max(places, key=lambda gtid: places[gtid][0])]
    return position if before else GtidPosition({**position, **wanted}.values()), ()


def expect_usable(target: str, facts: TargetFacts, state: GtidState) -> None:
    """Raises RestoreError: nothing can be restored into this server."""
    if "MariaDB" not in facts.version or not Difference.KNOWS_GTIDS.holds(version_number(facts.version)):
        raise RestoreError(f"{target}: it is {facts.version}: expected MariaDB with GTIDs, as 10.2 or later")
    if facts.primaries:
        follows = " and ".join(facts.primaries)
        raise RestoreError(f"{target}: it is a replica of {follows}: STOP ALL SLAVES there first, if that is meant")
    if facts.skipped_errors != "OFF":
        ignored = f"slave_skip_errors={facts.skipped_errors}"
        raise RestoreError(f"{target}: it ignores errors of replication: start it without {ignored}")
    _expect_logged(
        f"{target}: its binlog", facts.binlog_state, state, "RESET MASTER there, if this is of loading a backup"
    )


def _expect_logged(what: str, gtids: tuple[Gtid, ...], state: GtidState, advice: str) -> None:
    for gtid in gtids:
        if not is_logged(gtid, state):
            here = ",".join(str(one) for one in state if one.domain_id == gtid.domain_id)
            raise RestoreError(
                f"{what} has {gtid}, and the log [{here}] in domain {gtid.domain_id}: another history; {advice}"
            )


def start_of(target: str, facts: TargetFacts, backup: Mapping[str, GtidPosition]) -> tuple[GtidPosition, str]:
    """The position of a server, and what says it. Raises RestoreError: nothing does, or two sources disagree."""
    found = {"gtid_slave_pos": facts.slave_position} if facts.slave_position else {}
    own = facts.binlog_position
    if any(one not in facts.slave_position or facts.slave_position[one].seq_no < own[one].seq_no for one in own):
        found["gtid_binlog_pos"] = own
    found |= backup
    values = {str(position): name for name, position in found.items()}
    if len(values) > 1:
        said = " and ".join(f"{name} says [{position}]" for position, name in values.items())
        raise RestoreError(f"{target}: {said}: give the position that its data have with --position")
    if [*found] == ["gtid_binlog_pos"]:
        raise RestoreError(
            f"{target}: only its binlog says a position: --position {own} if it is a copy of the primary with its "
            "binlog; if only a backup was loaded, RESET MASTER there, and name that with --backup"
        )
    if not found and facts.has_tables:
        raise RestoreError(
            f"{target}: it has tables, and nothing says their position: name their backup with --backup, or the "
            "position with --position"
        )
    return next(((position, name) for name, position in found.items()), (GtidPosition(), "an empty server"))


def expect_between(plan: RestorePlan, log: LogEngine) -> None:
    """Raises RestoreError: the server has what the log has not, or more than is asked for; PositionError: the log has
    not all that the server lacks, or not what is to be left out."""
    start, end = plan.start, plan.end
    _expect_logged(f"{plan.target}: it", tuple(start.values()), log.state(), "restore a backup there first")
    for gtid in start.values():
        last = end.get(gtid.domain_id)
        if last is None or last.seq_no < gtid.seq_no:
            ends = last or f"nothing of domain {gtid.domain_id}"
            raise RestoreError(
                f"{plan.target}: it has {gtid} already, and is to end at {ends}: restore an earlier backup first"
            )
    log.seek(start)
    for gtid in plan.skipped:
        with found_group(log, gtid):
            first, last = start.get(gtid.domain_id), end.get(gtid.domain_id)
        if last is None or gtid.seq_no > last.seq_no or (first is not None and gtid.seq_no <= first.seq_no):
            raise PositionError(f"--skip {gtid} is not among what is applied, from [{start}] to [{end}]")
