"""A socket takes what it can, and a failure is left to who sends the rest."""

import random
import socket
import threading

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
