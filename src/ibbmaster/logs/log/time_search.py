"""Finds where a log passes a time: halves files, then the ranges of one, then reads group by group. docs/playing.md
says what that means where groups are not in the order of their times."""

import datetime
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from ibbmaster.errors import ConfigurationError, StoreError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.header import decode_event_header
from .interface import LogEngine, LogFile, groups_from
from .locating import plan_before
from .log_range import LogRange

STEP_BACK_MIN_S = 2.0  # a statement that began earlier is no clock that was set back
SAMPLE = 9  # groups at a place, the middle time of which counts
_Place = TypeVar("_Place", LogFile, LogRange)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


class GivenTime(NamedTuple):
    seconds: float  # since 1970
    moment: datetime.datetime
    is_local: bool  # no zone was given

    def __str__(self) -> str:
        return f"{self.moment.isoformat(' ')}{' (local time)' if self.is_local else ''}"


def parse_time(where: str, text: str) -> GivenTime:
    """Read a time; `where` is for the error. Raises ConfigurationError: it is none, or a date alone."""
    try:
        moment = datetime.datetime.fromisoformat(text.strip())
        is_local = moment.tzinfo is None
        moment = moment.astimezone() if is_local else moment
        return GivenTime(moment.timestamp(), moment, is_local)
    except (ValueError, OverflowError, OSError):
        raise ConfigurationError(f"{where} {text[:60]!r}: expected a time, as '2026-01-31 12:00:00+01:00'") from None


def is_time(text: str) -> bool:
    return ":" in text


def is_date(text: str) -> bool:
    """Whether a text that reads as a GTID was perhaps meant as a day."""
    return _DATE.fullmatch(text.strip()) is not None


def shown_time(seconds: float, like: GivenTime) -> str:
    try:
        return datetime.datetime.fromtimestamp(seconds, like.moment.tzinfo).isoformat(" ")
    except (OverflowError, OSError, ValueError):
        return f"{seconds:g} s since 1970"


class TimeStep(NamedTuple):
    """An examined place: its first group, that one's time, and the median of the times there, in seconds since 1970."""

    gtid: Gtid
    position: LogPosition
    first_time: int
    time: int


class TimeFound(NamedTuple):
    """Where a log passes a time. `group` is the first that is not older, None without one: then `position` is the end
    of the log. `state` is what is logged before it; `first` and `last` are the times of the first group and the last
    examined one. `sets_back` has steps followed by older groups."""

    group: Gtid | None
    group_time: int | None
    position: LogPosition
    state: GtidState
    first: int
    last: int
    steps: tuple[TimeStep, ...]
    sets_back: tuple[tuple[TimeStep, TimeStep], ...]


def find_time(log: LogEngine, time: int) -> TimeFound | None:
    """Where the log passes a time in seconds since 1970, if it has any. Reads some groups of each place of a binary
    search, and all headers of one range. Raises FormatError, ClassicFormatError, StoreError."""
    narrowed, begins = log.around(time)
    found = _Search(narrowed, time).found()
    return found if found is None or begins is None else found._replace(first=min(found.first, begins))


@dataclass(slots=True)
class _Search:
    log: LogEngine
    time: int
    steps: dict[LogPosition, TimeStep] = field(default_factory=dict)

    def found(self) -> TimeFound | None:
        files = [file for file in self.log.files() if file.size]
        first = next(filter(None, map(self._look, files)), None)  # a log may begin with files without groups
        if first is None:
            return None
        number = self._last_older(files)
        begin = self.log.start_of_file(files[number].file_no).position
        ranges = self.log.ranges(begin, self._end_of(files, number), size=1)
        start = ranges[self._last_older(ranges)] if ranges else None
        place = begin if start is None else LogPosition(start.file_no, start.start_offset)
        last_time = first.time
        for group in self._groups_from(place):
            last_time = _time_of(group)
            if last_time >= self.time:
                return self._answer(first, group, last_time)
        return self._answer(first, None, last_time)

    def _end_of(self, files: Sequence[LogFile], number: int) -> LogPosition:
        end = self.log.end()
        if number + 1 < len(files):  # which may be ready and not used yet
            return min(end, self.log.start_of_file(files[number + 1].file_no).position._replace(offset=0))
        return end

    def _last_older(self, places: Sequence[_Place]) -> int:
        """0 where the first ones are not."""
        low, high = 0, len(places)
        while high - low > 1:
            middle = probe = (low + high) // 2
            step = self._look(places[probe])
            while step is None and probe + 1 < high:  # no group begins there
                probe += 1
                step = self._look(places[probe])
            if step is None or step.time >= self.time:
                high = middle
            else:
                low = probe
        return low

    def _look(self, place: LogFile | LogRange) -> TimeStep | None:
        if isinstance(place, LogRange):
            groups = self.log.groups_in(place)
        else:
            number = place.file_no
            of_log = groups_from(self.log, self.log.start_of_file(number))
            groups = itertools.takewhile(lambda group: group.start.file_no == number, of_log)
        found = [(group.gtid, group.start, _time_of(group)) for group in itertools.islice(_named(groups), SAMPLE)]
        if not found:
            return None
        gtid, position, first_time = found[0]
        assert gtid is not None
        times = sorted(time for *_, time in found)
        step = self.steps[position] = TimeStep(
            gtid=gtid, position=position, first_time=first_time, time=times[len(times) // 2]
        )
        return step

    def _groups_from(self, place: LogPosition) -> Iterator[EventGroup]:
        for one in self.log.ranges(place, self.log.end(), size=1):
            yield from _named(self.log.groups_in(one))

    def _answer(self, first: TimeStep, group: EventGroup | None, last: int) -> TimeFound:
        steps = tuple(self.steps[place] for place in sorted(self.steps))
        return TimeFound(
            group=None if group is None else group.gtid,
            group_time=None if group is None else last,
            position=self.log.end() if group is None else group.start,
            state=self.log.state() if group is None else self._state_before(group),
            first=first.first_time,
            last=max(last, *(step.time for step in steps)),
            steps=steps,
            sets_back=tuple(pair for pair in itertools.pairwise(steps) if pair[1].time < pair[0].time),
        )

    def _state_before(self, found: EventGroup) -> GtidState:
        gtid, position = found.gtid, found.start
        assert gtid is not None
        plan = plan_before(self.log, gtid)
        if plan.position > position:  # its numbers were given before
            plan = self.log.start_of_file(position.file_no)
        state = plan.state.copy()
        for group in groups_from(self.log, plan):
            if group.start >= position:
                break
            if group.gtid is not None:
                state.log(group.gtid)
        return state


def _named(groups: Iterator[EventGroup]) -> Iterator[EventGroup]:
    return (group for group in groups if group.gtid is not None)


def _time_of(group: EventGroup) -> int:
    return decode_event_header(group.gtid_event).timestamp


class TimeStart(NamedTuple):
    """The first group that is not older than a time, if any, and the position before it; `notes` of clocks set back."""

    given: GivenTime
    position: GtidPosition
    group: Gtid | None
    group_time: str | None
    file_name: str
    found: TimeFound
    notes: tuple[str, ...]

    def explain(self) -> str:
        given = self.given
        lines = [f"time {given}", *(f"  {step.gtid}: {shown_time(step.time, given)}" for step in self.found.steps)]
        if self.group is None:
            lines.append(f"every transaction is older: the log ends at {shown_time(self.found.last, given)}")
        else:
            lines.append(f"the first one of then or later is {self.group} of {self.group_time}, in {self.file_name}")
        return "\n".join([*lines, f"position before it [{self.position}]", *self.notes])


def time_start(log: LogEngine, given: GivenTime, *, passes: bool = False) -> TimeStart:
    """Where a log passes a time; with `passes` the first group that is newer. Raises ConfigurationError: the log begins
    later; StoreError: it is empty or unreadable; FormatError, ClassicFormatError: a file is damaged."""
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
    return [
        f"note: the times of the log step back by {before.time - after.time} s between {before.gtid} "
        f"({shown_time(before.time, given)}) and {after.gtid}, so this time may come more than once"
        for before, after in found.sets_back
        if before.time - after.time >= STEP_BACK_MIN_S
    ]
