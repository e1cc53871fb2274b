from contextlib import ExitStack

import pytest

from ibbmaster.errors import DiskFullError, FailedError, StoreError
from ibbmaster.logs.store.background import Background
from ibbmaster.logs.store.flusher import make_file
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.storage.ibb.file_name import format_file_name, parse_file_name
from ibbmaster.storage.ibb.page import PAGE_SIZE
from tests.logs.store.conftest import OvertakenLock
from tests.machinery.disk_failure import DiskFailure
from tests.machinery.simulated_disk import SimulatedDisk
from tests.machinery.stores import feed, new_store

FIRST = "binlog-000000.ibb"
SMALL = {"max_file_bytes": 4 * PAGE_SIZE, "state_interval_bytes": PAGE_SIZE}


@pytest.mark.parametrize("is_store", [True, False], ids=["a store", "an import"])
def test_files_are_begun_without_a_look_at_those_there_are(is_store):
    disk, lists = SimulatedDisk(), []
    disk.list = lambda: lists.append(1) or SimulatedDisk.list(disk)
    with new_store(disk, **SMALL) if is_store else BinlogWriter(disk, **SMALL) as log, ExitStack() as stack:
        if is_store:
            stack.enter_context(Background(log))
        end = log.end if is_store else lambda: log.end
        feed(log, range(1, 20), 3000)
        before = end()
        lists.clear()
        feed(log, range(20, 200), 3000)
        assert end()[0] > before[0] + 2
        assert lists == []


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_file_that_is_there_keeps_a_larger_size_and_grows_from_a_smaller_one(is_sparse):
    disk = SimulatedDisk()
    assert make_file(disk, 7, 4, is_sparse=is_sparse) == (4, True)
    assert make_file(disk, 7, 4, is_sparse=is_sparse) == (4, False)
    assert make_file(disk, 7, 3, is_sparse=is_sparse) == (4, False)
    assert make_file(disk, 7, 6, is_sparse=is_sparse) == (6, True)
    assert disk.size("binlog-000007.ibb") == 6 * PAGE_SIZE


@pytest.mark.parametrize("writes_pages", [False, True])
def test_a_file_is_made_once_the_file_two_before_it_is_durable_as_a_whole(writes_pages):
    """So a crash leaves no more than two files that need the redo log."""
    disk, found = SimulatedDisk(), {}

    def look(called, name):
        if called == "create" and name.startswith("binlog-"):
            before = format_file_name(max(parse_file_name(name) - 2, 0))
            found.setdefault(before, disk.durable_files().get(before))

    disk.fail = look
    with new_store(disk, **SMALL) as store:
        for seq_no in range(1, 100):
            feed(store, [seq_no], 3000)
            if writes_pages:
                store.write_pages()
    del found[FIRST]
    assert len(found) > 3
    assert found == {name: disk.files()[name] for name in found}


def test_files_that_were_only_copied_are_durable_before_the_log_goes_on_in_them():
    source = SimulatedDisk()
    with new_store(source, **SMALL) as store:
        feed(store, range(1, 30), 3000)
        active = parse_file_name(store.status().active_file)
    disk = SimulatedDisk()
    for name, data in source.files().items():
        if name.startswith("binlog-"):
            disk.create(name)
            disk.write(name, 0, data)
    disk.sync_dir()
    names = [format_file_name(active - 1), format_file_name(active)]
    feed(new_store(disk, **SMALL), [30], 3000)
    assert [disk.durable_files()[name] for name in names] == [source.files()[name] for name in names]


@pytest.mark.parametrize(
    ("verb", "call"), [("checkpoint", "sync"), ("write_pages", "write"), ("make_file", "create"), ("begin", "sync")]
)
def test_who_waited_while_a_sync_failed_does_not_sync_again(verb, call):
    """The second sync would succeed, and what the first has failed for would still not be on the disk."""
    disk = SimulatedDisk()
    store = new_store(disk, **SMALL)
    feed(store, range(1, 9), 3000)
    flusher, outcomes = store._writer.flusher, []

    def fail(called, name):
        if called == call and name.startswith("binlog-"):
            raise StoreError("planted")

    def another():
        with pytest.raises(FailedError, match="planted"):
            flusher.checkpoint()
        outcomes.append(store.status().state)

    disk.fail = fail
    if verb == "begin":
        store._writer.redo.is_begun = False
    flusher.lock = OvertakenLock(flusher.lock, behind_error=another)
    with pytest.raises(StoreError, match="planted"):
        flusher.make_file(9, 4) if verb == "make_file" else getattr(flusher, verb)()
    assert outcomes == ["failed"]


def test_a_file_that_there_was_no_room_for_at_first_is_durable_once_it_is_made():
    disk = SimulatedDisk()
    store = new_store(disk, **SMALL)
    disk.fail = DiskFailure(("allocate",), 1, 1, DiskFullError)
    with pytest.raises(DiskFullError):
        store._writer.flusher.make_file(9, 4)
    store._writer.flusher.make_file(9, 4)
    assert len(disk.durable_files()["binlog-000009.ibb"]) == 4 * PAGE_SIZE
