import contextlib
import random
import struct
import threading
from contextlib import closing
from pathlib import Path

import pymysql
import pytest
import trio

import ibbmaster
from ibbmaster.errors import PositionPurgedError
from ibbmaster.gtid import Gtid, GtidPosition, GtidState
from ibbmaster.logs.log.group_folding import GroupFolding
from ibbmaster.primary.server.tables import PrimaryTables
from ibbmaster.replication.wire.refusal import RefusedError
from ibbmaster.work import BrokenOffError
from tests.primary.server.conftest import client_of

CLASSIC = Path(__file__).parents[3] / "fixtures" / "classic"
DDL = CLASSIC / "10.11" / "ddl-trx-xa"


def groups_of(engine):
    state = GtidState()
    with closing(engine.groups(engine.start_of_file())) as groups:
        while (group := groups.next_group()) is not None:
            if group.gtid is not None:
                state.log(group.gtid)
                yield group.gtid, group.end, state.copy()


@pytest.fixture(params=["classic", "engine"])
def engine(request, archive):
    with ibbmaster.open(CLASSIC / "10.11" / "domains" if request.param == "classic" else archive) as log:
        yield log.engine


def test_the_newest_place_is_the_end(engine):
    snapshot = PrimaryTables(engine).newest()
    assert (snapshot.end, snapshot.state) == (engine.end(), engine.state())
    assert snapshot.file_name == engine.file_name(engine.end().file_no)


def test_the_place_of_a_gtid_or_of_several_domains_is_behind_the_last_group(engine):
    tables, groups = PrimaryTables(engine), list(groups_of(engine))
    for gtid, end, state in random.Random(5).sample(groups, 20):
        snapshot = tables.snapshot_at(GtidPosition([gtid]))
        assert (snapshot.end, str(snapshot.state)) == (end, str(state))
    for _, end, state in groups[10::30]:
        snapshot = tables.snapshot_at(state.position())
        assert (snapshot.end, snapshot.position) == (end, state.position())


@pytest.mark.parametrize("gtid", ["0-1-999999", "5-1-1", "0-99-1", "1-77-4611686023427388937"])
def test_a_gtid_that_is_not_in_the_log_is_refused(engine, gtid):
    with pytest.raises(RefusedError, match=f"GTID {gtid} is not in this log") as caught:
        PrimaryTables(engine).snapshot_at(GtidPosition([Gtid.parse(gtid)]))
    assert caught.value.err.code == 1945


def test_a_position_whose_files_are_gone_is_refused(engine):
    class Purged:
        state = engine.state

        def seek(self, position):
            raise PositionPurgedError("the files are gone")

    gtid = next(iter(engine.state()))
    with pytest.raises(RefusedError, match="the files are gone"):
        PrimaryTables(Purged()).snapshot_at(GtidPosition([gtid]))


def test_a_log_that_always_grows_has_a_newest_place_all_the_same(engine):
    class Growing:
        count = 0

        def __getattr__(self, name):
            return getattr(engine, name)

        def end(self, **kwargs):
            self.count += 1
            end = engine.end(**kwargs)
            return end._replace(offset=end.offset + self.count)

    assert PrimaryTables(Growing()).newest().position == engine.state().position()


def test_tables_are_those_of_the_place_and_the_same_ones_the_same_object():
    with ibbmaster.open(DDL) as log:
        tables = PrimaryTables(log.engine)
        gtids = [gtid for gtid, *_ in groups_of(log.engine)]
        counts = [len(tables.catalog(tables.snapshot_at(GtidPosition([gtid]))).tables) for gtid in gtids]
        assert tables.catalog(tables.newest()) is tables.catalog(tables.newest())
    assert counts[0] == 0
    assert max(counts) > 3
    assert len(tables.catalog(tables.newest()).tables) == counts[-1]


def execute(statement_id, parameters=b""):
    return b"\x17" + struct.pack("<IBI", statement_id, 0, 1) + parameters


async def test_a_session_sees_the_tables_over_the_wire(serving, ask):
    with ibbmaster.open(DDL) as log:
        async with serving(log.engine, profile="classic-10.11") as (_, port):
            shown = await ask(port, "SHOW DATABASES")
            ((position,),) = await ask(port, "SELECT @@gtid_binlog_pos")
            first = await ask(port, "SET @ibb_position = '0-1-1'", "SELECT @@gtid_binlog_pos")
            tables = await ask(port, "SELECT COUNT(*) FROM information_schema.tables WHERE table_type = 'BASE TABLE'")
    assert len(shown) > 3
    assert first == (("0-1-1",),) != ((position,),)
    assert tables[0][0] > 1


@pytest.mark.parametrize("way", ["KILL QUERY", "max_statement_time", "the server stops"])
async def test_a_session_that_asks_for_the_schema_of_a_long_log_can_be_broken_off(serving, ask, monkeypatch, way):
    folds, fold = [], GroupFolding.fold
    has_begun, is_broken_off = threading.Event(), threading.Event()

    def slow(folding, group, *others):
        folds.append(group.gtid)
        has_begun.set()
        is_broken_off.wait()
        fold(folding, group, *others)

    monkeypatch.setattr(GroupFolding, "fold", slow)
    answers = []

    async def ask_for_tables(port):
        limit = "0.001" if way == "max_statement_time" else "0"
        with pytest.raises(pymysql.MySQLError) as caught:
            await ask(port, f"SET max_statement_time = {limit}", "SELECT COUNT(*) FROM information_schema.tables")
        answers.append(caught.value.args[0])

    with ibbmaster.open(DDL) as log, contextlib.ExitStack() as stack:
        stack.callback(is_broken_off.set)
        async with serving(log.engine, profile="classic-10.11") as (primary, port), trio.open_nursery() as nursery:
            nursery.start_soon(ask_for_tables, port)
            await trio.to_thread.run_sync(has_begun.wait)
            (session,) = primary.registry
            work = session.work
            match way:
                case "KILL QUERY":
                    await ask(port, f"KILL QUERY {session.connection_id}")
                case "the server stops":
                    primary.stop()
            while work.reason is None:
                await trio.sleep(0)
                with contextlib.suppress(BrokenOffError):
                    work.check()
            is_broken_off.set()
    assert len(folds) == 1
    assert answers in ([1317], [1969], [2013], [1053])


async def test_a_statement_is_prepared_carried_out_and_closed_over_the_wire(serving):
    """With raw packets, as PyMySQL prepares nothing on the server."""
    with ibbmaster.open(DDL) as log:
        async with serving(log.engine, profile="classic-10.11") as (_, port):
            prepared, rows, closed = await trio.to_thread.run_sync(_talk, port)
    assert prepared == bytes.fromhex("00 01000000 0100 0100 00 0000")
    assert rows == bytes.fromhex("00 00 02 6162")
    assert closed.startswith(b"\xff\xdb\x04#HY000Unknown prepared statement handler (1)")


def _talk(port):
    connection = client_of(port)

    def send(payload, *, has_answer=True):
        connection._next_seq_id = 0
        connection.write_packet(payload)
        return read() if has_answer else None

    def read():
        header = connection._read_bytes(4)
        connection._next_seq_id = (header[3] + 1) % 256
        return connection._read_bytes(int.from_bytes(header[:3], "little"))

    with connection:
        prepared = send(b"\x16SELECT CONCAT(?, 'b')")
        for _ in range(4):  # the parameter, the column, and what ends each
            read()
        send(b"\x18" + struct.pack("<IH", 1, 0) + b"a", has_answer=False)
        send(execute(1, bytes.fromhex("00 01 fc00")))
        for _ in range(2):
            read()
        rows = read()
        read()
        send(b"\x19" + struct.pack("<I", 1), has_answer=False)
        closed = send(execute(1))
    return prepared, rows, closed
