"""What a log has after stages is what a real replica's own filters make of the same log."""

import random
from pathlib import Path

import pytest
from lanes.replica import Replica
from lanes.sql import copy_binlogs, position_of, sql_beside

import ibbmaster
from ibbmaster.gtid import Gtid, GtidState
from ibbmaster.kernel import loading
from ibbmaster.logs.store.binlog_store import BinlogStore
from ibbmaster.replication.event.gtid_event import GtidEvent, GtidFlag, encode_gtid_event
from ibbmaster.replication.event.query import Query, encode_query
from ibbmaster.storage.disk.local import RealDisk
from ibbmaster.testkit.mariadb_server import RealPrimary

ROUNDS = 12

_SQL = sql_beside(__file__)
PREPARED = _SQL["prepared"]
#: About one table and several, statements whose last rows are of another table, XA, DDL, statement format.
ROUND = _SQL["round"]


def round_of(number: int) -> list[str]:
    tables = {"one": "log_1", "other": "items"} if number % 2 else {"one": "orders", "other": "log_1"}
    return [statement.format(n=number, **tables) for statement in ROUND]


@pytest.fixture
def recorded(version, new_server, tmp_path) -> tuple[RealPrimary, Path, str]:
    """A primary that has written a log, a copy of the log, and its last position."""
    server = new_server(version, "--binlog-row-metadata=FULL")
    for statement in PREPARED:
        server.sql(statement)
    (server.data / "shop/one-row.txt").write_text("7\tshop.orders\n")
    for statement in (text for number in range(1, ROUNDS) for text in round_of(number)):
        server.sql(statement)
    return server, copy_binlogs(server, tmp_path / "captured"), position_of(server)


FILTERS = {
    "some tables": (
        {"only": "shop.orders,other.*"},
        ["--replicate-do-table=shop.orders", "--replicate-wild-do-table=other.%"],
    ),
    "all but some": ({"except_": "shop.log_*"}, ["--replicate-wild-ignore-table=shop.log\\_%"]),
    "another name": ({"rename": "shop=stage"}, ["--replicate-rewrite-db=shop->stage"]),
}

#: Databases that a server's own filters do not make: of CREATE DATABASE they leave out all, or its name.
NOT_CREATED = {"some tables": ("shop", "other"), "another name": ("stage",)}


def checksums(server: Replica) -> dict[str, object]:
    """Of every table, also which there are, and the tables of triggers."""
    names = server.sql(
        "SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables "
        "WHERE table_schema IN ('shop', 'stage', 'other')"
    )
    triggers = server.sql(
        "SELECT CONCAT('trigger ', trigger_name), event_object_table FROM information_schema.triggers"
    )
    return {name: server.sql(f"CHECKSUM TABLE {name} EXTENDED")[0][1] for (name,) in names} | dict(triggers)


def test_a_replica_has_what_its_own_filters_would_leave(version, recorded, new_replica):
    server, captured, position = recorded
    for name, (stages, options) in FILTERS.items():
        filtered, plain = new_replica(version, *options), new_replica(version, "--slave-parallel-threads=4")
        for database in NOT_CREATED.get(name, ()):
            filtered.sql(f"CREATE DATABASE {database}")
        filtered.follow(server)
        with ibbmaster.serve(captured, password="secret", tls="off", **stages) as primary:
            plain.follow(primary)
            plain.wait_for_gtid(position)
            filtered.wait_for_gtid(position)
            assert checksums(plain) == checksums(filtered), name
            assert plain.position == filtered.position, name
        for replica in (filtered, plain):
            replica.kill()


@pytest.mark.parametrize("version", ["11.8"])
def test_a_log_ends_exactly_at_any_gtid(version, recorded, new_replica, seed, pytestconfig):
    """Cut after cut a replica has the tables of a server that ran so many transactions."""
    server, captured, _ = recorded
    replica, judge = new_replica(version), new_replica(version)
    rng = random.Random(seed)
    with ibbmaster.open(captured) as log:
        gtids = [group.gtid for group in log]
        count = max(4, pytestconfig.getoption("--range-cuts") // 20)
        chosen = sorted(rng.sample(range(len(PREPARED), len(gtids)), count))
        begin = ""
        for cut in chosen:
            until = str(GtidState(gtids[:cut]).position())
            part = log.through(after=begin or None, until=until)
            with ibbmaster.serve(part, password="secret", tls="off") as primary:
                replica.sql("STOP SLAVE")
                replica.follow(primary)
                replica.wait_for_gtid(until)
                judge.sql("STOP SLAVE")
                judge.follow(server, start=False)
                judge.follow_until(until)
                judge.wait_until(lambda one: one.status()["Slave_SQL_Running"] == "No")
                assert checksums(replica) == checksums(judge), until
                assert replica.position == {until}
                replica.sql("STOP SLAVE")
            begin = until


REFUSED = {
    "a filter": (
        {"only": "shop.orders"},
        "DROP TABLE shop.orders, shop.items",
        "cannot be filtered: 'DROP TABLE shop.orders, shop.items' is about shop.orders, shop.items, and the filter "
        "leaves out some tables and not all",
    ),
    "a rename": ({"rename": "shop=stage"}, "UPDATE shop.orders SET shop = 1", "cannot be renamed: "),
}


@pytest.mark.parametrize("has_kernels", [True, False], ids=["by kernels", "group by group"])
@pytest.mark.parametrize("is_first", [True, False], ids=["the first group of the dump", "a later group"])
@pytest.mark.parametrize(("stages", "statement", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_a_stage_refuses_ends_the_dump_with_the_gtid_and_the_reason(
    tmp_path, new_replica, monkeypatch, stages, statement, reason, is_first, has_kernels
):
    assert loading.load() is not None
    if not has_kernels:
        monkeypatch.setattr("ibbmaster.primary.streaming.shared.kernels", lambda: None)
    before = ["CREATE DATABASE shop", "CREATE TABLE shop.orders (a INT)", *(f"CREATE DATABASE d{n}" for n in range(40))]
    position = f"0-1-{len(before)}"
    with BinlogStore(RealDisk(tmp_path)) as store:
        for number, text in enumerate([*before, statement], 1):
            gtid = Gtid(domain_id=0, server_id=1, seq_no=number)
            query = Query(thread_id=1, seconds=0, error_code=0, status=b"", database=b"", text=text.encode())
            event = encode_gtid_event(GtidEvent(gtid=gtid, flags=GtidFlag.STANDALONE | GtidFlag.DDL))
            store.write_direct(gtid, event, [encode_query(query, server_id=1)])
    replica = new_replica("10.11")
    with ibbmaster.serve(tmp_path, password="secret", tls="off", **stages) as primary:
        replica.follow(primary, position=position if is_first else "")
        problem = replica.wait_for_problem()
        replica.wait_for_gtid(position)
    refusal = f"'group 0-1-{len(before) + 1} {reason}"
    assert f"Got fatal error 1236 from master when reading data from binary log: {refusal}" in problem
