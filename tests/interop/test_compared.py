"""`diff` finds the log of a real replica equal to that of its primary, in what a replica takes over."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lanes.capture import Capture
from lanes.primary import Primary
from lanes.replica import Replica

from ibbmaster.cli.main import main


@pytest.mark.parametrize("name", ["10.11/domains", "11.8/domains"])
def test_the_log_of_a_replica_equals_that_of_its_primary(
    name: str,
    captures: dict[str, Capture],
    new_ibb_primary: Callable[..., Primary],
    new_replica: Callable[..., Replica],
    capsys: pytest.CaptureFixture[str],
) -> None:
    capture = captures[name]
    replica = new_replica(
        capture.version, "--log-bin=own", "--log-slave-updates", "--gtid-strict-mode=0", "--binlog-format=MIXED"
    )
    primary = new_ibb_primary(capture, "--tls", "off")
    replica.follow(primary)
    replica.wait_for_gtid(capture.last_position)
    replica.sql("FLUSH BINARY LOGS")

    code = main(["diff", str(capture.folder), str(replica.data / "own.index"), "--ignore", "replica"])

    said = capsys.readouterr()
    assert (code, said.err, said.out) == (0, "", f"{capture.facts['event_groups']} transactions are equal\n")
