"""A real replica follows every capture from an empty position and ends with the tables the capture's primary had."""

import re

import pytest
from lanes.capture import Capture

TIMEOUT_S = 600.0
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
    replica.wait_for_gtid(served_capture.last_position, timeout_s=TIMEOUT_S)
    assert replica.tables(list(expected.tables)) == expected.tables
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
