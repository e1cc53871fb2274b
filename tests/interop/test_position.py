"""Where a replica may start, and MariaDB's own words where it may not."""

import shutil

import pytest

import ibbmaster
from ibbmaster.gtid import Gtid
from ibbmaster.kernel import loading
from ibbmaster.replication.event.gtid_event import decode_gtid_event
from ibbmaster.replication.event.types import EventType
from tests.tap import listen_in

VERSIONS = ["10.11", "11.8"]
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


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("name", "position", "is_strict", "text"), REFUSED.values(), ids=REFUSED)
def test_a_position_that_cannot_be_served_stops_the_replica(
    name, position, is_strict, text, version, captures, new_primary, new_replica
):
    replica = new_replica(version, f"--gtid-strict-mode={int(is_strict)}")

    replica.follow(new_primary(captures[name], "--tls", "off"), position=position)

    assert text in replica.wait_for_problem()
    assert replica.status()["Last_IO_Errno"] == 1236


# As mysql-test/suite/binlog_in_engine/not_implemented_yet.test
@pytest.mark.parametrize("version", VERSIONS)
def test_a_replica_that_asks_an_engine_primary_by_file_and_offset_stops_and_says_why(
    version, captures, new_ibb_primary, new_replica
):
    replica = new_replica(version)
    replica.follow(new_ibb_primary(captures["10.11/chained"], "--tls", "off"), start=False)
    replica.sql("CHANGE MASTER TO MASTER_USE_GTID=no")

    replica.sql("START SLAVE")

    assert "GTID starting position is required on master" in replica.wait_for_problem()
    assert replica.status()["Last_IO_Errno"] == 1236


@pytest.mark.parametrize("version", VERSIONS)
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
@pytest.mark.parametrize("version", VERSIONS)
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
@pytest.mark.parametrize("version", VERSIONS)
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
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE shop")
        cursor.execute("RESET MASTER")
        for text in ("5-9-54", "0-1-10", "0-1-11", "0-1-5", "0-7-12", "0-1-13"):
            gtid = Gtid.parse(text)
            cursor.execute(f"SET gtid_domain_id={gtid.domain_id}, server_id={gtid.server_id}")
            cursor.execute(f"SET gtid_seq_no={gtid.seq_no}")
            cursor.execute(f"CREATE TABLE shop.t{gtid.seq_no} (a INT)")
    server.sql("FLUSH BINARY LOGS")
    shutil.copy(server.data / server.sql("SHOW BINARY LOGS")[0][0], tmp_path / "binlog.000001")
    assert loading.load() is not None
    with ibbmaster.serve(tmp_path, user=server.user, password=server.password, tls="off") as ours:
        for port in (server.port, ours.port):
            found = {}
            for position in wanted:
                packets = listen_in(port, position=position, user=server.user, password=server.password).packets
                events = [packet[1:] for packet in packets if packet[5:6] == bytes([EventType.GTID])]
                found[position] = [str(decode_gtid_event(event).gtid) for event in events]
            assert found == wanted
