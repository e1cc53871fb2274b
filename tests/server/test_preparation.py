"""What is done once a primary listens, and what the first dump waits for."""

import sys

import pytest
import trio
import trio.testing

from ibbmaster.errors import StoreError
from ibbmaster.kernel import loading
from ibbmaster.server import preparation
from ibbmaster.server.preparation import WAIT_S, Preparation


class Engine:
    """A log whose end is looked for in a worker thread."""

    def __init__(self, problem: Exception | None = None) -> None:
        self.asked = 0
        self._problem = problem

    def state(self) -> None:
        self.asked += 1
        if self._problem is not None:
            raise self._problem


@pytest.mark.parametrize("problem", [None, StoreError("gone")], ids=["sound", "unreadable"])
async def test_a_primary_with_kernels_finds_the_end_and_imports_what_makes_blocks(problem):
    assert loading.load() is not None
    engine = Engine(problem)
    prepared = Preparation(engine, has_kernels=True, holds_dumps=True)
    await prepared.run()
    assert engine.asked == 1
    assert "ibbmaster.streaming.page_blocks" in sys.modules
    await prepared.wait()


async def test_without_kernels_nothing_is_done_and_nobody_waits():
    engine = Engine()
    prepared = Preparation(engine, has_kernels=False, holds_dumps=True)
    await prepared.run()
    await prepared.wait()
    assert engine.asked == 0


async def test_nobody_waits_for_kernels_that_have_to_be_compiled(monkeypatch):
    monkeypatch.setattr(preparation, "is_cached", lambda *sets: False)
    compiled = trio.Event()
    monkeypatch.setattr(preparation, "load_in_background", lambda *sets: None)
    monkeypatch.setattr(preparation, "wait_for_kernels", lambda *sets: trio.from_thread.run(compiled.wait))
    prepared = Preparation(Engine(), has_kernels=True, holds_dumps=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(prepared.run)
        await prepared.wait()
        assert not compiled.is_set()
        compiled.set()


async def test_a_dump_waits_a_little_and_not_longer(autojump_clock):
    begun = trio.current_time()
    await Preparation(Engine(), has_kernels=True, holds_dumps=True).wait()  # which nobody runs
    assert trio.current_time() - begun == pytest.approx(WAIT_S)


async def test_dumps_that_are_not_held_begin_at_once():
    with trio.fail_after(0):
        await Preparation(Engine(), has_kernels=True, holds_dumps=False).wait()  # which nobody runs


async def test_what_is_walked_while_dumps_begin_ends_between_two_steps():
    assert loading.load() is not None
    steps, ended = [], trio.Event()

    def walk():
        try:
            while True:
                steps.append(len(steps))
                yield
        finally:
            trio.from_thread.run_sync(ended.set)

    prepared = Preparation(Engine(), has_kernels=True, holds_dumps=True, walk=walk)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(prepared.run)
        await prepared.wait()
        while not steps:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert ended.is_set()


async def test_a_walk_that_fails_is_logged_and_harms_nobody(caplog):
    assert loading.load() is not None

    def walk():
        yield
        raise RuntimeError("as the test says")

    prepared = Preparation(Engine(), has_kernels=True, holds_dumps=True, walk=walk)
    await prepared.run()
    await prepared.wait()
    assert "as the test says" in caplog.text
