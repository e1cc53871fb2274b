"""The login of one connection: who is let in, and what the others are told."""

from __future__ import annotations

import socket

import pymysql
import pytest
import trio

from ibbmaster.dialogue.privileges import READING
from ibbmaster.server import login_guard
from ibbmaster.server.login_guard import FREE_TRIES
from ibbmaster.wire.auth import make_account


def connect(port, password="replpw", user="repl"):
    return pymysql.connect(host="127.0.0.1", port=port, user=user, password=password, ssl_disabled=True)


async def test_wrong_logins_are_counted_and_the_right_one_gets_in(serving, archive, monkeypatch):
    monkeypatch.setattr(login_guard, "DELAY_MAX_S", 0.01)

    def guess_and_log_in(port):
        for _ in range(FREE_TRIES + 3):
            with pytest.raises(pymysql.MySQLError) as caught:
                connect(port, "wrong")
            assert caught.value.args[0] == 1045
        with connect(port) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW GLOBAL STATUS")
            return dict(cursor.fetchall())

    async with serving(archive) as (_, port):
        status = await trio.to_thread.run_sync(guess_and_log_in, port)
    counted = {name: status[name] for name in ("Access_denied_errors", "Ibb_logins_delayed", "Connections")}
    assert counted == {"Access_denied_errors": "8", "Ibb_logins_delayed": "3", "Connections": "9"}
    assert status["Ibb_login_addresses_slowed"] == "1"


async def test_who_is_turned_away_is_told_so_and_who_has_logged_in_before_is_not(serving, archive, monkeypatch):
    monkeypatch.setattr(login_guard, "DELAY_MAX_S", 0.01)

    def come(port):
        connect(port).close()
        for _ in range(FREE_TRIES + 3):
            with pytest.raises(pymysql.MySQLError):
                connect(port, "wrong", "nobody")
        monkeypatch.setattr(login_guard, "WAITING_MAX", 0)
        monkeypatch.setattr(login_guard._Wrong, "busy_until", lambda _, now: now + 60.0)  # those answers are still due
        connect(port).close()
        codes = []
        for password in ("pw", "wrong"):
            with pytest.raises(pymysql.MySQLError) as caught:
                connect(port, password, "cdc")
            codes.append(caught.value.args[0])
        return codes

    other = (make_account("cdc", "pw"), READING)
    async with serving(archive, other_accounts=(other,)) as (_, port):
        assert await trio.to_thread.run_sync(come, port) == [1040, 1040]


async def test_silent_connections_give_their_places_to_those_who_log_in(serving, archive):
    def come(port):
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        for one in silent[-5:]:
            assert one.recv(1)
        for _ in range(10):
            connect(port).close()
        kept = [connect(port) for _ in range(5)]
        with pytest.raises(pymysql.MySQLError) as caught:
            connect(port)
        for one in (*silent, *kept):
            one.close()
        return caught.value.args[0]

    async with serving(archive, connections_max=5) as (primary, port):
        assert await trio.to_thread.run_sync(come, port) == 1040
        assert primary.registry.dropped > 0


async def test_an_account_leaves_places_to_others(serving, archive):
    def come(port):
        kept = [connect(port, "pw", "cdc") for _ in range(9)]
        with pytest.raises(pymysql.MySQLError) as caught:
            connect(port, "pw", "cdc")
        kept.append(connect(port))
        for one in kept:
            one.close()
        return caught.value.args[0]

    other = (make_account("cdc", "pw"), READING)
    async with serving(archive, connections_max=10, other_accounts=(other,)) as (_, port):
        assert await trio.to_thread.run_sync(come, port) == 1226
