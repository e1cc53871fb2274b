"""A session of a real replica at a real primary is recorded, and another replica gets the same from the recording."""

import pytest
from lanes.sql import position_of
from lanes.waiting import wait_until

from ibbmaster.testkit.mariadb_server import PASSWORD, RealPrimary
from ibbmaster.testkit.scenario import read_scenario
from tests.commands.recorder.test_recording import groups_of
from tests.machinery.events import split_events
from tests.recorded import recording

TABLES = ["shop.orders", "shop.notes"]
ANNOTATE = 160


def kill_dumps(primary: RealPrimary) -> None:
    for row in primary.sql("SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND = 'Binlog Dump'"):
        primary.sql(f"KILL {row[0]}")


@pytest.mark.parametrize(
    ("version", "is_at_once", "options"),
    [
        ("11.8", False, ["--log-bin-compress=1", "--log-bin-compress-min-len=10", "--binlog-row-metadata=FULL"]),
        ("10.11", True, ["--binlog-row-image=MINIMAL", "--binlog-checksum=CRC32"]),
    ],
)
def test_a_session_at_a_real_primary_is_played_again(version, is_at_once, options, new_server, new_replica, tmp_path):
    primary = new_server(version, "--binlog-format=ROW", "--gtid-domain-id=2", *options)
    primary.sql("CREATE DATABASE shop")
    primary.sql("CREATE TABLE shop.orders (id INT PRIMARY KEY, total DECIMAL(10,2), note VARCHAR(300))")
    primary.sql("CREATE TABLE shop.notes (id INT PRIMARY KEY, body LONGTEXT)")
    primary.sql("INSERT INTO shop.orders VALUES (1, 9.9, REPEAT('note ', 50)), (2, 3, NULL)")
    with recording(primary.port, tmp_path / "r") as recorder:
        first = new_replica(version)
        first.follow_at("127.0.0.1", recorder.port, user=primary.user, password=primary.password)
        first.wait_for_gtid(position_of(primary), tolerates_lost_connections=True)
        primary.sql("INSERT INTO shop.notes VALUES (1, REPEAT('large ', 800000))")
        primary.sql("CREATE USER c IDENTIFIED BY 'never to be seen'")
        wait_until(lambda: recorder.recording.group_count >= 6)
        kill_dumps(primary)
        primary.sql("UPDATE shop.orders SET total = total + 1")
        first.wait_for_gtid(position_of(primary), tolerates_lost_connections=True)
        port = primary.port
        primary.stop()
        wait_until(lambda: "is not there" in recorder.recording.text())
        primary.start()
        assert primary.port == port
        primary.sql("DELETE FROM shop.orders WHERE id = 2")
        last = position_of(primary)
        first.wait_for_gtid(last, tolerates_lost_connections=True)
        expected = first.tables(TABLES)
        groups = groups_of_real(primary)
    assert b"never to be seen" not in b"".join(p.read_bytes() for p in (tmp_path / "r").rglob("*") if p.is_file())
    scenario = read_scenario(tmp_path / "r" / "scenario.toml")
    assert [fault.action.word for fault in scenario.faults] != []
    assert scenario.primary["profile"] == version
    replica = new_replica(version)
    with (scenario.at_once() if is_at_once else scenario).serving(password="another") as played:
        replica.follow(played)
        replica.wait_for_gtid(last, tolerates_lost_connections=True)
        assert replica.tables(TABLES) == expected
        found = groups_of(played.port, user=played.user, password="another")
    assert list(found) == list(groups)
    assert {gtid for gtid in groups if found[gtid] != groups[gtid]} == {"2-1-6"}  # the one with a password


def test_a_replica_that_is_started_again_is_no_fault(version, new_server, new_replica, tmp_path):
    """The primary ends the dump of before by an error, when the same replica comes again."""
    primary = new_server(version, "--binlog-format=ROW")
    primary.sql("CREATE DATABASE shop")
    primary.sql("CREATE TABLE shop.orders (id INT PRIMARY KEY)")
    with recording(primary.port, tmp_path / "r") as recorder:
        replica = new_replica(version)
        replica.follow_at("127.0.0.1", recorder.port, user=primary.user, password=primary.password)
        for number in range(3):
            primary.sql(f"INSERT INTO shop.orders VALUES ({number})")
            replica.wait_for_gtid(position_of(primary))
            replica.sql("STOP SLAVE")
            replica.sql("START SLAVE")
        replica.wait_for_gtid(position_of(primary))
        primary.sql("INSERT INTO shop.orders VALUES (9)")
        replica.wait_for_gtid(position_of(primary))
    assert read_scenario(tmp_path / "r" / "scenario.toml").faults == (), recorder.text


def groups_of_real(primary: RealPrimary) -> dict[str, bytes]:
    """Its groups, without the ANNOTATE_ROWS events: a replica that writes no binlog does not ask for them."""
    found = groups_of(primary.port, user=primary.user, password=PASSWORD)
    return {
        gtid: b"".join(event for event in split_events(data) if event[4] != ANNOTATE) for gtid, data in found.items()
    }
