import functools
import shutil
import socket
import threading
from pathlib import Path

import pymysql
import pytest
import trio
from lanes.primary import login_of
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import MariadbGtidEvent, QueryEvent

import ibbmaster
from ibbmaster.replication.event.gtid_event import decode_gtid
from ibbmaster.replication.event.header import decode_event_header
from ibbmaster.replication.event.types import EventType
from tests.case_table import data_beside
from tests.damage import flip
from tests.tap import listen_in

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:pymysql")  # how python-mysql-replication calls it

FIXTURES = Path(__file__).parents[2] / "fixtures"
INSERT = "INSERT INTO shop.orders VALUES (1)"


def ask(primary, statement):
    with pymysql.connect(**login_of(primary)) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def stream(primary, *, position="", blocking=False):
    return BinLogStreamReader(
        connection_settings=login_of(primary),
        server_id=4711,
        is_mariadb=True,
        auto_position=position,
        blocking=blocking,
        only_events=[MariadbGtidEvent, QueryEvent],
    )


def serving_threads():
    return [thread for thread in threading.enumerate() if thread.name == "ibbmaster-serve"]


@pytest.mark.parametrize("path", ["ibb/domains", "classic/10.11/domains"])
def test_a_directory_is_served_to_clients(path):
    with ibbmaster.open(FIXTURES / path) as log, ibbmaster.serve(log, password="s3cret", tls="off") as primary:
        assert ask(primary, "SELECT @@gtid_binlog_pos") == ((str(log.position),),)
        reader = stream(primary)
        assert [event.gtid for event in reader if isinstance(event, MariadbGtidEvent)] == [
            str(group.gtid) for group in log
        ]
        reader.close()


def test_what_is_appended_reaches_a_replica_that_waits(tmp_path):
    with ibbmaster.create(tmp_path) as log, ibbmaster.serve(log, tls="off") as primary:
        log.append("0-1-1", INSERT)
        reader = stream(primary, blocking=True)
        events = (event.gtid for event in reader if isinstance(event, MariadbGtidEvent))
        assert next(events) == "0-1-1"
        for number in (2, 3):
            log.append(f"0-1-{number}", INSERT)
            assert next(events) == f"0-1-{number}"
        assert [(replica.server_id, replica.user) for replica in primary.replicas] == [(4711, "repl")]
        reader.close()


def test_a_path_is_opened_and_served_and_its_files_are_let_go(tmp_path):
    shutil.copytree(FIXTURES / "ibb" / "types", tmp_path / "log")
    with ibbmaster.serve(tmp_path / "log") as primary:
        assert ask(primary, "SHOW MASTER STATUS")[0][0] == "binlog-000002.ibb"
        assert primary.log.path == tmp_path / "log"
    ibbmaster.open(tmp_path / "log", writable=True).close()


def test_a_primary_that_is_stopped_lets_its_port_and_thread_go_and_may_be_stopped_again(tmp_path):
    before = serving_threads()
    with ibbmaster.create(tmp_path) as log:
        primary = ibbmaster.serve(log, tls="off")
        waiting = stream(primary, blocking=True)
        log.append("0-1-1", INSERT)
        assert isinstance(next(iter(waiting)), MariadbGtidEvent)
        primary.stop()
        primary.stop()
        assert serving_threads() == before
        with pytest.raises(ConnectionRefusedError), socket.create_connection((primary.host, primary.port)):
            pass
        waiting.close()
        with ibbmaster.serve(log, port=primary.port, tls="off") as again:  # also to the same port
            assert again.port == primary.port
            assert ask(again, "SELECT 1") == ((1,),)


def test_a_log_may_be_served_twice_at_once(tmp_path):
    with (
        ibbmaster.create(tmp_path) as log,
        ibbmaster.serve(log, tls="off") as one,
        ibbmaster.serve(log, tls="off", profile="classic-11.8", server_id=9) as other,
    ):
        assert one.port != other.port
        assert ask(other, "SELECT @@server_id, @@version") == ((9, "11.8.6-MariaDB-log"),)
        assert ask(one, "SELECT @@server_id") == ((1,),)


def test_the_dsn_is_enough_to_connect(tmp_path):
    from urllib.parse import unquote, urlsplit

    with ibbmaster.create(tmp_path) as log, ibbmaster.serve(log, user="a@b", password="p:/ %", tls="off") as primary:
        parts = urlsplit(primary.dsn)
        assert (parts.hostname, parts.port) == (primary.host, primary.port)
        assert (unquote(parts.username or ""), unquote(parts.password or "")) == ("a@b", "p:/ %")
        assert ask(primary, "SELECT USER()")[0][0].startswith("a@b@")
        assert "p:/ %" not in repr(primary)


def test_replicas_hold_up_a_purge_of_the_log_they_follow(tmp_path):
    with ibbmaster.create(tmp_path, max_total_bytes=1, replicas_needed_for_purge=1, has_background=False) as log:
        with ibbmaster.serve(log, tls="off") as primary:
            log.append("0-1-1", INSERT)
            log.flush()
            assert log.store.purge_automatically(now=0.0) is None  # nobody is connected
            reader = stream(primary, position="0-1-1", blocking=True)
            log.append("0-1-2", INSERT)
            assert next(iter(reader)).gtid == "0-1-2"
            assert log.store.connected_replicas() == 1
            assert log.store.purge_automatically(now=0.0) is not None
            reader.close()
        assert log.store.connected_replicas() == 0


DATA = data_beside(__file__)
EMULATED, REFUSED = DATA["emulated"], DATA["refused"]


@pytest.mark.parametrize(("path", "options", "expected"), EMULATED.values(), ids=EMULATED)
def test_traditional_files_are_served_as_their_server_did_unless_told(path, options, expected):
    with ibbmaster.serve(FIXTURES / path, tls="off", **options) as primary:
        profile = primary.options.profile
        assert profile.name == expected[0]
        assert profile.server_version.startswith(expected[1])
        if "opening_timestamp" in options:
            assert profile.opening_timestamp.value == options["opening_timestamp"]


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_an_option_that_cannot_be_used_is_refused_before_the_log_is_touched(tmp_path, options, message):
    before = serving_threads()
    with pytest.raises(ibbmaster.ConfigurationError, match=message):
        ibbmaster.serve(tmp_path / "not looked at", **options)
    assert serving_threads() == before


def test_a_port_that_is_taken_and_a_log_that_cannot_be_read_are_told_to_the_caller(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ibbmaster.ConfigurationError, match=f"cannot listen on 127.0.0.1:{port}"):
            ibbmaster.serve(tmp_path, port=port, tls="off")
    shutil.copytree(FIXTURES / "ibb" / "types", tmp_path / "log")
    flip(tmp_path / "log" / "binlog-000003.ibb", 100)
    with pytest.raises(ibbmaster.FormatError, match=r"binlog-000003.ibb page 0"):
        ibbmaster.serve(tmp_path / "log", tls="off")
    with pytest.raises(ibbmaster.StoreError, match="no such file or directory"):
        ibbmaster.serve(tmp_path / "nothing", tls="off")


@pytest.mark.parametrize("capture", ["ibb/types", "classic/11.8/group-commit"])
def test_at_the_end_of_a_part_a_replica_stays_or_is_sent_the_last_packet(capture, fixtures):
    def tapped(at_end, until):
        with ibbmaster.serve(whole, at_end=at_end, tls="off") as primary:
            return listen_in(primary.port, until=until)

    with ibbmaster.open(fixtures / capture) as log:
        gtids = [str(group.gtid) for group in log]
        whole = log.through(until=gtids[9])
        closed = tapped("close", 1 << 30)
        stayed = tapped("stay", sum(4 + len(packet) for packet in closed.packets[:-1]))
    assert (closed.end, closed.packets[-1][0], stayed.end) == ("end", 0xFE, "silence")
    assert [packet[5:] for packet in stayed.packets] == [
        packet[5:] for packet in closed.packets[:-1]
    ]  # but their times
    heads = [payload[1:] for payload in stayed.packets if payload[0] == 0 and payload[5] == EventType.GTID]
    assert [str(decode_gtid(decode_event_header(head), head)[0]) for head in heads] == gtids[:10]


async def test_as_a_task_it_tells_where_it_listens_and_ends_when_it_is_stopped(tmp_path):
    with ibbmaster.create(tmp_path) as log:
        log.append("0-1-1", INSERT)
        async with trio.open_nursery() as nursery:
            primary = await nursery.start(functools.partial(ibbmaster.serve_trio, log, tls="off", password="x"))
            assert await trio.to_thread.run_sync(ask, primary, "SELECT @@gtid_binlog_pos") == (("0-1-1",),)
            assert primary.replicas == []
            primary.stop()


async def test_as_a_task_it_ends_when_it_is_cancelled(tmp_path):
    async with trio.open_nursery() as nursery:
        primary = await nursery.start(ibbmaster.serve_trio, tmp_path)
        assert primary.port
        nursery.cancel_scope.cancel()
