"""A real replica follows every capture from an empty position and ends with the tables the capture's primary had.

And where it may start, MariaDB's own words where it may not, and what a program appends while it follows.
"""

import re

import pytest
from lanes.capture import Capture
from lanes.primary import PASSWORD, USER
from lanes.sql import copy_binlogs, run

import ibbmaster
from ibbmaster.gtid import Gtid
from ibbmaster.kernel import loading
from ibbmaster.replication.event.gtid_event import decode_gtid_event
from ibbmaster.replication.event.types import EventType
from tests.tap import listen_in

#: Of a replica whose disk is memory: pages are compressed, and what was replayed of the relay log goes.
SMALL_TABLES = ("--innodb-compression-default=ON", "--max-relay-log-size=4M", "--relay-log-space-limit=24M")


# As mysql-test/suite/binlog_in_engine/rpl_ddl_misf.test
# As mysql-test/suite/binlog_in_engine/rpl_row_basic_3innodb_mfsi.test
@pytest.mark.parametrize("client", ["replica 10.11", "replica 11.8"])
def test_a_replica_ends_with_the_tables_of_the_capture(served_capture, client, new_primary, new_replica):
    version = client.split()[1]
    expected = served_capture.replayed(version)
    replica = new_replica(version, *(SMALL_TABLES if served_capture.is_large else ()))
    primary = new_primary(served_capture, "--tls", "off", *version_options(served_capture))

    replica.follow(primary)

    if expected.error is not None:
        assert without_path(replica.wait_for_problem()) == without_path(expected.error)
        return
    replica.expect_end(served_capture)
    assert replica.position == set(served_capture.last_position.split(","))


def test_rows_versioned_before_11_5_need_the_version_of_their_primary(captures, new_ibb_primary, new_replica):
    """Up to 11.4 "now" in a system-versioned table ends in 2038, since 11.5 in 2106.

    A replica of 11.5 or later translates if the stream says that an older server wrote it;
    so who serves an old binlog under a new version turns its rows into history.
    """
    capture = captures["10.11/types-full-crc32"]
    replica = new_replica("11.8")
    primary = new_ibb_primary(capture, "--tls", "off")

    replica.follow(primary)
    replica.wait_for_gtid(capture.last_position)

    assert replica.sql("SELECT COUNT(*) FROM types.versioned") == ((0,),)
    assert replica.sql("SELECT COUNT(*) FROM types.versioned FOR SYSTEM_TIME ALL") != ((0,),)


def version_options(capture: Capture) -> list[str]:
    """Serve system-versioned tables of before 11.5 under the version of the server that wrote them."""
    is_old = capture.version == "10.11" and "types.versioned" in capture.facts["tables"]
    return ["--server-version", capture.facts["server"]] if is_old else []


def without_path(text: str) -> str:
    """An error text without the directory in which a version's files happen to lie."""
    return re.sub(r"'/\S*/charsets/", "'charsets/", text)


NOT_IN_BINLOG = "'Error: connecting slave requested to start from GTID {}, which is not in the master's binlog"
PURGED = (
    "Could not find GTID state requested by slave in any binlog files. Probably the slave state is too old and "
    "required binlog files have been purged."
)

REFUSED = {  # capture, position, strict mode, part of the error
    "ahead of the primary": ("10.11/chained", "11-11-999", False, NOT_IN_BINLOG.format("11-11-999") + "'"),
    "another server's": ("10.11/chained", "11-9-5", False, NOT_IN_BINLOG.format("11-9-5") + ". Since the master's"),
    "in a hole, strictly": ("10.11/domains", "1-1-1000", True, "is missing the GTID 1-1-1000 requested by the slave"),
}


@pytest.mark.parametrize(("name", "position", "is_strict", "text"), REFUSED.values(), ids=REFUSED)
def test_a_position_that_cannot_be_served_stops_the_replica(
    name, position, is_strict, text, version, captures, new_primary, new_replica
):
    replica = new_replica(version, f"--gtid-strict-mode={int(is_strict)}")

    replica.follow(new_primary(captures[name], "--tls", "off"), position=position)

    assert text in replica.wait_for_problem()
    assert replica.status()["Last_IO_Errno"] == 1236


# As mysql-test/suite/binlog_in_engine/not_implemented_yet.test
def test_a_replica_that_asks_an_engine_primary_by_file_and_offset_stops_and_says_why(
    version, captures, new_ibb_primary, new_replica
):
    replica = new_replica(version)
    replica.follow(new_ibb_primary(captures["10.11/chained"], "--tls", "off"), start=False)
    replica.sql("CHANGE MASTER TO MASTER_USE_GTID=no")

    replica.sql("START SLAVE")

    assert "GTID starting position is required on master" in replica.wait_for_problem()
    assert replica.status()["Last_IO_Errno"] == 1236


def test_a_purged_position_is_said_to_be_purged(
    version, tmp_path, captures, classic_files, import_files, new_ibb_primary, new_replica
):
    import_files(classic_files(captures["11.8/types-full-crc32"]), tmp_path / "ibb", "--max-file-size", "64K")
    (tmp_path / "ibb" / "binlog-000000.ibb").unlink()
    replica = new_replica(version)

    replica.follow(new_ibb_primary(tmp_path / "ibb", "--tls", "off"))

    assert PURGED in replica.wait_for_problem()
    assert replica.status()["Last_IO_Errno"] == 1236


# As mysql-test/suite/binlog_in_engine/rpl_gtid_index.test
def test_a_replica_starts_in_the_middle_of_every_domain(version, captures, new_primary, new_replica):
    """The first replica stops at a place; a second one that has its tables by other means starts there."""
    capture = captures["11.8/domains"]
    primary = new_primary(capture, "--tls", "off")
    whole = new_replica(version)
    whole.follow(primary)
    whole.wait_for_gtid(capture.last_position)
    rows = whole.sql("SELECT COUNT(*) FROM dom_7.t")[0][0]

    half = new_replica(version, "--slave-skip-errors=1146,1049,1032")  # it has none of the older tables
    half.sql("CREATE DATABASE dom_7")
    half.sql("CREATE TABLE dom_7.t (id INT PRIMARY KEY, v VARCHAR(80) CHARSET utf8mb4)")
    half.follow(primary, position=capture.last_position.replace("7-2-29", "7-1-2"))
    half.wait_for_gtid(capture.last_position)

    assert half.sql("SELECT COUNT(*) FROM dom_7.t")[0][0] == rows


# As mysql-test/suite/binlog_in_engine/binlog_in_engine_restart.test
def test_a_domain_the_primary_never_had_is_no_hindrance(version, captures, new_primary, new_replica):
    capture = captures["10.11/chained"]
    replica = new_replica(version)

    replica.follow(new_primary(capture, "--tls", "off"), position="77-5-1234")

    replica.wait_for_gtid(capture.last_position)
    assert "77-5-1234" in replica.position


def test_after_other_dumps_a_replica_gets_what_a_real_primary_sends_of_numbers_that_step_back(new_server, tmp_path):
    """Each asks both, in this order; what the first of them skips is no way for the others."""
    wanted = {
        "0-7-12": ["5-9-54", "0-1-13"],
        "5-9-54,0-1-11": ["0-1-5", "0-7-12", "0-1-13"],
        "5-9-54,0-7-12": ["0-1-13"],
        "5-9-54,0-1-10": ["0-1-11", "0-1-5", "0-7-12", "0-1-13"],
    }
    server = new_server("10.11")
    run(server, "CREATE DATABASE shop", "RESET MASTER")
    for text in ("5-9-54", "0-1-10", "0-1-11", "0-1-5", "0-7-12", "0-1-13"):
        gtid = Gtid.parse(text)
        set_ids = f"SET gtid_domain_id={gtid.domain_id}, server_id={gtid.server_id}, gtid_seq_no={gtid.seq_no}"
        run(server, set_ids, f"CREATE TABLE shop.t{gtid.seq_no} (a INT)")
    copy_binlogs(server, tmp_path)
    assert loading.load() is not None
    with ibbmaster.serve(tmp_path, user=server.user, password=server.password, tls="off") as ours:
        for port in (server.port, ours.port):
            found = {}
            for position in wanted:
                packets = listen_in(port, position=position, user=server.user, password=server.password).packets
                events = [packet[1:] for packet in packets if packet[5:6] == bytes([EventType.GTID])]
                found[position] = [str(decode_gtid_event(event).gtid) for event in events]
            assert found == wanted


INSERT = "INSERT INTO shop.t VALUES ({})"
TEXTS = ("plain", "äöü €", "𝄞 文字 ひ", 'it\'s \\\\ "quoted"')


# As mysql-test/suite/binlog_in_engine/xa.test
def test_a_replica_takes_transactions_of_texts_by_each_way_to_end_them(version, new_ibb_primary, new_replica, tmp_path):
    """XA transactions among others, before and after a restart of the writer; odd texts while it is followed."""
    replica = new_replica(version)
    with (
        ibbmaster.create(tmp_path / "log") as log,
        ibbmaster.serve(log, user=USER, password=PASSWORD, tls="off") as primary,
    ):
        log.append("0-1-1", "CREATE DATABASE shop")
        log.append("0-1-2", "CREATE TABLE shop.t (id INT PRIMARY KEY) ENGINE=InnoDB")
        log.append("7-1-1", "CREATE DATABASE `größe` CHARACTER SET utf8mb4")
        log.append("7-1-2", "CREATE TABLE t (id INT PRIMARY KEY, x VARCHAR(100))", database="größe")
        replica.follow(primary)
        for number, text in enumerate(TEXTS, start=3):
            escaped = text.replace("\\", "\\\\").replace("'", "\\'")
            log.append(f"7-1-{number}", [f"INSERT INTO t VALUES ({number}, '{escaped}')"], database="größe")
        log.append("0-1-3", INSERT.format(1))
        for number, name in ((4, None), (5, "here"), (6, "later"), (7, "never")):
            with log.begin(database="shop") as group:
                group.write(INSERT.format(number))
                group.savepoint("a")
                group.write(INSERT.format(-number))
                group.roll_back_to("a")
                group.write(INSERT.format(10 * number))
                if name is None:
                    group.commit(f"0-1-{number}")
                else:
                    group.prepare(name)
        log.xa_commit("here", "0-1-5")
        replica.wait_for_gtid("0-1-5,7-1-6")
        assert replica.sql("SELECT x FROM `größe`.t ORDER BY id") == tuple((text,) for text in TEXTS)
    with ibbmaster.open(tmp_path / "log", writable=True) as log:
        log.xa_commit("later", "0-1-6")
        log.xa_rollback("never")
        log.append("0-1-7", INSERT.format(9))
        assert list(log.verify()) == []

    replica.sql("STOP SLAVE")
    replica.follow(new_ibb_primary(tmp_path / "log", "--tls", "off"))
    replica.wait_for_gtid("0-1-7")

    assert replica.sql("SELECT id FROM shop.t ORDER BY id") == ((1,), (4,), (5,), (6,), (9,), (40,), (50,), (60,))
