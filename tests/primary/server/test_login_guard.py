import contextlib

import pytest
import trio

from ibbmaster.primary.server import login_guard


@pytest.fixture
def guard():
    return login_guard.LoginGuard(trio.current_time)


async def guess(guard, host="10.0.0.1", user="repl"):
    delay = await guard.answer_delay(host, user, is_right=False)
    if delay is None:
        return None
    await trio.sleep(delay)
    return trio.current_time()


async def log_in(guard, host="10.0.0.1", user="repl"):
    begun = trio.current_time()
    if await guard.answer_delay(host, user, is_right=True) is None:
        return None
    return trio.current_time() - begun


@contextlib.asynccontextmanager
async def flooded(guard, host="10.0.0.1", user="repl", *, guessers=100, pause_s=0.0):
    """Somebody guesses in parallel, does not wait for answers, and comes again as soon as there is room."""

    async def guess_on():
        while True:
            if await guard.answer_delay(host, user, is_right=False) is None:
                await trio.sleep(0.5)
            await trio.sleep(pause_s)

    async with trio.open_nursery() as nursery:
        for _ in range(guessers):
            nursery.start_soon(guess_on)
        await trio.sleep(20)
        yield
        nursery.cancel_scope.cancel()


async def test_the_delay_grows_from_the_free_tries_on(guard, autojump_clock):
    delays = [guard.note_wrong("10.0.0.1", "repl") for _ in range(login_guard.FREE_TRIES + 6)]
    assert delays == [0.0] * login_guard.FREE_TRIES + [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    assert (guard.refused, guard.delayed) == (login_guard.FREE_TRIES + 6, 6)
    assert guard.slowed_addresses() == 1


async def test_what_was_wrong_is_forgotten_with_time(guard, autojump_clock):
    for _ in range(1000):
        guard.note_wrong("10.0.0.1", "repl")
    await trio.sleep(login_guard.DECAY_S * (login_guard.COUNT_MAX - login_guard.FREE_TRIES) + 1)
    assert guard.slowed_addresses() == 0
    await trio.sleep(login_guard.DECAY_S * login_guard.FREE_TRIES)
    assert guard.note_wrong("10.0.0.1", "repl") == 0.0


async def test_to_guess_in_parallel_and_not_to_wait_for_answers_gains_little(guard, autojump_clock):
    async with flooded(guard):
        before = guard.refused
        assert before <= login_guard.LOOKS_MAX + login_guard.LOOKS_A_SECOND * 20.1
        await trio.sleep(20)
        assert guard.refused - before == pytest.approx(login_guard.LOOKS_A_SECOND * 20, rel=0.02)


async def test_beside_that_a_right_login_waits_or_is_turned_away_and_others_are_judged_at_once(guard, autojump_clock):
    async with flooded(guard):
        assert await log_in(guard, "10.0.0.2") == 0
        took = [await log_in(guard) for _ in range(100)]
    assert all(each is None or each <= login_guard.WAIT_MAX_S for each in took)


@pytest.mark.parametrize("wrong_before", [1, login_guard.FREE_TRIES + 1, login_guard.COUNT_MAX])
async def test_a_crowd_that_logs_in_at_once_has_no_turns_to_wait_for(guard, autojump_clock, wrong_before):
    for _ in range(wrong_before):
        guard.note_wrong("10.0.0.1", "repl")
    assert [await log_in(guard) for _ in range(1000)] == [0.0] * 1000


async def test_a_hundred_who_guess_from_an_address_keep_no_right_login_of_it_waiting(guard, autojump_clock):
    async with flooded(guard, pause_s=0.5), flooded(guard, user="other", pause_s=0.5):
        for _ in range(100):
            await trio.sleep(0.1)
            assert await log_in(guard) == 0
            assert await log_in(guard, user="new") == 0


async def test_a_wrong_login_tells_no_accounts(autojump_clock):
    async def answers(*known):
        guard = login_guard.LoginGuard(trio.current_time)
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


async def test_an_account_that_is_guessed_from_many_addresses_slows_wrong_answers_everywhere(guard, autojump_clock):
    assert [guard.note_wrong(f"10.0.0.{number}", "repl") for number in range(login_guard.FREE_TRIES + 4)][
        -1
    ] == login_guard.DELAY_MAX_S
    assert guard.note_wrong("10.0.1.1", "other") == 0.0
    assert await log_in(guard, "10.0.1.1") == 0


async def test_what_is_remembered_is_bounded(guard, autojump_clock, monkeypatch):
    monkeypatch.setattr(login_guard, "REMEMBERED_MAX", 10)
    for number in range(100):
        guard.note_wrong(f"10.0.0.{number}", f"user {number}")
        await log_in(guard, f"10.0.0.{number}")
        await guess(guard, f"10.0.0.{number}")
    assert (len(guard._addresses), len(guard._accounts), len(guard._looks)) == (10, 10, 10)


async def test_who_was_wrong_longest_ago_is_forgotten_first(guard, monkeypatch):
    monkeypatch.setattr(login_guard, "REMEMBERED_MAX", 3)
    for number in (1, 2, 3, 1, 4):
        guard.note_wrong(f"10.0.0.{number}", f"user {number}")
    assert list(guard._addresses) == ["10.0.0.3", "10.0.0.1", "10.0.0.4"]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        *(("10.0.0.1", "10.0.0.2", False), ("::ffff:10.0.0.1", "10.0.0.1", True)),
        *(("2001:db8::1", "2001:db8::ffff:2", True), ("2001:db8::1", "2001:db8:0:1::1", False)),
        ("fe80::1%eth0", "fe80::2%eth1", True),
    ],
)
def test_an_address_of_ipv6_counts_as_its_network(one, other, is_same):
    assert (login_guard.address_key(one) == login_guard.address_key(other)) is is_same
