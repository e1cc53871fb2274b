"""One task watches all sockets that wait for a client, and calls their handlers: waking a task takes as long as most
answers, and a replica waits for over a dozen before its dump.
"""

from __future__ import annotations

import contextlib
import functools
import select
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import trio

HANDLED_AT_ONCE = 64  # sockets, before other tasks have their turn: some milliseconds

Handler = Callable[[], bool]
"""Reads from a socket, without waiting; returns whether it is done with it."""


@dataclass(slots=True, eq=False)
class _Watched:
    handle: Handler
    end: Callable[[], object]  # called when it is done
    failure: Exception | None = None


class Reactor:
    def __init__(self) -> None:
        self._sockets: select.epoll | None = None  # while it runs
        self._watched: dict[int, _Watched] = {}  # by descriptor

    def __len__(self) -> int:
        return len(self._watched)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        with select.epoll() as sockets:
            self._sockets = sockets
            task_status.started()
            try:
                while True:
                    await trio.lowlevel.wait_readable(sockets.fileno())
                    for descriptor, _ in sockets.poll(0, HANDLED_AT_ONCE):
                        self._handle(descriptor)
            finally:
                self._sockets = None

    async def wait(self, descriptor: int, handle: Handler) -> None:
        """Call `handle` while there is something to read, until it is done. Raises Exception: as `handle`."""
        watched = self._add(
            descriptor, handle, functools.partial(trio.lowlevel.reschedule, trio.lowlevel.current_task())
        )

        def cancel(_: Callable[[], Any]) -> trio.lowlevel.Abort:
            self._remove(descriptor)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(cancel)
        if watched.failure is not None:
            raise watched.failure

    @contextlib.contextmanager
    def watching(self, descriptor: int, handle: Handler, end: Callable[[], object]) -> Iterator[None]:
        """While the block runs, call `handle` as `wait` does, and `end` when it is done. Raises Exception: as
        `handle`."""
        watched = self._add(descriptor, handle, end)
        try:
            yield
        finally:
            if self._watched.get(descriptor) is watched:
                self._remove(descriptor)
            if watched.failure is not None:  # and the block was left because of it
                raise watched.failure

    def hear_only_of_the_end(self, descriptor: int) -> None:
        """From now on call the handler only when the client or the network ends the connection."""
        assert self._sockets is not None, "it does not run"
        self._sockets.modify(descriptor, select.EPOLLRDHUP)

    def _add(self, descriptor: int, handle: Handler, end: Callable[[], object]) -> _Watched:
        assert self._sockets is not None, "it does not run"
        watched = self._watched[descriptor] = _Watched(handle, end)
        self._sockets.register(descriptor, select.EPOLLIN)
        return watched

    def _handle(self, descriptor: int) -> None:
        watched = self._watched.get(descriptor)
        if watched is None:
            return  # one that was handled before has ended it
        try:
            is_done = watched.handle()
        except Exception as error:  # of this connection alone
            watched.failure, is_done = error, True
        if is_done and self._watched.get(descriptor) is watched:  # else it was cancelled meanwhile
            self._remove(descriptor)
            watched.end()

    def _remove(self, descriptor: int) -> None:
        del self._watched[descriptor]
        if self._sockets is not None:
            self._sockets.unregister(descriptor)
