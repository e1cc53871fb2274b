import pytest

from ibbmaster.logs.store.redo_log import SEGMENT_BYTES_MIN, read_durable_end, scan_redo
from ibbmaster.logs.store.redo_tail import RedoTail
from ibbmaster.logs.store.store_options import Durability, StoreOptions
from ibbmaster.storage.ibb.page import PAGE_SIZE
from tests.machinery.events import numbers_in
from tests.machinery.stores import feed, new_store, open_files


@pytest.fixture
def store(disk):
    options = StoreOptions(
        max_file_bytes=64 * PAGE_SIZE,
        state_interval_bytes=PAGE_SIZE,
        redo_bytes=2 * SEGMENT_BYTES_MIN,
        durability=Durability.WRITE,
    )
    with new_store(disk, options) as store:
        yield store


def tail_of(disk):
    return RedoTail(disk, scan_redo(disk, end_lsn=read_durable_end(disk)))


def test_what_is_written_and_not_durable_is_not_taken(disk, store):
    feed(store, range(1, 4), size=100)
    store.sync()
    feed(store, range(4, 6), size=100)
    tail = tail_of(disk)
    assert numbers_in(open_files(tail.pages)) == [1, 2, 3]
    assert tail.mark == store.end()
    assert tail.follow(read_durable_end(disk))
    assert numbers_in(open_files(tail.pages)) == [1, 2, 3]
    store.sync()
    assert tail.follow(read_durable_end(disk))
    assert numbers_in(open_files(tail.pages)) == [1, 2, 3, 4, 5]
    assert tail.mark == store.end()


def test_it_goes_on_behind_a_checkpoint_in_the_middle_of_a_page(disk, store):
    feed(store, range(1, 4), size=100)
    store.sync()
    tail = tail_of(disk)
    store.checkpoint()
    store.sync()
    late = tail_of(disk)  # begins with the page as the file has it
    feed(store, range(4, 150), size=200)
    store.sync()
    for each in (tail, late):
        assert each.follow(read_durable_end(disk))
        assert numbers_in(open_files(each.pages)) == list(range(1, 150))


def test_a_segment_that_was_begun_anew_before_it_was_read_is_noticed_and_nothing_of_it_taken(disk, store):
    feed(store, range(1, 4), size=100)
    store.sync()
    tail = tail_of(disk)
    feed(store, range(4, 700), size=700)  # both segments, more than once
    store.sync()
    before = tail.mark
    assert not tail.follow(read_durable_end(disk))
    assert tail.mark == before
    assert numbers_in(open_files(tail_of(disk).pages)) == list(range(1, 700))
