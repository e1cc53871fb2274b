"""What is told of dumps, logins and files; how slow readers are seen, named and ended; and that nothing of it grows."""

import logging
from pathlib import Path

import pytest
import trio

from ibbmaster.facts import NULL
from ibbmaster.logs.log.purge import PurgeRequest
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.logs.store.store_options import StoreOptions
from ibbmaster.primary.server import figures, primary
from ibbmaster.primary.server.figures import KINDS
from ibbmaster.replication.event.types import EventType
from ibbmaster.storage.disk.local import RealDisk
from tests.machinery.events import make_event, new_group
from tests.primary.server.conftest import client_of, dumping

GROUPS = 24  # more than the kernel's buffers take, of a client that reads nothing
GROUP_BYTES = 200_000
STALLED_S = 0.2  # the kernel takes a little more now and then


@pytest.fixture
def log(tmp_path):
    with BinlogStore(RealDisk(tmp_path), StoreOptions(max_file_bytes=1 << 20)) as store:
        for seq_no in range(1, GROUPS + 1):
            write(store, seq_no, GROUP_BYTES)
        yield store


def write(store, seq_no, size):
    store.write_direct(*new_group(seq_no, make_event(EventType.QUERY, 1, bytes(size))))


@pytest.fixture
def _looks_often(monkeypatch):
    monkeypatch.setattr(primary, "WATCH_S", 0.02)


async def told(served, name, **labels):
    """The value of a figure, or None."""
    found = await trio.to_thread.run_sync(lambda: list(served.figures.figures()))
    for figure in found:
        if figure.name == name and all(figure.labels.get(label) == value for label, value in labels.items()):
            return figure.value
    return None


async def stalled(served, port, server_id=7):
    """A replica that has asked for everything, and reads nothing."""
    replica = await trio.to_thread.run_sync(lambda: dumping(port, server_id=server_id))
    while (await told(served, "ibbmaster_replica_stalled_seconds", server_id=server_id) or 0.0) < STALLED_S:
        await trio.sleep(0.02)
    return replica


async def test_a_replica_that_reads_nothing_is_seen_to_lag_and_to_be_stalled(serving, log):
    async with serving(log) as (served, port):
        replica = await stalled(served, port)
        of = {"server_id": 7, "host": "127.0.0.1"}
        assert await told(served, "ibbmaster_replica_connected", **of) == 1
        lag = await told(served, "ibbmaster_replica_lag_groups", **of)
        assert 0 < lag < GROUPS
        sent = await told(served, "ibbmaster_replica_sent_bytes_total", **of)
        lag_bytes = await told(served, "ibbmaster_replica_lag_bytes", **of)
        assert abs(lag_bytes - lag * GROUP_BYTES) < 2 * GROUP_BYTES
        assert 0 < sent <= (GROUPS - lag + 2) * GROUP_BYTES
        first = await told(served, "ibbmaster_replica_stalled_seconds", **of)
        while await told(served, "ibbmaster_replica_stalled_seconds", **of) <= first:
            await trio.sleep(0.05)
        assert await told(served, "ibbmaster_replica_lag_seconds", **of) > 0
        replica._force_close()


async def test_a_replica_that_has_everything_neither_lags_nor_stalls(serving, log):
    async with serving(log) as (served, port):
        replica = await trio.to_thread.run_sync(lambda: dumping(port, f"0-1-{GROUPS}"))
        write(log, GROUPS + 1, 10)
        while (await trio.to_thread.run_sync(replica._read_packet)).get_all_data()[5] != EventType.QUERY:
            pass  # once it has the whole group, nothing is left to send
        behind = [f"ibbmaster_replica_lag_{unit}" for unit in ("groups", "bytes", "seconds")]
        while [await told(served, name) for name in behind] != [0, 0, 0]:
            await trio.sleep(0.01)
        assert await told(served, "ibbmaster_purge_held_by") == 0
        replica._force_close()


@pytest.mark.usefixtures("_looks_often")
async def test_a_replica_that_holds_a_file_is_named_in_sql_in_the_log_and_in_figures(serving, log, ask, caplog):
    caplog.set_level(logging.INFO)
    async with serving(log) as (served, port):
        served.figures.store = log
        replica = await stalled(served, port)
        assert await told(served, "ibbmaster_purge_held_by", server_id=7) == 0
        result = await trio.to_thread.run_sync(log.purge, PurgeRequest(total_bytes=1))
        assert result.kept is not None
        while not (line := [line for line in caplog.messages if "holds binlog-" in line]):
            await trio.sleep(0.01)
        assert line[0].startswith("connection 1 of repl@127.0.0.1:")
        assert "(server id 7): " in line[0]
        assert await told(served, "ibbmaster_purge_held_by", server_id=7) == 1
        rows = await ask(port, "SHOW PROCESSLIST")
        (info,) = [row[7] for row in rows if row[4] == "Binlog Dump"]
        assert "transactions," in info
        assert "stalled for" in info
        assert f"holds {result.kept.split()[0]}, which is to be removed" in info
        assert (await ask(port, "SHOW GLOBAL STATUS LIKE 'Ibb_purge_held_by'"))[0] == ("Ibb_purge_held_by", "1")
        assert len([line for line in caplog.messages if "holds binlog-" in line]) == 1  # it is told once
        replica._force_close()


@pytest.mark.usefixtures("_looks_often")
async def test_a_replica_that_holds_a_file_for_too_long_is_ended_and_the_file_can_go(serving, log, caplog):
    caplog.set_level(logging.INFO)
    async with serving(log, hold_s=0.0) as (served, port):
        served.figures.store = log
        replica = await stalled(served, port)
        assert (await trio.to_thread.run_sync(log.purge, PurgeRequest(total_bytes=1))).kept is not None
        while len(served.registry):
            await trio.sleep(0.01)
        assert any("is ended, so that the file can be removed" in line for line in caplog.messages)
        await trio.to_thread.run_sync(log.purge, PurgeRequest(total_bytes=1))
        assert len(log.files()) <= 2
        assert await told(served, "ibbmaster_dumps_ended_total", result="ok") == 1
        replica._force_close()


async def test_dumps_logins_and_refusals_are_counted_by_result(serving, log, ask):
    async with serving(log) as (served, port):
        for position, reason in (("0-1-99999", "diverged"), ("0-1-1", None)):
            replica = await trio.to_thread.run_sync(lambda position=position: dumping(port, position))
            await trio.to_thread.run_sync(lambda replica=replica: refused(replica))
            replica._force_close()
            assert reason is None or await told(served, "ibbmaster_refusals_total", reason=reason) == 1
        with pytest.raises(Exception, match="Access denied"):
            await ask(port, "SELECT 1", password="wrong")
        assert await told(served, "ibbmaster_dumps_begun_total") == 1
        assert await told(served, "ibbmaster_logins_total", result="ok") == 2
        assert await told(served, "ibbmaster_logins_total", result="wrong") == 1
        status = dict(await ask(port, "SHOW GLOBAL STATUS"))
        assert (status["Ibb_dumps_begun"], status["Ibb_dumps_refused"], status["Ibb_logins"]) == ("1", "1", "4")
        assert min(int(status["Bytes_sent"]), int(status["Bytes_received"])) > 0


def refused(replica):
    try:
        replica._read_packet()
    except Exception as error:
        return error.args
    return None


async def test_a_replica_that_has_left_is_told_as_gone_for_a_day(serving, log, monkeypatch):
    async with serving(log) as (served, port):
        replica = await stalled(served, port)
        session = next(iter(served.registry))
        session.replica_server_id = 7
        replica._force_close()
        while len(served.registry):
            await trio.sleep(0.01)
        assert await told(served, "ibbmaster_replica_connected", server_id=7) == 0
        assert await told(served, "ibbmaster_replica_sent_bytes_total", server_id=7) > 0
        assert await told(served, "ibbmaster_replica_lag_groups", server_id=7) is None
        monkeypatch.setattr(figures, "REMEMBERED_S", -1.0)
        assert await told(served, "ibbmaster_replica_connected", server_id=7) is None


async def test_replicas_that_come_and_go_under_ever_new_ids_take_no_more_memory(serving, log, monkeypatch):
    monkeypatch.setattr(figures, "REMEMBERED_MAX", 5)
    async with serving(log) as (served, _):
        for server_id in range(20):
            session = served.registry.open(f"10.0.0.{server_id}", 0.0)
            session.dump_server_id = session.replica_server_id = server_id
            served.figures.note_end(session)
            served.registry.close(session)
        found = await trio.to_thread.run_sync(lambda: list(served.figures.figures()))
        ids = [one.labels["server_id"] for one in found if one.name == "ibbmaster_replica_connected"]
        assert ids == list(range(15, 20))


async def test_every_figure_is_in_the_table_and_has_the_labels_of_its_kind(serving, log):
    async with serving(log) as (served, port):
        replica = await stalled(served, port)
        found = await trio.to_thread.run_sync(lambda: list(served.figures.figures()))
        names = {figure.name for figure in found}
        others = ("ibbmaster_follow_", "ibbmaster_archive_", "mysql_slave_status_")
        assert names == {name for name in KINDS if not name.startswith(others)}
        for name in names:
            assert len({tuple(figure.labels) for figure in found if figure.name == name}) == 1
        assert all(name.endswith("_total") == (kind.kind == "counter") for name, kind in KINDS.items())
        replica._force_close()


async def test_a_primary_that_ends_is_not_ready(serving, log):
    async with serving(log) as (served, port):
        assert list(served.figures.problems()) == []
        assert served.figures.silent_s() < 60
        client = await trio.to_thread.run_sync(lambda: client_of(port))
        served.stop()
        assert list(served.figures.problems()) == ["serving ends"]
        client._force_close()


def test_the_manual_has_all_figures():
    page = (Path(__file__).parents[3] / "docs" / "operation.md").read_text()
    rows = [
        f"| `{one.name}` | {f'`{one.status}`' if one.status != NULL else ''} | {one.meaning} |"
        for one in KINDS.values()
    ]
    assert [line for line in page.splitlines() if line.startswith(("| `mysql_", "| `ibbmaster_"))] == rows
