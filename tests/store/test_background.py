"""What a store does while nobody asks: it becomes durable, is checkpointed, makes files, purges, and forgets."""

from __future__ import annotations

import threading
import time

import pytest

from ibbmaster.errors import StoreError
from ibbmaster.gtid import Gtid
from ibbmaster.ibb.page import PAGE_SIZE
from ibbmaster.ibb.xa import Xid
from ibbmaster.store.background import Background
from ibbmaster.store.binlog_store import BinlogStore
from ibbmaster.store.store_options import Durability, StoreOptions
from ibbmaster.testing.crash import make_event, make_gtid_event
from ibbmaster.testing.simulated_disk import SimulatedDisk

OPTIONS = StoreOptions(durability=Durability.LATER, max_file_bytes=8 * PAGE_SIZE, redo_bytes=1 << 20)


def feed(store, seq_no, size=100):
    gtid = Gtid(domain_id=0, server_id=1, seq_no=seq_no)
    store.write_direct(gtid, make_gtid_event(gtid), [make_event(160, 1, bytes(size))])


def until(condition):
    """Wait for something the background does."""
    deadline = time.monotonic() + 20
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline
        pause.wait(0.005)


def test_what_was_fed_becomes_durable_and_reaches_the_files():
    disk = SimulatedDisk()
    with BinlogStore(disk, OPTIONS) as store, Background(store, period_s=0.02):
        feed(store, 1)
        until(lambda: store.status().durable_lsn >= store.status().lsn)
        until(lambda: store.status().checkpoint_lsn > 8192 and not store.needs_checkpoint())
    again = SimulatedDisk(disk.files())
    assert BinlogStore(again, OPTIONS).replayed_records == 0


def test_the_file_after_the_active_one_is_made_before_it_is_needed():
    with BinlogStore(SimulatedDisk(), OPTIONS) as store, Background(store, period_s=0.02):
        until(lambda: len(store.files()) == 2)
        feed(store, 1, 8 * PAGE_SIZE)
        until(lambda: len(store.files()) == 3)


def test_old_files_are_purged():
    options = StoreOptions(max_file_bytes=8 * PAGE_SIZE, max_total_bytes=32 * PAGE_SIZE, replicas_needed_for_purge=0)
    with BinlogStore(SimulatedDisk(), options) as store, Background(store, period_s=0.02):
        for seq_no in range(1, 100):
            feed(store, seq_no, 9000)
        until(lambda: len(store.files()) <= 4)


def test_an_error_is_said_once_and_the_thread_lives_on(caplog):
    disk = SimulatedDisk()
    with BinlogStore(disk, OPTIONS) as store:

        def refuse(verb, name):
            raise StoreError("planted")

        with Background(store, period_s=0.01):
            feed(store, 1)
            disk.fail = refuse
            until(lambda: store.status().state == "failed")
            until(lambda: "planted" in caplog.text)
            disk.fail = lambda verb, name: None
        assert caplog.text.count("the binlog store has failed") == 1


def in_doubt(size):
    """A crashed store with a large transaction in doubt, and many groups to serve."""
    disk = SimulatedDisk()
    store = BinlogStore(disk, StoreOptions(max_file_bytes=1 << 20, oob_piece_bytes=4096, spill_bytes=4096))
    group = store.open_group()
    for _ in range(size // 4096):
        group.write(make_event(160, 1, bytes(4000)))
    group.prepare_internally(Xid(format_id=1, gtrid=b"large", bqual=b""))
    for seq_no in range(1, 3000):
        feed(store, seq_no, 300)
    store.sync()
    return disk


def groups_per_second(store, seconds):
    place = store.plan_of_file(store.end()[0])
    count, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        reader = store.event_groups(place)
        while (group := reader.next_group()) is not None:
            count += 1
            for _ in group.body:
                pass
    return count / (time.perf_counter() - begun)


@pytest.mark.timeout(600)
def test_forgetting_a_large_transaction_takes_no_more_than_a_fifth_of_the_throughput():
    disk = in_doubt(64 << 20)
    options = StoreOptions(max_file_bytes=1 << 20)
    ratios = []
    for _ in range(7):
        store = BinlogStore(SimulatedDisk(disk.files()), options)
        alone = groups_per_second(store, 0.3)
        with Background(store, period_s=5):
            beside = groups_per_second(store, 0.3)
            assert store.status().in_cleaning == 1, "it was forgotten too early to be measured"
        ratios.append(beside / alone)
        if sorted(ratios)[len(ratios) // 2] >= 0.8 and len(ratios) >= 3:
            return
    pytest.fail(f"throughput beside the forgetting: {ratios}")
