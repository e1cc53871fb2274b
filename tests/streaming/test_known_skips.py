"""Ways that dumps have gone: what a later dump may skip of them, and what it then knows."""

import random
from itertools import pairwise

import pytest

from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.position import LogPosition
from ibbmaster.streaming import known_skips
from ibbmaster.streaming.block import Block
from ibbmaster.streaming.framing_state import FramingState
from ibbmaster.streaming.known_skips import KnownSkips


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
    gtids = last_of_pairs(groups[begin:end])
    head = f"head at {begin}".encode()
    return Block(
        b"",
        None,
        0,
        before=mark(begin),
        after=mark(end),
        gtids=gtids,
        head=head,
        is_in_order=is_in_order,
        is_stopped=is_stopped,
    )


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
            step_by_step, at_once = GtidState(), GtidState()
            for gtid in groups[begin:at]:
                step_by_step.log(gtid)
            for gtid in found.gtids:
                at_once.log(gtid)
            assert str(at_once) == str(step_by_step)
            assert [at_once.latest(domain_id) for domain_id in range(2)] == [
                step_by_step.latest(domain_id) for domain_id in range(2)
            ]
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
    """What is last of a pair behind them does not say what the way is over."""
    groups = [Gtid(domain_id=0, server_id=1, seq_no=number) for number in (*range(1, 11), 3, 4)]
    ways = KnownSkips()
    ways.note(("file", mark(0)), [walked(groups, 0, 10), walked(groups, 10, 12)])
    assert ways.find(("file", mark(0)), [groups[4]]) is None  # 0-1-5, which the first block has
    assert ways.find(("file", mark(0)), [Gtid(domain_id=0, server_id=1, seq_no=50)]).end.offset == 10


def test_who_has_come_as_far_as_another_knows_what_stopped_that_one():
    """It need not look again; who has come farther has to."""
    groups = [Gtid(domain_id=0, server_id=1, seq_no=number) for number in range(1, 10)]
    ways = KnownSkips()
    ways.note(("file", mark(0)), [walked(groups, 0, 3), walked(groups, 3, 5, is_stopped=True)], [groups[5]])
    same, other = (ways.find(("file", mark(0)), [groups[number]]) for number in (5, 7))
    assert (same.end.offset, same.is_stopped, same.gtids) == (5, True, (groups[4],))
    assert (other.end.offset, other.is_stopped) == (5, False)


def test_whole_ways_are_bounded(monkeypatch):
    monkeypatch.setattr(known_skips, "WHOLE_MAX", 1)
    groups = [Gtid(domain_id=0, server_id=1, seq_no=number) for number in range(1, 10)]
    ways = KnownSkips()
    for number in (4, 5):
        ways.note(("file", mark(0)), [walked(groups, 0, number, is_stopped=True)], [groups[number]])
    assert [ways.find(("file", mark(0)), [groups[number]]).is_stopped for number in (4, 5)] == [False, True]


def test_a_way_of_another_file_or_from_another_place_is_not_taken():
    groups = [Gtid(domain_id=0, server_id=1, seq_no=number) for number in range(1, 10)]
    ways = KnownSkips()
    ways.note(("file", mark(0)), [walked(groups, 0, 5)])
    assert ways.find(("file", mark(0)), [groups[7]]) is not None
    assert ways.find(("other", mark(0)), [groups[7]]) is None
    assert ways.find(("file", mark(1)), [groups[7]]) is None


def test_the_way_not_gone_for_longest_is_forgotten(monkeypatch):
    monkeypatch.setattr(known_skips, "GTIDS_MAX", 6)
    groups = [Gtid(domain_id=0, server_id=1, seq_no=number) for number in range(1, 10)]
    ways = KnownSkips()
    for begin in (0, 1, 2):
        ways.note(("file", mark(begin)), [walked(groups, begin, 5)])
    assert ways.find(("file", mark(0)), [groups[7]]) is not None
    ways.note(("file", mark(3)), [walked(groups, 3, 5)])
    assert ways.find(("file", mark(1)), [groups[7]]) is None
    assert [ways.find(("file", mark(begin)), [groups[7]]) is not None for begin in (0, 2, 3)] == [True] * 3
