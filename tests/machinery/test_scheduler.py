import random
import sys
from functools import partial

import pytest

from tests.machinery.scheduler import DeadlockError, Scheduler
from tests.machinery.simulated_threads import SimulatedExecutor, SimulatedThreading, SimulatedTime, installed


def run(scheduler, *functions):
    for number, function in enumerate(functions):
        scheduler.start(f"thread {number}", function)
    scheduler.run()


def order_of(seed, *, with_lock=True):
    scheduler = Scheduler(random.Random(seed))
    lock, found = SimulatedThreading(scheduler).Lock(), []

    def work(number):
        if with_lock:
            lock.acquire()
        for step in range(2):
            scheduler.pause("appends")
            found.append((number, step))
        if with_lock:
            lock.release()

    run(scheduler, *(partial(work, number) for number in range(3)))
    return tuple(found)


def test_all_orders_come_the_same_one_of_a_seed_and_a_lock_keeps_threads_apart():
    assert len({order_of(seed) for seed in range(200)}) == 6  # of three threads
    for seed in range(50):
        found = order_of(seed)
        assert found == order_of(seed)
        assert [number for number, _ in found[::2]] == [number for number, _ in found[1::2]]
    assert len({order_of(seed, with_lock=False) for seed in range(500)}) > 30  # of 90


def test_two_threads_that_wait_for_each_other_are_a_deadlock_that_names_them():
    found, said = 0, ""
    for seed in range(100):
        scheduler = Scheduler(random.Random(seed))
        threading = SimulatedThreading(scheduler)
        locks = [threading.Lock(), threading.Lock()]

        def take(first, second):
            with first, second:
                pass

        try:
            run(scheduler, partial(take, *locks), partial(take, *reversed(locks)))
        except DeadlockError as error:
            found += 1
            said = str(error)
    assert 5 < found < 95
    assert "thread 0 waits for a lock, thread 1 waits for a lock" in said


def test_a_condition_wakes_whom_somebody_notifies_and_nobody_else():
    for seed in range(50):
        scheduler = Scheduler(random.Random(seed))
        threading = SimulatedThreading(scheduler)
        condition = threading.Condition()
        values, woken = [], []

        def wait(condition=condition, values=values, woken=woken):
            with condition:
                woken.append(condition.wait_for(lambda: len(values) == 2))

        def notify(condition=condition, values=values):
            for value in range(2):
                with condition:
                    values.append(value)
                    condition.notify_all()

        run(scheduler, wait, wait, notify)
        assert woken == [True, True]

    scheduler = Scheduler(random.Random(0))
    threading = SimulatedThreading(scheduler)
    condition = threading.Condition()

    def wait_for_nobody():
        with condition:
            condition.wait()

    with pytest.raises(DeadlockError, match="thread 0 waits for a notification"):
        run(scheduler, wait_for_nobody)


def test_time_passes_as_fast_as_nobody_works():
    scheduler = Scheduler(random.Random(1))
    time = SimulatedTime(scheduler)
    event, outcomes = SimulatedThreading(scheduler).Event(), []
    began = time.monotonic()

    def wait():
        time.sleep(3600)
        outcomes.append(event.wait(3600))

    run(scheduler, wait)
    assert outcomes == [False]
    assert 7200 <= time.monotonic() - began < 7201


def test_an_executor_does_one_thing_after_the_other_and_hands_errors_on():
    for seed in range(30):
        scheduler, done = Scheduler(random.Random(seed)), []

        def fail():
            raise ValueError("planted")

        def use(scheduler=scheduler, done=done):
            executor = SimulatedExecutor(scheduler)
            results = [executor.submit(done.append, number) for number in range(3)]
            failing = executor.submit(fail)
            with pytest.raises(ValueError, match="planted"):
                failing.result()
            assert [result.result() for result in results] == [None] * 3
            executor.shutdown()

        run(scheduler, use)
        assert done == [0, 1, 2]


def test_a_thread_that_is_preempted_inside_loses_an_update_without_a_lock():
    def count(seed, *, preempts_inside):
        scheduler = Scheduler(random.Random(seed), preempts_inside=preempts_inside)
        module = sys.modules[__name__]
        box = {"count": 0}

        def add():
            for _ in range(20):
                box["count"] += 1

        with installed(scheduler, [], traced=[module]):
            run(scheduler, add, add)
        return box["count"]

    assert {count(seed, preempts_inside=False) for seed in range(20)} == {40}
    assert min(count(seed, preempts_inside=True) for seed in range(20)) < 40


def test_what_a_thread_raises_ends_the_run_and_all_others():
    scheduler = Scheduler(random.Random(1))
    lock, released = SimulatedThreading(scheduler).Lock(), []

    def fail():
        scheduler.pause("fails")
        raise ValueError("planted")

    def wait():
        try:
            with lock:
                scheduler.wait("for ever", lambda: False)
        finally:
            released.append(True)

    with pytest.raises(ValueError, match="planted"):
        run(scheduler, wait, fail)
    assert len(released) <= 1
    assert not lock.locked()
