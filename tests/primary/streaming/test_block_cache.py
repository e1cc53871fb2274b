"""Blocks are kept for others while there are others, no more of them than agreed, and each is made once."""

import random
import threading
from itertools import pairwise

import pytest

from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.position import LogPosition
from ibbmaster.primary.streaming import block_cache
from ibbmaster.primary.streaming.block import NO_PACKETS, OVERHEAD, Block, FramingState, Groups, Packets
from ibbmaster.primary.streaming.block_cache import NO_WAY, BlockCache, KnownSkips, KnownWay, KnownWays
from tests.machinery.events import gtid_of

FIRST, SECOND = KnownWay(20_000, 90_000), KnownWay(100_000, 300_000)


def block(size, sequence_after=0):
    at, data = FramingState(LogPosition(0, 16384)), bytearray(size)
    return Block(Packets(data, sequence=sequence_after), at, at)


class Reader:
    pass


@pytest.fixture
def readers():
    return [Reader() for _ in range(block_cache.READERS_OF_SHARED)]


def cache_of(readers):
    cache = BlockCache()
    for reader in readers:
        cache.add_reader(reader)
    return cache


def find(cache, key, sequence, made):
    def make(like):
        made.append((key, sequence, None if like is None else like[1]))
        return block(1000)

    return cache.find((key,), sequence, make, only_cached=False)


@pytest.mark.parametrize(
    ("count", "sequences", "expected"),
    [(1, (0, 0), [(1, 0, None)] * 2), (2, (0, 0), [(1, 0, None)]), (2, (7, 9), [(1, 7, None), (1, 9, 7)])],
    ids=["who is alone keeps nothing", "the second finds it", "to renumber"],
)
def test_what_a_reader_has_made_is_kept_for_others(readers, count, sequences, expected):
    cache, made = cache_of(readers[:count]), []
    first, second = (find(cache, 1, sequence, made) for sequence in sequences)
    assert made == expected
    assert (first is second) == (len(made) == 1)
    assert bool(len(cache)) == (count > 1)


def test_a_reader_that_is_gone_does_not_count(readers):
    cache, made = cache_of(readers), []
    assert cache.is_shared
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
    cache, made = cache_of(readers[:2]), []
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
    cache = cache_of(readers[:2])
    for key in range(20):
        for _ in range(5):
            cache.keep((key,), 0, block(1000))
        assert len(cache) == len(cache._numbers) == min(key + 1, 3)


def test_blocks_without_packets_and_with_large_buffers_count_as_what_they_take(readers, monkeypatch):
    monkeypatch.setattr(block_cache, "BYTES_MAX", 10 * OVERHEAD)
    cache = cache_of(readers[:2])
    for key in range(100):
        cache.find((key,), 0, lambda like: block(0), only_cached=False)
    assert len(cache) == 10
    large = block(0)
    large.packets = Packets(bytearray(9 * OVERHEAD), 10)
    cache.find((100,), 0, lambda like: large, only_cached=False)
    assert len(cache) == 1


def test_what_many_wait_for_is_made_once_and_who_must_not_wait_does_not(readers):
    cache, made = cache_of(readers), []
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


def mark(offset):
    return FramingState(LogPosition(0, offset))


def last_of_pairs(groups):
    """As kernels note them: domains as they came, servers in the order of their last groups."""
    last: dict[int, dict[int, Gtid]] = {}
    for gtid in groups:
        last.setdefault(gtid.domain_id, {}).pop(gtid.server_id, None)
        last[gtid.domain_id][gtid.server_id] = gtid
    return tuple(gtid for servers in last.values() for gtid in servers.values())


def walked(groups, begin, end, *, is_stopped=False):
    """Groups, each of one byte, that were skipped in one step."""
    numbers: dict[tuple[int, int], list[int]] = {}
    for gtid in groups[begin:end]:
        numbers.setdefault((gtid.domain_id, gtid.server_id), []).append(gtid.seq_no)
    is_in_order = all(one < other for pair in numbers.values() for one, other in pairwise(pair))
    passed = Groups(last_of_pairs(groups[begin:end]), is_in_order=is_in_order)
    return Block(NO_PACKETS, mark(begin), mark(end), passed, f"head at {begin}".encode(), is_stopped=is_stopped)


def is_skipped(gtid, limits):
    limit = limits.get(gtid.domain_id)
    return limit is not None and (gtid.server_id != limit.server_id or gtid.seq_no < limit.seq_no)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_found_is_what_a_walk_group_by_group_would_skip(seed):
    rng = random.Random(seed)
    numbers: dict[tuple[int, int], int] = {}
    groups = []
    for _ in range(300):
        pair = rng.randrange(2), rng.randrange(1, 3)
        step_back = rng.random() < (0.02 if seed % 2 else 0.0)
        numbers[pair] = max(1, numbers.get(pair, 0) + (-rng.randrange(4) if step_back else rng.randrange(1, 3)))
        groups.append(Gtid(domain_id=pair[0], server_id=pair[1], seq_no=numbers[pair]))
    ways, lengths = KnownSkips(), []

    for _ in range(60):
        begin = rng.choice((0, 0, 50))
        limits = {gtid.domain_id: gtid for gtid in rng.sample(groups, rng.randrange(1, 6))}
        stop = next((i for i in range(begin, len(groups)) if not is_skipped(groups[i], limits)), len(groups))
        found = ways.find(("file", mark(begin)), limits.values())
        at, blocks = begin, []
        if found is not None:
            at, blocks = found.end.offset, [found]
            assert begin < at <= stop
            assert found.head == f"head at {begin}".encode()
            step_by_step, at_once = GtidState(groups[begin:at]), GtidState(found.gtids)
            assert str(at_once) == str(step_by_step)
            assert all(at_once.latest(domain_id) == step_by_step.latest(domain_id) for domain_id in range(2))
            lengths.append(at - begin)
        while at < stop:
            end = min(stop, (at // 32 + 1) * 32)
            blocks.append(walked(groups, at, end, is_stopped=end == stop < len(groups)))
            at = end
        ways.note(("file", mark(begin)), blocks, limits.values())
        if blocks and stop < len(groups) and (whole := ways.find(("file", mark(begin)), limits.values())) is not None:
            assert whole.end.offset <= stop
            assert not whole.is_stopped or whole.end.offset == stop
    assert seed % 2 or max(lengths) > 32


def test_a_way_ends_where_numbers_step_back():
    groups = list(map(gtid_of, (*range(1, 11), 3, 4)))
    ways = KnownSkips()
    ways.note(("file", mark(0)), [walked(groups, 0, 10), walked(groups, 10, 12)])
    assert ways.find(("file", mark(0)), [groups[4]]) is None  # 0-1-5, which the first block has
    assert ways.find(("file", mark(0)), [gtid_of(50)]).end.offset == 10


def test_who_has_come_as_far_as_another_knows_what_stopped_that_one():
    groups = list(map(gtid_of, range(1, 10)))
    ways = KnownSkips()
    ways.note(("file", mark(0)), [walked(groups, 0, 3), walked(groups, 3, 5, is_stopped=True)], [groups[5]])
    same, other = (ways.find(("file", mark(0)), [groups[number]]) for number in (5, 7))
    assert (same.end.offset, same.is_stopped, same.gtids) == (5, True, (groups[4],))
    assert (other.end.offset, other.is_stopped) == (5, False)


def test_whole_ways_are_bounded(monkeypatch):
    monkeypatch.setattr(block_cache, "WHOLE_MAX", 1)
    groups = list(map(gtid_of, range(1, 10)))
    ways = KnownSkips()
    for number in (4, 5):
        ways.note(("file", mark(0)), [walked(groups, 0, number, is_stopped=True)], [groups[number]])
    assert [ways.find(("file", mark(0)), [groups[number]]).is_stopped for number in (4, 5)] == [False, True]


def test_a_way_of_another_file_or_from_another_place_is_not_taken():
    groups = list(map(gtid_of, range(1, 10)))
    ways = KnownSkips()
    ways.note(("file", mark(0)), [walked(groups, 0, 5)])
    assert ways.find(("file", mark(0)), [groups[7]]) is not None
    assert ways.find(("other", mark(0)), [groups[7]]) is None
    assert ways.find(("file", mark(1)), [groups[7]]) is None


def test_the_way_not_gone_for_longest_is_forgotten(monkeypatch):
    monkeypatch.setattr(block_cache, "GTIDS_MAX", 6)
    groups = list(map(gtid_of, range(1, 10)))
    ways = KnownSkips()
    for begin in (0, 1, 2):
        ways.note(("file", mark(begin)), [walked(groups, begin, 5)])
    assert ways.find(("file", mark(0)), [groups[7]]) is not None
    ways.note(("file", mark(3)), [walked(groups, 3, 5)])
    assert ways.find(("file", mark(1)), [groups[7]]) is None
    assert [ways.find(("file", mark(begin)), [groups[7]]) is not None for begin in (0, 2, 3)] == [True] * 3


@pytest.fixture
def ways():
    known = KnownWays()
    for way in (SECOND, FIRST, SECOND):
        known.note("one", way)
    return known


@pytest.mark.parametrize(
    ("offset", "way"), [(0, FIRST), (20_000, FIRST), (20_001, SECOND), (100_000, SECOND), (100_001, NO_WAY)]
)
def test_the_way_that_begins_next_is_found_in_its_file_if_it_ends_before_what_may_be_sent(ways, offset, way):
    assert ways.next_from("one", offset, 0) == way
    assert ways.next_from("another", offset, 0) == NO_WAY
    assert [ways.next_from("one", 0, end) for end in (90_001, 90_000)] == [FIRST, NO_WAY]


def test_what_was_wrong_is_forgotten_with_all_of_its_file(ways):
    ways.note("another", FIRST)
    ways.forget("one")
    ways.forget("one")
    assert ways.next_from("one", 0, 0) == NO_WAY
    assert ways.next_from("another", 0, 0) == FIRST
    assert len(ways) == 1


def test_files_that_were_read_long_ago_are_forgotten(ways, monkeypatch):
    monkeypatch.setattr(block_cache, "WAYS_MAX", 5)
    for number in range(3):
        ways.note("another", KnownWay(number, number + 10))
    assert len(ways) == 5
    ways.note("one", KnownWay(400_000, 500_000))
    assert len(ways) == 3
    assert ways.next_from("another", 0, 0) == NO_WAY
    assert ways.next_from("one", 0, 0) == FIRST
    for number in range(9):
        ways.note("long", KnownWay(number, number + 10))
        assert len(ways) <= 5
