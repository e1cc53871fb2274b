"""Finds GTIDs in a log."""

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import NamedTuple

from ibbmaster.errors import FormatError, PositionError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.position import LOG_START, LogPosition
from ibbmaster.replication.event.group import EventGroup
from .interface import LogEngine, OnFault, ReadPlan, groups_from
from .log_range import WHOLE_FILE


def locate(log: LogEngine, position: GtidPosition, *, on_fault: OnFault | None = None) -> dict[int, LogPosition]:
    """For each domain of a position the place after its GTID; reports damage to `on_fault`, and continues. Raises
    PositionPurgedError: the position is older than the oldest file; PositionError: a GTID is not in this log;
    FormatError, ClassicFormatError: a file is damaged, and there is no `on_fault`."""
    log = log.with_left_out.with_past
    plan = _plan_of(log, position, on_fault)
    return _locate(position, plan, _planned_groups(log, plan, on_fault))


def locate_in(log: LogEngine, position: GtidPosition, plan: ReadPlan) -> dict[int, LogPosition]:
    """As `locate`, given a place before all that the position names: it need not name every domain."""
    return _locate(position, plan, groups_from(log, plan))


class ReadStart(NamedTuple):
    """Where a reader with everything up to a position continues: all that it lacks follows `begin`, of a domain of
    `starts` its place, as domains interleave differently on each server."""

    begin: LogPosition
    starts: dict[int, LogPosition]

    def lacks(self, group: EventGroup) -> bool:
        gtid = group.gtid
        return gtid is not None and self.starts.get(gtid.domain_id, LOG_START) <= group.start


def resume(log: LogEngine, position: GtidPosition, *, on_fault: OnFault | None = None) -> ReadStart:
    """Where a reader with everything up to a position, in the domains that it names, continues. Raises as `locate`."""
    plan = _plan_of(log, position, on_fault)
    log = log.with_left_out
    starts = _locate(position, plan, _planned_groups(log, plan, on_fault))
    found = ReadStart(plan.position, starts)
    last = max(starts.values(), default=plan.position)
    for group in _planned_groups(log, plan, on_fault):
        if group.start >= last or found.lacks(group):
            return found._replace(begin=min(group.start, last))
    return found._replace(begin=last)


def plan_before(log: LogEngine, gtid: Gtid) -> ReadPlan:
    """A place shortly before a GTID, if the numbers of its domain rise."""
    before = Gtid(domain_id=gtid.domain_id, server_id=gtid.server_id, seq_no=gtid.seq_no - 1)
    return log.seek(GtidPosition({**log.state().position(), gtid.domain_id: before}.values()))


@contextmanager
def found_group(log: LogEngine, gtid: Gtid) -> Iterator[tuple[GtidState, EventGroup]]:
    """What is logged before the group of a GTID, and that group, good as long as the context. Raises PositionError: it
    is not in this log; FormatError, ClassicFormatError, StoreError: the log cannot be read."""
    expect_logged(gtid, log.state())
    plan = plan_before(log, gtid)
    state = plan.state.copy()
    with closing(groups_from(log, plan)) as groups:
        for group in groups:
            found = group.gtid
            if found == gtid:
                yield state, group
                return
            if found is not None and found.domain_id == gtid.domain_id and found.seq_no > gtid.seq_no:
                raise PositionError(f"GTID {gtid} is not in this log, which has {found} there")
            if found is not None:
                state.log(found)
    raise PositionError(f"GTID {gtid} is not in this log")


def readable_groups(log: LogEngine, start: LogPosition, on_fault: OnFault) -> Iterator[EventGroup]:
    for log_range in log.ranges(start, log.end(), size=WHOLE_FILE):
        yield from log.groups_in(log_range, on_fault=on_fault)


def expect_logged(gtid: Gtid, state: GtidState) -> None:
    """Raises PositionError, which says what is logged: neither a GTID nor a later one of its server is."""
    logged = state.seq_no(gtid.domain_id, gtid.server_id)
    if logged is None or logged < gtid.seq_no:
        latest = state.latest(gtid.domain_id)
        has = f"nothing of domain {gtid.domain_id}" if latest is None else f"domain {gtid.domain_id} up to {latest}"
        raise PositionError(f"GTID {gtid} is not in this log, which has {has}")


def _plan_of(log: LogEngine, position: GtidPosition, on_fault: OnFault | None) -> ReadPlan:
    try:
        return log.seek(position)
    except FormatError:
        if on_fault is None:
            raise
        return ReadPlan(position=LOG_START, state=GtidState())


def _planned_groups(log: LogEngine, plan: ReadPlan, on_fault: OnFault | None) -> Iterator[EventGroup]:
    return groups_from(log, plan) if on_fault is None else readable_groups(log, plan.position, on_fault)


def _locate(position: GtidPosition, plan: ReadPlan, groups: Iterable[EventGroup]) -> dict[int, LogPosition]:
    found: dict[int, LogPosition] = {}
    wanted = dict(position)
    for gtid in position.values():
        logged = plan.state.seq_no(gtid.domain_id, gtid.server_id)
        if logged is not None and logged >= gtid.seq_no:
            found[gtid.domain_id] = plan.position
            del wanted[gtid.domain_id]
    for group in groups:
        if not wanted:
            break
        gtid_here = group.gtid
        if gtid_here is None or gtid_here.domain_id not in wanted:
            continue
        last = wanted[gtid_here.domain_id]
        if gtid_here.server_id == last.server_id and gtid_here.seq_no >= last.seq_no:
            is_it = gtid_here.seq_no == last.seq_no
            found[last.domain_id] = group.start._replace(offset=group.start.offset + 1) if is_it else group.start
            del wanted[last.domain_id]
    if wanted:
        missing = ",".join(map(str, wanted.values()))
        raise PositionError(f"position [{position}]: this binlog does not hold {missing}")
    return found
