import contextlib
import socket
import struct
import threading

import pymysql
import pytest
import trio

from ibbmaster.primary.server.options import ConnectionStep
from ibbmaster.replication.wire.command import BinlogDump
from ibbmaster.replication.wire.response import Err
from ibbmaster.testkit import FixturePrimary
from ibbmaster.testkit.fault_stage import Faults


@contextlib.contextmanager
def connected(primary, *statements, buffer_bytes=None, **options):
    stream = socket.socket()
    if buffer_bytes is not None:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    stream.connect((primary.host, primary.port))
    connection = pymysql.connect(user=primary.user, ssl_disabled=True, defer_connect=True, **options)
    try:
        connection.connect(stream)
        for statement in statements:
            connection.query(statement)
        yield connection
    finally:
        with contextlib.suppress(pymysql.err.Error):
            connection.close()


@contextlib.contextmanager
def dumping(primary, position="", *, server_id=7, buffer_bytes=None):
    start = f"SET @slave_connect_state='{position}', @mariadb_slave_capability=4"
    with connected(primary, start, buffer_bytes=buffer_bytes) as connection:
        connection._execute_command(0x12, struct.pack("<IHI", 4, 0, server_id))
        yield connection


def test_it_tells_who_connected_and_what_each_said(ibb_primary):
    with connected(ibb_primary, "SELECT 1", database=None) as connection:
        ibb_primary.clock.advance(60)
        connection.ping(reconnect=False)
        (seen,) = ibb_primary.connections
        assert (seen.number, seen.host, seen.user, seen.server_id) == (1, "127.0.0.1", "repl", None)
        assert seen.port == connection._sock.getsockname()[1]
        assert seen.is_connected
        assert not seen.is_dumping
    assert [statement.text for statement in seen.statements][-2:] == ["SELECT 1", "PING"]
    begin = 1767225600
    assert [statement.at for statement in seen.statements[-2:]] == [begin, begin + 60]
    after = [statement.after_s for statement in seen.statements]
    assert after == sorted(after)
    ibb_primary.witness.wait(lambda: not seen.is_connected, 60)
    assert seen.reason == ""


def test_it_tells_how_a_login_failed(ibb_primary):
    with pytest.raises(pymysql.err.OperationalError), connected(ibb_primary, password="wrong"):
        pass
    (seen,) = ibb_primary.connections
    assert ibb_primary.witness.wait(lambda: not seen.is_connected, 60)
    assert (seen.user, seen.reason) == ("", "its login was refused: wrong password")


def test_it_tells_what_was_sent_and_what_the_other_side_has(ibb_primary, orders):
    orders.insert(id=1)
    with dumping(ibb_primary, "0-1-1") as connection:
        ibb_primary.wait_for(7, "0-1-3", 60)
        orders.insert(id=2)
        ibb_primary.wait_for(7, timeout=60)
        (seen,) = ibb_primary.connections
        assert (str(seen.dump_start), seen.dump_file, seen.server_id) == ("0-1-1", ("", 4), 7)
        assert [str(gtid) for gtid in seen.sent_gtids] == ["0-1-2", "0-1-3", "0-1-4"]
        assert seen.acknowledged_gtids == seen.sent_gtids
        assert seen.acknowledged_bytes == seen.sent_bytes
        assert (seen.last_event.type, seen.last_event.ends_group) == ("XID", True)
        assert seen.is_dumping
        received = 0
        while received < seen.sent_bytes:
            received += len(connection._sock.recv(1 << 20))
        assert received == seen.sent_bytes


def test_what_a_replica_had_before_its_dump_it_has(ibb_primary, orders):
    orders.insert(id=1)
    with dumping(ibb_primary, "0-1-3"):
        ibb_primary.wait_for("repl", "0-1-2", 60)
        ibb_primary.wait_for(7, "0-1-3", 60)


def test_a_reader_that_does_not_read_has_not_everything(ibb_primary):
    table = ibb_primary.table("shop.t", id="int primary key", data="mediumblob")
    with dumping(ibb_primary, buffer_bytes=4096):
        for number in range(8):
            table.insert(id=number, data=bytes(1 << 20))
        assert ibb_primary.witness.wait(lambda: any(seen.sent_bytes for seen in ibb_primary.connections), 60)
        with pytest.raises(TimeoutError) as caught:
            ibb_primary.wait_for(7, timeout=0.05)
        (seen,) = ibb_primary.connections
        assert seen.acknowledged_bytes < 8 << 20
    text = str(caught.value)
    assert text.startswith("7 has not got 0-1-10 within 0.05 s: connection 1 of repl@127.0.0.1:")
    assert " (server id 7) dumps from after []: " in text


@pytest.mark.parametrize("profile", ["engine", "compat", "classic-10.11", "classic-11.8"])
def test_groups_are_told_in_every_profile(profile, read_by_python):
    with FixturePrimary(profile=profile) as primary:
        table = primary.table("shop.t", id="int primary key")
        table.insert(id=1)
        with primary.transaction(domain=5, is_transactional=False):
            table.insert(id=2)
        read_by_python(primary)
        primary.wait_for(4711, timeout=60)  # a client may have read what is about to be noted
        seen = next(one for one in primary.connections if one.dump_file is not None)
        assert [str(gtid) for gtid in seen.sent_gtids] == ["0-1-1", "0-1-2", "0-1-3", "5-1-1"]
        assert seen.sent[0].gtid is None


def test_a_timeout_says_what_each_replica_was_doing(ibb_primary, orders):
    with pytest.raises(TimeoutError, match=r"7 has not got 0-1-2 within 0 s: nobody has connected"):
        ibb_primary.wait_for(7, timeout=0)
    with connected(ibb_primary, "SELECT 5"):
        with pytest.raises(TimeoutError, match=r"no connection of 7, but connection 1 of repl@.* asked for no dump"):
            ibb_primary.wait_for(7, timeout=0)
        with pytest.raises(TimeoutError, match="and last said 'SELECT 5'"):
            ibb_primary.wait_for("repl", timeout=0)
    with pytest.raises(pymysql.err.MySQLError), dumping(ibb_primary, "0-1-99", server_id=9) as connection:
        connection._read_packet()
    assert ibb_primary.witness.wait(lambda: not ibb_primary.connections[-1].is_connected, 60)
    with pytest.raises(TimeoutError, match="asked for a dump that did not begin; ended: its dump was refused: "):
        ibb_primary.wait_for(9, timeout=0)


def test_under_tls_what_was_sent_is_all_that_is_known():
    with FixturePrimary(tls="auto") as primary:
        primary.ddl("CREATE DATABASE shop")
        connection = pymysql.connect(
            host=primary.host, port=primary.port, user=primary.user, ssl={"check_hostname": False}
        )
        with connection:
            connection.query("SET @slave_connect_state='', @mariadb_slave_capability=4")
            connection._execute_command(0x12, struct.pack("<IHI", 4, 0, 7))
            primary.wait_for(7, "0-1-1", 60)
            (seen,) = primary.connections
            assert seen.acknowledged_gtids is None
            assert [str(gtid) for gtid in seen.sent_gtids] == ["0-1-1"]


class Interfering(Faults):
    """Refuses dumps of one server id, and cuts off the last byte of every block of another."""

    def __init__(self):
        super().__init__()
        self.left_count = 0

    async def reached(self, step, session, command):
        if step is ConnectionStep.ASKED and isinstance(command, BinlogDump) and command.server_id == 13:
            return (Err(code=1236, sqlstate="HY000", text="unlucky"),)
        return None

    def left(self, session):
        self.left_count += 1

    def stage(self, session):
        return Shortening()


class Shortening:
    async def pass_on(self, block, send):
        from ibbmaster.primary.streaming.block import plain_block

        await send(plain_block(bytes(block.data())[:-1], block.after))


class Cutting:
    def __init__(self, session, is_enough, resets):
        self._socket, self._is_enough, self._resets = session.socket, is_enough, resets

    async def pass_on(self, block, send):
        await send(block)
        if self._is_enough():
            if self._resets:
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            raise trio.BrokenResourceError("cut by the test")


@pytest.mark.parametrize("resets", [True, False])
def test_what_was_not_acknowledged_before_a_reset_may_be_lost_and_else_comes(resets):
    faults = Interfering()
    faults.stage = lambda session: Cutting(session, lambda: len(primary.connections[0].sent_gtids) == 3, resets)
    with FixturePrimary(faults=faults) as primary:
        primary.table("shop.t", id="int primary key", data="mediumblob").insert(id=1, data=bytes(12_000))
        with dumping(primary, buffer_bytes=4096) as connection:
            (seen,) = primary.connections
            assert primary.witness.wait(lambda: not seen.is_connected, 60)
            assert seen.reason == "cut by the test"
            last = seen.sent_gtids[-1]
            assert str(last) == "0-1-3"
            assert seen.has(last) is not resets
            received, data = 0, b"x"
            with contextlib.suppress(ConnectionResetError):
                while data:
                    data = connection._sock.recv(1 << 20)
                    received += len(data)
            assert resets or received == seen.sent_bytes


def test_it_notes_what_is_left_of_a_stream_behind_the_faults():
    faults = Interfering()
    with FixturePrimary(faults=faults) as primary:
        primary.table("shop.t", id="int primary key")
        with pytest.raises(pymysql.err.MySQLError, match="unlucky"), dumping(primary, server_id=13) as connection:
            connection._read_packet()
        with dumping(primary, server_id=14):
            seen = primary.connections[-1]
            assert primary.witness.wait(lambda: seen.sent_bytes > 0, 60)
            with pytest.raises(TimeoutError):
                primary.wait_for(14, "0-1-2", timeout=0.02)
    assert faults.left_count == 2


def test_it_is_read_while_it_is_written(ibb_primary, orders):
    stop = threading.Event()
    problems = []

    def look():
        while not stop.is_set():
            try:
                [str(one) for one in ibb_primary.connections]
                [one.acknowledged_gtids for one in ibb_primary.connections]
            except Exception as error:
                problems.append(error)

    thread = threading.Thread(target=look)
    thread.start()
    for _ in range(5):
        with dumping(ibb_primary):
            orders.insert(id=len(orders))
            ibb_primary.wait_for(7, timeout=60)
    stop.set()
    thread.join()
    assert problems == []
