"""Waiting for a binlog to grow: one look at the directory serves every replica at its end."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator

import trio

from ibbmaster.errors import IbbMasterError
from ibbmaster.server.crowd import Crowds

log = logging.getLogger(__name__)

DAMAGE_PERIOD_S = 1.0  # between two looks at a log whose end cannot be read
WAIT_S = 0.1  # in a worker thread, before looking whether anybody waits still
QUIET_WAITS = 10  # without growth: what is unfinished then is reported


class Follower:
    """Serves those who wait when the durable end has moved.

    `wait_for_growth` and `tell_growth` are the engine's. The first runs in a worker thread, and
    only while a dump waits. Where the engine reports growth itself, this comes here from
    the thread that made it durable, once for all that has become durable meanwhile. `unfinished`
    says what stands at the end that is not whole: it is logged once, when nothing more has come for a while.
    """

    def __init__(
        self,
        wait_for_growth: Callable[[float], bool],
        tell_growth: Callable[[Callable[[], object]], Callable[[], None] | None] = lambda call: None,
        unfinished: Callable[[], str | None] = lambda: None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_over` says whether a dump at the end of the log is to end, because nothing more comes."""
        self.is_over = is_over
        self._wait_for_growth = wait_for_growth
        self._tell_growth = tell_growth
        self._unfinished = unfinished
        self._told_unfinished: str | None = None
        self._readers = 0
        self._waiting = 0
        self._somebody_waits = trio.Event()
        self._limiter = trio.CapacityLimiter(1)  # its own: what others do in threads is no reason to be late
        self.generation = 0
        """How often the log has grown: what was found at its end before is void. Read it before you look there."""
        self.crowds = Crowds()
        """Who wait, and get what is new."""

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Have the log watched, while a dump waits among the crowds."""
        self._waiting += 1
        self._somebody_waits.set()
        try:
            yield
        finally:
            self._waiting -= 1

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """A dump runs: from now on growth is of interest, whether or not one waits just then. Growth while none ran was
        not announced: what an earlier dump knew of the end is void."""
        if not self._readers:
            self.announce()
        self._readers += 1
        try:
            yield
        finally:
            self._readers -= 1

    async def run(self) -> None:
        """Watch the log forever; run it in a nursery beside the connections."""
        token = trio.lowlevel.current_trio_token()

        def tell() -> None:
            if self._readers:
                with contextlib.suppress(trio.RunFinishedError):
                    token.run_sync_soon(self.announce, idempotent=True)

        stop_telling = self._tell_growth(tell)
        try:
            await self._watch(is_told=stop_telling is not None)
        finally:
            if stop_telling is not None:
                stop_telling()

    async def _watch(self, *, is_told: bool) -> None:
        told = ""
        quiet_waits = 0
        while True:
            if not self._waiting:
                self._somebody_waits = trio.Event()
                await self._somebody_waits.wait()
            try:
                has_grown = await trio.to_thread.run_sync(self._wait_for_growth, WAIT_S, limiter=self._limiter)
                told = ""
                quiet_waits = 0 if has_grown else quiet_waits + 1
                if quiet_waits >= QUIET_WAITS:
                    self._tell_unfinished()
                if has_grown and not is_told:
                    self.announce()
            except IbbMasterError as error:
                if told != str(error):
                    told = str(error)  # once, however long it lasts
                    log.error("cannot look at the end of the log: %s", error)
                self.announce()  # a reader there shall meet the same, and report it to its replica
                await trio.sleep(DAMAGE_PERIOD_S)

    def _tell_unfinished(self) -> None:
        text = self._unfinished()
        if text is not None and text != self._told_unfinished:
            self._told_unfinished = text
            log.warning("%s", text)

    def announce(self) -> None:
        """The log has grown: send that to all that wait, or wake them."""
        self.generation += 1
        if self.crowds:
            self.crowds.grow(self.generation, wakes_all=self._ends_dumps())

    def _ends_dumps(self) -> bool:
        try:
            return self.is_over()
        except Exception:  # each dump meets it when it is awake
            return True
