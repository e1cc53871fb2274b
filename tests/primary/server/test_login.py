import dataclasses
import functools
import logging
import socket

import pytest
import trio

from ibbmaster.primary.dialogue.privileges import READING
from ibbmaster.primary.server import login_guard
from ibbmaster.primary.server.login_guard import FREE_TRIES
from ibbmaster.replication.wire.auth import make_account, parse_hosts
from tests.primary.server.conftest import PASSWORD, USER, client_of, refusal

GUESSERS = 100


async def test_wrong_logins_are_counted_and_the_right_one_gets_in(serving, archive, monkeypatch, caplog):
    monkeypatch.setattr(login_guard, "DELAY_MAX_S", 0.01)
    caplog.set_level("INFO", "ibbmaster.primary.server")

    def guess_and_log_in(port):
        for _ in range(FREE_TRIES + 3):
            assert refusal(client_of, port, "wrong")[0] == 1045
        with client_of(port) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW GLOBAL STATUS")
            return dict(cursor.fetchall())

    async with serving(archive) as (_, port):
        status = await trio.to_thread.run_sync(guess_and_log_in, port)
    counted = {name: status[name] for name in ("Access_denied_errors", "Ibb_logins_delayed", "Connections")}
    assert counted == {"Access_denied_errors": "8", "Ibb_logins_delayed": "3", "Connections": "9"}
    assert status["Ibb_login_addresses_slowed"] == "1"
    assert sum("login refused" in line for line in caplog.messages) == 1, "those that are alike are one line"


@pytest.mark.parametrize("auth", ["native", "ed25519"])
async def test_a_right_login_is_prompt_among_a_hundred_guesses_of_its_address(serving, archive, monkeypatch, auth):
    monkeypatch.setattr(login_guard, "DELAY_MAX_S", 3600.0)
    monkeypatch.setattr(login_guard, "DECAY_S", 3600.0)
    answered = []

    async def guess(port):
        login = functools.partial(refusal, client_of, port, "wrong")
        answered.append(await trio.to_thread.run_sync(login, limiter=threads, abandon_on_cancel=True))

    threads = trio.CapacityLimiter(GUESSERS)
    async with serving(archive, auth=auth) as (primary, port), trio.open_nursery() as nursery:
        for _ in range(FREE_TRIES + 10):
            primary.guard.note_wrong("127.0.0.1", "repl")
        for _ in range(GUESSERS):
            nursery.start_soon(guess, port)
        while primary.guard.refused < GUESSERS + FREE_TRIES + 10:
            await trio.lowlevel.checkpoint()
        for _ in range(3):
            (await trio.to_thread.run_sync(client_of, port)).close()
        assert not answered
        primary.stop()
        nursery.cancel_scope.cancel()


async def test_who_guesses_beyond_measure_is_turned_away(serving, archive, monkeypatch):
    monkeypatch.setattr(login_guard, "LOOKS_MAX", 0)
    monkeypatch.setattr(login_guard, "WAIT_MAX_S", 0.0)
    monkeypatch.setattr(login_guard, "LOOKS_A_SECOND", 1 / 3600)

    def come(port):
        return [refusal(client_of, port, "wrong")[0] for _ in range(3)]

    async with serving(archive) as (primary, port):
        assert await trio.to_thread.run_sync(come, port) == [1045, 1040, 1040]
        assert primary.guard.refused == 1


async def test_silent_connections_give_their_places_to_those_who_log_in(serving, archive):
    def come(port):
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        for one in silent[-5:]:
            assert one.recv(1)
        for _ in range(10):
            client_of(port).close()
        kept = [client_of(port) for _ in range(5)]
        refused = refusal(client_of, port)
        for one in (*silent, *kept):
            one.close()
        return refused[0]

    async with serving(archive, connections_max=5) as (primary, port):
        assert await trio.to_thread.run_sync(come, port) == 1040
        assert primary.registry.dropped > 0


async def test_an_account_leaves_places_to_others(serving, archive):
    def come(port):
        kept = [client_of(port, "pw", "cdc") for _ in range(9)]
        refused = refusal(client_of, port, "pw", "cdc")
        for one in (*kept, client_of(port)):
            one.close()
        return refused[0]

    other = (make_account("cdc", "pw"), READING)
    async with serving(archive, connections_max=10, other_accounts=(other,)) as (_, port):
        assert await trio.to_thread.run_sync(come, port) == 1226


async def test_a_client_from_where_no_account_may_come_is_refused_before_it_is_greeted(serving, archive, caplog):
    caplog.set_level(logging.WARNING)
    account = dataclasses.replace(make_account(USER, PASSWORD), hosts=parse_hosts("127.0.0.2"))
    text = "Host '127.0.0.1' is not allowed to connect to this MariaDB server"

    def come(port):
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            said = stranger.makefile("rb").read()
        assert said == b"D\0\0\0\xff\x6a\x04" + text.encode()  # the bytes of 10.11 and 11.8
        assert refusal(client_of, port) == (1130, text)
        with client_of(port, bind_address="127.0.0.2") as known, known.cursor() as cursor:
            cursor.execute("SHOW GLOBAL STATUS LIKE 'A%'")
            return dict(cursor.fetchall())

    async with serving(archive, account=account, connections_max=1) as (primary, port):
        status = await trio.to_thread.run_sync(come, port)
    assert status == {"Aborted_connects": "2", "Access_denied_errors": "0"}
    assert primary.registry.logins["not_allowed"] == 2
    assert "no account may come from there" in caplog.text


async def test_an_account_that_may_come_from_elsewhere_is_denied_and_that_is_counted(serving, archive, caplog):
    caplog.set_level(logging.WARNING)
    other = dataclasses.replace(make_account("cdc", "pw"), hosts=parse_hosts("127.0.0.2"))
    async with serving(archive, other_accounts=((other, READING),)) as (primary, port):
        refused = await trio.to_thread.run_sync(refusal, client_of, port, "pw", "cdc")
        (await trio.to_thread.run_sync(lambda: client_of(port, "pw", "cdc", bind_address="127.0.0.2"))).close()
    assert refused == (1045, "Access denied for user 'cdc'@'127.0.0.1' (using password: YES)")
    assert primary.registry.logins["wrong"] == 1
    assert "login refused: its account may not come from this address" in caplog.text
