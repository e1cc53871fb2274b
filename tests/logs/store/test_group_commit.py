import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ibbmaster.logs.store.group_commit import GroupCommit
from tests.machinery.events import make_event, new_group
from tests.machinery.simulated_disk import SimulatedDisk
from tests.machinery.stores import new_store


class Works:
    def __init__(self):
        self.may_end = threading.Semaphore(0)
        self.begun = threading.Semaphore(0)
        self.done = 0
        self.errors = []  # raised by the next works
        self.commit = GroupCommit(self)

    def __call__(self):
        self.begun.release()
        self.may_end.acquire()
        self.done += 1
        if self.errors:
            raise self.errors.pop()

    def start(self, wanted, failures=None):

        def run():
            try:
                self.commit.wait(lambda: self.done >= wanted)
            except OSError as error:
                failures.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def until_waiting(self, count):
        while len(self.commit._next) < count:
            threading.Event().wait(0.001)


def test_those_who_come_during_a_work_are_served_by_one_more():
    works = Works()
    threads = [works.start(1)]
    works.begun.acquire()
    threads += [works.start(2) for _ in range(9)]
    works.until_waiting(9)
    works.may_end.release()
    works.begun.acquire()
    threads += [works.start(3) for _ in range(5)]
    works.until_waiting(5)
    works.may_end.release(2)
    for thread in threads:
        thread.join()
    assert works.done == 3


def test_an_error_is_that_of_the_thread_whose_work_it_was_and_the_others_try_again():
    works, failures = Works(), []
    works.errors = [OSError("no")]
    threads = [works.start(2, failures)]
    works.begun.acquire()
    threads += [works.start(2, failures) for _ in range(3)]
    works.until_waiting(3)
    works.may_end.release(2)
    for thread in threads:
        thread.join()
    assert [str(error) for error in failures] == ["no"]
    assert works.done == 2


@pytest.mark.parametrize("others", [0, 1])
def test_who_is_interrupted_while_it_waits_leaves_nobody_behind(others):
    """The main thread waits, gets a signal and goes; all others still come through, and so do those after them."""

    class InterruptedWaitError(Exception):
        pass

    def interrupt(number, frame):
        raise InterruptedWaitError

    works = Works()
    leader = works.start(1)
    works.begun.acquire()
    threads = [works.start(2) for _ in range(others)]
    works.until_waiting(others)

    def send():
        works.until_waiting(others + 1)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

    sender = threading.Thread(target=send)
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        sender.start()
        with pytest.raises(InterruptedWaitError):
            works.commit.wait(lambda: False)
    finally:
        signal.signal(signal.SIGUSR1, before)
    sender.join()
    works.may_end.release(3)
    for thread in (leader, *threads, works.start(2 + others)):
        thread.join()


def test_committers_share_syncs():
    """Sixteen threads with 30 groups each: those whom a sync has served come again before the next one begins."""
    disk = SimulatedDisk()
    with new_store(disk, max_file_bytes=1 << 20, redo_bytes=1 << 20) as store:
        syncs, sync = [], disk.sync

        def sync_and_let_others_run(name):
            syncs.append(name)
            threading.Event().wait(0.0001)
            sync(name)

        disk.sync = sync_and_let_others_run
        start = threading.Barrier(16)

        def feed(domain_id):
            start.wait()
            for seq_no in range(1, 31):
                store.write_direct(*new_group(seq_no, make_event(160, 1, b"x"), domain_id=domain_id))

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(feed, range(16)))
        assert [gtid.seq_no for gtid in store.state()] == [30] * 16
        assert len(syncs) < 16 * 30 / 3
