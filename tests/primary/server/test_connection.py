import random
import shutil
import time
from pathlib import Path

import pymysql
import pytest
import trio

import ibbmaster
from ibbmaster.logs.classic import following
from ibbmaster.logs.classic.head import head_of
from ibbmaster.logs.log.pages import PageReader
from ibbmaster.logs.store.followed import FollowedDirectory
from ibbmaster.logs.store.writer import BinlogWriter
from ibbmaster.primary.server import client as server_client
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.disk.local import RealDisk
from tests.machinery.events import new_group
from tests.machinery.foreign_writer import ForeignWriter
from tests.primary.server.conftest import client_of, dumping, refusal

LOGIN = [  # as a replica of MariaDB 11.8 says it
    *("SELECT UNIX_TIMESTAMP()", "SHOW VARIABLES LIKE 'SERVER_ID'", "SET @master_heartbeat_period= 30000001024"),
    *("SET @master_binlog_checksum= @@global.binlog_checksum", "SELECT @master_binlog_checksum"),
    *("SET @mariadb_slave_capability=4", "SELECT @@GLOBAL.gtid_domain_id", "SET @slave_connect_state='0-1-5'"),
    *("SET @slave_gtid_strict_mode=0", "SET @slave_gtid_ignore_duplicates=0"),
]
DOMAINS = Path(__file__).parents[3] / "fixtures" / "classic" / "10.11" / "domains"


OF_NO_CONNECTION = {"FollowedDirectory.wait_for_growth", "Preparation._prepare"}  # of the whole server


@pytest.fixture
def visits(monkeypatch):
    called = []
    run_sync = trio.to_thread.run_sync

    async def note(function, *args, **options):
        name = getattr(function, "__qualname__", str(function))
        if "<locals>" not in name and name not in OF_NO_CONNECTION:
            called.append(name)
        return await run_sync(function, *args, **options)

    monkeypatch.setattr(trio.to_thread, "run_sync", note)
    return called


@pytest.fixture
def directory(tmp_path):
    with BinlogWriter(RealDisk(tmp_path), max_file_bytes=1 << 18) as writer:
        for seq_no in range(1, 21):
            writer.write_group(*new_group(seq_no, 1000))
    return tmp_path


def first_number(port):
    with dumping(port, "0-1-5") as connection:
        while (event := connection._read_packet().get_all_data())[5] != EventType.GTID:
            pass
        return int.from_bytes(event[20:28], "little")


# As mysql-test/suite/binlog_in_engine/trx_cache_truncate.test
async def test_a_connection_that_is_reset_goes_on_and_has_forgotten_what_was_set(serving, directory):
    def converse(port):
        with client_of(port) as connection, connection.cursor() as cursor:
            cursor.execute("SET @a = 1")
            connection._execute_command(0x1F, b"")  # COM_RESET_CONNECTION
            connection._read_ok_packet()
            cursor.execute("SELECT @a")
            return cursor.fetchall()

    async with serving(directory) as (_, port):
        assert await trio.to_thread.run_sync(converse, port) == ((None,),)


@pytest.mark.parametrize("asked_before", [0, 1, 3])
async def test_a_command_whose_rest_does_not_come_ends_the_connection(serving, directory, monkeypatch, asked_before):
    monkeypatch.setattr(server_client, "READ_TIMEOUT_S", 0.05)

    def converse(port):
        connection = client_of(port, read_timeout=20)
        for _ in range(asked_before):
            connection.query("SELECT 1")
        connection._sock.sendall(b"\x09\0\0\0\x03SELE")
        return connection._sock.recv(1)

    async with serving(directory) as (_, port):
        assert await trio.to_thread.run_sync(converse, port) == b""


async def test_who_asks_nothing_for_long_is_left_and_who_asks_now_and_then_is_not(serving, directory, monkeypatch):
    monkeypatch.setattr(server_client, "IDLE_TIMEOUT_S", 1.0)

    def converse(port):
        connection = client_of(port, read_timeout=20)
        begun = last = time.monotonic()
        while last < begun + 1.5:  # longer than the limit
            connection.query("SELECT 1")
            last = time.monotonic()
        return connection._sock.recv(1), time.monotonic() - last

    async with serving(directory) as (_, port):
        end, waited_s = await trio.to_thread.run_sync(converse, port)
    assert end == b""
    assert waited_s > 0.99


async def test_no_statement_of_a_login_visits_a_worker_thread(serving, ask, directory, visits):
    async with serving(FollowedDirectory(RealDisk(directory))) as (_, port):
        await ask(port, *LOGIN)
        assert visits == []
        await ask(port, "SELECT @@gtid_binlog_pos")
        assert visits == ["_at_work", "_at_work"]  # it may read the disk, and so may its rows


@pytest.mark.parametrize("is_cold", [False, True], ids=["in memory", "on the disk"])
async def test_a_dump_in_memory_is_prepared_without_a_visit(serving, directory, visits, monkeypatch, is_cold):
    engine = FollowedDirectory(RealDisk(directory))
    read = PageReader._read

    def refuse(self, *args):
        if self.only_cached:
            raise BlockingIOError
        return read(self, *args)

    if is_cold:
        monkeypatch.setattr(PageReader, "_read", refuse)
    for path in directory.iterdir():
        path.read_bytes()  # the system may have dropped it from memory
    async with serving(engine) as (_, port):
        assert await trio.to_thread.run_sync(first_number, port) == 6
    assert [name for name in visits if "prepare" in name] == (["_prepare_dump"] if is_cold else [])


def read_on(connection):
    while True:
        connection._read_packet()


@pytest.mark.parametrize("kind", ["engine", "classic"])
async def test_a_directory_that_is_gone_is_said_without_its_path_and_served_again_when_it_is_back(
    serving, ask, archive, tmp_path, caplog, kind
):
    directory = tmp_path / "a name with blanks" / "log"
    await trio.to_thread.run_sync(shutil.copytree, archive if kind == "engine" else DOMAINS, directory)
    with ibbmaster.open(directory) as log:
        profile = "engine" if kind == "engine" else "classic-10.11"
        async with serving(log.engine, profile=profile, directory=directory) as (_, port):
            waiting = await trio.to_thread.run_sync(dumping, port, log.position)
            directory.rename(tmp_path / "gone")
            errors = []  # who waits goes on waiting
            for position in ("", "0-1-3"):
                connection = await trio.to_thread.run_sync(dumping, port, position)
                errors.append(await trio.to_thread.run_sync(refusal, read_on, connection))
            for statement in ("SHOW BINLOG EVENTS", "SHOW DATABASES", "SET @ibb_position = '0-1-3'"):
                with pytest.raises(pymysql.MySQLError) as caught:
                    await ask(port, statement)
                errors.append(caught.value.args)
            (tmp_path / "gone").rename(directory)
            assert await ask(port, "SHOW BINLOG EVENTS")
            assert len(await ask(port, "SHOW DATABASES")) > 3
            again = await trio.to_thread.run_sync(dumping, port, "")
            with again:
                assert await trio.to_thread.run_sync(again._read_packet)
            waiting._force_close()
    assert {code for code, _ in errors} == {1236, 1105}
    assert all("no such file or directory" in text for _, text in errors)
    assert not any(part in text for _, text in errors for part in ("/log", "tmp", "blanks"))
    assert not any(record.exc_info for record in caplog.records)
    assert sum("cannot look at the end" in record.message for record in caplog.records) <= 1


async def test_a_dump_that_asks_in_the_middle_of_a_reset_ends_in_order(serving, tmp_path, monkeypatch):
    writer = ForeignWriter(tmp_path / "log", random.Random(1))
    writer.append()
    with ibbmaster.open(writer.directory) as log:
        async with serving(log.engine, profile="classic-10.11", directory=writer.directory) as (_, port):
            with monkeypatch.context() as patched:

                def removed_first(file):
                    file.path.unlink(missing_ok=True)
                    return head_of(file)

                patched.setattr(following, "head_of", removed_first)
                writer.write_another_over_it()
                connection = await trio.to_thread.run_sync(dumping, port, "")
                with connection:
                    assert (await trio.to_thread.run_sync(connection._read_packet)).is_eof_packet()
            writer.publish()
            again = await trio.to_thread.run_sync(dumping, port, "")
            with again:
                assert not (await trio.to_thread.run_sync(again._read_packet)).is_eof_packet()


async def test_each_statement_is_logged_with_the_connection_it_came_over(serving, ask, directory, caplog):
    caplog.set_level("DEBUG", "ibbmaster.primary.server")
    async with serving(directory) as (_, port):
        await ask(port, "SELECT 1")
    assert any(line.startswith("connection ") and line.endswith(": SELECT 1") for line in caplog.messages)
