import contextlib
import socket
import struct
import time

import pymysql
import pytest

import ibbmaster
from ibbmaster.testkit.fixture_logs import TORN
from ibbmaster.testkit.primary import FixturePrimary
from tests.tap import ask_for_dump, connect, listen_in


def followed(primary):
    return contextlib.closing(ask_for_dump(primary.port))


def read_all(connection):
    try:
        while True:
            packet = connection._read_packet()
            if packet.is_eof_packet():
                return "eof"
    except pymysql.err.MySQLError as error:
        return error.args[0]
    except ConnectionResetError:
        return "reset"


def gtids(primary, **how):
    found = [p for p in listen_in(primary.port, **how).packets if p[0] == 0 and p[5] == 162]
    return [f"{struct.unpack_from('<QI', p, 20)[1]}-{struct.unpack_from('<I', p, 6)[0]}-{p[20]}" for p in found]


def test_a_crash_resets_everybody_and_the_port_stays_closed_for_its_time():
    with FixturePrimary() as primary:
        primary.table("shop.t", id="int primary key").insert(id=1)
        port = primary.port
        primary.fault("after commit 3", action="crash", closed_s=0.3)
        begun = time.monotonic()
        assert read_all_after_crash(primary) in (2013, "reset")
        is_closed = False
        while not is_closed and time.monotonic() - begun < 0.3:  # later it is open again
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                is_closed = True
        assert is_closed or time.monotonic() - begun >= 0.3
        primary.faults.wait(60)
        assert time.monotonic() - begun >= 0.3
        assert gtids(primary) == ["0-1-1", "0-1-2", "0-1-3"]
        assert primary.port == port


@pytest.mark.parametrize("torn", TORN)
def test_a_crash_in_the_middle_of_a_write_takes_back_nothing_that_was_sent(torn):
    with FixturePrimary() as primary:
        table = primary.table("shop.t", id="int primary key")
        for number in range(20):
            table.insert(id=number)
        primary.fault("after commit 22", action="crash", torn=torn)
        assert read_all_after_crash(primary) in (2013, "reset")
        primary.faults.wait(60)
        assert [record.problem for record in primary.faults.done] == [""]
        table.insert(id=20)
        assert gtids(primary) == [f"0-1-{number}" for number in range(1, 24)]


def test_only_a_log_of_a_test_is_torn(tmp_path):
    with ibbmaster.create(tmp_path / "log") as log, FixturePrimary(log) as primary:
        log.append("0-1-1", "CREATE DATABASE shop")
        primary.fault("before dump", action="crash", torn="redo")
        assert gtids(primary) == ["0-1-1"]
        primary.faults.wait(60)
        assert "is none that fixture_log has made" in primary.faults.done[-1].problem


def read_all_after_crash(primary):
    with followed(primary) as connection:
        return read_all(connection)


def test_a_restart_ends_dumps_in_order_and_may_make_another_server_of_it():
    with FixturePrimary(profile="engine") as primary:
        primary.table("shop.t", id="int primary key").insert(id=1)
        primary.fault("before statement", action="restart", sql="restart now", profile="10.6")
        with followed(primary) as connection:
            with pytest.raises((pymysql.err.MySQLError, OSError)), contextlib.closing(connect(primary)) as other:
                other.query("SELECT 'restart now'")
            assert read_all(connection) == "eof"
        primary.faults.wait()
        with contextlib.closing(connect(primary)) as connection:
            assert connection.get_server_info().endswith("10.6.22-MariaDB-log")
        assert [record.problem for record in primary.faults.done] == [""]


@pytest.mark.parametrize(
    ("place", "last"),
    [
        ("before gtid 3", "QUERY"),
        ("after rows 1", "WRITE_ROWS_V1"),
        ("inside rows 1 at byte 10", "WRITE_ROWS_V1"),
        ("after commit 3", "XID"),
    ],
)
@pytest.mark.parametrize("profile", ["12.3", "11.8"])
def test_a_restart_inside_a_dump_ends_it_there_with_its_last_packet(profile, place, last):
    """The dump does not wait for the stop that waits for it."""
    with FixturePrimary(profile=profile) as primary:
        table = primary.table("shop.t", id="int primary key")
        table.insert(id=1)
        table.insert(id=2)
        primary.fault(place, action="restart")
        with followed(primary) as connection:
            assert read_all(connection) == "eof"
        primary.faults.wait(60)
        assert [record.problem for record in primary.faults.done] == [""]
        assert [event.type for event in primary.connections[0].sent[-2:]] == [last, "EOF"]
        assert gtids(primary) == ["0-1-1", "0-1-2", "0-1-3", "0-1-4"]


def test_files_are_purged_under_a_reader_that_finds_its_place_gone():
    with FixturePrimary() as primary:
        primary.table("shop.t", id="int primary key").insert(id=1)
        primary.fault("before gtid 3", action="purge")
        found = listen_in(primary.port)
        assert [p[5] for p in found.packets].count(162) == 2
        assert found.end == "reset"
        primary.faults.wait()
        assert [record.problem for record in primary.faults.done] == [""]
        assert primary.log.files[0].file_no == 1
        refused = listen_in(primary.port, position="0-1-2").packets[-1]
        assert refused.startswith(b"\xff" + struct.pack("<H", 1236))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["0-1-1", "0-1-2", "0-1-3", "0-1-4"]),
        ({"lose": 2}, ["0-1-1", "0-1-2"]),
        ({"lose": 1, "add": 2, "server_id": 8}, ["0-1-1", "0-1-2", "0-1-3", "0-8-4", "0-8-5"]),
    ],
)
def test_another_primary_lags_or_has_diverged(given, expected):
    with FixturePrimary() as primary:
        table = primary.table("shop.t", id="int primary key")
        table.insert(id=1)
        table.insert(id=2)
        primary.fault("after commit 4", action="failover", **given)
        assert read_all_after_crash(primary) in (2013, "reset")
        primary.faults.wait()
        assert gtids(primary) == expected
        assert [record.problem for record in primary.faults.done] == [""]


def test_the_clock_jumps_and_what_cannot_happen_is_said():
    with FixturePrimary() as primary:
        now = primary.clock.now
        primary.fault("before dump", action="clock", seconds=-90)
        listen_in(primary.port)
        assert primary.clock.now == now - 90
    with FixturePrimary() as primary:
        primary.fault("before dump", action="restart", profile="9.9")
        listen_in(primary.port)
        primary.faults.wait()
        assert "there is no profile '9.9'" in primary.faults.done[-1].problem


def test_a_restart_that_is_waited_for_ends_with_its_primary():
    begun = time.monotonic()
    with FixturePrimary() as primary:
        primary.fault("before dump", action="crash", closed_s=3600)
        listen_in(primary.port)
    assert time.monotonic() - begun < 3600
