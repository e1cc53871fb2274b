import random
from dataclasses import replace

import pytest

from ibbmaster.errors import GtidOrderError, StoreError
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import Durability, StoreOptions
from ibbmaster.storage.ibb.page import DATA_SIZE, PAGE_SIZE
from tests.machinery.events import make_event, new_group
from tests.machinery.simulated_disk import SimulatedDisk
from tests.machinery.stores import SMALL_FILES
from tests.machinery.workload import Oracle, Workload, options_of

SIZES = {"spill_bytes": 20_000, "max_file_bytes": 6 * PAGE_SIZE, "redo_bytes": 1 << 18}
OPTIONS = replace(SMALL_FILES, durability=Durability.LATER, **SIZES)
OVERHEAD = 3 + 1 + 38 + 19  # bytes that a group takes besides the body of its one event


class CountedStore(BinlogStore):
    def __init__(self, disk, options):
        super().__init__(disk, options)
        self.short_count = 0
        inside = self._writer._append_inside

        def counted(record, gtid, group):
            ticket = inside(record, gtid, group)
            self.short_count += ticket is not None
            return ticket

        self._writer._append_inside = counted


class LongWayStore(BinlogStore):
    def __init__(self, disk, options):
        super().__init__(disk, options)
        self._writer._append_inside = lambda record, gtid, group: None


def left_by(store, disk):
    writer = store._writer
    return {
        "written": disk.files(),
        "durable": disk.durable_files(),
        "status": store.status(),
        "buffered": b"".join(writer.redo._buffer),
        "state": writer.appender.state,
        "differential": writer.appender.differential,
        "pages": {
            key: (bytes(page.data), page.end, page.lsn, page.needs_image) for key, page in writer.fifo._pages.items()
        },
        "pending": list(writer.durable._pending),
        "visible": store.state(),
        "limits": vars(writer.limits),
        "held files": list(writer.open_groups.values()),
    }


def twins(options=OPTIONS):
    disks = SimulatedDisk(), SimulatedDisk()
    return disks, (CountedStore(disks[0], options), LongWayStore(disks[1], options))


def feed(store, seq_no, size, *, domain_id=0, server_id=1):
    return store.write_direct_ordered(
        *new_group(seq_no, make_event(160, 1, bytes([seq_no % 251]) * size), domain_id=domain_id, server_id=server_id)
    )


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_done_with_a_log_both_ways_leave_the_same(seed):
    kinds, options = (CountedStore, LongWayStore), options_of(random.Random(seed))
    works = [
        Workload(SimulatedDisk(), random.Random(seed), options, oracle=Oracle(), make_store=kind) for kind in kinds
    ]
    for _ in range(150):
        for work in works:
            work.step_at_random()
        short, long = (left_by(work.store, work.disk) for work in works)
        assert short == long, works[0].log


def test_a_group_that_came_in_pieces_holds_nothing_once_it_went_the_short_way():
    disks, stores = twins()
    for store in stores:
        feed(store, 1, 100)
        for seq_no, sizes in ((2, [100]), (3, [100, 30_000, 20_000]), (4, [])):
            group = store.open_group()
            for size in sizes:
                group.write(make_event(160, 1, bytes(size)))
            group.commit_ordered(*new_group(seq_no)[:2])
    assert left_by(stores[0], disks[0]) == left_by(stores[1], disks[1])
    assert stores[0].short_count == 3
    assert not stores[0]._writer.open_groups


def test_most_small_commits_go_the_short_way():
    _, (store, _) = twins()
    for seq_no in range(1, 201):
        feed(store, seq_no, 100)
    assert store.short_count > 190


@pytest.mark.parametrize("left", range(-6, 8))
def test_a_record_that_ends_where_its_page_does_or_nearly_is_placed_alike(left):
    """`left` bytes are left of the page after it, or are missing."""
    disks, stores = twins()
    tickets = []
    for store in stores:
        feed(store, 1, 100)
        size = DATA_SIZE - store._writer.appender.page_offset - OVERHEAD - left
        tickets.append([feed(store, 2, size), feed(store, 3, 100), feed(store, 4, 100)])
    assert tickets[0] == tickets[1]
    assert left_by(stores[0], disks[0]) == left_by(stores[1], disks[1])
    assert stores[0].short_count == (1 if left == 0 else 2)


@pytest.mark.parametrize("is_strict", [True, False], ids=["strict", "any order"])
def test_a_gtid_that_is_not_newer_and_a_pair_that_is_new_are_met_alike(is_strict):
    disks, stores = twins(StoreOptions(max_file_bytes=4 * PAGE_SIZE, redo_bytes=1 << 18, gtid_strict=is_strict))
    groups = [(1, 0, 1), (2, 0, 1), (2, 0, 1), (1, 0, 1), (3, 0, 2), (4, 0, 1), (1, 9, 1), (4, 0, 2), (5, 0, 2)]
    found = []
    for store in stores:
        found.append([])
        for seq_no, domain_id, server_id in groups:
            try:
                found[-1].append(feed(store, seq_no, 10, domain_id=domain_id, server_id=server_id))
            except GtidOrderError as error:
                found[-1].append(str(error))
    assert found[0] == found[1]
    assert any(isinstance(answer, str) for answer in found[0]) == is_strict
    assert left_by(stores[0], disks[0]) == left_by(stores[1], disks[1])


def test_a_log_whose_disk_has_failed_takes_nothing_the_short_way():
    _, (store, _) = twins()
    store._writer.latch.note(StoreError("the disk is broken"))
    with pytest.raises(StoreError, match="the disk is broken"):
        feed(store, 2, 10)
    assert store.short_count == 0


def test_an_error_on_the_short_way_is_final(monkeypatch):
    _, (store, _) = twins()
    feed(store, 1, 10)

    def fail(chunk, lsn):
        raise MemoryError

    monkeypatch.setattr(store._writer.fifo, "extend", fail)
    with pytest.raises(MemoryError):
        feed(store, 2, 10)
    with pytest.raises(StoreError, match="MemoryError"):
        feed(store, 3, 10)
