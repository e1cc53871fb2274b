"""Threads for statements: few, so that dumps have the processors, and not all of them for one account."""

from collections.abc import Callable
from typing import TypeVar, cast

import trio

from ibbmaster.work import BrokenOffError, Work, doing

THREADS_MAX = 4
THREADS_OF_AN_ACCOUNT = 3
THREADS_OF_AN_ADMINISTRATOR = 2  # besides: no other account can hold them
ENDING_S = 1.0  # for work that is broken off to notice that

Returned = TypeVar("Returned")


class Workers:
    """No dump uses these threads."""

    def __init__(self) -> None:
        self._threads = trio.CapacityLimiter(THREADS_MAX)
        self._accounts: dict[
            tuple[str, bool], list[trio.CapacityLimiter]
        ] = {}  # who has logged in: no more than accounts
        self.at_work = 0  # also those that nobody waits for

    async def run(
        self, work: Work, user: str, function: Callable[..., Returned], *args: object, is_admin: bool = False
    ) -> Returned:
        """Call a function in a thread, as a part of this work, at the turn of the account. A cancelled caller does
        not wait for the thread: break the work off as well. Raises BrokenOffError: the work was broken off before
        its turn."""
        limiters = self._accounts.get((user, is_admin))
        if limiters is None:
            if is_admin:
                limiters = [trio.CapacityLimiter(THREADS_OF_AN_ADMINISTRATOR)]
            else:
                limiters = [trio.CapacityLimiter(THREADS_OF_AN_ACCOUNT), self._threads]
            self._accounts[user, is_admin] = limiters
        limiter = cast("trio.CapacityLimiter", _Places(self, limiters, work))
        with doing(work):
            return await trio.to_thread.run_sync(
                _at_work, work, function, args, limiter=limiter, abandon_on_cancel=True
            )

    async def wait_until_idle(self) -> None:
        """Return when no thread works, or soon."""
        with trio.move_on_after(ENDING_S):
            while self.at_work:
                await trio.sleep(0.01)


def _at_work(work: Work, function: Callable[..., Returned], args: tuple[object, ...]) -> Returned:
    with work.at_work():
        return function(*args)


class _Places:
    """In each of several limiters, held until the thread ends, waited for or not."""

    def __init__(self, workers: Workers, limiters: list[trio.CapacityLimiter], work: Work) -> None:
        self._workers = workers
        self._limiters = limiters
        self._work = work

    async def acquire_on_behalf_of(self, borrower: object) -> None:
        work, taken = self._work, list[trio.CapacityLimiter]()
        try:
            with trio.CancelScope() as waiting:
                work.on_break_off = waiting.cancel
                if work.reason is not None:
                    raise BrokenOffError(work.reason)
                for limiter in self._limiters:
                    await limiter.acquire_on_behalf_of(borrower)
                    taken.append(limiter)
            if waiting.cancelled_caught:
                assert work.reason is not None
                raise BrokenOffError(work.reason)
        except BaseException:
            for limiter in taken:
                limiter.release_on_behalf_of(borrower)
            raise
        finally:
            work.on_break_off = lambda: None
        self._workers.at_work += 1

    def release_on_behalf_of(self, borrower: object) -> None:
        self._workers.at_work -= 1
        for limiter in self._limiters:
            limiter.release_on_behalf_of(borrower)
