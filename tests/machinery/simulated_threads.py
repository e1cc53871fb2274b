"""Locks, conditions, events, threads, executors and clocks of a scheduler, for modules that do not know of it."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import ModuleType, TracebackType
from typing import Any, Literal

from tests.machinery.scheduler import Ended, Runner, Scheduler


@contextlib.contextmanager
def installed(
    scheduler: Scheduler, modules: list[ModuleType], *, traced: list[ModuleType] | None = None
) -> Iterator[None]:
    """Let these modules use simulated threads and clocks; inside the `traced` ones a thread may be preempted."""
    replacements: dict[int, object] = {
        id(threading): SimulatedThreading(scheduler),
        id(time): SimulatedTime(scheduler),
        id(ThreadPoolExecutor): lambda *args, **options: SimulatedExecutor(scheduler),
    }
    changed = []
    for module in modules:
        for name, value in list(vars(module).items()):
            if id(value) in replacements:
                changed.append((module, name, value))
                setattr(module, name, replacements[id(value)])
    scheduler.traced_files = frozenset(module.__file__ or "" for module in traced or ())
    was_enabled = gc.isenabled()
    gc.disable()  # a collection at another moment would be another schedule
    try:
        yield
    finally:
        for module, name, value in changed:
            setattr(module, name, value)
        if was_enabled:
            gc.enable()


class SimulatedThreading:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def __getattr__(self, name: str) -> Any:
        return getattr(threading, name)

    def Lock(self) -> SimulatedLock:  # noqa: N802 - as in `threading`
        return SimulatedLock(self._scheduler)

    def RLock(self) -> SimulatedLock:  # noqa: N802
        return SimulatedLock(self._scheduler, is_reentrant=True)

    def Condition(self, lock: SimulatedLock | None = None) -> SimulatedCondition:  # noqa: N802
        return SimulatedCondition(self._scheduler, lock or self.RLock())

    def Event(self) -> SimulatedEvent:  # noqa: N802
        return SimulatedEvent(self._scheduler)

    def Thread(  # noqa: N802
        self, *, target: Callable[..., object], name: str = "thread", args: tuple[object, ...] = (), daemon: bool = True
    ) -> SimulatedThread:
        return SimulatedThread(self._scheduler, name, lambda: target(*args))


class SimulatedTime:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def monotonic(self) -> float:
        return self._scheduler.now

    time = perf_counter = monotonic

    def sleep(self, seconds: float) -> None:
        self._scheduler.wait("sleep", lambda: False, seconds)


class SimulatedLock:
    def __init__(self, scheduler: Scheduler, *, is_reentrant: bool = False) -> None:
        self._scheduler = scheduler
        self._is_reentrant = is_reentrant
        self._owner: Runner | None = None
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        scheduler = self._scheduler
        if scheduler.is_over and not scheduler.is_quiet:
            raise Ended
        runner = scheduler.current
        if self._depth and self._is_reentrant and self._owner is runner:
            self._depth += 1
            return True
        scheduler.pause("takes a lock")
        if self._depth:
            if not blocking:
                return False
            if not scheduler.wait("a lock", lambda: not self._depth, None if timeout < 0 else timeout):
                return False
        self._owner, self._depth = runner, 1
        return True

    def release(self) -> None:
        if self._scheduler.is_over and self._depth == 0:
            return  # while it unwinds
        if self._depth == 0:
            raise RuntimeError("release of a lock that nobody holds")
        self._depth -= 1
        if not self._depth:
            self._owner = None
            if not self._scheduler.is_over:
                self._scheduler.pause("gives a lock back")

    def locked(self) -> bool:
        return self._depth > 0

    def __enter__(self) -> Literal[True]:
        self.acquire()
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


class SimulatedCondition:
    def __init__(self, scheduler: Scheduler, lock: SimulatedLock) -> None:
        self._scheduler = scheduler
        self._lock = lock
        self._waiters: list[list[bool]] = []
        self.acquire, self.release = lock.acquire, lock.release

    def __enter__(self) -> Literal[True]:
        return self._lock.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        lock = self._lock
        assert lock.locked()
        waiter = [False]
        self._waiters.append(waiter)
        depth, owner, lock._depth, lock._owner = lock._depth, lock._owner, 0, None
        try:
            is_notified = self._scheduler.wait("a notification", lambda: waiter[0], timeout)
        finally:
            self._waiters = [other for other in self._waiters if other is not waiter]
        self._scheduler.wait("the lock of a condition", lambda: not lock._depth)
        lock._depth, lock._owner = depth, owner
        return is_notified

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        deadline = None if timeout is None else self._scheduler.now + timeout
        while not (result := predicate()):
            left = None if deadline is None else deadline - self._scheduler.now
            if left is not None and left <= 0:
                break
            self.wait(left)
        return result

    def notify(self, n: int = 1) -> None:
        for waiter in self._waiters[:n]:
            waiter[0] = True

    def notify_all(self) -> None:
        self.notify(len(self._waiters))


class SimulatedEvent:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        return self._scheduler.wait("an event", lambda: self._is_set, timeout)


class SimulatedThread:
    def __init__(self, scheduler: Scheduler, name: str, function: Callable[[], object]) -> None:
        self._scheduler = scheduler
        self.name = name
        self._function = function
        self._runner: Runner | None = None

    def start(self) -> None:
        self._runner = self._scheduler.start(self.name, self._function)

    def join(self, timeout: float | None = None) -> None:
        runner = self._runner
        assert runner is not None
        self._scheduler.wait(f"the end of {self.name}", lambda: runner.is_done, timeout)

    def is_alive(self) -> bool:
        return self._runner is not None and not self._runner.is_done


class SimulatedExecutor:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._jobs: deque[tuple[_Result, Callable[[], object]]] = deque()
        self._is_closing = False
        self._thread = SimulatedThread(scheduler, "executor", self._work)
        self._thread.start()

    def submit(self, function: Callable[..., object], *args: object) -> _Result:
        result = _Result(self._scheduler)
        self._jobs.append((result, lambda: function(*args)))
        self._scheduler.pause("submits")
        return result

    def shutdown(self) -> None:
        self._is_closing = True
        self._thread.join()

    def _work(self) -> None:
        while True:
            self._scheduler.wait("work", lambda: bool(self._jobs) or self._is_closing)
            if not self._jobs:
                return
            result, job = self._jobs.popleft()
            try:
                result.set_result(job())
            except Exception as error:
                result.set_exception(error)


class _Result(Future[object]):
    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._scheduler = scheduler

    def result(self, timeout: float | None = None) -> object:
        self._scheduler.wait("a result", self.done, timeout)
        return super().result(0)
