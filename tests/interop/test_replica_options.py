"""Replicas that ask for something else than the defaults, and every profile."""

from pathlib import Path

import pytest
from lanes.capture import Capture
from lanes.primary import Primary
from lanes.replica import Replica

import ibbmaster
from ibbmaster.gtid import GtidPosition
from ibbmaster.testkit.mariadb_server import REPLICA_SERVER_ID


# As mysql-test/suite/binlog_in_engine/rpl_group_commit.test
@pytest.mark.parametrize("mode", ["optimistic", "conservative"])
@pytest.mark.parametrize(
    "name", ["10.11/group-commit", "11.8/group-commit", "11.8/ddl-trx-xa", "10.11/domains", "11.8/alter-two-phase"]
)
def test_a_parallel_replica_ends_with_the_same_tables(
    name, mode, version, captures, classic_files, new_primary, new_replica
):
    capture = captures[name]
    replica = new_replica(version)
    replica.follow(new_primary(capture, "--tls", "off"), start=False)
    if name.endswith("/group-commit"):  # one domain makes the tables for both: let it do so first
        replica.follow_until(last_gtid_that_creates(classic_files(capture)[0]))
        replica.sql("STOP SLAVE")

    replica.sql("SET GLOBAL slave_parallel_threads = 4")
    replica.sql(f"SET GLOBAL slave_parallel_mode = {mode}")
    replica.sql("START SLAVE")

    replica.expect_end(capture)


@pytest.mark.parametrize("name", ["10.11/domains", "10.11/types-full-crc32", "11.8/ddl-trx-xa", "11.8/large-commit"])
@pytest.mark.parametrize("profile", ["compat", "classic-10.11", "classic-11.8"])
def test_every_profile_is_followed(profile, name, version, captures, new_ibb_primary, new_replica):
    capture = captures[name]
    options = ["--server-version", capture.facts["server"]] if name == "10.11/types-full-crc32" else []
    primary = new_ibb_primary(capture, "--tls", "off", "--profile", profile, *options)

    follow_to_the_end(new_replica(version), primary, capture)


OPTIONS = {
    "compressed protocol": ["--slave-compressed-protocol=ON"],
    "strict": ["--gtid-strict-mode=ON"],
    "ignore duplicates": ["--gtid-ignore-duplicates=ON"],
    "without annotations": ["--replicate-annotate-row-events=OFF"],
    "own binlog": ["--log-bin=own", "--log-slave-updates=ON", "--gtid-strict-mode=OFF"],
}


# As mysql-test/suite/binlog_in_engine/rpl_semi_sync_slave_compressed_protocol.test
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_what_replicas_ask_for_changes_no_table(options, version, captures, new_primary, new_replica):
    capture = captures["10.11/chained"]

    follow_to_the_end(new_replica(version, *options), new_primary(capture, "--tls", "off"), capture)


SEMI_SYNC = {  # whether the replica is semi-synchronous, and what it says of its primary
    "real": ("ON", "semi-sync enabled but master server does not"),
    "of pages": ("OFF", "does not support semi-sync, fallback to asynchronous"),
    "of traditional files": ("OFF", "does not support semi-sync, fallback to asynchronous"),
}


# As mysql-test/suite/binlog_in_engine/rpl_semi_sync.test
@pytest.mark.parametrize("kind", SEMI_SYNC)
def test_a_semi_synchronous_replica_goes_on_at_a_primary_that_is_not(
    kind, version, captures, new_ibb_primary, new_real_primary, new_replica
):
    """A real one without semi-sync has the variable, so its replica waits until it is ON; here there is none."""
    capture = captures["10.11/chained"]
    replica = new_replica(version, "--rpl-semi-sync-slave-enabled=ON")
    if kind == "real":
        primary = new_real_primary(capture)
    else:
        primary = new_ibb_primary(capture if kind == "of pages" else capture.folder, "--tls", "off")

    follow_to_the_end(replica, primary, capture)

    status, text = SEMI_SYNC[kind]
    assert replica.query("SHOW STATUS LIKE 'Rpl_semi_sync_slave_status'")[0]["Value"] == status
    [line] = [line for line in replica.log_text().splitlines() if "semi-sync" in line and "Start semi-sync" not in line]
    assert text in line
    replica.sql("STOP SLAVE")
    replica.sql("START SLAVE")
    replica.wait_until(lambda it: it.status()["Slave_IO_Running"] == "Yes")
    assert replica.status()["Last_IO_Error"] == ""


def test_events_marked_for_skipping_stay_here_if_the_replica_wants_it_so(version, captures, new_primary, new_replica):
    capture = captures["10.11/domains"]
    replica = new_replica(version, "--replicate-events-marked-for-skip=FILTER_ON_MASTER")
    replica.follow(new_primary(capture, "--tls", "off"))
    replica.wait_for_gtid(capture.last_position)

    expected = capture.replayed(version).tables
    assert sum(table.rows for table in replica.tables(list(expected)).values() if table) == (
        sum(table.rows for table in expected.values()) - 1
    )


# As mysql-test/suite/binlog_in_engine/rpl_gtid_ignored_domain_ids.test
@pytest.mark.parametrize("option", ["DO_DOMAIN_IDS", "IGNORE_DOMAIN_IDS"])
def test_a_replica_of_some_domains_has_their_tables_and_no_others(option, version, captures, new_primary, new_replica):
    capture = captures["10.11/domains"]
    position = GtidPosition.parse(capture.last_position)
    chosen, left = [each for each in position if each != 1], [1]
    replica = new_replica(version)
    replica.follow(new_primary(capture, "--tls", "off"), start=False)
    replica.sql(f"CHANGE MASTER TO {option} = ({','.join(map(str, chosen if option.startswith('DO') else left))})")
    replica.sql("START SLAVE")
    replica.wait_for_gtid(str(GtidPosition(position[each] for each in chosen)))
    expected = capture.replayed(version).tables
    found = replica.tables(list(expected))
    of_left = {name for name in expected if name.startswith("dom_1.")}
    assert of_left
    assert {name for name in expected if found[name] != expected[name]} == of_left


# As mysql-test/suite/binlog_in_engine/rpl_heartbeat.test
@pytest.mark.parametrize("profile", ["engine", "compat", "classic-10.11", "classic-11.8"])
def test_heartbeats_keep_an_idle_replica_content(profile, version, captures, new_ibb_primary, new_replica):
    capture = captures["10.11/checksum-switch"]
    replica = new_replica(version)
    replica.follow(new_ibb_primary(capture, "--tls", "off", "--profile", profile), heartbeat_period_s=0.2)
    replica.wait_for_gtid(capture.last_position)

    replica.wait_until(lambda it: int(it.query("SHOW STATUS LIKE 'Slave_received_heartbeats'")[0]["Value"]) >= 4)

    status = replica.status()
    assert (status["Slave_IO_Running"], status["Last_IO_Errno"]) == ("Yes", 0)


def test_a_replica_with_the_primary_s_server_id_is_told_by_itself(version, captures, new_primary, new_replica):
    replica = new_replica(version, server_id=1)

    replica.follow(new_primary(captures["10.11/domains"], "--tls", "off"))

    assert "equal MariaDB server ids" in replica.wait_for_problem()


def test_a_second_replica_with_the_same_server_id_ends_the_first_one_s_dump(
    version, captures, new_primary, new_replica
):
    capture = captures["10.11/chained"]
    primary = new_primary(capture, "--tls", "off")
    first, second = new_replica(version, server_id=REPLICA_SERVER_ID), new_replica(version, server_id=REPLICA_SERVER_ID)
    first.follow(primary)
    first.wait_for_gtid(capture.last_position)
    second.follow(primary)
    second.wait_for_gtid(capture.last_position, tolerates_lost_connections=True)

    first.wait_until(lambda it: "A slave with the same server" in it.log_text())


@pytest.mark.parametrize(
    "name", ["10.11/domains", "11.8/domains", "10.11/checksum-switch", "10.11/crashed", "11.8/large-commit"]
)
def test_traditional_files_are_followed_as_they_are(name, version, captures, new_ibb_primary, new_replica):
    capture = captures[name]
    primary = new_ibb_primary(capture.folder, "--tls", "off")
    follow_to_the_end(new_replica(version), primary, capture)


def follow_to_the_end(replica: Replica, primary: Primary, capture: Capture) -> None:
    """Follow a capture from its beginning; the tables are those a real primary's replica had."""
    replica.follow(primary)
    replica.expect_end(capture)


def last_gtid_that_creates(path: Path) -> str:
    with ibbmaster.open(path) as log:
        return str([group.gtid for group in log if any(b"CREATE " in event.data for event in group.events())][-1])
