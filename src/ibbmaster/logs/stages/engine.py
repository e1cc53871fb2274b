"""A log and its stages as a log: readers, dumps and copies use it like any other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ibbmaster.gtid import GtidPosition, GtidState
from ibbmaster.logs.log import interface
from ibbmaster.logs.log.log_range import GroupSelection, LogRange
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.format_description import ChecksumAlgorithm
from ibbmaster.replication.event.group import EventGroup
from .filtering import OriginFilter
from .span import LogSpan
from .stage import GroupTransform, GtidTransform


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedPlan(interface.ReadPlan):
    there: interface.ReadPlan
    has_begin: bool = False  # a reader that begins here has, and skips, what a span leaves out at its begin


class StagedGroups(interface.PassedGroups):
    def __init__(self, groups: interface.EventGroups, stages: Sequence[GroupTransform], span: LogSpan | None) -> None:
        super().__init__(groups)
        self._stages = stages
        self._span = span

    @property
    def files(self) -> interface.FramedEventGroups | None:
        starts = () if self._span is None else self._span.groups.starts
        has_begun = all(self.position >= start for _, start in starts)  # else some of the groups are left out
        return super().files if has_begun else None

    @property
    def changes(self) -> tuple[Any, ...]:
        return (*super().changes, *self._stages)

    @property
    def files_end(self) -> LogPosition | None:
        ends = (super().files_end, None if self._span is None else self._span.whole_until)
        return min((end for end in ends if end is not None), default=None)

    def next_group(self) -> EventGroup | None:
        """Raises StageError: a stage refuses it."""
        span = self._span
        while span is None or span.until is None or self._groups.position < span.end:
            group = self._groups.next_group()
            if group is None:
                return None
            passed = passed_on(group, self._stages, span)
            if passed is not None:
                return passed
        return None


def passed_on(group: EventGroup, stages: Sequence[GroupTransform], span: LogSpan | None = None) -> EventGroup | None:
    if group.gtid is None:
        return group
    if span is not None and not span.has(group.gtid, group.start):
        return None
    passed: EventGroup | None = group
    for stage in stages:
        if passed is None:
            return None
        passed = stage.pass_on(passed)
    return passed


class StagedLog(interface.LogEngine):
    """A part of a log, and the stages of its groups. Thread-safe as the log is. `checksum_algorithm` is that of the
    events of a log whose files state one; `notes` are for the user."""

    def __init__(
        self,
        log: interface.LogEngine,
        stages: Sequence[GroupTransform] = (),
        span: LogSpan | None = None,
        *,
        notes: Sequence[str] = (),
    ) -> None:
        self.notes = tuple(notes)
        self.inner = log
        self.stages = tuple(stages)
        self.span = span
        self._renaming: list[GtidTransform] = [stage for stage in stages if isinstance(stage, GtidTransform)]
        self.checksum_algorithm: ChecksumAlgorithm | None = getattr(log, "checksum_algorithm", None)

    @property
    def choice(self) -> GroupSelection | None:
        """None unless each group is left as it is."""
        limits = GroupSelection() if self.span is None else self.span.groups
        match self.stages:
            case []:
                return limits
            case [OriginFilter(drops_empty=True) as origin]:
                return replace(limits, domains=origin.domain_ids, servers=origin.server_ids)
        return None

    def close(self) -> None:
        self.inner.close()

    def file_name(self, file_no: int) -> str:
        return self.inner.file_name(file_no)

    def server_version_of(self, file_no: int) -> str:
        return self.inner.server_version_of(file_no)

    def files(self) -> list[interface.LogFile]:
        return self.inner.files()

    def end(self, *, only_cached: bool = False) -> LogPosition:
        span = self.span
        return self.inner.end(only_cached=only_cached) if span is None or span.until is None else span.end

    def state(self, *, only_cached: bool = False) -> GtidState:
        span = self.span
        if span is not None and span.state is not None:
            return self._renamed(span.state.copy())
        return self._renamed(self.inner.state(only_cached=only_cached))

    def seek(self, position: GtidPosition, *, only_cached: bool = False) -> interface.ReadPlan:
        position = self._original(position)
        if self.span is not None:
            self.span.check_start(position)
        position = self._with_left_out(position, only_cached=only_cached)
        return self._as_here(self.inner.seek(position, only_cached=only_cached), has_begin=True)

    def start_of_file(self, file_no: int | None = None) -> interface.ReadPlan:
        return self._as_here(self.inner.start_of_file(file_no))

    def groups(self, plan: interface.ReadPlan) -> interface.EventGroups:
        there, span = plan, self.span
        if isinstance(plan, StagedPlan):
            there = plan.there
            span = span.without_begin if span is not None and plan.has_begin else span
        return StagedGroups(self.inner.groups(there), self.stages, span)

    def groups_in(self, log_range: LogRange, *, on_fault: interface.OnFault | None = None) -> Iterator[EventGroup]:
        for group in self.inner.groups_in(log_range, on_fault=on_fault):
            passed = passed_on(group, self.stages, self.span)
            if passed is not None:
                yield passed

    def ranges(self, start: LogPosition, end: LogPosition, *, size: int) -> list[LogRange]:
        span = self.span
        if span is not None:
            start = max(start, span.first_of(self.inner.state()))
            end = end if span.until is None else min(end, span.end)
        return self.inner.ranges(start, end, size=size)

    @property
    def with_past(self) -> StagedLog:
        span = self.span
        if span is None or not span.after:
            return self
        return StagedLog(self.inner.with_past, self.stages, span.without_begin)

    @property
    def with_left_out(self) -> StagedLog:
        return StagedLog(self.inner.with_left_out, self._renaming, self.span)

    @property
    def reset_count(self) -> int:
        return self.inner.reset_count

    @property
    def unfinished(self) -> str | None:
        return None if self.is_over else self.inner.unfinished

    @property
    def is_over(self) -> bool:
        return self.inner.is_over or (self.span is not None and self.span.until is not None)

    def wait_for_growth(self, timeout_s: float) -> bool:
        return self.inner.wait_for_growth(timeout_s)

    def tell_growth(self, call: Callable[[], object]) -> Callable[[], None] | None:
        return self.inner.tell_growth(call)

    def _with_left_out(self, position: GtidPosition, *, only_cached: bool) -> GtidPosition:
        """With every domain of which no replica gets anything."""
        chosen = [stage.domain_ids for stage in self.stages if isinstance(stage, OriginFilter) and stage.drops_empty]
        left_out = {
            gtid.domain_id: gtid
            for gtid in (self.inner.state(only_cached=only_cached).position().values() if any(chosen) else ())
            if gtid.domain_id not in position and any(ids and gtid.domain_id not in ids for ids in chosen)
        }
        return GtidPosition([*position.values(), *left_out.values()]) if left_out else position

    def _as_here(self, plan: interface.ReadPlan, *, has_begin: bool = False) -> StagedPlan:
        state = plan.state if self.span is None or has_begin else self.span.state_from(plan)
        return StagedPlan(
            position=plan.position,
            state=self._renamed(state),
            resets=plan.resets,
            is_restart=plan.is_restart,
            is_begun=plan.is_begun,
            there=plan,
            has_begin=has_begin,
        )

    def _renamed(self, state: GtidState) -> GtidState:
        for stage in self._renaming:
            state = GtidState(stage.renamed(gtid) for gtid in state)
        return state

    def _original(self, position: GtidPosition) -> GtidPosition:
        for stage in reversed(self._renaming):
            position = GtidPosition(stage.original(gtid) for gtid in position.values())
        return position
