"""Work that others may break off: a statement that reads a whole log, or joins large tables. Its starter runs it in a
context with a `Work`; long work calls `check_wanted` a few times a second."""

import contextlib
import enum
import math
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Protocol

LOCK_LOOK_S = 0.1  # between two looks of who waits for a lock


class BreakReason(enum.Enum):
    """Why the work has become useless."""

    KILLED = "it was killed"
    TIMED_OUT = "its time is over"
    TOO_LONG = "it has worked for as long as the server allows"
    STOPPED = "the server is shutting down"
    LEFT = "the client has left"


class BrokenOffError(Exception):
    """The result has become useless. It is no IbbMasterError, so that no code works around it."""

    def __init__(self, reason: BreakReason) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason.value


class Work:
    """One piece of work, which any thread may break off; the first reason stays. `clock` returns growing seconds. It
    may run for `seconds`, without the time it waits for a thread or for its reader."""

    def __init__(self, clock: Callable[[], float], seconds: float = math.inf) -> None:
        self._clock = clock
        self._deadline = self._end = math.inf
        self._seconds_left = seconds
        self.reason: BreakReason | None = None
        self.is_noticed = False  # by a check
        self.on_break_off: Callable[[], object] = lambda: None  # for waiters before its begin

    def break_off(self, reason: BreakReason) -> None:
        """Make `check` raise from now on."""
        if self.reason is None:
            self.reason = reason
        self.on_break_off()

    def limit(self, seconds: float) -> None:
        """Let it run for so long from now on."""
        self._deadline = self._clock() + seconds

    def check(self) -> None:
        """Raises BrokenOffError: it is no longer wanted."""
        if self.reason is None and (now := self._clock()) >= min(self._deadline, self._end):
            self.reason = BreakReason.TIMED_OUT if now >= self._deadline else BreakReason.TOO_LONG
        if self.reason is not None:
            self.is_noticed = True
            raise BrokenOffError(self.reason)

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Spend its time while the block runs."""
        begun = self._clock()
        self._end = begun + self._seconds_left
        try:
            yield
        finally:
            self._seconds_left -= self._clock() - begun
            self._end = math.inf


_current: ContextVar[Work | None] = ContextVar("work", default=None)


@contextlib.contextmanager
def doing(work: Work) -> Iterator[None]:
    """Mark the block, and the worker threads it starts, as this work."""
    token = _current.set(work)
    try:
        yield
    finally:
        _current.reset(token)


def check_wanted() -> None:
    """Raises BrokenOffError: the work that runs here is no longer wanted."""
    work = _current.get()
    if work is not None:
        work.check()


class Lock(Protocol):
    """As `threading.Lock`."""

    def acquire(self, *, timeout: float) -> bool: ...

    def release(self) -> None: ...


@contextlib.contextmanager
def holding(lock: Lock) -> Iterator[None]:
    """Hold a lock that others may hold for long. Raises BrokenOffError: the work here is no longer wanted."""
    while not lock.acquire(timeout=LOCK_LOOK_S):
        check_wanted()
    try:
        yield
    finally:
        lock.release()


def limit_work(seconds: float) -> None:
    """Let the work that runs here run for so long from now on."""
    work = _current.get()
    if work is not None:
        work.limit(seconds)
