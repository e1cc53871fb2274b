"""Stages that follow each other see what the one before sends; a socket takes what it can, failures come later."""

import random
import socket
import threading

import pytest
import trio

from ibbmaster.position import LOG_START
from ibbmaster.primary.streaming.block import FramingState, plain_block
from ibbmaster.primary.streaming.sink import SocketSink, Stages, made_stage
from tests.machinery.sent_counter import SentCounter

AT = FramingState(LOG_START)


class Doubling:
    async def pass_on(self, block, send):
        await send(block)
        await send(plain_block(bytes(block.data()).swapcase(), block.after))


class First(Doubling):
    def __init__(self, size):
        super().__init__()
        self._left = size

    async def pass_on(self, block, send):
        data = bytes(block.data())[: self._left]
        self._left -= len(data)
        await send(plain_block(data, block.after))
        if not self._left:
            raise trio.BrokenResourceError("cut")


def passed(stage, *pieces):
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
    doubling = Doubling()
    before, behind = SentCounter(), SentCounter()
    assert passed(Stages([before, doubling, behind]), b"ab", b"c") == ([b"ab", b"AB", b"c", b"C"], False)
    assert (before.sent_bytes, behind.sent_bytes) == (3, 6)


def test_the_order_decides_what_a_cut_leaves():
    assert passed(Stages([First(3), Doubling()]), b"ab", b"cd") == ([b"ab", b"AB", b"c", b"C"], True)
    assert passed(Stages([Doubling(), First(3)]), b"ab", b"cd") == ([b"ab", b"A"], True)


def test_a_stage_counts_only_what_was_sent_behind_it():
    before = SentCounter()
    assert passed(Stages([before, First(3)]), b"ab", b"cd") == ([b"ab", b"c"], True)
    assert before.sent_bytes == 2


@pytest.mark.parametrize("makers", [(), (lambda _: None,), (lambda _: None, lambda _: None)])
def test_a_dump_for_which_nobody_has_a_stage_has_none(makers):
    assert made_stage(makers, "a dump") is None


def test_stages_are_made_for_the_dump_in_their_order():
    made = []

    def maker(name, stage):
        return lambda of: made.append((name, of)) or stage

    alone = SentCounter()
    assert made_stage((maker("none", None), maker("one", alone)), "a dump") is alone
    both = made_stage((maker("first", First(2)), maker("second", Doubling())), "another")
    assert passed(both, b"abc") == ([b"ab", b"AB"], True)
    assert made == [("none", "a dump"), ("one", "a dump"), ("first", "another"), ("second", "another")]


def test_a_socket_takes_what_it_can():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        sink, data, taken = SocketSink(ours.fileno()), bytes(range(256)) * (1 << 14), 0
        assert sink.descriptor == ours.fileno()
        while (count := sink.write(memoryview(data)[taken:])) > 0:
            taken += count
        assert 0 < taken < len(data)
        theirs.setblocking(False)
        found = bytearray()
        while len(found) < taken:
            found += theirs.recv(1 << 20)
        assert found == data[:taken]


def test_with_patience_it_is_waited_for_a_socket_that_takes_nothing_now():
    data, found = random.Random(1).randbytes(4 << 20), bytearray()
    ours, theirs = socket.socketpair()

    def read():
        while len(found) < len(data):
            found.extend(theirs.recv(1 << 16))

    reader = threading.Thread(target=read)
    with ours, theirs:
        ours.setblocking(False)
        sink = SocketSink(ours.fileno())
        first = sink.write(data)
        assert 0 < first < len(data)
        assert sink.write(data[first:], 1) == 0  # nobody reads
        reader.start()
        assert sink.write(memoryview(data)[first:], 60_000) == len(data) - first
        reader.join()
    assert found == data


def test_a_client_that_is_gone_takes_nothing():
    ours, theirs = socket.socketpair()
    with ours:
        theirs.close()
        assert SocketSink(ours.fileno()).write(b"a") == 0
        assert SocketSink(ours.fileno()).write(b"a", 60_000) == 0
