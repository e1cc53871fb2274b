"""What tests of MariaDB's suite `binlog_in_engine` show with two servers: here with our primary and real servers."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from lanes.primary import IbbPrimary
from lanes.replica import Replica
from lanes.sql import position_of, run_script
from test_binlog_tool import connection_options

import ibbmaster
from ibbmaster.testkit.mariadb_server import RealServer

TABLES = ["shop.t0", "shop.t1", "shop.t2"]
FIRST, LAST = "9-9-1", "9-9-2"  # no filter leaves them out

NOTHING = "DROP DATABASE IF EXISTS never"


class Reading(NamedTuple):
    """A part of a log: as `mariadb-binlog` is asked for it, and as a replica is."""

    options: tuple[str, ...] = ()
    master: str = ""
    start: str = FIRST
    stop: str = ""


READINGS = {
    "all": Reading(),
    "from a position of two domains": Reading(start="0-1-4,1-2-3"),
    "to a position of one domain": Reading(start="1-2-1", stop="1-2-7"),
    "to a position of three domains": Reading(start="0-1-1", stop="0-1-6,1-2-3,2-1-8"),
    "between two positions": Reading(start="0-1-2,1-2-2,2-1-3", stop="0-1-5,1-2-5,2-1-5"),
    "some domains": Reading(options=("--do-domain-ids=0,2,9",), master="DO_DOMAIN_IDS=(0,2,9)"),
    "all but some domains": Reading(options=("--ignore-domain-ids=1",), master="IGNORE_DOMAIN_IDS=(1)"),
    "all but a server": Reading(options=("--ignore-server-ids=2",), master="IGNORE_SERVER_IDS=(2)"),
    "all but a domain and a server": Reading(
        options=("--ignore-domain-ids=0", "--ignore-server-ids=2"),
        master="IGNORE_DOMAIN_IDS=(0), IGNORE_SERVER_IDS=(2)",
    ),
}


# As mysql-test/suite/binlog_in_engine/rpl_mysqlbinlog_slave_consistency_basic.test
# As mysql-test/suite/binlog_in_engine/rpl_mysqlbinlog_slave_consistency_oob.test
@pytest.mark.parametrize(("value_bytes", "version"), [(10, "10.11"), (16_384, "11.8")], ids=["basic", "out of band"])
def test_what_the_tool_prints_makes_the_tables_that_a_replica_has(
    value_bytes, version, tmp_path, new_ibb_primary, new_replica, run_tool
):
    write_shop(tmp_path / "log", value_bytes)
    primary = new_ibb_primary(tmp_path / "log", "--tls", "off", "--profile", "compat")
    replica, server = new_replica(version), new_replica(version)
    printed = tmp_path / "printed.sql"

    for name, reading in READINGS.items():
        for each in (replica, server):
            make_tables(each)
        follow_part(replica, primary, reading)
        read = [*reading.options, f"--start-position={reading.start}"]
        if reading.stop:
            read.append(f"--stop-position={reading.stop}")
        remote = ["--to-last-log", *connection_options(primary), "binlog-000000.ibb"]
        done = run_tool(version, "mariadb-binlog", *read, f"--result-file={printed}", *remote)
        assert done.returncode == 0, (name, done.stderr)
        assert run_script(server, printed.read_bytes()) == "", name

        found = replica.tables(TABLES)
        assert server.tables(TABLES) == found, name
        assert (sum(table.rows for table in found.values() if table) == 24) == (name == "all"), name


def write_shop(directory: Path, value_bytes: int) -> None:
    """Three domains, each with a table of its own and eight groups; that of domain 1 has another server."""
    with ibbmaster.create(directory, max_file_bytes="256K", spill_bytes=8192) as log:
        log.append(FIRST, NOTHING)
        for seq_no in range(1, 9):
            for domain_id in range(3):
                value = chr(ord("a") + seq_no) * value_bytes
                insert = f"INSERT INTO shop.t{domain_id} VALUES ({seq_no}, '{value}')"
                log.append(f"{domain_id}-{2 if domain_id == 1 else 1}-{seq_no}", insert)
        log.append(LAST, NOTHING)


def make_tables(server: RealServer) -> None:
    server.sql("CREATE OR REPLACE DATABASE shop")
    for table in TABLES:
        server.sql(f"CREATE TABLE {table} (id INT PRIMARY KEY, v LONGTEXT) ENGINE=InnoDB")


def follow_part(replica: Replica, primary: IbbPrimary, reading: Reading) -> None:
    """Follow as `reading` says, to its end; then no longer."""
    replica.follow(primary, position=reading.start, start=False)
    if reading.master:
        replica.sql(f"CHANGE MASTER TO {reading.master}")
    if reading.stop:
        replica.sql(f"START SLAVE UNTIL master_gtid_pos = '{reading.stop}'")
        replica.wait_until(lambda it: it.status()["Slave_SQL_Running"] == "No")
        assert replica.status()["Last_SQL_Error"] == ""
    else:
        replica.sql("START SLAVE")
        replica.wait_for_gtid(LAST)
    replica.sql("STOP SLAVE")
    replica.sql("RESET SLAVE ALL")


# As mysql-test/suite/binlog_in_engine/mariabackup_slave_provision_binlog_dir.test
# As mysql-test/suite/binlog_in_engine/mariabackup_slave_provision_nolock.test
@pytest.mark.parametrize("version", ["11.8"])
def test_a_replica_made_from_a_backup_goes_on_behind_it_at_the_primary(version, tmp_path, new_ibb_primary, new_replica):
    """The backup is taken while groups are appended; nothing is missing at its end, and nothing comes twice."""
    with (
        ibbmaster.create(tmp_path / "log", max_file_bytes="256K", durability="write") as log,
        ThreadPoolExecutor(1) as pool,
    ):
        log.append("0-1-1", "CREATE DATABASE shop")
        log.append("0-1-2", "CREATE TABLE shop.t (id INT, v TEXT) ENGINE=InnoDB")  # would take a row twice
        append(log, 3, 103)
        writing = pool.submit(append, log, 103, 503)
        report = log.back_up(tmp_path / "copy")
        writing.result()
    replica = new_replica(version)

    replica.follow(new_ibb_primary(tmp_path / "copy", "--tls", "off"))
    replica.wait_for_gtid(str(report.gtid_state))
    replica.sql("STOP SLAVE")
    count = int(str(report.gtid_state).rpartition("-")[2]) - 2
    assert count >= 100
    assert rows_of(replica) == list(range(3, 3 + count))
    replica.sql("RESET SLAVE")
    replica.follow(new_ibb_primary(tmp_path / "log", "--tls", "off"))
    replica.wait_for_gtid("0-1-502")

    assert rows_of(replica) == list(range(3, 503))


def append(log: ibbmaster.WritableLog, first: int, end: int) -> None:
    for number in range(first, end):
        log.append(f"0-1-{number}", f"INSERT INTO shop.t VALUES ({number}, '{'x' * 500}')")


def rows_of(server: RealServer) -> list[int]:
    return [row[0] for row in server.sql("SELECT id FROM shop.t ORDER BY id")]


# As mysql-test/suite/binlog_in_engine/rpl_shutdown_wait_slaves.test
@pytest.mark.parametrize("version", ["10.11"])
def test_a_stop_waits_for_no_replica_and_those_behind_have_everything_after_the_next_start(
    version, tmp_path, new_ibb_primary, new_replica
):
    with ibbmaster.create(tmp_path / "log", durability="write") as log:
        log.append("0-1-1", "CREATE DATABASE shop")
        log.append("0-1-2", "CREATE TABLE shop.t (id INT, v TEXT) ENGINE=InnoDB")
        append(log, 3, 303)
    primary = new_ibb_primary(tmp_path / "log", "--tls", "off")
    ahead, behind = new_replica(version, server_id=1001), new_replica(version, server_id=1002)
    ahead.follow(primary)
    behind.follow(primary, start=False)
    behind.follow_until("0-1-99")
    ahead.wait_for_gtid("0-1-302")

    primary.stop()
    behind.wait_until(lambda it: it.status()["Slave_SQL_Running"] == "No")
    behind.sql("STOP SLAVE")
    behind.sql("START SLAVE")
    primary.start()

    for replica in (ahead, behind):
        replica.wait_for_gtid("0-1-302", tolerates_lost_connections=True)
        assert rows_of(replica) == list(range(3, 303))


# As mysql-test/suite/binlog_in_engine/rpl_parallel_temptable.test
@pytest.mark.parametrize("kind", ["ibb", "traditional"])
def test_parallel_replicas_keep_the_temporary_tables_of_each_session_apart(
    kind, tmp_path, new_server, import_files, new_ibb_primary, new_replica
):
    """The primary is killed while they are open; what it did before and since comes to the replica."""
    version = "10.11"
    real = new_server(version, "--binlog-format=STATEMENT", "--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1")
    real.sql("CREATE DATABASE shop")
    real.sql("CREATE TABLE shop.t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB")
    sessions = [real.connect().cursor() for _ in range(3)]
    for number, session in enumerate(sessions):
        session.execute("CREATE TEMPORARY TABLE shop.own (id INT PRIMARY KEY, v INT) ENGINE=InnoDB")
        session.execute(f"INSERT INTO shop.own VALUES ({number}, {10 * number})")
    for session in sessions:
        session.execute("INSERT INTO shop.t SELECT * FROM shop.own")
    real.kill()
    real.start()
    real.sql("INSERT INTO shop.t VALUES (9, 9)")
    position = position_of(real)
    real.stop()
    directory = real.data
    if kind == "ibb":
        directory = tmp_path / "ibb"
        import_files(sorted(real.data.glob("binlog.0*")), directory)
    replica = new_replica(version, "--slave-parallel-threads=4", "--slave-parallel-mode=optimistic")

    replica.follow(new_ibb_primary(directory, "--tls", "off"))
    replica.wait_for_gtid(position)

    assert replica.sql("SELECT * FROM shop.t ORDER BY id") == ((0, 0), (1, 10), (2, 20), (9, 9))
    if kind == "traditional":  # a stream of `.ibb` files does not tell that a server was started
        assert replica.query("SHOW STATUS LIKE 'Slave_open_temp_tables'")[0]["Value"] == "0"
