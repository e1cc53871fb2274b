"""What `convert` and `diff` make of logs, judged by real servers and tools of both versions."""

from pathlib import Path

import pytest
from lanes.primary import ibbmaster, run_program
from lanes.printed import parse_printed
from lanes.replay import changing_events
from lanes.sql import position_of

from ibbmaster.commands.cli.main import main
from ibbmaster.testkit.mariadb_server import RealPrimary


def convert(source: Path, target: Path, version: str, *options: str) -> list[Path]:
    """`ibbmaster convert` to the files of a version; returns them in order."""
    run_program(ibbmaster("convert", str(source), str(target), "--profile", f"classic-{version}", *options))
    return sorted(target.glob("binlog.0*"))


# As mysql-test/suite/binlog_in_engine/mysqlbinlog_convert_engine_binlog_replication.test
def test_a_server_starts_on_converted_files_as_on_its_own_and_a_replica_follows(
    version, tmp_path, captures, ibb_directory, server_of, watch_log, new_replica
):
    capture = captures[f"{version}/domains"]
    files = convert(ibb_directory(capture), tmp_path / "out", version, "--max-file-size", "8K")
    server = server_of(RealPrimary, version, files)
    for name in ("binlog.index", "binlog.state"):
        (server.data / name).write_bytes((tmp_path / "out" / name).read_bytes())
    watch_log("log of the server", server.log_text)
    with server:
        listed = [(str(row["Log_name"]), row["File_size"]) for row in server.query("SHOW BINARY LOGS")]
        assert listed[: len(files)] == [(path.name, path.stat().st_size) for path in files]
        assert len(listed) == len(files) + 1  # a server that starts begins a file
        assert len(files) > 3
        [(state, position)] = server.sql("SELECT @@GLOBAL.gtid_binlog_state, @@GLOBAL.gtid_binlog_pos")
        assert set(str(state).split(",")) == set(capture.facts["gtid_binlog_state_after"].split(","))
        assert set(str(position).split(",")) == set(capture.last_position.split(","))
        for number, start in enumerate(("gtid", "file")):
            replica = new_replica(version, server_id=1001 + number)
            if start == "gtid":
                replica.follow(server)
            else:
                replica.follow_by_file(server, files[0].name)
            replica.expect_end(capture)
        server.sql("CREATE DATABASE afterwards")  # it goes on behind what it found
        assert "0-1-28" in position_of(server).split(",")


@pytest.mark.parametrize("name", ["ddl-trx-xa", "types-full-crc32", "large-commit", "ddl-trx-xa-none-compressed"])
def test_the_tool_prints_the_same_events_as_from_the_files_of_the_server(
    version, name, tmp_path, captures, classic_files, ibb_directory, run_tool
):
    capture = captures.get(f"{version}/{name}")
    if capture is None:
        pytest.skip(f"there is no {name} of {version}")
    checksum = str(capture.facts["options"]["binlog-checksum"]).lower()
    options = ["--max-file-size", "64K", "--checksum", checksum]
    files = convert(ibb_directory(capture), tmp_path / "out", version, *options)
    theirs = classic_files(capture)

    printed = [
        run_tool(version, "mariadb-binlog", "--verify-binlog-checksum", *map(str, one)) for one in (theirs, files)
    ]
    assert [done.returncode for done in printed] == [0, 0], printed[1].stderr
    assert printed[1].stderr == printed[0].stderr
    assert parse_printed(printed[1].stdout) == parse_printed(printed[0].stdout)
    assert changing_events(files) == changing_events(theirs)


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
