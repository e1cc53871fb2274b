"""Waiting for a binlog to grow: one look at the directory serves every replica at its end."""

from __future__ import annotations

import logging
from collections.abc import Callable

import trio

from ibbmaster.errors import IbbMasterError

log = logging.getLogger(__name__)

DAMAGE_PERIOD_S = 1.0  # between two looks at a log whose end cannot be read
POLL_PERIOD_S = 0.02  # how late a waiting replica may notice a group that another process wrote


class Follower:
    """Tells those who wait that the durable end has moved.

    `has_grown` is the engine's look at the disk. It runs in a worker thread, and only
    while somebody waits.
    """

    def __init__(self, has_grown: Callable[[], bool]) -> None:
        self._has_grown = has_grown
        self._waiting = 0
        self._somebody_waits = trio.Event()
        self._growth = trio.Event()
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
        """Watch the log for ever; run it in a nursery beside the connections."""
        while True:
            if not self._waiting:
                self._somebody_waits = trio.Event()
                await self._somebody_waits.wait()
            try:
                if await trio.to_thread.run_sync(self._has_grown):
                    self.announce()
                await trio.sleep(POLL_PERIOD_S)
            except IbbMasterError as error:
                log.error("cannot look at the end of the log: %s", error)
                self.announce()  # whoever reads there shall meet the same, and tell its replica
                await trio.sleep(DAMAGE_PERIOD_S)

    def announce(self) -> None:
        """Wake everybody who waits: the log has grown."""
        self.generation += 1
        self._growth.set()
        self._growth = trio.Event()
