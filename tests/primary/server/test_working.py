import contextlib
import threading

import pytest
import trio
import trio.testing

from ibbmaster.primary.server.working import THREADS_MAX, THREADS_OF_AN_ACCOUNT, Workers
from ibbmaster.work import BreakReason, BrokenOffError, Work, check_wanted


def until_broken_off(begun=None):
    if begun is not None:
        trio.from_thread.run_sync(begun)
    wait = threading.Event()
    while True:
        check_wanted()
        wait.wait(0.001)


@contextlib.asynccontextmanager
async def held(*users, threads):
    """Workers of whose threads accounts hold so many, as far as they may, and how many have begun."""
    workers, work, begun, all_held = Workers(), Work(lambda: 0.0), [], trio.Event()

    def note():
        begun.append(None)
        if len(begun) == threads:
            all_held.set()

    async def occupy(user):
        with pytest.raises(BrokenOffError):
            await workers.run(work, user, until_broken_off, note)

    async with trio.open_nursery() as nursery:
        for user in users:
            nursery.start_soon(occupy, user)
        await all_held.wait()
        yield workers
        assert len(begun) == threads
        work.break_off(BreakReason.STOPPED)
    await workers.wait_until_idle()
    assert workers.at_work == 0


async def test_one_account_leaves_a_thread_to_others():
    async with held(*"a" * 2 * THREADS_MAX, threads=THREADS_OF_AN_ACCOUNT) as workers:
        assert await workers.run(Work(lambda: 0.0), "b", lambda: "answered") == "answered"


async def test_who_is_cancelled_does_not_wait_but_the_place_stays_taken():
    workers, work, end = Workers(), Work(lambda: 0.0), threading.Event()
    with trio.CancelScope() as scope:
        await workers.run(work, "a", lambda: (trio.from_thread.run_sync(scope.cancel), end.wait()))
    assert scope.cancelled_caught
    assert workers.at_work == 1
    end.set()
    await workers.wait_until_idle()
    assert workers.at_work == 0


async def test_who_waits_for_a_turn_no_longer_waits_once_the_work_is_not_wanted(nursery):
    waiting = Work(lambda: 0.0)

    async def kill():
        await trio.testing.wait_all_tasks_blocked()
        waiting.break_off(BreakReason.KILLED)

    async with held(*"a" * THREADS_OF_AN_ACCOUNT, threads=THREADS_OF_AN_ACCOUNT) as workers:
        nursery.start_soon(kill)
        with pytest.raises(BrokenOffError, match="it was killed"):
            await workers.run(waiting, "a", pytest.fail)


async def test_an_administrator_has_threads_that_others_cannot_hold():
    async with held(*("a", "b") * THREADS_MAX, threads=THREADS_MAX) as workers:
        assert await workers.run(Work(lambda: 0.0), "admin", lambda: "answered", is_admin=True) == "answered"


async def test_work_has_its_time_while_it_is_at_work_and_not_while_its_client_reads():
    now = 0.0
    workers, work = Workers(), Work(lambda: now, 5.0)

    def take(seconds):
        nonlocal now
        now += seconds
        check_wanted()

    for _ in range(4):
        await workers.run(work, "a", take, 1.0)
        now += 100
    with pytest.raises(BrokenOffError, match="for as long as the server allows"):
        await workers.run(work, "a", take, 1.5)
