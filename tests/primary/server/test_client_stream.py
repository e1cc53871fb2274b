"""Bytes to a socket: all in order, however little it takes at once; and from one: some, none yet, the end, or lost."""

import random
import select
import socket
from types import SimpleNamespace

import numpy as np
import pytest
import trio

from ibbmaster.position import LogPosition
from ibbmaster.primary.server.client_stream import PlainStream, Sender
from ibbmaster.primary.streaming.block import Block, FramingState, Packets, joined


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    with ours, theirs:
        yield ours, theirs


def stream_of(ours):
    return PlainStream(SimpleNamespace(socket=ours))


async def test_all_bytes_arrive_where_the_socket_takes_few(pair):
    ours, theirs = pair
    data, got, waits = random.Random(1).randbytes(1 << 20), bytearray(), 0

    async def wait(descriptor):
        nonlocal waits
        waits += 1
        got.extend(theirs.recv(100_000))
        await trio.lowlevel.checkpoint()

    await stream_of(ours).send_all(data, wait=wait)
    while len(got) < len(data):
        got += theirs.recv(1 << 20)
    assert got == data
    assert waits > 1


def test_what_is_there_what_is_not_and_the_end_are_told_apart(pair):
    ours, theirs = pair
    assert stream_of(ours).receive_now(10) is None
    theirs.send(b"0123456789abc")
    assert stream_of(ours).receive_now(10) == b"0123456789"
    assert stream_of(ours).receive_now(10) == b"abc"
    theirs.close()
    assert stream_of(ours).receive_now(10) == b""


def test_a_connection_that_was_reset_is_lost():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        theirs = socket.create_connection(listener.getsockname())
        ours, _ = listener.accept()
    with ours:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        theirs.close()
        select.select([ours], [], [])
        with pytest.raises(trio.BrokenResourceError):
            stream_of(ours).receive_now(10)


def block_of(data, start=0):
    packets = Packets(np.frombuffer(bytearray(data), dtype=np.uint8))
    return Block(packets, *(FramingState(LogPosition(0, at)) for at in (start, start + len(data))))


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


async def test_a_client_that_is_gone_is_an_error_of_the_connection():
    ours, theirs = socket.socketpair()
    async with trio.SocketStream(trio.socket.from_stdlib_socket(ours)) as stream:
        theirs.close()
        with pytest.raises(trio.BrokenResourceError):
            await PlainStream(stream).send_all(b"data", wait=trio.lowlevel.wait_writable)
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
