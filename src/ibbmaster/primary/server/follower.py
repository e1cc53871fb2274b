"""Waiting for a log to grow: one look at its directory serves every replica at its end."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable

import trio

from ibbmaster.errors import IbbMasterError
from .dumping import LogEnd

log = logging.getLogger(__name__)

DAMAGE_PERIOD_S = 1.0  # between two looks at a log whose end cannot be read
WAIT_S = 0.1  # in a worker thread, before asking whether a dump still waits
QUIET_WAITS = 10  # without growth, before an unfinished end is reported


class Follower:
    """`wait_for_growth` and `tell_growth` are the engine's: the first runs in a worker thread while a dump waits, the
    second calls from any thread after growth. `unfinished` names an incomplete end, to be logged once after a quiet
    while."""

    def __init__(
        self,
        log_end: LogEnd,
        wait_for_growth: Callable[[float], bool],
        tell_growth: Callable[[Callable[[], object]], Callable[[], None] | None] = lambda call: None,
        unfinished: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._log_end = log_end
        self._wait_for_growth = wait_for_growth
        self._tell_growth = tell_growth
        self._unfinished = unfinished
        self._limiter = trio.CapacityLimiter(1)  # its own: other work in threads does not delay it

    async def run(self) -> None:
        token = trio.lowlevel.current_trio_token()

        def tell() -> None:
            if self._log_end.is_read:
                with contextlib.suppress(trio.RunFinishedError):
                    token.run_sync_soon(self._log_end.announce, idempotent=True)

        stop_telling = self._tell_growth(tell)
        try:
            await self._watch(is_told=stop_telling is not None)
        finally:
            if stop_telling is not None:
                stop_telling()

    async def _watch(self, *, is_told: bool) -> None:
        told, told_unfinished, quiet_waits = "", "", 0
        while True:
            await self._log_end.wait_until_awaited()
            try:
                has_grown = await trio.to_thread.run_sync(self._wait_for_growth, WAIT_S, limiter=self._limiter)
                told = ""
                quiet_waits = 0 if has_grown else quiet_waits + 1
                if quiet_waits >= QUIET_WAITS and (text := self._unfinished()) and text != told_unfinished:
                    told_unfinished = text
                    log.warning("%s", text)
                if has_grown and not is_told:
                    self._log_end.announce()
            except IbbMasterError as error:
                if told != str(error):
                    told = str(error)  # once, however long it lasts
                    log.error("cannot look at the end of the log: %s", error)
                self._log_end.announce()  # the reader there reports it to its replica
                await trio.sleep(DAMAGE_PERIOD_S)
