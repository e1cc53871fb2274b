"""The durable end of a log: the part of it that readers may see, and the steps that wait for durability."""

import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.position import LogPosition

PENDING_MAX = 20_000


class LogStep(NamedTuple):
    """One step: the LSN that makes it durable, the end after it, and its effect on the GTID state."""

    lsn: int
    end: LogPosition
    gtids: tuple[Gtid, ...]
    dropped_domain_ids: tuple[int, ...]


class DurableEnd:
    """Thread-safe; its lock is taken last."""

    def __init__(self, mark: LogPosition, state: GtidState) -> None:
        self.mark = mark
        self._state = state.copy()
        self._seen = mark
        self._durable_lsn = 0
        self._pending: deque[LogStep] = deque()
        self._lock = threading.Lock()
        self._growth = threading.Condition(self._lock)
        self._waiting = 0
        self._told: tuple[Callable[[], object], ...] = ()

    @property
    def is_behind(self) -> bool:
        return bool(self._pending)

    @property
    def is_far_behind(self) -> bool:
        return len(self._pending) > PENDING_MAX

    def snapshot(self) -> tuple[LogPosition, GtidState]:
        """The end, and the GTID state there; the caller may keep it."""
        with self._lock:
            return self.mark, self._state.copy()

    def add(self, step: LogStep) -> None:
        """A quick sync of another thread may have made the step durable already."""
        with self._lock:
            self._pending.append(step)
            is_of_interest = step.lsn <= self._durable_lsn or self._waiting
            calls = self._advance() if is_of_interest else ()
        if calls:
            _tell(calls)

    def advance(self, durable_lsn: int) -> None:
        with self._lock:
            self._durable_lsn = durable_lsn
            calls = self._advance()
        if calls:
            _tell(calls)

    def tell(self, call: Callable[[], object]) -> Callable[[], None]:
        """Call this each time the end has moved, without the lock, until the returned function is called."""
        with self._lock:
            self._told += (call,)

        def forget() -> None:
            with self._lock:
                self._told = tuple(each for each in self._told if each is not call)

        return forget

    def _advance(self) -> tuple[Callable[[], object], ...]:
        """Returns the calls to make."""
        before = self.mark
        while self._pending and self._pending[0].lsn <= self._durable_lsn:
            step = self._pending.popleft()
            self.mark = step.end
            for domain_id in step.dropped_domain_ids:
                self._state.drop_domain(domain_id)
            for gtid in step.gtids:
                self._state.log(gtid)
        if self._waiting:
            self._growth.notify_all()
        return self._told if self.mark != before else ()

    def restart(self, mark: LogPosition, state: GtidState) -> None:
        with self._lock:
            self.mark, self._state = mark, state.copy()
            self._growth.notify_all()
            told = self._told
        _tell(told)

    def wait(self, timeout_s: float, is_hopeless: Callable[[], bool]) -> None:
        """Wait until the end has moved since `has_moved`, or something waits to become durable that can."""
        with self._growth:
            self._waiting += 1
            try:
                self._growth.wait_for(
                    lambda: self.mark != self._seen or (self.is_behind and not is_hopeless()), timeout_s
                )
            finally:
                self._waiting -= 1

    def has_moved(self) -> bool:
        with self._lock:
            moved, self._seen = self.mark != self._seen, self.mark
            return moved


def _tell(calls: tuple[Callable[[], object], ...]) -> None:
    for call in calls:
        call()
