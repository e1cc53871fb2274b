"""Threads that carry out statements: few, so that dumps have the processors, and not all of them for one account."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar, cast

import trio

from ibbmaster.work import Work, doing

THREADS_MAX = 4
THREADS_OF_AN_ACCOUNT = 3
ENDING_S = 1.0  # how long work that is broken off may take to notice, before it is no longer waited for

Returned = TypeVar("Returned")


class Workers:
    """The threads of one primary, which no dump uses."""

    def __init__(self) -> None:
        self._threads = trio.CapacityLimiter(THREADS_MAX)
        self._accounts: dict[str, trio.CapacityLimiter] = {}  # who has logged in: no more than there are accounts

    async def run(self, work: Work, user: str, function: Callable[..., Returned], *args: object) -> Returned:
        """Call a function in a thread, as a part of this work, when it is the account's turn.

        Who is cancelled does not wait for the thread: break the work off, then it will not stay for long.
        """
        account = self._accounts.get(user)
        if account is None:
            account = self._accounts[user] = trio.CapacityLimiter(THREADS_OF_AN_ACCOUNT)
        limiter = cast("trio.CapacityLimiter", _Places((account, self._threads)))
        with doing(work):
            return await trio.to_thread.run_sync(function, *args, limiter=limiter, abandon_on_cancel=True)

    async def wait_until_idle(self) -> None:
        """Return when no thread works any more, or soon."""
        with trio.move_on_after(ENDING_S):
            while self._threads.borrowed_tokens:
                await trio.sleep(0.01)


class _Places:
    """A place in each of several limiters, from before a thread begins until it ends, waited for or not."""

    def __init__(self, limiters: Sequence[trio.CapacityLimiter]) -> None:
        self._limiters = limiters

    async def acquire_on_behalf_of(self, borrower: object) -> None:
        taken: list[trio.CapacityLimiter] = []
        try:
            for limiter in self._limiters:
                await limiter.acquire_on_behalf_of(borrower)
                taken.append(limiter)
        except BaseException:
            for limiter in taken:
                limiter.release_on_behalf_of(borrower)
            raise

    def release_on_behalf_of(self, borrower: object) -> None:
        for limiter in self._limiters:
            limiter.release_on_behalf_of(borrower)


@contextlib.asynccontextmanager
async def watching(call: Callable[[], object], stream: trio.socket.SocketType | None) -> AsyncIterator[None]:
    """Call `call` if the client leaves while the block runs: nothing else reads from its socket then."""
    lost: Exception | None = None
    async with trio.open_nursery() as nursery:
        if stream is not None:
            nursery.start_soon(_watch, call, stream)
        try:
            yield
        except Exception as error:
            lost = error  # a nursery would wrap it
        nursery.cancel_scope.cancel()
    if lost is not None:
        try:
            raise lost
        finally:
            del lost


async def _watch(call: Callable[[], object], stream: trio.socket.SocketType) -> None:
    try:
        if await stream.recv(1, trio.socket.MSG_PEEK):
            return  # it has asked for more already: then it waits for the answers
    except OSError:
        pass
    call()
