import asyncio
import gc
import os
import statistics
import subprocess
import sys
import threading
import time

import pymysql
import pytest
import trio
from pymysqlreplication.event import MariadbGtidEvent

from ibbmaster.errors import ConfigurationError, StoreError
from ibbmaster.testkit import FixturePrimary, fixture_log
from tests.tap import ask, connect, listen_in

READY_S = 0.050


def threads_of_ours():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("ibbmaster")]


def descriptors():
    return sorted(
        os.readlink(f"/proc/self/fd/{name}")
        for name in os.listdir("/proc/self/fd")
        if os.path.exists(f"/proc/self/fd/{name}")
    )


def test_starts_leave_no_thread_and_no_descriptor(request, alone):
    FixturePrimary().start().close()  # what is kept for good, such as trio's own pipe
    gc.collect()  # what other tests have left
    before, count = descriptors(), request.config.getoption("--fixture-starts")
    used_s = []
    for _ in range(count):
        begun = time.thread_time()
        primary = FixturePrimary().start()
        used_s.append(time.thread_time() - begun)
        primary.__exit__(None, None, None)
    assert threads_of_ours() == []
    assert len(descriptors()) <= len(before), (before, descriptors())
    assert statistics.median(used_s) < READY_S  # of this thread's CPU: a busy machine fails no test


def test_a_primary_that_followers_read_leaves_nothing_either(read_by_python, alone):
    before = None
    for _ in range(3):
        with FixturePrimary() as primary:
            primary.table("shop.t", id="int primary key").insert(id=1)
            read_by_python(primary)
        gc.collect()
        before = before or descriptors()
    assert len(descriptors()) <= len(before)
    assert threads_of_ours() == []


def test_kernels_are_not_loaded_and_no_certificate_is_made():
    program = (
        "import pymysql, sys, threading\n"
        "from ibbmaster.testkit import FixturePrimary\n"
        "with FixturePrimary() as primary:\n"
        "    primary.table('shop.t', id='int primary key').insert(id=1)\n"
        "    with pymysql.connect(host=primary.host, port=primary.port, user=primary.user) as connection:\n"
        "        connection.cursor().execute('SELECT * FROM shop.t')\n"
        "    print([t.name for t in threading.enumerate() if t.name.startswith('ibbmaster')])\n"
        "print('numpy' in sys.modules, 'cryptography.x509' in sys.modules, 'pyspark' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "['ibbmaster-serve']\nFalse False False\n"


def test_it_serves_in_asyncio_and_in_trio(read_by_python, alone):
    async def use(run_in_thread):
        async with FixturePrimary() as primary:
            primary.table("shop.t", id="int primary key").insert(id=1)
            return await run_in_thread(read_by_python, primary, MariadbGtidEvent)

    assert asyncio.run(use(asyncio.to_thread)) == ["0-1-1", "0-1-2", "0-1-3"]
    assert trio.run(use, trio.to_thread.run_sync) == ["0-1-1", "0-1-2", "0-1-3"]
    assert threads_of_ours() == []


async def test_a_wait_in_a_task_lets_others_run(read_by_python):
    async with FixturePrimary() as primary:
        table = primary.table("shop.t", id="int primary key")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, read_by_python, primary)
            await primary.arrival(4711, "0-1-2", 60)
            table.insert(id=1)
        with pytest.raises(TimeoutError, match="4711 has not got 0-1-9"):
            await primary.arrival(4711, "0-1-9", 0.01)


def test_it_is_on_the_same_port_when_it_comes_back(ibb_primary):
    port = ibb_primary.port
    ibb_primary.stop()
    with pytest.raises(pymysql.err.OperationalError):
        ask(ibb_primary, "SELECT 1")
    with pytest.raises(ConfigurationError, match="the primary does not serve: use it as a context, or start"):
        ibb_primary.in_loop(len)
    ibb_primary.ddl("CREATE DATABASE shop")  # the log is there all the time
    ibb_primary.start()
    assert ibb_primary.port == port
    assert ask(ibb_primary, "SELECT @@gtid_binlog_pos") == (("0-1-1",),)


def test_the_file_that_is_listed_last_is_the_one_that_is_written_and_the_next_one_is_not_there_yet():
    with FixturePrimary(profile="classic-11.8") as primary:
        primary.table("shop.t", id="int primary key").insert(id=1)
        active, _ = ask(primary, "SHOW BINARY LOGS")[-1]
        (status,) = ask(primary, "SHOW MASTER STATUS")
        assert active == status[0] == primary.log.engine.file_name(primary.log.engine.end().file_no)
        types = [payload[5] for payload in listen_in(primary.port, place=(active, 4)).packets[:-1]]
        assert types[:4] == [4, 15, 163, 161]
        assert types.count(162) == 3
        for file in primary.log.engine.files():
            if file.name > active:
                assert b"Could not find first log file name" in listen_in(primary.port, place=(file.name, 4)).data
        refusal = listen_in(primary.port, place=(active, status[1])).data
        assert b"begin at 4, at a position it gave, or by GTID" in refusal


def test_what_it_serves_answers_about_its_tables_and_connections_are_ended_from_the_test(ibb_primary):
    with connect(ibb_primary) as connection:
        (number,) = ibb_primary.in_loop(lambda registry: [session.connection_id for session in registry])
        assert number == connection.thread_id()
        ibb_primary.in_loop(lambda registry: registry.kill(number, query_only=False))
        (seen,) = ibb_primary.connections
        assert ibb_primary.witness.wait(lambda: not seen.is_connected, 60)
    ibb_primary.table("shop.t", id="int primary key", name="varchar(9)").insert(id=1, name="x")
    ((name, text),) = ask(ibb_primary, "SHOW CREATE TABLE shop.t")
    assert name == "t"
    assert "`name` varchar(9) DEFAULT NULL" in text


def test_a_damaged_log_fails_at_the_end_and_names_the_fault(tmp_path):
    def use():
        with FixturePrimary(tmp_path) as primary:
            primary.table("shop.t", id="int primary key").insert(id=1)
            primary.log.bring_to_files()
            file = tmp_path / "binlog-000000.ibb"
            data = bytearray(file.read_bytes())
            data[16384 + 200] ^= 1
            file.write_bytes(data)

    with pytest.raises(AssertionError, match=r"has 1 faults: .*binlog-000000\.ibb.*page 1"):
        use()


def test_the_error_of_a_test_is_not_hidden_by_its_log(tmp_path):
    def use():
        with FixturePrimary(tmp_path) as primary:
            primary.ddl("CREATE DATABASE shop")
            primary.log.bring_to_files()
            (tmp_path / "binlog-000000.ibb").write_bytes(b"")
            raise KeyError("of the test")

    with pytest.raises(KeyError, match="of the test"):
        use()


def test_a_log_that_is_there_is_continued(tmp_path):
    with FixturePrimary(tmp_path / "log", server_id=3) as primary:
        primary.table("shop.t", id="int primary key").insert(id=1)
    with fixture_log(tmp_path / "log") as log, FixturePrimary(log) as primary:
        table = primary.table("shop.t")
        assert len(table) == 0  # what its rows are only the log knows
        table.insert(id=2)
        assert str(log.position) == "0-1-4"
        log.append("0-1-9", "DELETE FROM shop.t")
        table.insert(id=3)
        assert str(log.position) == "0-1-10"
    with pytest.raises(StoreError):
        log.append("0-1-11", "DELETE FROM shop.t")


def test_the_same_test_writes_the_same_groups(tmp_path):
    def groups(name):
        with FixturePrimary(tmp_path / name, metadata="MINIMAL", image="MINIMAL") as primary:
            table = primary.table("shop.t", id="int primary key", a="timestamp default current_timestamp()")
            with primary.transaction():
                table.insert(id=1)
                table.update(id=1, a="2026-05-05 05:05:05")
            return [event.data for group in primary.log.groups() for event in group.events()]

    assert groups("a") == groups("b")


def test_what_is_no_option_is_refused_before_anything_is_made(tmp_path):
    for options in ({"profile": "mysql"}, {"image": "SOME"}, {"metadata": "ALL"}, {"server_id": 0}):
        with pytest.raises(ConfigurationError):
            FixturePrimary(tmp_path / "log", **options)
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("name", ["orders", "shop.", ".orders"])
def test_a_table_has_a_database(ibb_primary, name):
    with pytest.raises(ConfigurationError, match=r"is not the name of a table: expected database\.table"):
        ibb_primary.table(name, id="int primary key")


def test_a_table_is_made_once_and_taken_again(ibb_primary):
    table = ibb_primary.table("shop.t", id="int primary key")
    assert ibb_primary.table("shop.t") is table
    with pytest.raises(ConfigurationError, match=r"there is a table shop\.t already: ask for it without columns"):
        ibb_primary.table("shop.t", id="int primary key")
    with pytest.raises(ConfigurationError, match=r"there is no table shop\.u"):
        ibb_primary.table("shop.u")
    ibb_primary.ddl("CREATE TABLE u (a int, b int, primary key (a, b))", database="shop")
    other = ibb_primary.table("shop.u")
    other.insert(a=1, b=2)
    other.insert(a=1, b=3)
    other.delete(a=1, b=2)
    assert other.rows == [{"a": 1, "b": 3}]
