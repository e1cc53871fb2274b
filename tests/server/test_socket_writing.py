"""Bytes to a socket: all of them in order, however little it takes at once."""

from __future__ import annotations

import random
import socket

import pytest
import trio

from ibbmaster.server.socket_writing import write_all


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    with ours, theirs:
        yield ours, theirs


async def test_all_bytes_arrive_where_the_socket_takes_few(pair):
    ours, theirs = pair
    data, got, waits = random.Random(1).randbytes(1 << 20), bytearray(), 0

    async def wait(descriptor):
        nonlocal waits
        waits += 1
        got.extend(theirs.recv(100_000))
        await trio.lowlevel.checkpoint()

    await write_all(ours.fileno(), data, wait)
    while len(got) < len(data):
        got += theirs.recv(1 << 20)
    assert got == data
    assert waits > 1


async def test_a_client_that_has_gone_is_an_error_of_the_connection(pair):
    ours, theirs = pair
    theirs.close()
    with pytest.raises(trio.BrokenResourceError):
        await write_all(ours.fileno(), b"data", trio.lowlevel.wait_writable)
