"""The leader syncs for all who wait, and its followers are released in turn.

Threads that come meanwhile wait for the next work, whose leader begins once all who were released have had time to come
again. So batches are as large as can be, and a thread is woken once a batch, by the one before it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class _Waiter:
    """A thread before its own gate, which opens with `is_served`: whether a leader has worked for it."""

    __slots__ = ("batch", "gate", "is_served")

    def __init__(self, batch: deque[_Waiter]) -> None:
        self.batch = batch
        self.gate = threading.Lock()
        self.gate.acquire()
        self.is_served: bool | None = None


class GroupCommit:
    """Threads that need the same `work`, which one of them at a time does."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._lock = threading.Lock()  # never held while the work is done
        self._next: deque[_Waiter] = deque()  # who came since the last work began
        self._is_led = False

    def wait(self, is_done: Callable[[], bool]) -> None:
        """Return once `is_done`, after a work that this thread or another one has begun since. Raises the error of the
        work in the thread that does it; others then try it themselves."""
        while not is_done():
            with self._lock:
                waiter = _Waiter(self._next) if self._is_led else None
                if waiter is None:
                    self._is_led = True
                else:
                    self._next.append(waiter)
            if waiter is None or not self._is_served(waiter):
                self._lead()

    def _is_served(self, waiter: _Waiter) -> bool:
        """False if this thread is the next leader."""
        try:
            waiter.gate.acquire()
        except BaseException:  # a signal
            with self._lock:
                if waiter.is_served is None:
                    waiter.batch.remove(waiter)
                else:
                    self._open_next(waiter.batch if waiter.is_served else deque())
            raise
        if waiter.is_served:
            with self._lock:
                self._open_next(waiter.batch)
            return True
        return False

    def _lead(self) -> None:
        with self._lock:
            batch, self._next = self._next, deque()
        try:
            self._work()
        finally:
            with self._lock:
                self._open_next(batch)

    def _open_next(self, served: deque[_Waiter]) -> None:
        """After the last one that was served, one of those who came since leads."""
        batch = served or self._next
        if batch:
            waiter = batch.popleft()
            waiter.is_served = batch is served
            waiter.gate.release()
        else:
            self._is_led = False
