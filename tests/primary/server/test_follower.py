import threading

import pytest
import trio
import trio.testing

from ibbmaster.errors import StoreError
from ibbmaster.primary.server import follower
from ibbmaster.primary.server.dumping import LogEnd
from ibbmaster.primary.server.follower import Follower


class Log:
    """Grows when it is told to; counts the waits for that, and how many were at once."""

    def __init__(self):
        self._may_return = threading.Semaphore(0)
        self.waits = 0
        self.at_once = 0
        self.error = None

    def wait_for_growth(self, timeout_s):
        self.waits += 1
        self.at_once += 1
        assert self.at_once == 1
        self._may_return.acquire()
        self.at_once -= 1
        if self.error is not None:
            raise self.error
        return True

    def grow(self):
        self._may_return.release()


class Waiting:
    """A dump that waits, and wakes up when the log has grown."""

    sink, has_stage, sequence = None, False, 0

    def __init__(self):
        self._is_awake = trio.Event()

    def lead(self, place, missed):
        self._is_awake.set()

    def wake_up(self, missed, rest=None):
        self._is_awake.set()

    async def wait(self, log_end):
        log_end.join(self, None)
        await self._is_awake.wait()


@pytest.fixture
async def followed(nursery):
    log = Log()
    log_end = LogEnd()
    nursery.start_soon(Follower(log_end, log.wait_for_growth).run)
    yield log, log_end
    log.grow()


@pytest.mark.parametrize("replicas", [1, 300])
async def test_growth_wakes_everybody_with_one_look(followed, nursery, replicas):
    log, log_end = followed
    woken = []

    async def wait():
        await Waiting().wait(log_end)
        woken.append(log_end.generation)

    await trio.testing.wait_all_tasks_blocked()
    assert log.waits == 0  # nobody waits, nobody looks
    for _ in range(replicas):
        nursery.start_soon(wait)
    while not log.at_once:
        await trio.sleep(0)
    log.grow()
    while len(woken) < replicas:
        await trio.sleep(0)
    assert woken == [1] * replicas
    assert log.waits == 1 + log.at_once  # it may have begun to wait again, and does so once at most


async def test_threads_of_others_are_no_reason_to_look_late(followed, nursery, monkeypatch):
    log, log_end = followed
    busy = threading.Semaphore(0)
    limiter = trio.to_thread.current_default_thread_limiter()
    monkeypatch.setattr(limiter, "total_tokens", 3)
    for _ in range(3):
        nursery.start_soon(trio.to_thread.run_sync, busy.acquire)
    while limiter.available_tokens:
        await trio.sleep(0)
    log.grow()
    await Waiting().wait(log_end)
    assert log_end.generation == 1
    busy.release(3)


async def test_who_waits_is_woken_to_meet_what_is_wrong_with_the_log(followed, monkeypatch, caplog):
    monkeypatch.setattr(follower, "DAMAGE_PERIOD_S", 0)
    log, watched = followed
    log.error = StoreError("the disk is gone")
    log.grow()
    await Waiting().wait(watched)
    assert "cannot look at the end of the log: the disk is gone" in caplog.text
    log.error = None


async def test_a_log_that_tells_of_growth_is_heard_at_once_from_any_thread_and_once_for_many(nursery):
    heard, woken, may_return = [], [], threading.Event()

    def tell_growth(call):
        heard.append(call)
        return heard.clear

    def wait_for_growth(timeout_s):
        return may_return.wait(60)  # what the worker thread would say comes too late

    log_end = LogEnd()
    followed = Follower(log_end, wait_for_growth, tell_growth)
    scope, ended = trio.CancelScope(), trio.Event()

    async def run():
        with scope:
            await followed.run()
        ended.set()

    async def wait():
        await Waiting().wait(log_end)
        woken.append(log_end.generation)

    nursery.start_soon(run)
    await trio.testing.wait_all_tasks_blocked()
    await trio.to_thread.run_sync(heard[0])
    await trio.testing.wait_all_tasks_blocked()
    assert log_end.generation == 0  # no dump runs: nobody wants to know
    with log_end.reading():
        assert log_end.generation == 1  # what an earlier dump knew of the end is void
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        call = heard[0]
        for _ in range(100):
            call()  # before the event loop has a turn
        await trio.to_thread.run_sync(lambda: None)
        await trio.testing.wait_all_tasks_blocked()
        assert woken == [2]
    scope.cancel()
    may_return.set()
    await ended.wait()
    assert heard == []


async def test_what_is_unfinished_at_a_quiet_end_is_logged_once(nursery, caplog):
    said, asked = ["half an event"], trio.Event()

    def unfinished():
        if len(said) == 2:
            asked.set()
        said.append(said[-1])
        return said[-1]

    log_end = LogEnd()
    nursery.start_soon(Follower(log_end, lambda _: False, unfinished=unfinished).run)
    await trio.testing.wait_all_tasks_blocked()
    assert not caplog.text  # nobody waits
    nursery.start_soon(Waiting().wait, log_end)
    await asked.wait()
    while len(said) < 9:
        await trio.sleep(0)
    said.append("half of another")
    while len(said) < 15:
        await trio.sleep(0)
    assert [record.message for record in caplog.records] == ["half an event", "half of another"]
    log_end.announce()
