"""Steps that many dumps take: packets with other numbers, and a block that stands for several."""

import random
from collections import Counter

import pytest

from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.position import LOG_START
from ibbmaster.primary.streaming.block import NO_PACKETS, Block, Groups, Packets, sent_block
from ibbmaster.primary.streaming.large_group import PartState
from ibbmaster.primary.streaming.shared import BYTES_MAX, PACKETS_MAX, SentSteps, shared_step
from ibbmaster.replication.dump.error import DumpError
from ibbmaster.replication.wire.packet import frame_payloads
from tests.machinery.events import gtid_of
from tests.primary.streaming.test_block_cache import mark

FIRST, SECOND = mark(20_000), mark(20_100)


def packets(sequence, *payloads):
    return frame_payloads(payloads, sequence)[0]


def block(data, before=FIRST, after=SECOND, seq_no=1, sent_bytes=0):
    return Block(Packets(data, sent_bytes=sent_bytes), before, after, Groups((gtid_of(seq_no),)))


def test_packets_get_other_numbers_and_nothing_else():
    payloads = [b"one", b"", b"three" * 100]
    step = shared_step([block(packets(254, *payloads))], 254, "the next place", None)
    assert step.packets == 3
    for sequence in (254, 0, 255, 254, 7):
        assert step.numbered(sequence) == packets(sequence, *payloads)


def test_blocks_that_follow_each_other_are_one_step():
    blocks = [block(packets(3, b"a", b"b"), sent_bytes=4), block(b"", mark(20_100), mark(20_200), seq_no=2)]
    blocks.append(block(packets(5, b"c"), mark(20_200), mark(20_300), seq_no=3))
    step = shared_step(blocks, 3, "the next place", None)
    assert step.numbered(9) == packets(9, b"a", b"b", b"c")
    other = shared_step([block(packets(0, b"d"), mark(20_300), mark(20_400), seq_no=4)], 0, "the next place", None)
    one = sent_block([step.block, other.block], 77)
    assert (one.before, one.after, one.sequence_after, len(one)) == (mark(20_000), mark(20_400), 77, 0)
    assert [gtid.seq_no for gtid in one.gtids] == [4]  # the last of its pair
    assert one.framed_bytes == (4 + 10) + 0 + 5 + 5


def of_groups(gtids):
    return [
        Block(NO_PACKETS, mark(20_000 + number), mark(20_001 + number), Groups((gtid,)))
        for number, gtid in enumerate(gtids)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_kept_of_many_steps_makes_the_state_that_all_of_them_make(seed):
    rng, numbers = random.Random(seed), Counter()
    gtids = []
    for _ in range(50):
        pair = rng.randrange(3), rng.randrange(3)
        numbers[pair] += rng.randint(1, 3)
        gtids.append(Gtid(domain_id=pair[0], server_id=pair[1], seq_no=numbers[pair]))
    one = sent_block(of_groups(gtids), 0)
    assert len(one.gtids) == len(one.stored_gtids) == len(numbers)
    states = [GtidState(gtids), GtidState(one.gtids)]
    assert list(states[0]) == list(states[1])
    assert [states[0].latest(domain) for domain in range(3)] == [states[1].latest(domain) for domain in range(3)]


def test_all_are_kept_where_the_numbers_of_a_server_do_not_grow():
    gtids = list(map(gtid_of, (1, 5, 5, 7)))
    assert sent_block(of_groups(gtids), 0).gtids == tuple(gtids)


def test_steps_that_do_not_follow_each_other_are_not_taken_for_one():
    steps = [shared_step([block(packets(0, b"a"))], 0, "the next place", None)] * 2
    with pytest.raises(DumpError, match="would not go on where it ended"):
        _ = SentSteps(steps).block


def test_blocks_that_do_not_follow_each_other_are_no_step():
    blocks = [block(packets(0, b"a")), block(packets(1, b"b"), mark(20_200), mark(20_300))]
    with pytest.raises(DumpError, match="would not go on where it ended"):
        shared_step(blocks, 0, "the next place", None)


PART = PartState(None, 0, LOG_START, (), b"")  # type: ignore[arg-type]
ALONE = {
    "nothing": [],
    "no packets": [block(b"")],
    "many bytes": [block(packets(0, bytes(BYTES_MAX)))],
    "many packets": [block(packets(0, *[b"x"] * (PACKETS_MAX + 1)))],
    "a cut header": [block(packets(0, b"abc")[:2])],
    "a cut packet": [block(packets(0, b"abc")[:-1])],
    "packets of no place in the log": [block(packets(0, b"heartbeat"), mark(20_000), mark(20_000))],
    "a part of a group": [block(packets(0, b"a"), after=PART)],
}


@pytest.mark.parametrize("blocks", ALONE.values(), ids=ALONE)
def test_what_each_has_to_get_by_itself(blocks):
    assert shared_step(blocks, 0, "the next place", None) is None
