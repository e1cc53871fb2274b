"""One thread works for all who wait: the leader syncs, and those who follow are released together.

Who comes while a leader works waits for the next work. Its leader begins once all who were
released have gone on and had time to come again: so batches are as large as they can be, and
a thread is woken once a batch, by the one before it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class _Batch:
    """Threads that wait behind one gate; who gets through opens it for the next."""

    __slots__ = ("gate", "is_released", "waiting")

    def __init__(self) -> None:
        self.gate = threading.Lock()
        self.gate.acquire()
        self.waiting = 0
        self.is_released = False  # else whom the gate lets through is a leader


class GroupCommit:
    """Threads that need the same work done; `work` is done by one of them at a time."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._lock = threading.Lock()  # held for a few steps only, never while the work is done
        self._next = _Batch()  # those who came since the last work began
        self._is_led = False

    def wait(self, is_done: Callable[[], bool]) -> None:
        """Return once `is_done`, after a work that this thread or another one has begun since.

        Raises what the work raises, in the thread that does it; others then try it themselves.
        """
        while not is_done():
            if self._is_leader():
                self._lead()

    def _is_leader(self) -> bool:
        """Join; False once a leader has worked for this thread."""
        with self._lock:
            if not self._is_led:
                self._is_led = True
                return True
            batch = self._next
            batch.waiting += 1
        try:
            batch.gate.acquire()
        except BaseException:  # a signal: this thread waits no longer
            with self._lock:
                batch.waiting -= 1
                if not batch.waiting and not batch.gate.locked():  # it was the one that was let through
                    self._next = _Batch() if batch is self._next else self._next
                    self._appoint()
            raise
        with self._lock:
            batch.waiting -= 1
            if not batch.is_released:
                return True
            self._release(batch)
        return False

    def _lead(self) -> None:
        with self._lock:
            batch, self._next = self._next, _Batch()
        try:
            self._work()
        finally:
            with self._lock:
                batch.is_released = True
                self._release(batch)

    def _release(self, batch: _Batch) -> None:
        """Let the next one through, or have the next leader; under the lock."""
        if batch.waiting:
            batch.gate.release()
        else:
            self._appoint()

    def _appoint(self) -> None:
        """Let one of those who wait lead, or who comes next; under the lock."""
        if self._next.waiting:
            self._next.gate.release()
        else:
            self._is_led = False
