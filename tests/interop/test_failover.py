"""One archive of two real servers that take turns as primary: what both have logged is in it once."""

import contextlib
import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from lanes.primary import ibbmaster, run_program
from lanes.replica import Replica
from lanes.sql import copy_binlogs, position_of, run, sql_beside

from ibbmaster.testkit.mariadb_server import RealPrimary

_SQL = sql_beside(__file__)
DECLARED = _SQL["declared"]
TURN = _SQL["turn"]
TABLES = ["shop.parent", "shop.child", "shop.plain", "shop.audit", "shop.of_1", "shop.of_2", "shop.of_3"]


class Server(RealPrimary, Replica):
    """A server that is a primary or a replica."""


class Pair:
    def __init__(self, first: Server, second: Server, directory: Path) -> None:
        self.servers = first, second
        self.archive = directory / "archive"
        self._copies = directory / "copies"
        self._copied = itertools.count(1)

    def switch(self, to: int) -> None:
        primary, replica = self.servers[to], self.servers[1 - to]
        self.catch_up(primary)
        primary.sql("STOP SLAVE")
        primary.sql("RESET SLAVE ALL")
        replica.sql("SET GLOBAL gtid_slave_pos = @@gtid_binlog_pos")
        replica.follow(primary)

    def catch_up(self, replica: Server) -> None:
        other = next(server for server in self.servers if server is not replica)
        if replica.sql("SHOW SLAVE STATUS"):
            replica.wait_for_gtid(position_of(other))

    def add(self, number: int, code: int = 0) -> str:
        """Import all files of a server into the archive; returns what is said."""
        files = copy_binlogs(self.servers[number], self._copies / str(next(self._copied)))
        added = "--append", "--max-file-size", "8M"
        return run_program(ibbmaster("convert", "--to", "ibb", str(files), str(self.archive), *added), code=code)


def counted(server: Server, *statements: str, turn: int = 0) -> int:
    """Carry out statements in one session; returns how many transactions the server has logged by then."""
    run(server, *(statement.replace("{turn}", str(turn)) for statement in statements))
    return sum(int(gtid.rpartition("-")[2]) for gtid in position_of(server).split(","))


@pytest.fixture(params=["10.11", "11.8"])
def pair(request, server_of, watch_log, tmp_path) -> Iterator[Pair]:
    both = "--log-slave-updates", "--gtid-strict-mode=1", "--binlog-format=ROW"
    own = (
        ("--server-id=1", "--binlog-row-metadata=FULL"),
        ("--server-id=2", "--log-bin-compress=1", "--log-bin-compress-min-len=10", "--binlog-checksum=NONE"),
    )
    with contextlib.ExitStack() as stack:
        servers = []
        for options in own:
            server = server_of(Server, request.param, [], *both, *options)
            watch_log(f"log of the server with {options[0]}", server.log_text)
            servers.append(stack.enter_context(server))
        yield Pair(*servers, tmp_path)


def test_switchover_and_switchback_make_one_archive(pair, new_ibb_primary, new_replica):
    first, second = pair.servers
    pair.switch(to=0)
    count = counted(first, *DECLARED, *TURN, turn=1)
    assert pair.add(0).startswith(f"{count} event groups with ")

    for turn, to in ((2, 1), (3, 0)):
        pair.switch(to=to)
        before, count = count, counted(pair.servers[to], *TURN, turn=turn)
        said = pair.add(to)
        assert said.startswith(f"{count - before} event groups with ")
        assert f"\n{before} groups were in the log already\n" in said
    pair.catch_up(second)
    for number in (1, 0):
        assert f"\n{count} groups were in the log already\n" in pair.add(number)

    run_program(ibbmaster("verify", "--strict", str(pair.archive)))
    position = position_of(first)
    fresh = new_replica(first.programs.version[:5].rstrip("."), "--gtid-strict-mode=1")
    fresh.follow(new_ibb_primary(pair.archive, "--tls", "off"))
    fresh.wait_for_gtid(position)
    assert fresh.position == set(position.split(","))
    assert fresh.tables(TABLES) == first.tables(TABLES)


def digests(directory: Path) -> dict[str, str]:
    """What its files hold; those of a store are a GiB each."""
    found = {}
    for path in directory.iterdir():
        with path.open("rb") as file:
            found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def test_an_errant_row_is_refused_with_both_gtids_and_places(pair):
    first, second = pair.servers
    pair.switch(to=0)
    count = counted(first, *DECLARED)
    pair.catch_up(second)
    second.sql("STOP SLAVE")
    first.sql("INSERT INTO shop.audit VALUES ('of the primary')")
    pair.add(0)
    before = digests(pair.archive)

    second.sql("INSERT INTO shop.audit VALUES ('of the replica')")
    said = pair.add(1, code=2)
    assert f"what is added goes on with 0-2-{count + 1}, at binlog.000001 offset " in said
    assert f", and the log with 0-1-{count + 1}, at binlog-000000.ibb offset " in said

    second.sql("RESET MASTER")
    run(second, f"SET server_id = 1, gtid_seq_no = {count + 1}", "INSERT INTO shop.audit VALUES ('of nobody')")
    said = pair.add(1, code=2)
    assert f"the log has another group 0-1-{count + 1}, at binlog-000000.ibb offset " in said
    assert "than what is added, at binlog.000001 offset " in said
    assert ": event 1, WRITE_ROWS_V1, differs; " in said
    assert digests(pair.archive) == before
