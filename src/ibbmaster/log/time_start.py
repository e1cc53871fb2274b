"""Where a log passes a time, for those who asked by one."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ibbmaster.errors import ConfigurationError, StoreError
from ibbmaster.gtid import Gtid, GtidPosition
from ibbmaster.log.given_time import GivenTime, shown_time
from ibbmaster.log.interface import LogEngine
from ibbmaster.log.time_search import TimeFound, find_time

STEP_BACK_MIN_S = 2.0  # a statement of a second that began before another one is no clock that was set back


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeStart:
    """The first group of a log that is not older than a time, and where a replica is that has all before it.

    `group` and `group_time` are None where every group is older; `notes` say what is not as it seems.
    """

    given: GivenTime
    position: GtidPosition
    group: Gtid | None
    group_time: str | None
    file_name: str
    found: TimeFound
    notes: tuple[str, ...]

    def explain(self) -> str:
        """The search in words, one step a line."""
        given = self.given
        lines = [f"time {given}", *(f"  {step.gtid}: {shown_time(step.time, given)}" for step in self.found.steps)]
        if self.group is None:
            lines.append(f"every transaction is older: the log ends at {shown_time(self.found.last, given)}")
        else:
            lines.append(f"the first one of then or later is {self.group} of {self.group_time}, in {self.file_name}")
        return "\n".join([*lines, f"position before it [{self.position}]", *self.notes])


def time_start(log: LogEngine, given: GivenTime, *, passes: bool = False) -> TimeStart:
    """Where a log passes a time; with `passes` the first group that is newer.

    Raises:
        ConfigurationError: the log begins later.
        StoreError: there is nothing in it, or it cannot be read.
        FormatError, ClassicFormatError: a file is damaged.
    """
    second = math.floor(given.seconds) + 1 if passes else math.ceil(given.seconds)
    found = find_time(log, second)
    if found is None:
        raise StoreError("there is no transaction in this log, so it has no time")
    if given.seconds < found.first:
        raise ConfigurationError(f"time {given} is before this log, which begins at {shown_time(found.first, given)}")
    return TimeStart(
        given=given,
        position=found.state.position(),
        group=found.group,
        group_time=None if found.group_time is None else shown_time(found.group_time, given),
        file_name=log.file_name(found.position.file_no),
        found=found,
        notes=tuple(step_notes(found, given)),
    )


def step_notes(found: TimeFound, given: GivenTime) -> list[str]:
    """What a search has seen of a clock that was set back."""
    return [
        f"note: the times of the log step back by {before.time - after.time} s between {before.gtid} "
        f"({shown_time(before.time, given)}) and {after.gtid}, so this time may come more than once"
        for before, after in found.sets_back
        if before.time - after.time >= STEP_BACK_MIN_S
    ]
