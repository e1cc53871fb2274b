"""A primary over real sockets: logging in, asking, and ending."""

from __future__ import annotations

import json
from pathlib import Path

import pymysql
import pytest
import trio

EXPECTED = json.loads((Path(__file__).parents[2] / "fixtures/classic/10.11/domains/expected.json").read_text())


async def test_a_client_learns_the_position_of_the_log(serving, ask, archive):
    async with serving(archive) as (_, port):
        assert await ask(port, "SELECT @@gtid_binlog_pos") == ((EXPECTED["gtid_binlog_pos_after"],),)


@pytest.mark.parametrize("auth", ["native", "ed25519"])
@pytest.mark.parametrize("tls", [False, True], ids=["in clear", "with TLS"])
async def test_a_client_logs_in(serving, ask, archive, auth, tls):
    settings = {"ssl": {"check_hostname": False}, "ssl_disabled": False} if tls else {}
    async with serving(archive, auth=auth, tls=tls) as (_, port):
        assert await ask(port, "SELECT 1", **settings) == ((1,),)


@pytest.mark.parametrize("settings", [{"password": "wrong"}, {"password": ""}, {"user": "nobody"}])
async def test_a_wrong_password_and_an_unknown_user_get_the_same_answer(serving, ask, archive, settings):
    async with serving(archive) as (_, port):
        with pytest.raises(pymysql.err.OperationalError, match="Access denied for user") as caught:
            await ask(port, "SELECT 1", **settings)
        assert caught.value.args[0] == 1045


async def test_an_unknown_variable_and_a_syntax_error_leave_the_session_usable(serving, archive):
    def talk(port: int) -> object:
        connection = pymysql.connect(host="127.0.0.1", port=port, user="repl", password="replpw", ssl_disabled=True)
        with connection, connection.cursor() as cursor:
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
        holder = await trio.open_tcp_stream("127.0.0.1", port)
        while not len(primary.registry):
            await trio.lowlevel.checkpoint()
        with pytest.raises(pymysql.err.OperationalError) as caught:
            await ask(port, "SELECT 1")
        assert caught.value.args[0] == 1040
        await holder.aclose()
        while len(primary.registry):
            await trio.lowlevel.checkpoint()
        assert await ask(port, "SELECT 1") == ((1,),)


async def test_a_client_that_says_nothing_is_dropped(serving, archive, autojump_clock):
    async with serving(archive) as (_, port), await trio.open_tcp_stream("127.0.0.1", port) as stream:
        greeting = await stream.receive_some()
        assert b"MariaDB" in greeting
        with trio.fail_after(600):
            assert await stream.receive_some() == b""


async def test_events_listed_by_sql_begin_with_a_gtid(serving, ask, archive):
    async with serving(archive) as (_, port):
        rows = await ask(port, "SHOW BINLOG EVENTS IN 'binlog-000000.ibb' LIMIT 3")
        assert rows[0][:4] == ("binlog-000000.ibb", 0, "Gtid", 1)
        with pytest.raises(pymysql.err.MySQLError, match="Target log not found"):
            await ask(port, "SHOW BINLOG EVENTS IN 'binlog-000077.ibb'")
