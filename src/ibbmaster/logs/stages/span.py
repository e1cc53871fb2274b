"""A part of a log between two GTID positions, each domain by itself."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ibbmaster.errors import ConfigurationError, PositionPurgedError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.logs.log.interface import LogEngine, ReadPlan, groups_from
from ibbmaster.logs.log.locating import expect_logged, locate_in
from ibbmaster.logs.log.log_range import GroupSelection
from ibbmaster.position import LOG_START, LogPosition


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSpan:
    """The groups of a log after `after`, up to and with `until`. A domain that `after` does not name begins at its
    start; one that `until` does not name has nothing. `begin` is the GTID state at the begin, of domains that have one,
    `state` that at the end, `end` the place after the last group. All groups before `whole_until` but after the begin
    belong to it. Where the log goes on, these are None, and `end` means nothing."""

    after: GtidPosition = field(default_factory=GtidPosition)
    begin: GtidState = field(default_factory=GtidState)
    until: GtidPosition | None = None
    state: GtidState | None = None
    end: LogPosition
    groups: GroupSelection
    whole_until: LogPosition | None = None

    def has(self, gtid: Gtid, start: LogPosition) -> bool:
        return self.groups.takes(gtid, start, 0)

    def first_of(self, state: GtidState) -> LogPosition:
        """A place in front of all its groups; `state` is that of the log."""
        starts, ends = dict(self.groups.starts), self.groups.ends
        domain_ids = state.domain_ids if ends is None else dict(ends)
        return min((starts.get(domain_id, LOG_START) for domain_id in domain_ids), default=LOG_START)

    @property
    def without_begin(self) -> LogSpan:
        return replace(self, after=GtidPosition(), begin=GtidState(), groups=GroupSelection(ends=self.groups.ends))

    def state_from(self, plan: ReadPlan) -> GtidState:
        """The GTID state in front of the first group for a reader that begins at a plan."""
        found = plan.state.copy()
        for domain_id, start in self.groups.starts:
            if plan.position < start:
                found.drop_domain(domain_id)
        for gtid in self.begin:
            if plan.position < dict(self.groups.starts)[gtid.domain_id]:
                found.log(gtid)
        return found

    def check_start(self, position: GtidPosition) -> None:
        """Raises PositionPurgedError: a replica at a position lacks something of what is before the span."""
        if not self.begin.is_before(position):
            raise PositionPurgedError(
                f"position [{position}] is before what is served of this log, which begins after {self.after}: "
                f"set the replica's gtid_slave_pos to '{self.after}', or begin earlier"
            )


def span_of(log: LogEngine, after: GtidPosition | None, until: GtidPosition | None) -> LogSpan:
    """The part of a log between two positions; None is no limit. Raises ConfigurationError: it ends before it begins;
    PositionError: this log lacks a GTID, or its file; FormatError, ClassicFormatError."""
    begin = after or GtidPosition()
    state = log.state()
    for gtid in (*begin.values(), *(until or GtidPosition()).values()):
        expect_logged(gtid, state)
    starts = _places(log, begin, state)
    begun = GtidState(gtid for gtid in _end_at(log, begin, starts, state).state if gtid.domain_id in begin)
    if until is None:
        return LogSpan(after=begin, begin=begun, end=log.end(), groups=GroupSelection(starts=tuple(starts.items())))
    ends = _places(log, until, state)
    if all(domain_id in starts and place <= starts[domain_id] for domain_id, place in ends.items()):
        raise ConfigurationError(f"nothing is in this range: it ends at [{until}], and begins after [{begin}]")
    end = _end_at(log, until, ends, state)
    return LogSpan(
        after=begin,
        begin=begun,
        until=until,
        state=end.state,
        end=end.last,
        groups=GroupSelection(starts=tuple(starts.items()), ends=tuple(ends.items())),
        whole_until=end.whole,
    )


def span_so_far(log: LogEngine) -> LogSpan:
    """All that a log has now, and nothing that comes later."""
    end, state = log.end(), log.state()
    while (later := log.end()) != end:  # it has grown meanwhile
        end, state = later, log.state()
    ends = tuple((domain_id, end) for domain_id in state.domain_ids)
    return LogSpan(until=state.position(), state=state, end=end, groups=GroupSelection(ends=ends), whole_until=end)


def span_of_file(log: LogEngine, file_no: int) -> LogSpan:
    """The groups that begin in one file. Raises KeyError: there is none; FormatError, ClassicFormatError."""
    begin = log.start_of_file(file_no)
    so_far = span_so_far(log)
    assert so_far.state is not None  # it has an end
    later = [file.file_no for file in log.files() if file.file_no > file_no]
    following = log.start_of_file(min(later)) if later else None
    end, state = so_far.end, so_far.state
    if following is not None and following.position < end:
        end, state = following.position, following.state
    domain_ids = so_far.state.domain_ids
    return LogSpan(
        after=begin.state.position(),
        begin=begin.state,
        until=state.position(),
        state=state,
        end=end,
        groups=GroupSelection(
            starts=tuple((domain_id, begin.position) for domain_id in domain_ids),
            ends=tuple((domain_id, end) for domain_id in domain_ids),
        ),
        whole_until=end,
    )


def _plan(log: LogEngine, position: GtidPosition, state: GtidState) -> ReadPlan:
    """In front of what a position names, whatever other domains the log has."""
    return log.seek(GtidPosition({**state.position(), **position}.values()))


def _places(log: LogEngine, position: GtidPosition, state: GtidState) -> dict[int, LogPosition]:
    return locate_in(log, position, _plan(log, position, state)) if position else {}


class _End(NamedTuple):
    state: GtidState
    last: LogPosition
    whole: LogPosition  # no earlier group comes after the end of its domain


def _end_at(log: LogEngine, until: GtidPosition, ends: dict[int, LogPosition], state: GtidState) -> _End:
    """Domains without an end keep what was before the log."""
    begin = log.start_of_file()
    if not until:
        return _End(begin.state, begin.position, begin.position)
    plan = _plan(log, until, state)
    found = GtidState(gtid for gtid in begin.state if gtid.domain_id not in until)
    for gtid in plan.state:
        if gtid.domain_id in until:
            found.log(gtid)
    end = max(ends.values())
    has_others = any(gtid.domain_id not in until and gtid not in begin.state for gtid in state)
    whole = begin.position if has_others else None
    for group in groups_from(log, plan):
        if group.start >= end:
            break
        logged = group.gtid
        if logged is None:
            continue
        if group.start < ends.get(logged.domain_id, plan.position):
            found.log(logged)
            end = max(end, group.end)
        elif whole is None:
            whole = group.start
    return _End(found, end, end if whole is None else whole)
