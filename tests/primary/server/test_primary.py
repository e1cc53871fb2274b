import contextlib
import dataclasses
import errno
import json
import logging
import os
import resource
import struct
from pathlib import Path

import pymysql
import pytest
import trio
import trio.testing

from ibbmaster.primary.dialogue.privileges import READING
from ibbmaster.replication.dump.profile import PROFILES, OpeningTimestamp
from ibbmaster.replication.wire.auth import make_account
from tests.primary.server.conftest import client_of, dumping, refusal

EXPECTED = json.loads((Path(__file__).parents[3] / "fixtures/classic/10.11/domains/expected.json").read_text())


@pytest.mark.parametrize("auth", ["native", "ed25519"])
@pytest.mark.parametrize("tls", [False, True], ids=["in clear", "with TLS"])
async def test_a_client_logs_in(serving, ask, archive, auth, tls):
    settings = {"ssl": {"check_hostname": False}, "ssl_disabled": False} if tls else {}
    async with serving(archive, auth=auth, tls=tls) as (_, port):
        assert await ask(port, "SELECT 1", **settings) == ((1,),)


@pytest.mark.parametrize("settings", [("wrong",), ("",), ("replpw", "nobody")])
async def test_a_wrong_password_and_an_unknown_user_get_the_same_answer(serving, archive, settings):
    async with serving(archive) as (_, port):
        number, text = await trio.to_thread.run_sync(refusal, client_of, port, *settings)
    assert (number, "Access denied for user" in text) == (1045, True)


async def test_an_unknown_variable_and_a_syntax_error_leave_the_session_usable(serving, archive):
    def talk(port: int) -> object:
        with client_of(port) as connection, connection.cursor() as cursor:
            with pytest.raises(pymysql.err.OperationalError, match="Unknown system variable 'no_such_thing'"):
                cursor.execute("SELECT @@no_such_thing")
            with pytest.raises(pymysql.err.ProgrammingError, match="You have an error in your SQL syntax"):
                cursor.execute("nonsense")
            cursor.execute("SHOW BINARY LOGS")
            return cursor.fetchall()

    async with serving(archive) as (_, port):
        assert (await trio.to_thread.run_sync(talk, port))[0][0] == "binlog-000000.ibb"


async def test_the_connection_above_the_limit_is_refused_and_the_others_go_on(serving, ask, archive):
    async with serving(archive, connections_max=1) as (primary, port):
        holder = await trio.to_thread.run_sync(client_of, port)
        assert (await trio.to_thread.run_sync(refusal, client_of, port))[0] == 1040
        holder.close()
        while len(primary.registry):
            await trio.lowlevel.checkpoint()
        assert await ask(port, "SELECT 1") == ((1,),)


async def test_a_client_that_says_nothing_is_dropped(serving, archive, autojump_clock):
    async with serving(archive) as (_, port), await trio.open_tcp_stream("127.0.0.1", port) as stream:
        assert b"MariaDB" in await stream.receive_some()
        with trio.fail_after(600):
            assert await stream.receive_some() == b""


async def test_events_listed_by_sql_begin_with_a_gtid_and_no_limit_ends_the_connection(serving, ask, archive):
    async with serving(archive) as (_, port):
        rows = await ask(port, "SHOW BINLOG EVENTS IN 'binlog-000000.ibb' LIMIT 3")
        assert rows[0][:4] == ("binlog-000000.ibb", 0, "Gtid", 1)
        assert await ask(port, "SHOW BINLOG EVENTS LIMIT 18446744073709551615,1", "SELECT 1") == ((1,),)
        with pytest.raises(pymysql.err.MySQLError, match="Target log not found"):
            await ask(port, "SHOW BINLOG EVENTS IN 'binlog-000077.ibb'")


def kill(port: int, connection_id: int, user: str, by_command: bool) -> int:
    with client_of(port, user=user) as connection:
        try:
            if by_command:
                connection._execute_command(0x0C, struct.pack("<I", connection_id))
                connection._read_ok_packet()
            else:
                connection.query(f"KILL {connection_id}")
        except pymysql.Error as error:
            return error.args[0]
    return 0


@pytest.mark.parametrize("by_command", [False, True], ids=["KILL", "COM_PROCESS_KILL"])
async def test_an_account_kills_its_own_connections_and_others_with_the_right_to(serving, archive, by_command):
    rights = {"other": READING, "admin": READING | {"CONNECTION ADMIN"}}
    others = tuple((make_account(name, "replpw"), held) for name, held in rights.items())

    async with serving(archive, other_accounts=others) as (_, port):
        for user, expected in ("other", 1095), ("admin", 0), ("repl", 0):
            victim = await trio.to_thread.run_sync(client_of, port)
            code = await trio.to_thread.run_sync(kill, port, victim.thread_id(), user, by_command)
            assert code == expected, user
            if code:
                await trio.to_thread.run_sync(victim.ping, False)
                victim.close()
            else:
                with pytest.raises(pymysql.Error):
                    await trio.to_thread.run_sync(victim.ping, False)


async def test_an_account_without_the_right_to_it_gets_no_dump(serving, archive):
    def dump(port: int) -> tuple:
        with dumping(port) as connection:
            return refusal(connection._read_packet)

    async with serving(archive, held=READING - {"REPLICATION SLAVE"}) as (_, port):
        number, text = await trio.to_thread.run_sync(dump, port)
    assert (number, "REPLICATION SLAVE" in text) == (1227, True)


OF_FIRST_GROUP = dataclasses.replace(PROFILES["engine"], opening_timestamp=OpeningTimestamp.FIRST_GROUP)
OPENINGS = {
    "engine": (PROFILES["engine"], False),
    "engine with the time of its first group": (OF_FIRST_GROUP, True),
    "compat": (PROFILES["compat"], True),
}


@pytest.mark.parametrize(("profile", "has_time"), OPENINGS.values(), ids=OPENINGS)
async def test_a_stream_opens_with_the_time_its_profile_wants(serving, archive, profile, has_time):
    def first_times(port: int, position: str) -> tuple[int, int]:
        times = {}
        with dumping(port, position, flags=1) as connection:
            while (data := connection._read_packet().get_all_data())[0] != 0xFE:
                times.setdefault(data[5], int.from_bytes(data[1:5], "little"))
        return times[0x0F], times.get(0xA2, 0)

    async with serving(archive, profile=profile) as (primary, port):
        started_at = primary._parts.facts.started_at
        described, first_group = await trio.to_thread.run_sync(first_times, port, "")
        assert first_group
        assert described == (first_group if has_time else 0)
        described, first_group = await trio.to_thread.run_sync(first_times, port, EXPECTED["gtid_binlog_pos_after"])
        assert not first_group
        assert bool(described) == has_time
        assert described <= max(started_at, 2**31)


class Exhausted(trio.abc.Listener):
    def __init__(self, refusals: int) -> None:
        self.left = refusals
        self.stream: trio.SocketStream | None = None

    async def accept(self) -> trio.SocketStream:
        await trio.lowlevel.checkpoint()
        if self.left:
            self.left -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        if self.stream is None:
            await trio.sleep_forever()
        stream, self.stream = self.stream, None
        return stream

    async def aclose(self) -> None:
        pass


async def test_without_descriptors_a_line_a_minute_is_logged_until_it_goes_on(serving, archive, caplog, autojump_clock):
    caplog.set_level(logging.INFO)
    async with serving(archive) as (primary, _):
        listener = Exhausted(refusals=1205)  # two minutes of trying ten times a second
        mine = await trio.open_tcp_listeners(0, host="127.0.0.1")
        client = await trio.testing.open_stream_to_socket_listener(mine[0])
        listener.stream = await mine[0].accept()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(primary._accept_from, listener, nursery)
            assert b"MariaDB" in await client.receive_some()
            nursery.cancel_scope.cancel()
        await client.aclose()
        await mine[0].aclose()
    lines = [record for record in caplog.records if "no new connection can be taken" in record.getMessage()]
    assert len(lines) == 3, [record.getMessage() for record in lines]
    assert all(record.exc_info is None for record in caplog.records)
    assert "Too many open files" in lines[0].getMessage()


def take_free(taken: list[int]) -> None:
    with contextlib.suppress(OSError):
        while True:
            taken.append(os.dup(0))


async def test_a_process_out_of_descriptors_takes_connections_again(serving, ask, archive, caplog):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with serving(archive) as (_, port):
        waiting = [trio.socket.socket() for _ in range(3)]
        used = max(int(path.name) for path in Path("/proc/self/fd").iterdir()) + 1
        taken = []
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (used, hard))
            for one in waiting:
                take_free(taken)
                await one.connect(("127.0.0.1", port))
            while not any("no new connection" in record.getMessage() for record in caplog.records):
                take_free(taken)  # what other threads have given back meanwhile
                await trio.sleep(0.01)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for number in taken:
                os.close(number)
        for one in waiting:
            assert b"MariaDB" in await one.recv(200)
            one.close()
        assert await ask(port, "SELECT 1") == ((1,),)
    assert len([record for record in caplog.records if "no new connection" in record.getMessage()]) == 1
    assert all(record.exc_info is None for record in caplog.records)


async def test_an_encrypted_session_knows_its_cipher(serving, ask, archive):
    settings = {"ssl": {"check_hostname": False}, "ssl_disabled": False}
    async with serving(archive, tls=True) as (_, port):
        (row,) = await ask(port, "SHOW STATUS LIKE 'Ssl_cipher'", **settings)
        assert row[0] == "Ssl_cipher"
        assert row[1].startswith("TLS_")
        assert await ask(port, "SHOW STATUS LIKE 'Ssl_cipher'") == (("Ssl_cipher", ""),)
