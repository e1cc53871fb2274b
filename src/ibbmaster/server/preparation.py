"""What the first dump of a primary would wait for, done once it listens."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Generator

import trio

from ibbmaster.errors import IbbMasterError
from ibbmaster.kernel.loading import is_cached, load_in_background, wait_for_kernels
from ibbmaster.kernel.parts import KernelSet
from ibbmaster.log.interface import LogEngine
from ibbmaster.streaming.shared import import_makers

log = logging.getLogger(__name__)

WAIT_S = 2.0  # of a dump, at most: to load kernels takes some 0.3 s, and to begin without them three times that


class Preparation:
    """Loads the kernels, and finds the end of the log with them: a traditional file has to be walked for it.

    Where it `holds_dumps` they wait for that. Those of `.ibb` files begin at once: the way to their first group is
    short.
    """

    def __init__(
        self,
        engine: LogEngine,
        *,
        has_kernels: bool,
        holds_dumps: bool,
        walk: Callable[[], Generator[None, None, None]] | None = None,
    ) -> None:
        """`walk` is done in a worker thread while dumps begin, in steps, after any of which it may end."""
        self._engine = engine
        self._walk = walk
        self._has_kernels = has_kernels
        self._is_done = trio.Event()
        if not holds_dumps:
            self._is_done.set()

    async def run(self) -> None:
        """Do it; dumps do not wait for kernels that have to be compiled."""
        if self._has_kernels:
            load_in_background(KernelSet.SERVE)
            if not await trio.to_thread.run_sync(is_cached, KernelSet.SERVE):
                self._is_done.set()
            await trio.to_thread.run_sync(self._prepare, abandon_on_cancel=True)
        self._is_done.set()
        if self._has_kernels and self._walk is not None:
            try:
                await trio.to_thread.run_sync(_go_in_steps, self._walk)
            except Exception:  # dumps do without
                log.exception("what is known of the last file is not all that could be")

    async def wait(self) -> None:
        """Until a dump may begin."""
        if not self._is_done.is_set():
            with trio.move_on_after(WAIT_S):
                await self._is_done.wait()

    def _prepare(self) -> None:
        if wait_for_kernels(KernelSet.SERVE) is not None:
            import_makers()
            with contextlib.suppress(IbbMasterError):  # a dump meets it again, and says so
                self._engine.state()


def _go_in_steps(walk: Callable[[], Generator[None, None, None]]) -> None:
    with contextlib.closing(walk()) as steps:
        for _ in steps:
            trio.from_thread.check_cancelled()
