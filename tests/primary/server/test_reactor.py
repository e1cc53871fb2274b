"""One task reads what all clients say between commands: each gets the answers it would get alone, and delays none."""

import functools
import random
import socket
import struct
import threading

import pytest
import trio
import trio.testing

from ibbmaster.primary.server.answering import Answers
from ibbmaster.primary.server.reactor import Reactor
from ibbmaster.replication.wire.command import Ping
from tests.primary.server.conftest import client_of
from tests.primary.server.test_options import Note

CODES = b"\x03\x02\x0e\x16\x17\x19\x1f\x01"
QUERY, INIT_DB, PING, PREPARE, EXECUTE, CLOSE, RESET, QUIT = (bytes([code]) for code in CODES)
COMMANDS = [  # some are answered at once, some by worker threads, some not at all, some with an error
    QUERY + b"SELECT 1",
    PING,
    QUERY + b"SHOW VARIABLES LIKE 'binlog%'",
    QUERY + b"SELECT TABLE_NAME FROM information_schema.TABLES",
    QUERY + b"SET @a = 5",
    PREPARE + b"SELECT @a, ?",
    EXECUTE + struct.pack("<IBIBBHq", 1, 0, 1, 0, 1, 8, 77),
    CLOSE + struct.pack("<I", 1),
    QUERY + b"SELEC",
    INIT_DB + b"information_schema",
    INIT_DB + b"there is none",
    b"\x1d",
    QUERY + b"SELECT '" + b"x" * 40_000 + b"'",
    RESET,
    QUERY + b"SELECT @a",
    QUERY + b"SELECT 1; SELECT 2",
    *[PING] * 30,
    QUERY + b"SELECT 2",
]


@pytest.fixture
async def reactor(nursery):
    reactor = Reactor()
    await nursery.start(reactor.run)
    return reactor


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


def framed(command: bytes) -> bytes:
    return len(command).to_bytes(3, "little") + b"\0" + command


def converse(port: int, pieces: list[bytes], settings: dict) -> bytes:
    connection = client_of(port, **settings)
    one, answers = connection._sock, b""
    one.settimeout(60)
    for piece in pieces:
        one.sendall(piece)
    while data := one.recv(1 << 16):
        answers += data
    connection._force_close()
    return answers


def cut(data: bytes, rng: random.Random, parts: int) -> list[bytes]:
    places = sorted(rng.sample(range(1, len(data)), parts - 1))
    return [data[begin:end] for begin, end in zip([0, *places], [*places, len(data)], strict=True)]


@pytest.mark.parametrize("encryption", ["in clear", "over TLS"])
async def test_a_client_gets_the_answers_that_a_task_of_its_own_would_give(serving, archive, encryption):
    rng = random.Random(random.randrange(2**32))
    is_secret = encryption == "over TLS"
    settings = {"ssl": {"verify_mode": "none"}, "ssl_verify_cert": False, "ssl_disabled": False} if is_secret else {}
    data = b"".join(map(framed, [*COMMANDS, QUIT]))
    ways = [[data], [framed(command) for command in [*COMMANDS, QUIT]], *(cut(data, rng, 50) for _ in range(3))]
    answers = []
    for observer in (Note(), None):  # with one, the task of each connection reads
        async with serving(archive, observer=observer, tls=is_secret) as (_, port):
            asked = functools.partial(trio.to_thread.run_sync, converse, port)
            answers += [await asked(pieces, settings) for pieces in ways]
    assert len(answers[0]) > 40_000
    assert answers == [answers[0]] * len(answers)


async def test_who_asks_much_at_once_lets_others_have_their_turn(serving, archive, monkeypatch):
    answered, are_sent = [], threading.Event()
    answer_at_once = Answers.at_once

    def note(self, command):
        answered.append(self._client.session.connection_id)
        if command == Ping():
            assert are_sent.wait(60)
        return answer_at_once(self, command)

    monkeypatch.setattr(Answers, "at_once", note)

    def ask(port):
        busy, other = client_of(port), client_of(port)
        answered.clear()
        busy._sock.sendall(framed(PING) * 3000)
        other._sock.sendall(framed(PING))
        are_sent.set()
        with busy, other:
            assert other._sock.recv(100)
            busy._sock.settimeout(60)
            size = 0
            while size < 3000 * 11:
                size += len(busy._sock.recv(1 << 16))
        return size

    async with serving(archive) as (_, port):
        assert await trio.to_thread.run_sync(ask, port) == 3000 * 11
    busy_id, other_id = sorted(set(answered))
    assert answered.index(other_id) < len(answered) - 1
    assert answered.count(busy_id) == 3000


async def test_a_task_waits_until_what_was_said_needs_it(reactor, pair):
    ours, theirs = pair
    got = []

    def read() -> bool:
        got.append(ours.recv(10))
        return got[-1] == b"wake"

    async with trio.open_nursery() as nursery:
        nursery.start_soon(reactor.wait, ours.fileno(), read)
        for said in (b"a", b"b", b"wake"):
            await trio.testing.wait_all_tasks_blocked()
            theirs.send(said)
            while got[-1:] != [said]:
                await trio.lowlevel.checkpoint()
    theirs.send(b"too late")
    await trio.testing.wait_all_tasks_blocked()
    assert got == [b"a", b"b", b"wake"]


async def test_what_goes_wrong_with_one_is_raised_where_it_waits(reactor, pair):
    ours, theirs = pair
    theirs.send(b"x")
    with pytest.raises(ZeroDivisionError):
        await reactor.wait(ours.fileno(), lambda: 1 // 0 == 0)
    scope = trio.CancelScope()
    with pytest.raises(ZeroDivisionError), scope, reactor.watching(ours.fileno(), lambda: 1 // 0 == 0, scope.cancel):
        await trio.sleep_forever()
    assert not len(reactor)


async def test_the_socket_of_who_is_cancelled_is_read_no_more(reactor, pair):
    ours, theirs = pair
    got = []
    with trio.move_on_after(0):
        await reactor.wait(ours.fileno(), lambda: got.append(1) is None)
    with reactor.watching(ours.fileno(), lambda: got.append(1) is None, lambda: None):
        pass
    theirs.send(b"x")
    await trio.testing.wait_all_tasks_blocked()
    assert not got
    assert not len(reactor)


async def test_one_that_ends_another_in_the_same_round_is_no_mistake(reactor):
    scopes = [trio.CancelScope(), trio.CancelScope()]
    got = []
    pairs = [socket.socketpair() for _ in scopes]

    async def wait(number: int) -> None:
        def read() -> bool:
            pairs[number][0].recv(1)
            got.append(number)
            scopes[1 - number].cancel()
            return True

        with scopes[number]:
            await reactor.wait(pairs[number][0].fileno(), read)

    for _, theirs in pairs:
        theirs.send(b"x")
    async with trio.open_nursery() as nursery:
        for number in range(2):
            nursery.start_soon(wait, number)
    for ours, theirs in pairs:
        ours.close()
        theirs.close()
    assert len(got) == 1
    assert not len(reactor)


async def test_who_ends_its_own_connection_has_its_answer(serving, archive):
    def kill(port):
        connection = client_of(port, read_timeout=60)
        connection._sock.sendall(framed(b"\x0c" + struct.pack("<I", connection.thread_id())))
        answer = connection._sock.recv(100), connection._sock.recv(100)
        connection._force_close()
        return answer

    async with serving(archive) as (_, port):
        first, second = await trio.to_thread.run_sync(kill, port)
    assert first[4] == 0
    assert second == b""


async def test_a_reactor_that_has_ended_is_left_without_a_word(pair):
    ours, _ = pair
    reactor = Reactor()
    async with trio.open_nursery() as nursery:
        await nursery.start(reactor.run)
        nursery.start_soon(reactor.wait, ours.fileno(), lambda: True)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert not len(reactor)
