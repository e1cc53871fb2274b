"""Who may do what on a primary; an observer is asked at each step, and may wait, cut, or answer otherwise."""

import math

import pymysql
import pytest
import trio

from ibbmaster.primary.dialogue import privileges
from ibbmaster.primary.server.options import ConnectionStep, PrimaryOptions
from ibbmaster.replication.dump.profile import PROFILES
from ibbmaster.replication.wire.auth import make_account
from ibbmaster.replication.wire.command import BinlogDump, QueryCommand
from ibbmaster.replication.wire.packet import EVENT_STATUS
from ibbmaster.replication.wire.response import Err
from tests.primary.server.conftest import client_of, dumping

REFUSAL = Err(code=1236, sqlstate="HY000", text="as the test says")


class Note:
    def __init__(self, step=None, act=None):
        self.steps, self.reasons, self.dumps = [], [], []
        self._step, self._act = step, act

    async def reached(self, step, session, command):
        self.steps.append((step, command.sql.decode() if isinstance(command, QueryCommand) else type(command)))
        if isinstance(command, BinlogDump) and step is ConnectionStep.DUMPING:
            self.dumps.append((str(session.dump_start), session.socket.getpeername()[0]))
        return await self._act() if step is self._step else None

    def left(self, session):
        self.reasons.append(session.reason)


async def answer():
    return (REFUSAL,)


async def cut():
    raise trio.BrokenResourceError("cut by the test")


def dump(port):
    with dumping(port, flags=1) as connection:
        return connection._read_packet().get_all_data()[:1]


async def test_every_step_is_told_in_order(serving, archive):
    note = Note()
    async with serving(archive, observer=note) as (_, port):
        assert await trio.to_thread.run_sync(dump, port) == EVENT_STATUS
    sql = [given for step, given in note.steps if step is ConnectionStep.ASKED and isinstance(given, str)]
    assert "SET @slave_connect_state=''" in sql
    steps = [step for step, _ in note.steps]
    assert steps[:3] == [ConnectionStep.ACCEPTED, ConnectionStep.GREETED, ConnectionStep.LOGGED_IN]
    assert steps[3:-2] == [ConnectionStep.ASKED, ConnectionStep.ANSWERED] * len(sql)
    assert note.steps[-2:] == [(ConnectionStep.ASKED, BinlogDump), (ConnectionStep.DUMPING, BinlogDump)]
    assert note.dumps == [("", "127.0.0.1")]
    assert len(note.reasons) == 1


@pytest.mark.parametrize("step", [ConnectionStep.ACCEPTED, ConnectionStep.LOGGED_IN, ConnectionStep.ASKED])
async def test_an_error_instead_of_what_would_have_come_ends_the_connection(serving, archive, ask, step):
    async with serving(archive, observer=Note(step, answer)) as (_, port):
        with pytest.raises(pymysql.err.MySQLError) as caught:
            await ask(port, "SELECT 1")
    assert caught.value.args == (1236, "as the test says")


async def test_a_dump_is_refused_by_an_answer_in_its_place(serving, archive):
    asked, note = trio.Event(), Note()

    async def reached(step, session, command):
        if step is ConnectionStep.ASKED and isinstance(command, BinlogDump):
            asked.set()
            return (REFUSAL,)
        return await Note.reached(note, step, session, command)

    note.reached = reached
    async with serving(archive, observer=note) as (_, port):
        with pytest.raises(pymysql.err.MySQLError, match="as the test says"):
            await trio.to_thread.run_sync(dump, port)
    assert asked.is_set()
    assert note.dumps == []


@pytest.mark.parametrize("step", list(ConnectionStep))
async def test_a_connection_is_cut_at_any_step(serving, archive, step):
    note = Note(step, cut)
    async with serving(archive, observer=note, tls=step is ConnectionStep.TLS) as (_, port):

        def work():
            if step is not ConnectionStep.TLS:
                return dump(port)
            return client_of(port, ssl={"ca": None}, ssl_disabled=False)

        with pytest.raises((pymysql.err.MySQLError, OSError)):
            await trio.to_thread.run_sync(work)
    assert note.steps[-1][0] is step
    assert note.reasons == ["cut by the test"]


async def test_no_limit_of_time_runs_while_a_login_is_held_up(serving, archive, ask):
    deadlines = []

    async def look():
        deadlines.append(trio.current_effective_deadline())

    for step in (ConnectionStep.ACCEPTED, ConnectionStep.GREETED, ConnectionStep.LOGGED_IN):
        async with serving(archive, observer=Note(step, look)) as (_, port):
            await ask(port, "SELECT 1")
    assert deadlines == [math.inf] * 3


def test_each_account_has_its_own_privileges():
    account, other = (make_account(name, "x", plugin="native", requires_tls=False) for name in ("repl", "other"))
    options = PrimaryOptions(
        host="127.0.0.1",
        port=0,
        account=account,
        other_accounts=((other, frozenset({privileges.SELECT})),),
        certificate=None,
        profile=PROFILES["engine"],
    )
    assert (options.held_by("repl"), options.held_by("other")) == (privileges.READING, {privileges.SELECT})
