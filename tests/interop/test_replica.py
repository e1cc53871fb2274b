"""A real replica follows every capture from an empty position and ends with the tables the capture's primary had."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from lanes.capture import Capture
from lanes.primary import Primary
from lanes.replica import Replica

from lanes.board import Cell

TIMEOUT_S = 240.0


@pytest.mark.parametrize("client", ["replica 10.11", "replica 11.8"])
def test_a_replica_ends_with_the_tables_of_the_capture(
    served_capture: Capture,
    client: str,
    cell: Cell,
    new_primary: Callable[..., Primary],
    new_replica: Callable[..., Replica],
) -> None:
    version = client.split()[1]
    expected = served_capture.replayed(version)
    replica = new_replica(version)
    primary = new_primary(served_capture, "--tls", "off")

    replica.follow(host=primary.host, port=primary.port, user=primary.user, password=primary.password, ssl=False)

    if expected.error is not None:
        assert without_path(replica.wait_for_problem()) == without_path(expected.error)
        cell.mark("stops as with a real primary", without_path(expected.error))
        return
    replica.wait_for_gtid(served_capture.last_position, timeout_s=TIMEOUT_S)
    assert replica.tables(list(expected.tables)) == expected.tables
    assert same_position(str(replica.sql("SELECT @@GLOBAL.gtid_slave_pos")[0][0]), served_capture.last_position)


def same_position(one: str, other: str) -> bool:
    """Whether two GTID positions are equal, in whatever order their domains stand."""
    return set(one.split(",")) == set(other.split(","))


def without_path(text: str) -> str:
    """An error text without the directory in which a version's files happen to lie."""
    return re.sub(r"'/\S*/charsets/", "'charsets/", text)
