"""Stages that follow each other: each sees what the one before it sends, and a pump is told to all."""

import pytest
import trio

from ibbmaster.position import LOG_START
from ibbmaster.streaming.block import FramingState, plain_block
from ibbmaster.streaming.stage import Counter, Stages, made_stage

AT = FramingState(LOG_START)


class Doubling:
    """Sends each block twice, its bytes in another case the second time."""

    only_counts = False

    def __init__(self):
        self.borders = 0

    def note_border(self):
        self.borders += 1

    async def pass_on(self, block, send):
        await send(block)
        await send(plain_block(bytes(block.data()).swapcase(), block.after))

    def note_sent(self, size):
        raise AssertionError("a pump went past a stage that alters")


class First:
    """Sends the first bytes alone, and then cuts."""

    only_counts = False

    def __init__(self, size):
        self._left = size

    def note_border(self):
        pass

    async def pass_on(self, block, send):
        data = bytes(block.data())[: self._left]
        self._left -= len(data)
        await send(plain_block(data, block.after))
        if not self._left:
            raise trio.BrokenResourceError("cut")


def passed(stage, *pieces):
    """The bytes that come out of a stage, and whether it has cut the connection."""
    sent = []

    async def send(block):
        sent.append(bytes(block.data()))

    async def all_pieces():
        for piece in pieces:
            await stage.pass_on(plain_block(piece, AT), send)

    try:
        trio.run(all_pieces)
    except trio.BrokenResourceError:
        return sent, True
    return sent, False


def test_bytes_go_through_the_stages_in_their_order():
    before, behind = Counter(), Counter()
    assert passed(Stages([before, Doubling(), behind]), b"ab", b"c") == ([b"ab", b"AB", b"c", b"C"], False)
    assert (before.sent_bytes, behind.sent_bytes) == (3, 6)


def test_the_order_decides_what_a_cut_leaves():
    assert passed(Stages([First(3), Doubling()]), b"ab", b"cd") == ([b"ab", b"AB", b"c", b"C"], True)
    assert passed(Stages([Doubling(), First(3)]), b"ab", b"cd") == ([b"ab", b"A"], True)


def test_a_stage_counts_only_what_was_sent_behind_it():
    before = Counter()
    assert passed(Stages([before, First(3)]), b"ab", b"cd") == ([b"ab", b"c"], True)
    assert before.sent_bytes == 2


def test_a_pump_may_send_past_stages_that_all_only_count():
    counters = Counter(), Counter()
    stage = Stages(counters)
    assert stage.only_counts
    stage.note_sent(7)
    assert [counter.sent_bytes for counter in counters] == [7, 7]
    assert not Stages([Counter(), Doubling()]).only_counts


def test_each_stage_hears_of_a_border():
    stages = Doubling(), Doubling()
    Stages(stages).note_border()
    assert [stage.borders for stage in stages] == [1, 1]


@pytest.mark.parametrize("makers", [(), (lambda _: None,), (lambda _: None, lambda _: None)])
def test_a_dump_for_which_nobody_has_a_stage_has_none(makers):
    assert made_stage(makers, "a dump") is None


def test_stages_are_made_for_the_dump_in_their_order():
    made = []

    def maker(name, stage):
        return lambda of: made.append((name, of)) or stage

    alone = Counter()
    assert made_stage((maker("none", None), maker("one", alone)), "a dump") is alone
    both = made_stage((maker("first", First(2)), maker("second", Doubling())), "another")
    assert passed(both, b"abc") == ([b"ab", b"AB"], True)
    assert made == [("none", "a dump"), ("one", "a dump"), ("first", "another"), ("second", "another")]
