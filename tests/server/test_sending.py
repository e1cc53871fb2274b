"""Every byte arrives, wherever it lies and however slowly the client reads."""

import random
import socket

import numpy as np
import pytest
import trio

from ibbmaster.position import LogPosition
from ibbmaster.server.client_stream import PlainStream
from ibbmaster.server.sending import Sender
from ibbmaster.streaming.block import Block, joined
from ibbmaster.streaming.framing_state import FramingState


def block_of(data, start=0):
    return Block(
        np.frombuffer(bytearray(data), dtype=np.uint8),
        None,
        len(data),
        sequence_after=0,
        before=FramingState(LogPosition(0, start)),
        after=FramingState(LogPosition(0, start + len(data))),
        gtids=(),
        is_inside_event=False,
    )


DATA = random.Random(1).randbytes(3 << 20)
SOURCES = {
    "bytes": lambda: DATA,
    "a view": lambda: memoryview(bytearray(DATA)),
    "a block": lambda: block_of(DATA),
    "a block for many": lambda: joined([block_of(DATA[:1000]), block_of(DATA[1000:], 1000)]),
    "nothing": lambda: b"",
}


@pytest.mark.parametrize("name", SOURCES)
async def test_all_arrives_at_a_client_that_reads_little_at_a_time(name):
    ours, theirs = socket.socketpair()
    data = SOURCES[name]()
    received = bytearray()
    async with trio.SocketStream(trio.socket.from_stdlib_socket(theirs)) as reader:

        async def read():
            async for piece in reader:
                received.extend(piece)
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            async with trio.SocketStream(trio.socket.from_stdlib_socket(ours)) as stream:
                await Sender(PlainStream(stream)).send(data)
    assert received == (b"" if name == "nothing" else DATA)


async def test_a_client_that_is_gone_is_told_apart():
    ours, theirs = socket.socketpair()
    async with trio.SocketStream(trio.socket.from_stdlib_socket(ours)) as stream:
        theirs.close()
        for source in SOURCES.values():
            if len(data := source()):
                with pytest.raises(trio.BrokenResourceError):
                    await Sender(PlainStream(stream)).send(data)


async def test_a_client_that_takes_nothing_is_dropped_in_time(autojump_clock):
    ours, theirs = socket.socketpair()
    with theirs:
        async with trio.SocketStream(trio.socket.from_stdlib_socket(ours)) as stream:
            with pytest.raises(trio.TooSlowError):
                await Sender(PlainStream(stream)).send(DATA)
