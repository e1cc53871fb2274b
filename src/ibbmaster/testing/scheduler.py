"""Threads that run one at a time, in an order that a seed decides.

The threads are real ones with a baton between them: who holds it runs until its next lock,
wait or call of the disk, and there the seed says who continues. So a schedule comes back with
its seed alone. `installed` puts locks, conditions, events, threads, clocks and executors of
that kind into the modules that are to be tested, which do not know of it.

With `preempts_inside` a thread may lose the baton between any two bytecodes of the modules
under test, too: that is where a missing lock shows.
"""

from __future__ import annotations

import _thread
import contextlib
import gc
import random
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import FrameType, ModuleType, TracebackType
from typing import Any, Literal

WEIGHTS = (0.01, 0.1, 1.0, 1.0, 10.0)  # how likely a thread is chosen; small ones freeze it for a while
REWEIGH_STEPS = 60  # between two changes of a weight
STAY_CHANCES = (0.0, 0.5, 0.9)  # that a thread continues although it could lose the baton
OPCODES_BETWEEN = (4, 40, 400)  # about so many bytecodes between two chances to lose it inside
STEP_S = 0.001  # of the simulated clock
STEPS_MAX = 200_000  # of one run; more means that somebody runs in circles
TRACE_SIZE = 40


class DeadlockError(AssertionError):
    """Nobody can continue; the text says who waits for what."""


class Ended(BaseException):
    """Unwinds a thread of a run that is over, as a kill would end it."""


class _Runner:
    """One thread under the scheduler."""

    def __init__(self, name: str, function: Callable[[], object]) -> None:
        self.name = name
        self.function = function
        self.baton = _thread.allocate_lock()
        self.baton.acquire()
        self.waits_for = ""
        self.is_ready: Callable[[], bool] | None = None  # None: it can continue
        self.deadline: float | None = None
        self.weight = 1.0
        self.is_done = False
        self.thread: threading.Thread | None = None


class Scheduler:
    """Runs threads one at a time. `now` is its clock, in seconds; `step_count` counts chances to change threads."""

    def __init__(self, rng: random.Random, *, preempts_inside: bool = False) -> None:
        self._rng = rng
        self._stay_chance = rng.choice(STAY_CHANCES)
        self._opcodes_between = rng.choice(OPCODES_BETWEEN) if preempts_inside else 0
        self._runners: list[_Runner] = []
        self._current: _Runner | None = None
        self._over = _thread.allocate_lock()
        self._over.acquire()
        self._is_ending = False
        self._quiet = 0
        self._failure: BaseException | None = None
        self._traced_files: frozenset[str] = frozenset()
        self.now = 1000.0
        self.step_count = 0
        self.at_step: Callable[[], object] = lambda: None  # before each choice; it may raise, or call `end`
        self.trace: deque[str] = deque(maxlen=TRACE_SIZE)  # the last places where the baton could change hands

    # Running --------------------------------------------------------------------------------

    def start(self, name: str, function: Callable[[], object]) -> _Runner:
        """Add a thread; it begins to run when the seed says so."""
        runner = _Runner(name, function)
        self._runners.append(runner)
        runner.thread = threading.Thread(target=self._bootstrap, args=(runner,), name=name, daemon=True)
        runner.thread.start()
        return runner

    def run(self) -> None:
        """Let all threads run, until the last has ended, one has failed, or `end` was called.

        Raises:
            DeadlockError: nobody can continue.
            BaseException: what a thread raised.
        """
        self._hand_over(None)
        self._over.acquire()
        self._is_ending = True
        for runner in list(self._runners):  # one after the other: they unwind
            self._current = runner
            if not runner.is_done:
                runner.baton.release()
            assert runner.thread is not None
            runner.thread.join()
        self._current = None
        if self._failure is not None:
            raise self._failure

    def end(self) -> None:
        """End the run here, as a crash does: no thread makes another step."""
        assert self._current is not None
        self._is_ending = True
        raise Ended

    @property
    def is_over(self) -> bool:
        return self._is_ending

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """No other thread runs meanwhile, whatever is done here."""
        self._quiet += 1
        try:
            yield
        finally:
            self._quiet -= 1

    def pause(self, what: str) -> None:
        """Another thread may run now."""
        if self._current is None or self._quiet:
            return
        self._check_ending()
        self._count(what)
        if self._rng.random() >= self._stay_chance:
            self._switch()

    def wait(self, what: str, is_ready: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Let others run until `is_ready`, or until the time is over; whether it is ready."""
        runner = self._current
        if runner is None or self._quiet:
            if not is_ready() and timeout_s is None:
                raise DeadlockError(f"waits for {what}, and nobody else runs")
            return is_ready()
        self._check_ending()
        self._count(what)
        runner.waits_for, runner.is_ready = what, is_ready
        runner.deadline = None if timeout_s is None else self.now + timeout_s
        try:
            self._switch()
        finally:
            runner.is_ready = runner.deadline = None
        return is_ready()

    def _bootstrap(self, runner: _Runner) -> None:
        runner.baton.acquire()
        try:
            if not self._is_ending:
                if self._opcodes_between:
                    sys.settrace(self._trace_call)
                runner.function()
        except Ended:
            pass
        except BaseException as error:
            if self._failure is None and not self._is_ending:
                self._failure = error
            self._is_ending = True
        finally:
            sys.settrace(None)
            runner.is_done = True
            if self._is_ending:
                with contextlib.suppress(RuntimeError):
                    self._over.release()
            else:
                self._hand_over(runner)

    def _count(self, what: str) -> None:
        runner = self._current
        assert runner is not None
        self.trace.append(f"{runner.name}: {what}")
        self.step_count += 1
        self.now += STEP_S
        if self.step_count > STEPS_MAX:
            raise DeadlockError(f"{STEPS_MAX} steps, and no end; the last: {', '.join(self.trace)}")
        try:
            self.at_step()
        except Ended:
            raise
        except BaseException as error:  # noted here: a generator that it goes through may make another one of it
            self._failure = self._failure or error
            self._is_ending = True
            raise

    def _check_ending(self) -> None:
        if self._is_ending:
            raise Ended

    def _switch(self) -> None:
        runner = self._current
        assert runner is not None
        chosen = self._choose()
        if chosen is runner:
            return
        if chosen is None:
            self._stop_by_deadlock()
        else:
            self._current = chosen
            chosen.baton.release()
        runner.baton.acquire()
        self._check_ending()

    def _hand_over(self, runner: _Runner | None) -> None:
        """Give the baton away, from a thread that has ended or from who began the run."""
        chosen = self._choose()
        if chosen is not None:
            self._current = chosen
            chosen.baton.release()
        elif all(other.is_done for other in self._runners):
            self._current = None
            self._over.release()
        else:
            self._stop_by_deadlock()

    def _stop_by_deadlock(self) -> None:
        waiting = [f"{other.name} waits for {other.waits_for}" for other in self._runners if not other.is_done]
        self._failure = DeadlockError(f"nobody can go on: {', '.join(waiting)}")
        self._is_ending = True
        self._over.release()

    def _choose(self) -> _Runner | None:
        while True:
            if self.step_count % REWEIGH_STEPS == 0:
                for runner in self._runners:
                    runner.weight = self._rng.choice(WEIGHTS)
            found = [runner for runner in self._runners if not runner.is_done and self._can_go_on(runner)]
            if found:
                return self._rng.choices(found, [runner.weight for runner in found])[0]
            deadlines = [runner.deadline for runner in self._runners if runner.deadline is not None]
            if not deadlines:
                return None
            self.now = max(self.now, min(deadlines))

    def _can_go_on(self, runner: _Runner) -> bool:
        if runner.is_ready is None or runner.is_ready():
            return True
        return runner.deadline is not None and self.now >= runner.deadline

    # Between bytecodes ----------------------------------------------------------------------

    def _trace_call(self, frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename not in self._traced_files:
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._trace_opcode

    def _trace_opcode(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "opcode" and not self._quiet and self._rng.random() * self._opcodes_between < 1:
            self.pause(f"{frame.f_code.co_name}:{frame.f_lineno}")
        return self._trace_opcode

    # What the modules under test get --------------------------------------------------------

    @contextlib.contextmanager
    def installed(self, modules: list[ModuleType], *, traced: list[ModuleType] | None = None) -> Iterator[None]:
        """Let these modules use simulated threads and clocks while the context is entered.

        `traced` are those inside which a thread may be preempted.
        """
        replacements: dict[int, object] = {
            id(threading): SimulatedThreading(self),
            id(time): SimulatedTime(self),
            id(ThreadPoolExecutor): lambda *args, **options: SimulatedExecutor(self),
        }
        changed = []
        for module in modules:
            for name, value in list(vars(module).items()):
                if id(value) in replacements:
                    changed.append((module, name, value))
                    setattr(module, name, replacements[id(value)])
        self._traced_files = frozenset(module.__file__ or "" for module in traced or ())
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
    """Stands for the module `threading`."""

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
    """Stands for the module `time`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def monotonic(self) -> float:
        return self._scheduler.now

    time = perf_counter = monotonic

    def sleep(self, seconds: float) -> None:
        self._scheduler.wait("sleep", lambda: False, seconds)


class SimulatedLock:
    """A lock, or one that its owner may take again."""

    def __init__(self, scheduler: Scheduler, *, is_reentrant: bool = False) -> None:
        self._scheduler = scheduler
        self._is_reentrant = is_reentrant
        self._owner: _Runner | None = None
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        scheduler = self._scheduler
        if scheduler.is_over and scheduler._quiet == 0:
            raise Ended
        runner = scheduler._current
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
    """A condition: nobody wakes up whom nobody has notified."""

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
        self._runner: _Runner | None = None

    def start(self) -> None:
        self._runner = self._scheduler.start(self.name, self._function)

    def join(self, timeout: float | None = None) -> None:
        runner = self._runner
        assert runner is not None
        self._scheduler.wait(f"the end of {self.name}", lambda: runner.is_done, timeout)

    def is_alive(self) -> bool:
        return self._runner is not None and not self._runner.is_done


class SimulatedExecutor:
    """A pool of one thread: what is submitted is done in order."""

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
    """A future for which the scheduler waits."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._scheduler = scheduler

    def result(self, timeout: float | None = None) -> object:
        self._scheduler.wait("a result", self.done, timeout)
        return super().result(0)
