import threading
import time

from ibbmaster.errors import StoreError
from ibbmaster.logs.store.background import Background
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import Durability, StoreOptions
from ibbmaster.storage.ibb.page import PAGE_SIZE
from tests.machinery.simulated_disk import SimulatedDisk
from tests.machinery.stores import feed

OPTIONS = StoreOptions(durability=Durability.LATER, max_file_bytes=8 * PAGE_SIZE, redo_bytes=1 << 20)


def until(condition):
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


def test_the_next_file_is_made_before_it_is_needed_and_old_files_are_purged():
    with BinlogStore(SimulatedDisk(), OPTIONS) as store, Background(store, period_s=0.02):
        until(lambda: len(store.files()) == 2)
        feed(store, [1], 8 * PAGE_SIZE)
        until(lambda: len(store.files()) == 3)
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
