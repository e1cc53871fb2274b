"""Archives in the layouts of wal-g and mariadb-operator, of real servers: replicas follow them from end to end."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from lanes.capture import contents
from lanes.primary import ibbmaster, run_program, tool_command
from lanes.sql import position_of, run

from ibbmaster.testkit.mariadb_server import RealPrimary
from tests.machinery.packers import PACK

KEPT = Path(__file__).parents[2] / "fixtures" / "archives" / "operator"
TABLES = ["shop.orders"]


class Operator:
    """Archives the closed files of the server that is the primary, and an index, as mariadb-operator does."""

    def __init__(self, archive: Path, suffix: str = "") -> None:
        self.archive = archive
        self._suffix = suffix
        self._index: dict[str, list[list[str]]] = {}

    def archive_files(self, server: RealPrimary) -> None:
        key = f"server-{server.sql('SELECT @@server_id')[0][0]}"
        (self.archive / key).mkdir(parents=True, exist_ok=True)
        for name in [row[0] for row in server.sql("SHOW BINARY LOGS")][:-1]:
            path = self.archive / key / f"{name}{self._suffix}"
            if not path.exists():
                path.write_bytes(PACK.get(self._suffix, bytes)((server.data / name).read_bytes()))
                self._index.setdefault(key, []).append(described(server.data / name))
        lines = ["apiVersion: v1", "binlogs:"]
        for each, entries in sorted(self._index.items()):
            lines += [f"  {each}:", *(line for entry in entries for line in entry)]
        (self.archive / "index.yaml").write_text("\n".join(lines) + "\n")


def described(path: Path) -> list[str]:
    """The entry of a file, from what MariaDB's own program prints of it."""
    text = subprocess.run(
        tool_command("10.11", "mariadb-binlog", "--base64-output=never", str(path)),
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    ).stdout
    listed = re.search(r"Gtid list \[(.*?)\]", text, re.DOTALL)[1]
    gtids = re.findall(r"\bGTID (\d+-\d+-\d+) ", text) or ["null"]
    previous = [f"    - {one}" for one in re.findall(r"\d+-\d+-\d+", listed)]
    return [
        f"  - binlogFilename: {path.name}",
        f"    firstGtid: {gtids[0]}",
        '    firstTime: "2026-02-04T12:02:54Z"',
        f"    lastGtid: {gtids[-1]}",
        f"    previousGtids:{'' if previous else ' []'}",
        *previous,
        f"    stopEvent: {str('Stop' in text).lower()}",
    ]


def turn(number: int) -> tuple[str, ...]:
    rows = [f"INSERT INTO shop.orders VALUES ({number * 100 + row}, 'of turn {number}')" for row in range(4)]
    change = f"UPDATE shop.orders SET v = 'x' WHERE id % 7 = {number}"
    return rows[0], rows[1], "FLUSH BINARY LOGS", rows[2], change, rows[3]


def switch(old: RealPrimary, new: RealPrimary) -> None:
    assert new.sql("SELECT MASTER_GTID_WAIT(%s, 60)", (current(old),)) == ((0,),)
    run(new, "STOP SLAVE", "RESET SLAVE ALL")
    old.sql(f"SET GLOBAL gtid_slave_pos = '{current(old)}'")
    old.follow_at(new.host, new.port, user="repl", password="a pass word")


def current(server: RealPrimary) -> str:
    return str(server.sql("SELECT @@GLOBAL.gtid_current_pos")[0][0])


@pytest.mark.parametrize("version", ["10.11", "11.8"])
def test_servers_that_took_turns_are_followed_as_one_log(
    version, new_following, new_ibb_primary, new_replica, tmp_path, request
):
    first, second = servers = new_following(version, "--log-slave-updates=0", "--binlog-format=ROW")
    operator = Operator(tmp_path / "archive", ".gz")
    run(first, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY, v VARCHAR(20))")
    followed = None
    for number, at in enumerate((0, 1, 0, 1)):
        primary = servers[at]
        if number:
            switch(servers[1 - at], primary)
        run(primary, *turn(number), "FLUSH BINARY LOGS")
        operator.archive_files(primary)
        if number == 1:
            followed = new_replica(version, "--gtid-strict-mode=1")
            followed.follow(new_ibb_primary(operator.archive, "--tls", "off"))
    assert followed is not None
    followed.wait_for_gtid(current(second))
    assert followed.tables(TABLES) == contents(second, TABLES)
    run_program(ibbmaster("verify", "--strict", str(operator.archive)))
    if request.config.getoption("--rewrite"):
        shutil.rmtree(KEPT, ignore_errors=True)
        shutil.copytree(operator.archive, KEPT)


@pytest.mark.parametrize("version", ["10.11", "11.8"])
def test_a_replica_follows_what_wal_g_archives(version, new_server, new_replica, new_ibb_primary, object_store):
    server = new_server(version, "--binlog-format=ROW")
    url = object_store.new_place()
    run(server, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY, v VARCHAR(20))")
    replica, archived = new_replica(version, "--gtid-strict-mode=1"), set()
    for number in range(2):
        run(server, *turn(number), "FLUSH BINARY LOGS")
        for name in [row[0] for row in server.sql("SHOW BINARY LOGS")][:-1]:
            if name not in archived:
                object_store.put(f"{url}/binlog_005/{name}.lz4", PACK[".lz4"]((server.data / name).read_bytes()))
                archived.add(name)
        sentinel = {"GtidArchived": position_of(server)}
        object_store.put(f"{url}/binlog_sentinel_005.json", json.dumps(sentinel).encode())
        if not number:
            replica.follow(new_ibb_primary(url, "--tls", "off"))
        replica.wait_for_gtid(position_of(server))
    assert replica.tables(TABLES) == contents(server, TABLES)
    run_program(ibbmaster("verify", "--strict", url))
