"""A client that leaves ends its statement, however it leaves; who holds all threads keeps no administrator waiting."""

import contextlib
import math
import socket
import ssl
import struct

import pytest
import trio

from ibbmaster.primary.dialogue.privileges import CONNECTION_ADMIN, SELECT
from ibbmaster.primary.select import engine as query_engine
from ibbmaster.primary.server.working import THREADS_MAX
from ibbmaster.replication.wire.auth import make_account
from ibbmaster.testkit.primary import FixturePrimary
from ibbmaster.work import BreakReason
from tests.primary.server.conftest import client_of, refusal

QUIT, PING = b"\x01\0\0\0\x01", b"\x01\0\0\0\x0e"
JOIN = "SELECT COUNT(*) FROM {0} a, {0} b, {0} c, {0} d WHERE CONCAT(a.{1}, b.{1}) < d.{1}"
AS_A_REPLICA = "SET @mariadb_slave_capability = 4, @slave_connect_state = '', @master_binlog_checksum = 'CRC32'"
ANSWER_BYTES = 4 << 20  # more than sockets hold of an answer that nobody reads


@pytest.fixture(scope="module")
def large_log(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "log"
    with FixturePrimary(path) as primary:
        table = primary.table("shop.big", id="int primary key", note="varchar(255)")
        per_row = 250
        for start in range(0, ANSWER_BYTES // per_row, 10):
            table.insert(*({"id": start + number, "note": "x" * per_row} for number in range(10)))
    return path


STATEMENTS = {
    "a join of what every server has": b"\x03" + JOIN.format("information_schema.columns", "column_name").encode(),
    "a sort of a table of the log": b"\x03SELECT id FROM shop.big ORDER BY CONCAT(UPPER(note), LOWER(note)), id",
    "a scan of a large table": b"\x03SELECT * FROM shop.big WHERE note > 'a'",
    "a large result that is sorted": b"\x03SELECT UPPER(note), id FROM shop.big ORDER BY UPPER(note), id",
    "SHOW BINLOG EVENTS": b"\x03SHOW BINLOG EVENTS",
    "a dump": b"\x12" + struct.pack("<IHI", 4, 0, 9),
}


def connected(port, *, tls, **settings):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return client_of(port, **settings, **({"ssl": context, "ssl_disabled": False} if tls else {}))


def ask(connection, payload):
    connection._sock.sendall(len(payload).to_bytes(3, "little") + b"\0" + payload)


def reset(connection):
    connection._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection._force_close()


def say_farewell(connection):
    connection._sock.setblocking(False)
    with contextlib.suppress(OSError, ValueError):
        connection._sock.unwrap()


def quit_after_more(connection):
    connection._sock.sendall(PING + QUIT)
    connection._force_close()


def close_after_more(connection):
    connection._sock.sendall(PING * 10_000)
    connection._force_close()


WAYS = {
    "with COM_QUIT": lambda connection: connection._sock.sendall(QUIT),
    "closing its socket": lambda connection: connection._force_close(),
    "with COM_QUIT behind another command": quit_after_more,
    "with many commands unanswered": close_after_more,
    "by a reset": reset,
    "with a farewell of TLS": say_farewell,
}


async def until(is_so):
    while not is_so():
        await trio.lowlevel.checkpoint()


def threads_at_work(primary):
    limiters = (primary._parts.pumps, trio.to_thread.current_default_thread_limiter())
    return primary.workers.at_work + sum(limiter.borrowed_tokens for limiter in limiters)


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("way", WAYS)
async def test_what_a_client_has_asked_ends_when_it_leaves(serving, large_log, monkeypatch, statement, way, tls):
    if not tls and way == "with a farewell of TLS":
        pytest.skip("in clear nobody says it")
    monkeypatch.setattr(query_engine, "STEPS_MAX", 1 << 60)
    connections = []
    async with serving(large_log, tls=tls) as (primary, port):
        connection = await trio.to_thread.run_sync(lambda: connected(port, tls=tls))
        connections.append(connection)  # one that is forgotten would be closed
        (session,) = primary.registry
        command = STATEMENTS[statement]
        is_dump = command[0] == 0x12
        if is_dump:
            await trio.to_thread.run_sync(connection.query, AS_A_REPLICA)
        ask(connection, command)
        await until(lambda: session.dump_server_id is not None if is_dump else session.work is not None)
        work = session.work
        await trio.to_thread.run_sync(WAYS[way], connection)
        await until(lambda: not len(primary.registry) and threads_at_work(primary) == 0)
        assert is_dump or work.reason is BreakReason.LEFT
    connection._force_close()


@pytest.fixture
async def held(serving, large_log, monkeypatch):
    """A primary all of whose threads are held by accounts that may do nothing; gives it and its port."""
    monkeypatch.setattr(query_engine, "STEPS_MAX", 1 << 60)
    others = tuple((make_account(f"other{number}", "pw"), frozenset[str]()) for number in range(2))
    others += ((make_account("admin", "pw"), frozenset({SELECT, CONNECTION_ADMIN})),)
    async with serving(large_log, other_accounts=others) as (primary, port):
        attackers = []
        for number in range(2 * THREADS_MAX):
            user = f"other{number % 2}"
            attacker = await trio.to_thread.run_sync(lambda: connected(port, tls=False, user=user, password="pw"))  # noqa: B023
            attackers.append(attacker)
            ask(attacker, STATEMENTS["a join of what every server has"])
        await until(lambda: primary.workers.at_work == THREADS_MAX)
        yield primary, port, attackers
        for attacker in attackers:
            attacker._force_close()
        await until(lambda: primary.workers.at_work == 0)


def rows_of(connection, sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


async def test_where_all_threads_are_held_who_is_connected_is_told_and_ended(held):
    primary, port, attackers = held

    def converse():
        with connected(port, tls=False, user="other0", password="pw", read_timeout=60) as connection:
            assert rows_of(connection, "SELECT 1") == ((1,),)
            listed = rows_of(connection, "SHOW PROCESSLIST")
            own = {attacker.thread_id() for attacker in attackers[::2]}
            assert {row[0] for row in listed} == {*own, connection.thread_id()}
            rows_of(connection, f"KILL QUERY {attackers[0].thread_id()}")
            rows_of(connection, f"KILL {attackers[2].thread_id()}")
        attackers[0]._next_seq_id = 1
        refused = refusal(attackers[0]._read_packet)
        assert attackers[2]._sock.recv(100) == b""
        return refused

    assert await trio.to_thread.run_sync(converse) == (1317, "Query execution was interrupted")
    await until(lambda: primary.workers.at_work == THREADS_MAX)  # others have their turn


async def test_an_administrator_waits_for_no_thread_that_others_hold(held):
    _primary, port, _attackers = held

    def converse():
        with connected(port, tls=False, user="admin", password="pw", read_timeout=60) as connection:
            return rows_of(connection, "SELECT COUNT(*) FROM shop.big WHERE id < 10")

    assert await trio.to_thread.run_sync(converse) == ((10,),)


async def test_a_statement_that_waits_for_a_thread_can_be_ended(held):
    primary, _port, attackers = held
    session = next(session for session in primary.registry if math.isinf(session.work._end))  # it is not at work
    primary.registry.kill(session.connection_id, query_only=True)
    (attacker,) = [one for one in attackers if one.thread_id() == session.connection_id]

    def read():
        attacker._next_seq_id = 1
        refused = refusal(attacker._read_packet)
        attacker.ping()
        return refused[0]

    assert await trio.to_thread.run_sync(read) == 1317


BOUNDS = {
    "time": ({"statement_s": 0.1}, 1 << 60, 1969, "served with a larger --max-statement-time"),
    "steps": ({}, 1, 1104, "check your WHERE, or "),
}


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("statement", ["a join of what every server has", "a sort of a table of the log"])
async def test_no_statement_works_without_an_end(serving, large_log, monkeypatch, statement, bound):
    options, steps, code, how_to_go_on = BOUNDS[bound]
    monkeypatch.setattr(query_engine, "STEPS_MAX", steps)
    monkeypatch.setattr(query_engine, "STEPS_OF_TABLES", steps)
    async with serving(large_log, **options) as (_, port):

        def converse():
            with connected(port, tls=False, read_timeout=60) as connection:
                refused = refusal(connection.query, STATEMENTS[statement][1:])
                assert rows_of(connection, "SELECT 1") == ((1,),)
            return refused

        found, text = await trio.to_thread.run_sync(converse)
    assert found == code
    assert how_to_go_on in text


async def test_a_statement_whose_answer_is_read_slowly_can_be_ended_in_its_middle(serving, large_log):
    async with serving(large_log) as (primary, port):
        connection = await trio.to_thread.run_sync(lambda: connected(port, tls=False, read_timeout=60))
        (session,) = primary.registry
        ask(connection, STATEMENTS["a large result that is sorted"])
        await trio.to_thread.run_sync(connection._sock.recv, 1)
        primary.registry.kill(session.connection_id, query_only=True)

        def read():
            answer = b""
            while not answer.endswith(b"#70100Query execution was interrupted"):
                answer += connection._sock.recv(1 << 16)
            connection._sock.sendall(PING)
            return connection._sock.recv(100)

        pong = await trio.to_thread.run_sync(read)
    assert pong[4:5] == b"\0"
