"""Threads for statements: whose turn it is, and how what is not wanted ends."""

from __future__ import annotations

import socket
import threading

import pytest
import trio

from ibbmaster.server.working import THREADS_MAX, THREADS_OF_AN_ACCOUNT, Workers, watching
from ibbmaster.work import BreakReason, BrokenOffError, Work, check_wanted


def until_broken_off(begun=None):
    if begun is not None:
        trio.from_thread.run_sync(begun)
    wait = threading.Event()
    while True:
        check_wanted()
        wait.wait(0.001)


async def test_one_account_leaves_a_thread_to_others():
    workers, work, begun = Workers(), Work(lambda: 0.0), []
    counted = trio.Event()

    def note():
        begun.append(None)
        if len(begun) == THREADS_OF_AN_ACCOUNT:
            counted.set()

    async def occupy():
        with pytest.raises(BrokenOffError):
            await workers.run(work, "a", until_broken_off, note)

    async with trio.open_nursery() as nursery:
        for _ in range(2 * THREADS_MAX):
            nursery.start_soon(occupy)
        await counted.wait()
        assert await workers.run(Work(lambda: 0.0), "b", lambda: "answered") == "answered"
        assert len(begun) == THREADS_OF_AN_ACCOUNT
        work.break_off(BreakReason.STOPPED)
    await workers.wait_until_idle()


async def test_who_is_cancelled_does_not_wait_but_the_place_stays_taken():
    workers, work, end = Workers(), Work(lambda: 0.0), threading.Event()
    with trio.CancelScope() as scope:
        await workers.run(work, "a", lambda: (trio.from_thread.run_sync(scope.cancel), end.wait()))
    assert scope.cancelled_caught
    assert workers._threads.borrowed_tokens == 1
    end.set()
    await workers.wait_until_idle()
    assert workers._threads.borrowed_tokens == 0


async def test_a_client_that_leaves_is_noticed_while_nobody_reads():
    ours, theirs = socket.socketpair()
    work = Work(lambda: 0.0)
    with ours:
        stream = trio.socket.from_stdlib_socket(ours)
        async with watching(lambda: work.break_off(BreakReason.LEFT), stream):
            theirs.close()
            with pytest.raises(BrokenOffError):
                await Workers().run(work, "a", until_broken_off)


async def test_an_error_inside_comes_out_as_it_is():
    with pytest.raises(BrokenOffError):
        async with watching(lambda: None, None):
            raise BrokenOffError(BreakReason.KILLED)
