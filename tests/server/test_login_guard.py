"""Logins that were wrong: who guesses waits, and nobody else does."""

from __future__ import annotations

import contextlib

import pytest
import trio
import trio.testing

from ibbmaster.server import login_guard
from ibbmaster.server.login_guard import (
    DELAY_MAX_S,
    EARLY_MAX,
    FREE_TRIES,
    JUDGED_MAX,
    WAITING_MAX,
    LoginGuard,
    address_key,
)


@pytest.fixture
def guard():
    return LoginGuard(trio.current_time)


async def guess(guard, host="10.0.0.1", user="repl"):
    """One wrong login of somebody who waits for its answer; when that comes, None if it is turned away."""
    delay = await guard.answer_delay(host, user, is_right=False)
    if delay is None:
        return None
    await trio.sleep(delay)
    return trio.current_time()


async def log_in(guard, host="10.0.0.1", user="repl"):
    """How long a right login takes; None if it is turned away."""
    begun = trio.current_time()
    if await guard.answer_delay(host, user, is_right=True) is None:
        return None
    return trio.current_time() - begun


@contextlib.asynccontextmanager
async def flooded(guard, host="10.0.0.1", user="repl", *, guessers=50):
    """Somebody guesses in parallel, does not wait for answers, and comes again as soon as there is room."""

    async def guess_on():
        while True:
            if await guard.answer_delay(host, user, is_right=False) is None:
                await trio.sleep(0.5)

    for _ in range(login_guard.COUNT_MAX):
        guard.note_wrong(host, user)
    async with trio.open_nursery() as nursery:
        for _ in range(guessers):
            nursery.start_soon(guess_on)
        await trio.sleep(60)
        yield
        nursery.cancel_scope.cancel()


async def test_the_delay_grows_from_the_free_tries_on(guard, autojump_clock):
    delays = [guard.note_wrong("10.0.0.1", "repl") for _ in range(FREE_TRIES + 6)]
    assert delays == [0.0] * FREE_TRIES + [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    assert (guard.refused, guard.delayed) == (FREE_TRIES + 6, 6)
    assert guard.slowed_addresses() == 1


async def test_what_was_wrong_is_forgotten_with_time(guard, autojump_clock):
    for _ in range(1000):
        guard.note_wrong("10.0.0.1", "repl")
    await trio.sleep(login_guard.DECAY_S * (login_guard.COUNT_MAX - FREE_TRIES) + 1)
    assert guard.slowed_addresses() == 0
    await trio.sleep(login_guard.DECAY_S * FREE_TRIES)
    assert guard.note_wrong("10.0.0.1", "repl") == 0.0


async def test_to_guess_in_parallel_and_not_to_wait_for_answers_gains_nothing(guard, autojump_clock):
    async with flooded(guard):
        begun, before = trio.current_time(), guard.refused
        await trio.sleep(200)
        assert (guard.refused - before) / (trio.current_time() - begun) <= JUDGED_MAX / DELAY_MAX_S * 1.1


async def test_who_waits_gets_a_turn_in_order_and_soon_enough(guard, autojump_clock):
    """As many as may wait have all been answered within the longest delay; the rest is turned away at once."""
    for _ in range(20):
        guard.note_wrong("10.0.0.1", "repl")
    for _ in range(JUDGED_MAX):
        await guard.answer_delay("10.0.0.1", "repl", is_right=False)
    took, order = [], []

    async def come(number):
        took.append(await log_in(guard, user=f"new {number}"))
        order.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(WAITING_MAX + 3):
            nursery.start_soon(come, number)
            await trio.testing.wait_all_tasks_blocked()
    assert (order[:3], took[:3]) == ([*range(WAITING_MAX, WAITING_MAX + 3)], [None] * 3)
    assert order[3:] == [*range(WAITING_MAX)]
    assert max(took[3:]) <= DELAY_MAX_S


@pytest.mark.parametrize("wrong_before", [1, FREE_TRIES + 1, login_guard.COUNT_MAX])
async def test_a_crowd_that_logs_in_at_once_has_no_turns_to_wait_for_where_nobody_guesses_now(
    guard, autojump_clock, wrong_before
):
    for _ in range(wrong_before):
        guard.note_wrong("10.0.0.1", "repl")
    times = []

    async def come(number):
        times.append(await log_in(guard, user=f"replica {number}"))

    async with trio.open_nursery() as nursery:
        for number in range(1000):
            nursery.start_soon(come, number)
    assert times == [0.0] * 1000


async def test_others_are_judged_at_once(guard, autojump_clock):
    async with flooded(guard):
        assert await log_in(guard, "10.0.0.2") == 0


async def test_who_has_logged_in_before_is_not_kept_out_by_who_guesses_from_the_same_address(guard, autojump_clock):
    assert await log_in(guard, user="cdc") == 0
    async with flooded(guard):
        assert [await log_in(guard, user="cdc") for _ in range(20)] == [0] * 20
        for _ in range(100):
            assert await log_in(guard, user="new") != 0


async def test_to_guess_the_account_of_such_a_pair_gains_little(guard, autojump_clock):
    """What is looked at early is told early if it is right: so few wrong ones are."""
    assert await log_in(guard, user="cdc") == 0
    for _ in range(20):
        guard.note_wrong("10.0.0.1", "other")
    early = 0
    async with trio.open_nursery() as nursery:
        for _ in range(400):  # each wrong one with a look whether a right one would have been told early
            await trio.sleep(0.1)
            early += guard._is_early((address_key("10.0.0.1"), hash("cdc")), is_right=False)
            nursery.start_soon(guess, guard, "10.0.0.1", "cdc")
    assert 0 < early <= EARLY_MAX * (40 / DELAY_MAX_S + 1)


async def test_a_wrong_login_tells_neither_accounts_nor_who_has_used_them(autojump_clock):
    async def answers(*known):
        guard = LoginGuard(trio.current_time)
        for user in known:
            await log_in(guard, user=user)
        for _ in range(20):
            guard.note_wrong("10.0.0.1", "other")
        begun, seen = trio.current_time(), []

        async def come(number):
            await trio.sleep(number / 10)
            at = await guess(guard, user="cdc")
            seen.append((number, None if at is None else round(at - begun, 6)))

        async with trio.open_nursery() as nursery:
            for number in range(40):
                nursery.start_soon(come, number)
        return sorted(seen)

    assert await answers("cdc") == await answers()


async def test_from_the_address_of_one_who_guesses_one_after_the_other_a_right_login_is_judged_at_once(
    guard, autojump_clock
):
    async with trio.open_nursery() as nursery:

        async def guess_on():
            while True:
                await guess(guard)

        nursery.start_soon(guess_on)
        await trio.sleep(100)
        assert await log_in(guard, user="new") == 0
        nursery.cancel_scope.cancel()


async def test_an_account_that_is_guessed_from_many_addresses_slows_wrong_answers_everywhere(guard, autojump_clock):
    delays = [guard.note_wrong(f"10.0.0.{number}", "repl") for number in range(FREE_TRIES + 4)]
    assert delays[-1] == DELAY_MAX_S
    assert guard.note_wrong("10.0.1.1", "other") == 0.0
    assert await log_in(guard, "10.0.1.1") == 0


async def test_what_is_remembered_is_bounded(guard, autojump_clock, monkeypatch):
    monkeypatch.setattr(login_guard, "REMEMBERED_MAX", 10)
    for number in range(100):
        guard.note_wrong(f"10.0.0.{number}", f"user {number}")
        await log_in(guard, f"10.0.0.{number}")
    assert (len(guard._addresses), len(guard._accounts), len(guard._early)) == (10, 10, 10)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
    ],
)
def test_an_address_of_ipv6_counts_as_its_network(one, other, is_same):
    assert (address_key(one) == address_key(other)) is is_same
