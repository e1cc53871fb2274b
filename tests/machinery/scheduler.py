"""Threads that run one at a time, in an order that a seed decides.

The threads are real ones with a baton between them: who holds it runs until its next lock, wait or call of the disk,
and there the seed says who continues. So a schedule comes back with its seed alone.

With `preempts_inside` a thread may lose the baton between any two bytecodes of the modules under test, too: that is
where a missing lock shows.
"""

import _thread
import contextlib
import random
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

WEIGHTS = (0.01, 0.1, 1.0, 1.0, 10.0)  # how likely a thread is chosen; small ones freeze it for a while
REWEIGH_STEPS = 60  # between two changes of a weight
STAY_CHANCES = (0.0, 0.5, 0.9)  # that a thread continues although it could lose the baton
OPCODES_BETWEEN = (4, 40, 400)  # about this many bytecodes between two chances to lose it inside
STEP_S = 0.001  # of the simulated clock
STEPS_MAX = 200_000  # of one run; more means that a thread runs in circles
TRACE_SIZE = 40


class DeadlockError(AssertionError):
    """No thread can continue; the text says which waits for what."""


class Ended(BaseException):
    """Unwinds a thread of a run that is over, as a kill would end it."""


class Runner:
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
        self._runners: list[Runner] = []
        self._over = _thread.allocate_lock()
        self._over.acquire()
        self.is_over = False
        self._quiet_count = 0
        self._failure: BaseException | None = None
        self.current: Runner | None = None  # who has the baton
        self.traced_files: frozenset[str] = frozenset()  # inside whose code a thread may lose it
        self.now = 1000.0
        self.step_count = 0
        self.at_step: Callable[[], object] = lambda: None  # before each choice; it may raise, or call `end`
        self.trace: deque[str] = deque(maxlen=TRACE_SIZE)  # the last places where the baton could change hands

    def start(self, name: str, function: Callable[[], object]) -> Runner:
        runner = Runner(name, function)
        self._runners.append(runner)
        runner.thread = threading.Thread(target=self._bootstrap, args=(runner,), name=name, daemon=True)
        runner.thread.start()
        return runner

    def run(self) -> None:
        """Let all threads run until the last has ended, one has failed, or `end` was called.

        Raises DeadlockError: no thread can continue. Raises what a thread raised."""
        self._hand_over(None)
        self._over.acquire()
        self.is_over = True
        for runner in list(self._runners):  # one after the other: they unwind
            self.current = runner
            if not runner.is_done:
                runner.baton.release()
            assert runner.thread is not None
            runner.thread.join()
        self.current = None
        if self._failure is not None:
            raise self._failure

    def end(self) -> None:
        assert self.current is not None
        self.is_over = True
        raise Ended

    @property
    def is_quiet(self) -> bool:
        return self._quiet_count > 0

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        self._quiet_count += 1
        try:
            yield
        finally:
            self._quiet_count -= 1

    def pause(self, what: str) -> None:
        if self.current is None or self._quiet_count:
            return
        self._check_ending()
        self._count(what)
        if self._rng.random() >= self._stay_chance:
            self._switch()

    def wait(self, what: str, is_ready: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Let others run until `is_ready`, or until the time is over; whether it is ready."""
        runner = self.current
        if runner is None or self._quiet_count:
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

    def _bootstrap(self, runner: Runner) -> None:
        runner.baton.acquire()
        try:
            if not self.is_over:
                if self._opcodes_between:
                    sys.settrace(self._trace_call)
                runner.function()
        except Ended:
            pass
        except BaseException as error:
            if self._failure is None and not self.is_over:
                self._failure = error
            self.is_over = True
        finally:
            sys.settrace(None)
            runner.is_done = True
            if self.is_over:
                with contextlib.suppress(RuntimeError):
                    self._over.release()
            else:
                self._hand_over(runner)

    def _count(self, what: str) -> None:
        runner = self.current
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
            self.is_over = True
            raise

    def _check_ending(self) -> None:
        if self.is_over:
            raise Ended

    def _switch(self) -> None:
        runner = self.current
        assert runner is not None
        chosen = self._choose()
        if chosen is runner:
            return
        if chosen is None:
            self._stop_by_deadlock()
        else:
            self.current = chosen
            chosen.baton.release()
        runner.baton.acquire()
        self._check_ending()

    def _hand_over(self, runner: Runner | None) -> None:
        chosen = self._choose()
        if chosen is not None:
            self.current = chosen
            chosen.baton.release()
        elif all(other.is_done for other in self._runners):
            self.current = None
            self._over.release()
        else:
            self._stop_by_deadlock()

    def _stop_by_deadlock(self) -> None:
        waiting = [f"{other.name} waits for {other.waits_for}" for other in self._runners if not other.is_done]
        self._failure = DeadlockError(f"nobody can go on: {', '.join(waiting)}")
        self.is_over = True
        self._over.release()

    def _choose(self) -> Runner | None:
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

    def _can_go_on(self, runner: Runner) -> bool:
        if runner.is_ready is None or runner.is_ready():
            return True
        return runner.deadline is not None and self.now >= runner.deadline

    def _trace_call(self, frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename not in self.traced_files:
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._trace_opcode

    def _trace_opcode(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "opcode" and not self._quiet_count and self._rng.random() * self._opcodes_between < 1:
            self.pause(f"{frame.f_code.co_name}:{frame.f_lineno}")
        return self._trace_opcode
