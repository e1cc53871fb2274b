"""A socket takes what it can, and a failure is left to who sends the rest."""

from __future__ import annotations

import socket

from ibbmaster.streaming.sink import SocketSink


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


def test_a_client_that_is_gone_takes_nothing():
    ours, theirs = socket.socketpair()
    with ours:
        theirs.close()
        assert SocketSink(ours.fileno()).write(b"a") == 0
