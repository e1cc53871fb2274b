"""Every name of the front door as users use it; read by mypy alone (see `files` in pyproject.toml), never run."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import assert_type

import trio

import ibbmaster


def read(path: Path) -> None:
    with ibbmaster.open(path, schema="CREATE TABLE shop.orders (id INT)") as log:
        assert_type(log, ibbmaster.Log)
        assert_type([(file.name, file.size) for file in log.files], list[tuple[str, int]])
        assert_type(log.state, ibbmaster.GtidState)
        assert_type(log.position, ibbmaster.GtidPosition)
        assert_type(log.groups(), Iterator[ibbmaster.Group])
        until = ibbmaster.GtidPosition([ibbmaster.Gtid(domain_id=0, server_id=1, seq_no=100)])
        for group in log.groups(after="0-1-10", until=until):
            assert_type(group.gtid, ibbmaster.Gtid)
            assert_type(group.start, ibbmaster.LogPosition)
            assert_type(group.end.file_no + len(group) + group.timestamp, int)
            for event in group.events():
                assert_type(event, ibbmaster.Event)
                print(event.type, event.header.timestamp, bytes(event.body), event.data, event.describe())
            for table, change in group.rows():
                assert_type(change, ibbmaster.Change)
                print(table.name, change.kind, (change.before or {}).get("id"), change.after)
        print(log.seek(ibbmaster.Gtid.parse("0-1-100")).explain())
        check = log.verify(jobs=2)
        print([str(fault) for fault in check if fault.is_damage], check.totals.groups)
        print(log.to_arrow(table="shop.orders", after="0-1-1", columns=["id"]))
        log.back_up(path / "copy")


def write(path: str) -> None:
    with ibbmaster.create(path, durability="sync", max_file_bytes="64M", expire_s=3600.0, state="0-1-0") as log:
        assert_type(log, ibbmaster.WritableLog)
        assert_type(log.append("0-1-1", "INSERT INTO t VALUES (1)", database="shop"), ibbmaster.LogPosition)
        log.append(ibbmaster.Gtid.parse("0-1-2"), ["UPDATE t SET a = 2", "DELETE FROM t"], timestamp=0)
        log.append("0-1-3", [event.data for event in next(log.groups()).events()])
        with log.begin(server_id=1) as group:
            assert_type(group, ibbmaster.OpenGroup)
            group.write(b"")
            group.savepoint("here")
            group.roll_back_to("here")
            assert_type(group.commit("0-1-4"), ibbmaster.LogPosition)
        log.begin().prepare("xid")
        log.xa_commit("xid", "0-1-5")
        log.flush()
        print(log.purge(max_total="10G").names, log.status.durable_lsn)
    with ibbmaster.open(path, writable=True, durability="later") as again:
        assert_type(again, ibbmaster.WritableLog)
        again.reset("0-1-9")


def serve(log: ibbmaster.WritableLog) -> None:
    try:
        with ibbmaster.serve(log, profile="classic-11.8", user="repl", password="x", tls="off") as primary:
            assert_type(primary, ibbmaster.RunningPrimary)
            print(primary.host, primary.port, primary.dsn, [replica.server_id for replica in primary.replicas])
            primary.stop()
    except (ibbmaster.ConfigurationError, ibbmaster.BusyError, ibbmaster.PositionError) as error:
        print(error)
    except ibbmaster.DuplicateGtidError:
        pass
    except ibbmaster.FormatError as error:
        print(error.location.file_no, error.problem)
    except ibbmaster.StoreError as error:
        print(error)
    except ibbmaster.IbbMasterError:
        print(ibbmaster.__version__)


def follow_a_primary(path: str) -> int:
    with ibbmaster.follow("mysql://repl@db1,db2", path, tls="verify", semi_sync=True, durability="sync") as followed:
        one: ibbmaster.Followed = followed
        one.log.sync()
        return 0 if one.wait(1.0) else one.status.groups


def restore_a_server(path: str) -> ibbmaster.GtidPosition:
    with ibbmaster.open(path) as log:
        plan = ibbmaster.restore(log, "mysql://root@db2", until="2026-11-20 14:03:05", before=True, skip=["0-1-7"])
        return plan.end


async def serve_as_a_task(path: str) -> None:
    async with trio.open_nursery() as nursery:
        primary: ibbmaster.RunningPrimary = await nursery.start(
            functools.partial(ibbmaster.serve_trio, path, password="x")
        )
        followed: ibbmaster.Followed = await nursery.start(
            functools.partial(ibbmaster.follow_trio, primary.dsn, path, until_end=True)
        )
        assert followed.state is not None
        primary.stop()
