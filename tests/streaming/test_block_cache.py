"""Blocks are kept for others while there are others, no more of them than agreed, and each is made once."""

import threading

import numpy as np
import pytest

from ibbmaster.position import LogPosition
from ibbmaster.streaming import block_cache
from ibbmaster.streaming.block import OVERHEAD, Block
from ibbmaster.streaming.block_cache import BlockCache
from ibbmaster.streaming.framing_state import FramingState


def block(size, sequence_after=0):
    return Block(
        np.zeros(size, dtype=np.uint8),
        None,
        size,
        sequence_after=sequence_after,
        before=FramingState(LogPosition(0, 16384)),
        after=FramingState(LogPosition(0, 16384)),
        gtids=(),
        is_inside_event=False,
    )


class Reader:
    pass


@pytest.fixture
def readers():
    return [Reader() for _ in range(block_cache.READERS_OF_SHARED)]


def find(cache, key, sequence, made, *, only_cached=False):
    def make(like):
        made.append((key, sequence, None if like is None else like[1]))
        return block(1000)

    return cache.find((key,), sequence, make, only_cached=only_cached)


def test_a_reader_alone_keeps_nothing(readers):
    cache, made = BlockCache(), []
    cache.add_reader(readers[0])
    find(cache, 1, 0, made)
    find(cache, 1, 0, made)
    assert made == [(1, 0, None), (1, 0, None)]
    assert len(cache) == 0


def test_the_second_reader_finds_what_the_first_has_made(readers):
    cache, made = BlockCache(), []
    for reader in readers[:2]:
        cache.add_reader(reader)
    first = find(cache, 1, 0, made)
    assert find(cache, 1, 0, made) is first
    assert made == [(1, 0, None)]


def test_a_reader_with_other_numbers_is_given_a_block_to_renumber(readers):
    cache, made = BlockCache(), []
    for reader in readers[:2]:
        cache.add_reader(reader)
    find(cache, 1, 7, made)
    find(cache, 1, 9, made)
    assert made == [(1, 7, None), (1, 9, 7)]


def test_a_reader_that_is_gone_does_not_count(readers):
    cache = BlockCache()
    for reader in readers:
        cache.add_reader(reader)
    assert cache.is_shared
    made = []
    first = find(cache, 1, 0, made)
    cache.remove_reader(readers[0])
    assert not cache.is_shared
    assert find(cache, 1, 0, made) is first
    for reader in readers[1:]:
        cache.remove_reader(reader)
        cache.remove_reader(reader)
    assert len(cache) == 0


def test_the_blocks_used_longest_ago_go_first(readers, monkeypatch):
    monkeypatch.setattr(block_cache, "BYTES_MAX", 3 * (1000 + OVERHEAD) + 500)
    cache, made = BlockCache(), []
    for reader in readers[:2]:
        cache.add_reader(reader)
    for key in (1, 2, 3):
        find(cache, key, 0, made)
    find(cache, 1, 0, made)
    find(cache, 4, 0, made)
    assert len(cache) == 3
    made.clear()
    for key in (1, 3, 4):
        find(cache, key, 0, made)
    assert made == []
    find(cache, 2, 0, made)
    assert made == [(2, 0, None)]


def test_a_block_that_two_have_made_counts_once_and_one_that_goes_leaves_nothing(readers, monkeypatch):
    monkeypatch.setattr(block_cache, "BYTES_MAX", 3 * (1000 + OVERHEAD))
    cache = BlockCache()
    for reader in readers[:2]:
        cache.add_reader(reader)
    for key in range(20):
        for _ in range(5):
            cache.keep((key,), 0, block(1000))
        assert len(cache) == len(cache._numbers) == min(key + 1, 3)


def test_blocks_without_packets_and_with_large_buffers_count_as_what_they_take(readers, monkeypatch):
    monkeypatch.setattr(block_cache, "BYTES_MAX", 10 * OVERHEAD)
    cache = BlockCache()
    for reader in readers[:2]:
        cache.add_reader(reader)
    for key in range(100):
        cache.find((key,), 0, lambda like: block(0), only_cached=False)
    assert len(cache) == 10
    large = block(10)
    large._buffer = np.zeros(9 * OVERHEAD, dtype=np.uint8)
    cache.find((100,), 0, lambda like: large, only_cached=False)
    assert len(cache) == 1


def test_what_many_wait_for_is_made_once_and_who_must_not_wait_does_not(readers):
    cache, made = BlockCache(), []
    for reader in readers:
        cache.add_reader(reader)
    is_making, may_end = threading.Event(), threading.Event()

    def make(like):
        made.append(like)
        is_making.set()
        may_end.wait(10)
        return block(1000)

    found = []
    threads = [
        threading.Thread(target=lambda: found.append(cache.find((1,), 0, make, only_cached=False, is_shared=True)))
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    assert is_making.wait(10)
    assert cache.find((2,), 0, make, only_cached=True, is_shared=True) is None
    may_end.set()
    for thread in threads:
        thread.join(10)
    assert made == [None]
    assert len(found) == 5
    assert len(set(map(id, found))) == 1
