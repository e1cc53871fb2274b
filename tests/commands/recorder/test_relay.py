import contextlib
import random
import socket
import threading

import pytest
import trio

from ibbmaster.commands.recorder.relay import Relay, RelayedConnection, listen_on
from ibbmaster.errors import ConfigurationError
from ibbmaster.testkit.incident import BY_RESET
from tests.recorded import relaying

TIMEOUT_S = 60.0


class Heard(RelayedConnection):
    def __init__(self):
        self.scope = trio.CancelScope()
        self.ends = []
        self.ended = threading.Event()

    async def connected(self):
        self.ends.append("connected")

    async def from_primary(self, data, waited_s, send):
        await send(data)

    async def from_client(self, data, send):
        await send(data)

    async def primary_left(self, by):
        self._end(f"primary {by}")

    async def client_left(self, by, silent_s):
        self._end(f"client {by}")

    async def refused(self):
        self._end("refused")

    def _end(self, how):
        self.ends.append(how)
        self.ended.set()


@contextlib.contextmanager
def connected(heard):
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = stack.enter_context(relaying(Relay(listener.getsockname(), lambda client, peer: heard)))
        client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S))
        primary = stack.enter_context(listener.accept()[0])
        primary.settimeout(TIMEOUT_S)
        yield client, primary


def receive(one, size):
    data = b""
    while len(data) < size and (piece := one.recv(1 << 16)):
        data += piece
    return data


def test_every_byte_of_both_directions_comes_through():
    with connected(Heard()) as (client, primary):
        down, up = random.randbytes(3_000_000), random.randbytes(2_000_000)
        senders = [threading.Thread(target=one.sendall, args=(data,)) for one, data in ((primary, down), (client, up))]
        found = {}
        receivers = [
            threading.Thread(target=lambda one=one, size=size: found.update({one: receive(one, size)}))
            for one, size in ((client, len(down)), (primary, len(up)))
        ]
        for thread in (*senders, *receivers):
            thread.start()
        for thread in (*senders, *receivers):
            thread.join(TIMEOUT_S)
        assert (found[client], found[primary]) == (down, up)


def test_a_client_that_does_not_read_holds_the_primary_up():
    with connected(Heard()) as (_, primary):
        primary.settimeout(0.5)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 200_000_000:
                sent += primary.send(bytes(1 << 20))
        assert sent < 100_000_000  # what the system keeps for three sockets, and not more


def end(one, by):
    if by == "reset":
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, BY_RESET)
        one.close()
    else:
        one.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize("by", ["end", "reset"])
@pytest.mark.parametrize("who", ["primary", "client"])
def test_an_end_is_passed_on_as_what_it_is_behind_all_that_was_sent(who, by):
    heard = Heard()
    with connected(heard) as (client, primary):
        first, other = (primary, client) if who == "primary" else (client, primary)
        first.sendall(b"x" * 100_000)
        assert receive(other, 100_000) == b"x" * 100_000  # a reset may overtake what is not read
        end(first, by)
        if by == "reset":
            with pytest.raises(ConnectionResetError):
                other.recv(1)
        else:
            assert other.recv(1) == b""
            other.sendall(b"more")
            assert receive(first, 4) == b"more"
            end(other, "end")
        assert heard.ended.wait(TIMEOUT_S)
        assert heard.ends == ["connected", f"{who} {by}"]


def test_what_a_primary_said_before_it_went_comes_through_even_if_the_client_speaks_on():
    with connected(Heard()) as (client, primary):
        primary.sendall(b"last words")
        primary.close()
        for _ in range(50):
            with contextlib.suppress(OSError):
                client.sendall(b"x")
        assert receive(client, 10) == b"last words"


def test_a_primary_that_is_not_there_resets_the_client():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
    heard = Heard()
    with (
        relaying(Relay(address, lambda client, peer: heard)) as port,
        pytest.raises(ConnectionResetError),  # perhaps while the client still waits for its connection
        socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as client,
    ):
        client.recv(1)
    assert heard.ends == ["refused"]


def test_no_more_connections_than_allowed_are_relayed():
    with socket.create_server(("127.0.0.1", 0)) as listener, contextlib.ExitStack() as stack:
        relay = Relay(listener.getsockname(), lambda client, peer: Heard(), max_connections=2)
        port = stack.enter_context(relaying(relay))
        clients, primaries = [], []
        for _ in range(2):
            clients.append(stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)))
            primaries.append(stack.enter_context(listener.accept()[0]))
        with pytest.raises(ConnectionResetError):  # which may come before the connection is made
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)).recv(1)
        primaries[0].sendall(b"still here")
        assert receive(clients[0], 10) == b"still here"
        for one in (clients[0], primaries[0]):
            one.close()
        listener.settimeout(0.2)
        while True:  # the place is free again, soon
            with contextlib.suppress(ConnectionResetError, TimeoutError):
                fourth = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S))
                stack.enter_context(listener.accept()[0]).sendall(b"hello")
                assert receive(fourth, 5) == b"hello"
                break


def test_an_address_in_use_is_said():
    message = r"cannot listen on 127\.0\.0\.1"
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ConfigurationError, match=message):
        trio.run(listen_on, *taken.getsockname())
