"""Waiting for a binlog to grow: one look at the directory serves every replica at its end."""

from __future__ import annotations

import logging
from collections.abc import Callable

import trio

from ibbmaster.errors import IbbMasterError

log = logging.getLogger(__name__)

DAMAGE_PERIOD_S = 1.0  # between two looks at a log whose end cannot be read
WAIT_S = 0.1  # in a worker thread, before looking whether anybody waits still


class Follower:
    """Tells those who wait that the durable end has moved.

    `wait_for_growth` is the engine's. It runs in a worker thread, and only while somebody
    waits.
    """

    def __init__(self, wait_for_growth: Callable[[float], bool]) -> None:
        self._wait_for_growth = wait_for_growth
        self._waiting = 0
        self._somebody_waits = trio.Event()
        self._growth = trio.Event()
        self._limiter = trio.CapacityLimiter(1)  # its own: what others do in threads is no reason to be late
        self.generation = 0

    async def wait_for_growth(self, generation: int) -> None:
        """Return once the log has grown since `generation` was read from `self.generation`.

        Read the generation before you look for the next group, so that growth between
        that look and this call is not missed.
        """
        while self.generation == generation:
            self._waiting += 1
            self._somebody_waits.set()
            try:
                await self._growth.wait()
            finally:
                self._waiting -= 1

    async def run(self) -> None:
        """Watch the log forever; run it in a nursery beside the connections."""
        while True:
            if not self._waiting:
                self._somebody_waits = trio.Event()
                await self._somebody_waits.wait()
            try:
                if await trio.to_thread.run_sync(self._wait_for_growth, WAIT_S, limiter=self._limiter):
                    self.announce()
            except IbbMasterError as error:
                log.error("cannot look at the end of the log: %s", error)
                self.announce()  # whoever reads there shall meet the same, and tell its replica
                await trio.sleep(DAMAGE_PERIOD_S)

    def announce(self) -> None:
        """Wake everybody who waits: the log has grown."""
        self.generation += 1
        self._growth.set()
        self._growth = trio.Event()
