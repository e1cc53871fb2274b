"""Plays a recording as a log that grows: each group is logged when it is due.

So all readers see the same moment of the recording, late ones get what was logged meanwhile, and the end of the log,
heartbeats and SHOW MASTER STATUS are as on a primary then."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ibbmaster.errors import ConfigurationError, IbbMasterError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.logs.log.interface import EventGroups, LogEngine, LogFile, OnFault, PassedGroups, ReadPlan
from ibbmaster.logs.log.log_range import LogRange
from ibbmaster.position import LogPosition
from ibbmaster.replication.event.format_description import ChecksumAlgorithm
from ibbmaster.replication.event.group import EventGroup
from ibbmaster.replication.event.header import decode_event_header
from .repeated_log import RepeatedLog

_FACTOR = re.compile(r"[x×](\d{1,6}(?:\.\d{1,6})?)|(\d{1,6}(?:\.\d{1,6})?)[x×]", re.ASCII | re.IGNORECASE)
ADVANCE_MAX = 10_000  # groups logged at once: no call takes long at any pace


class Pace(NamedTuple):
    """How fast a recording is played: `factor` times as fast, infinitely fast, or step by step (0)."""

    factor: float

    @classmethod
    def parse(cls, text: str) -> Pace:
        """Read `original`, `x10`, `max` or `step`. Raises ConfigurationError: it is none of them."""
        named = {"original": 1.0, "max": math.inf, "step": 0.0}
        if text in named:
            return cls(factor=named[text])
        match = _FACTOR.fullmatch(text.strip())
        if match is None or float(match[1] or match[2]) <= 0:
            raise ConfigurationError(f"pace {text[:60]!r}: expected original, max, step, or a factor as x10 or x0.5")
        return cls(factor=float(match[1] or match[2]))

    @property
    def is_stepped(self) -> bool:
        return self.factor == 0

    @property
    def is_unlimited(self) -> bool:
        return math.isinf(self.factor)

    def due(self, begun_at: float, first_time: float, time: float) -> float:
        if self.is_stepped:
            return math.inf
        return begun_at + max(0.0, time - first_time) / self.factor


class _Played(LogEngine):
    _log: LogEngine

    def file_name(self, file_no: int) -> str:
        return self._log.file_name(file_no)

    def files(self) -> list[LogFile]:
        last_file_no = self.end().file_no
        return [file for file in self._log.files() if file.file_no <= last_file_no]

    def seek(self, position: GtidPosition, *, only_cached: bool = False) -> ReadPlan:
        return self._log.seek(position, only_cached=only_cached)

    def start_of_file(self, file_no: int | None = None) -> ReadPlan:
        return self._log.start_of_file(file_no)

    def ranges(self, start: LogPosition, end: LogPosition, *, size: int) -> list[LogRange]:
        return self._log.ranges(start, min(end, self.end()), size=size)


class PlayedLog(_Played):
    """A played part of a log that is over. Thread-safe. At infinite speed all of it is logged at once; each round of an
    endless one once a reader has reached the end of the one before. `clock` is monotonic, in seconds; with
    `starts_when_read` it counts from the first reader of groups on."""

    def __init__(
        self, log: LogEngine, pace: Pace, clock: Callable[[], float], *, starts_when_read: bool = False
    ) -> None:
        self._log = log
        self._pace = pace
        self._clock = clock
        self._lock = threading.Lock()
        self._stepped = threading.Event()
        plan = log.start_of_file()
        self._ahead = log.groups(plan)
        self._next: EventGroup | None = None
        self._next_time = 0  # the newest: a clock that went back stops no player
        self._first_time: int | None = None
        self._state = plan.state.copy()
        self.logged_end = plan.position  # as `end`, where it was last; quick
        self.failure: IbbMasterError | None = None  # why it is over, unless all was played
        self._begun_at = None if starts_when_read else clock()
        self._rounds = 0
        self._steps = 0
        self._seen = plan.position  # by who waits
        self.count = 0  # groups logged so far, one by one
        self.was_read = False
        self.last_gtid: Gtid | None = None  # of the newest group; None where all is logged at once
        self.last_time: int | None = None  # its time in the recording, in seconds since 1970
        self._is_over = False
        if not pace.is_unlimited:
            self._look_ahead()

    def _look_ahead(self) -> None:
        try:
            group = self._ahead.next_group()
        except IbbMasterError as error:
            self.failure, group = error, None
        self._next = group
        if group is None:
            self._is_over = True
            return
        if group.gtid is not None:
            time = decode_event_header(group.gtid_event).timestamp
            self._next_time = max(self._next_time, time)
            if self._first_time is None:
                self._first_time = time

    def advance(self) -> bool:
        """Log what is due, or much of it; returns whether that is anything."""
        with self._lock:
            if self._pace.is_unlimited:
                return self._begun_at is not None and not self._rounds and self._log_round()
            before = self.count
            while self._next is not None and self.count - before < ADVANCE_MAX and self._is_due():
                group = self._next
                self.logged_end = group.end
                self.count += 1
                if group.gtid is not None:
                    self._state.log(group.gtid)
                    self.last_gtid, self.last_time = group.gtid, self._next_time
                    self._steps = max(0, self._steps - 1)
                self._look_ahead()
            return self.count != before

    def _log_round(self) -> bool:
        """Log the next round at once, or all if they have an end; False without one."""
        log = self._log
        if self._is_over:
            return False
        if isinstance(log, RepeatedLog):
            round_no = self._rounds if log.is_endless else log.last_round_no
            log.note_round(round_no)
            self.logged_end, self._state = log.end_of_round(round_no), log.state_after_round(round_no)
            self._is_over = round_no == log.last_round_no
            self.failure = log.end_error if self._is_over else None
            self._rounds = round_no + 1
            self.count = self._rounds * log.round_count
        else:
            self.logged_end, self._state, self._is_over = log.end(), log.state(), True
            self._rounds = 1
        return True

    def _is_due(self) -> bool:
        if self._begun_at is None:
            return False
        assert self._next is not None
        if self._next.gtid is None:
            return True
        return self._steps > 0 if self._pace.is_stepped else self._clock() >= self._due()

    def _due(self) -> float:
        assert self._begun_at is not None
        return self._pace.due(self._begun_at, float(self._first_time or 0), float(self._next_time))

    def start(self) -> None:
        with self._lock:
            if self._begun_at is None:
                self._begun_at = self._clock()
        self._stepped.set()

    def step(self, count: int = 1) -> None:
        """Let that many groups be due, if played step by step."""
        with self._lock:
            self._steps += count
        self._stepped.set()

    @property
    def is_over(self) -> bool:
        self.advance()
        return self._is_over

    def close(self) -> None:
        self._ahead.close()
        self._log.close()

    def end(self, *, only_cached: bool = False) -> LogPosition:
        self.advance()
        return self.logged_end

    def state(self, *, only_cached: bool = False) -> GtidState:
        self.advance()
        with self._lock:
            return self._state.copy()

    def groups(self, plan: ReadPlan) -> PlayedGroups:
        self.was_read = True
        self.start()
        return PlayedGroups(self, self._log.groups(plan))

    def groups_in(self, log_range: LogRange, *, on_fault: OnFault | None = None) -> Iterator[EventGroup]:
        for group in self._log.groups_in(log_range, on_fault=on_fault):
            if group.start >= self.logged_end:
                return
            yield group

    @property
    def with_past(self) -> LogEngine:
        past = self._log.with_past
        return self if past is self._log else PlayedPast(self, past)

    @property
    def checksum_algorithm(self) -> ChecksumAlgorithm | None:
        return getattr(self._log, "checksum_algorithm", None)

    def has_after(self, position: LogPosition) -> bool:
        """Whether a group after a place is logged. Raises IbbMasterError: reading has failed."""
        while position >= self.logged_end:
            if not self.advance():
                with self._lock:
                    if position < self.logged_end or not (self._rounds and self._log_round()):
                        break
        if position >= self.logged_end and self.failure is not None:
            raise self.failure
        return position < self.logged_end

    def wait_for_growth(self, timeout_s: float) -> bool:
        self.advance()
        if self.logged_end == self._seen and not self._is_over:
            self._stepped.clear()
            with self._lock:
                left = timeout_s if self._begun_at is None or self._next is None else self._due() - self._clock()
            self._stepped.wait(max(0.0, min(timeout_s, left)))
            self.advance()
        has_grown, self._seen = self.logged_end != self._seen, self.logged_end
        return has_grown


class PlayedPast(_Played):
    def __init__(self, played: PlayedLog, log: LogEngine) -> None:
        self._played = played
        self._log = log

    def close(self) -> None: ...

    def end(self, *, only_cached: bool = False) -> LogPosition:
        return self._played.end()

    def state(self, *, only_cached: bool = False) -> GtidState:
        return self._played.state()

    def groups(self, plan: ReadPlan) -> PlayedGroups:
        return PlayedGroups(self._played, self._log.groups(plan))

    def groups_in(self, log_range: LogRange, *, on_fault: OnFault | None = None) -> Iterator[EventGroup]:
        for group in self._log.groups_in(log_range, on_fault=on_fault):
            if not self._played.has_after(group.start):
                return
            yield group

    def wait_for_growth(self, timeout_s: float) -> bool:
        return self._played.wait_for_growth(timeout_s)


class PlayedGroups(PassedGroups):
    def __init__(self, log: PlayedLog, groups: EventGroups) -> None:
        super().__init__(groups)
        self._log = log

    @property
    def files_end(self) -> LogPosition | None:
        end = super().files_end
        return self._log.logged_end if end is None else min(end, self._log.logged_end)

    def next_group(self) -> EventGroup | None:
        return self._groups.next_group() if self._log.has_after(self.position) else None
