import random

import pytest

from ibbmaster.errors import MissingFileError, StoreError
from ibbmaster.storage.disk import object_directory
from ibbmaster.storage.disk.object_directory import AHEAD_BLOCKS_MAX, BLOCK_SIZE, ObjectDirectory, RangeCache

SIZE = 40 * BLOCK_SIZE + 1234


@pytest.fixture
def stored(object_store):
    data = random.Random(1).randbytes(SIZE)
    url = object_store.new_place()
    object_store.put(f"{url}/one", data)
    object_store.requests.clear()
    return ObjectDirectory(url), data, object_store


def ranges_of(store):
    return [request.range for request in store.requests if request.range]


def test_any_range_is_what_a_file_would_give(stored):
    directory, data, _ = stored
    chance = random.Random(2)
    for _ in range(200):
        offset, size = chance.randrange(SIZE + 10), chance.choice((1, 100, BLOCK_SIZE, 5 * BLOCK_SIZE))
        assert directory.read("one", offset, size) == data[offset : offset + size]
        some = directory.read_some("one", offset, size)
        assert some == data[offset : offset + len(some)]
        assert bool(some) == (offset < SIZE)


def test_one_page_is_one_small_range(stored):
    directory, data, store = stored
    assert directory.read("one", 20 * BLOCK_SIZE + 5, 10) == data[20 * BLOCK_SIZE + 5 :][:10]
    assert ranges_of(store) == [f"bytes={20 * BLOCK_SIZE}-{21 * BLOCK_SIZE - 1}"]
    directory.read("one", 20 * BLOCK_SIZE + 100, 10)
    assert len(ranges_of(store)) == 1


def test_a_file_that_is_read_in_order_takes_few_requests(stored):
    directory, data, store = stored
    at = 0
    while piece := directory.read("one", at, 1 << 14):
        assert piece == data[at : at + len(piece)]
        at += len(piece)
    assert at == SIZE
    assert len(ranges_of(store)) == 4  # 1, 3, 12 blocks and the rest


def test_what_is_expected_is_fetched_at_the_same_time(stored):
    directory, data, store = stored
    offsets = [BLOCK_SIZE * number for number in range(0, 40, 5)]
    directory.expect_reads("one", [*offsets, SIZE + 1])
    assert sorted(ranges_of(store)) == sorted(f"bytes={offset}-{offset + BLOCK_SIZE - 1}" for offset in offsets)
    assert [directory.read("one", offset, 9) for offset in offsets] == [data[offset : offset + 9] for offset in offsets]
    assert len(ranges_of(store)) == len(offsets)


def test_what_is_cached_is_given_without_a_request(stored):
    directory, data, store = stored
    target = memoryview(bytearray(100))
    assert directory.read_into("one", 7, target, only_cached=True) is None
    assert directory.read_into("one", 7, target) == 100
    store.requests.clear()
    assert directory.read_into("one", 8, target, only_cached=True) == 100
    assert target == data[8:108]
    assert store.requests == []


def test_a_file_that_was_uploaded_anew_and_longer_is_read_on(stored):
    directory, data, store = stored
    assert directory.read("one", 0, 10) == data[:10]
    longer = data + random.Random(3).randbytes(1000)
    store.put(f"{directory}/one", longer)
    assert directory.read("one", SIZE - 10, 100).startswith(data[-10:])  # as far as is known at first
    assert directory.read("one", SIZE - 10, 100) == longer[SIZE - 10 :][:100]


def test_a_file_that_was_replaced_or_removed_in_the_middle_is_an_error(stored):
    directory, data, store = stored
    assert directory.read("one", 0, 10) == data[:10]
    store.put(f"{directory}/one", b"short")
    with pytest.raises(StoreError, match=r"/one: another object has taken its place while it was read$"):
        directory.read("one", SIZE - 10, 10)
    store.remove(f"{directory}/one")
    with pytest.raises(MissingFileError, match=r"/one: no such file or directory$"):
        directory.read("one", SIZE - 10, 10)


def test_files_that_came_later_are_seen(stored, monkeypatch):
    directory, _, store = stored
    assert directory.list() == ["one"]
    assert directory.list() is directory.list()
    store.put(f"{directory}/two", b"2")
    monkeypatch.setattr(object_directory, "LIST_AGE_S", 0.0)
    directory.list()
    directory._lister.join()
    assert directory.list() == ["one", "two"]
    directory._lister.join()
    store.fault = lambda request: 403
    directory.list()
    directory._lister.join()
    with pytest.raises(StoreError, match="refuses access"):
        directory.list()


def test_an_empty_place_is_no_directory_and_the_cache_forgets_what_was_used_first(object_store):
    directory = ObjectDirectory(object_store.new_place())
    for ask in (directory.list, lambda: directory.read("one", 0, 1)):
        with pytest.raises(MissingFileError, match="no such file or directory"):
            ask()
    cache = RangeCache(3)
    for number in range(4):
        cache.put(("u", "n", None, number), bytes(100))
        cache.get(("u", "n", None, 0))
    assert [cache.has(("u", "n", None, number)) for number in range(4)] == [True, False, True, True]


def test_a_large_read_is_made_of_bounded_requests_and_nobody_waits_longer_than_asked(stored, monkeypatch):
    directory, _, _ = stored
    assert not directory.watch().wait(0.0)
    assert directory.wait(object_directory.POLL_PERIOD_S)
    directory, data, store = stored
    monkeypatch.setattr(object_directory, "AHEAD_BLOCKS_MAX", 10)
    assert directory.read("one", 0, SIZE) == data
    assert len(ranges_of(store)) == 5
    assert AHEAD_BLOCKS_MAX * BLOCK_SIZE == 8 << 20
