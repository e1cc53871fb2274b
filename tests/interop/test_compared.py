"""`diff` finds the log of a real replica equal to that of its primary, in what a replica takes over."""

import pytest

from ibbmaster.commands.cli.main import main


@pytest.mark.parametrize("version", ["10.11", "11.8"])
@pytest.mark.parametrize(
    "name", ["domains", "ddl-trx-xa", "alter-two-phase", "group-commit", "ddl-trx-xa-none-compressed"]
)
def test_the_log_of_a_replica_equals_that_of_its_primary(name, version, captures, new_ibb_primary, new_replica, capsys):
    capture = captures[f"{version}/{name}"]
    replica = new_replica(
        version,
        *("--log-bin=own", "--log-slave-updates", "--gtid-strict-mode=0", "--binlog-format=MIXED"),
        f"--binlog-row-image={capture.facts['options']['binlog-row-image']}",
    )
    replica.follow(new_ibb_primary(capture, "--tls", "off"))
    replica.wait_for_gtid(capture.last_position)
    replica.sql("FLUSH BINARY LOGS")

    code = main(["diff", str(capture.folder), str(replica.data / "own.index"), "--ignore", "replica"])

    said = capsys.readouterr()
    assert (code, said.err, said.out) == (0, "", f"{capture.facts['event_groups']} transactions are equal\n")
