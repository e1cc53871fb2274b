"""What a store does while nobody asks: it becomes durable, is checkpointed, makes files, purges, and forgets."""

import random
import threading
import time
from types import SimpleNamespace

from ibbmaster.errors import StoreError
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.ibb.xa import Xid
from ibbmaster.store.background import Background
from ibbmaster.store.binlog_store import BinlogStore
from ibbmaster.store.in_doubt import NODES_PER_STEP
from ibbmaster.store.store_options import Durability, StoreOptions
from tests.machinery.events import make_event
from tests.machinery.simulated_disk import SimulatedDisk
from tests.machinery.stores import feed

OPTIONS = StoreOptions(durability=Durability.LATER, max_file_bytes=8 * PAGE_SIZE, redo_bytes=1 << 20)


def until(condition):
    """Wait for something the background does."""
    deadline = time.monotonic() + 200  # a busy machine
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline
        pause.wait(0.005)


def test_what_was_fed_becomes_durable_and_reaches_the_files():
    disk = SimulatedDisk()
    with BinlogStore(disk, OPTIONS) as store, Background(store, period_s=0.02):
        feed(store, [1], 100)
        until(lambda: store.status().durable_lsn >= store.status().lsn)
        until(lambda: store.status().checkpoint_lsn > 8192 and not store.needs_checkpoint())
    assert BinlogStore(SimulatedDisk(disk.files()), OPTIONS).replayed_records == 0


def test_the_file_after_the_active_one_is_made_before_it_is_needed():
    with BinlogStore(SimulatedDisk(), OPTIONS) as store, Background(store, period_s=0.02):
        until(lambda: len(store.files()) == 2)
        feed(store, [1], 8 * PAGE_SIZE)
        until(lambda: len(store.files()) == 3)


def test_old_files_are_purged():
    options = StoreOptions(max_file_bytes=8 * PAGE_SIZE, max_total_bytes=32 * PAGE_SIZE, replicas_needed_for_purge=0)
    with BinlogStore(SimulatedDisk(), options) as store, Background(store, period_s=0.02):
        feed(store, range(1, 100), 9000)
        until(lambda: len(store.files()) <= 4)


def test_an_error_is_said_once_and_the_thread_lives_on(caplog):
    disk = SimulatedDisk()
    with BinlogStore(disk, OPTIONS) as store:

        def refuse(verb, name):
            raise StoreError("planted")

        with Background(store, period_s=0.01):
            feed(store, [1], 100)
            disk.fail = refuse
            until(lambda: store.status().state == "failed")
            until(lambda: "planted" in caplog.text)
            disk.fail = lambda verb, name: None
        assert caplog.text.count("the binlog store has failed") == 1


class ClockedStore:
    """A store with nothing to do but to forget, whose steps take the time the test says; waiting takes what it asks."""

    def __init__(self, steps):
        self.now = 0.0
        self.took = []
        self.waited = 0.0
        self._steps = iter(steps)
        self.is_done = threading.Event()
        self.wake = self

    def clean_step(self):
        step = next(self._steps, None)
        if step is None:
            self.is_done.set()
            return False
        self.now += step
        self.took.append(step)
        return True

    def wait(self, seconds):
        self.now += seconds
        self.waited += seconds

    def needs_checkpoint(self):
        return False

    def status(self):
        return SimpleNamespace(lsn=0)

    def nothing(self, **given):
        pass

    clear = set = write_pages = prepare_next_file = sync = purge_automatically = checkpoint = nothing


def test_forgetting_a_large_transaction_takes_no_more_than_a_fifth_of_the_time():
    rng = random.Random(7)
    store = ClockedStore([rng.uniform(0.001, 0.02) for _ in range(500)])
    with Background(store, period_s=1, clock=lambda: store.now):
        assert store.is_done.wait(300)
    assert len(store.took) == 500
    assert sum(store.took) <= 0.2 * (sum(store.took) + store.waited) + max(store.took)


def test_a_step_of_forgetting_is_small():
    disk = SimulatedDisk()
    store = BinlogStore(disk, StoreOptions(max_file_bytes=1 << 20, oob_piece_bytes=4096, spill_bytes=4096))
    group = store.open_group()
    for _ in range(1000):
        group.write(make_event(160, 1, bytes(4000)))
    group.prepare_internally(Xid(format_id=1, gtrid=b"large", bqual=b""))
    store.sync()
    again, steps = BinlogStore(disk, store.options), 0
    while again.status().in_cleaning:
        again.clean_step()
        steps += 1
    assert steps >= 1000 / NODES_PER_STEP
