"""Bytes from a socket: what is there, nothing yet, the end, and a connection that is lost are told apart."""

from __future__ import annotations

import select
import socket

import pytest
import trio

from ibbmaster.server.socket_reading import read_now


def test_what_is_there_what_is_not_and_the_end_are_told_apart():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        assert read_now(ours.fileno(), 10) is None
        theirs.send(b"0123456789abc")
        assert read_now(ours.fileno(), 10) == b"0123456789"
        assert read_now(ours.fileno(), 10) == b"abc"
        theirs.close()
        assert read_now(ours.fileno(), 10) == b""


def test_a_connection_that_was_reset_is_lost():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        theirs = socket.create_connection(listener.getsockname())
        ours, _ = listener.accept()
    with ours:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        theirs.close()
        select.select([ours], [], [])
        with pytest.raises(trio.BrokenResourceError):
            read_now(ours.fileno(), 10)
