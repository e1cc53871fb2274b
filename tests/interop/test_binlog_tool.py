"""`mariadb-binlog --read-from-remote-server` prints what the same tool prints from the capture's own files."""

import contextlib
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from lanes.primary import Primary, login_options, tool_command
from lanes.printed import parse_printed
from lanes.replay import changing_events, events_in

import ibbmaster
from ibbmaster.replication.event.gtid_event import decode_gtid_event
from ibbmaster.replication.event.types import EventType

RunTool = Callable[..., subprocess.CompletedProcess[str]]

LOG_POS_SIZE = 4


# As mysql-test/suite/binlog_in_engine/binlog_in_engine.test
@pytest.mark.parametrize("client", ["binlog 10.11", "binlog 11.8"])
def test_the_tool_prints_the_same_events_as_from_the_files(
    served_capture, client, tmp_path, classic_files, new_primary, primary_is_real, run_tool
):
    version = client.split()[1]
    files = classic_files(served_capture)
    # An engine primary wants a GTID; a real one of 11.8 makes this tool stumble over its GTID index when it gets one.
    start = [] if primary_is_real else [f"--start-position={first_gtid(files[0])}"]
    loads = [tmp_path / "a", tmp_path / "b"]  # where the tool puts the data of LOAD DATA
    for load in loads:
        load.mkdir()

    from_files = run_tool(version, "mariadb-binlog", f"--local-load={loads[0]}", *start, *map(str, files))
    primary = new_primary(served_capture, "--profile", "compat", "--tls", "off")
    remote = ["--to-last-log", *connection_options(primary), served_capture.file_names[0]]
    from_primary = run_tool(version, "mariadb-binlog", f"--local-load={loads[1]}", *start, *remote)

    if primary_is_real and (version, served_capture.version) == ("10.11", "11.8"):
        assert "unrecognized MariaDB version" in from_primary.stderr
        return
    assert (from_primary.returncode, from_primary.stderr) == (0, from_files.stderr)
    expected, got = (
        parse_printed(done.stdout, temporary_directory=str(load))
        for done, load in zip((from_files, from_primary), loads, strict=True)
    )
    assert got == expected
    assert contents(loads[1]) == contents(loads[0])


@pytest.mark.parametrize("name", ["10.11/domains", "11.8/checksum-switch", "10.11/types-minimal-none"])
def test_raw_output_is_a_binlog_file_with_the_same_events(
    name, version, tmp_path, captures, classic_files, new_ibb_primary, run_tool
):
    primary = new_ibb_primary(captures[name], "--profile", "compat", "--tls", "off")

    options = ["--raw", "--start-position=4294967294-1-1", "--to-last-log"]
    done = run_tool(version, "mariadb-binlog", *connection_options(primary), *options, "binlog-000000.ibb")

    assert changing_events(sorted(tmp_path.iterdir())) == changing_events(classic_files(captures[name])), done.stderr


def test_a_tool_that_never_stops_receives_what_is_new(
    version, tmp_path, captures, classic_files, import_files, new_ibb_primary
):
    files = classic_files(captures["10.11/domains"])
    import_files(files[:2], tmp_path / "ibb")
    primary = new_ibb_primary(tmp_path / "ibb", "--profile", "compat", "--tls", "off")
    raw = tmp_path / "raw"
    raw.mkdir()
    options = [*connection_options(primary), "--raw", "--stop-never", "--start-position=4294967294-1-1"]

    command = tool_command(version, "mariadb-binlog", *options, f"--result-file={raw}/", "binlog-000000.ibb")
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as tool:
        try:
            wait_for_bytes(raw, tool, at_least=sum(file.stat().st_size for file in files[:1]) // 2)
            import_files(files[2:4], tmp_path / "ibb", "--append")
            expected = changing_events(files[:4])
            wait_for_bytes(raw, tool, at_least=sum(len(event) + LOG_POS_SIZE for event in expected))
        finally:
            tool.kill()

    assert changing_events(sorted(raw.iterdir())) == expected


REFUSALS = {  # how the log is served, what the tool is asked for, and what it says
    "raw output without the compat profile": (
        [],
        ["--raw", "--start-position=0-1-1"],
        "Could not create output log file",
    ),
    "a version that it does not know": (
        ["--server-version", "12.3.2-MariaDB-log"],
        ["--start-position=0-1-1"],
        "unrecognized MariaDB version",
    ),
    "no GTID": (["--profile", "compat"], [], "GTID"),
}


@pytest.mark.parametrize(("served", "asked", "text"), REFUSALS.values(), ids=REFUSALS)
def test_the_tool_names_what_it_cannot_do(served, asked, text, version, captures, new_ibb_primary, run_tool):
    primary = new_ibb_primary(captures["10.11/domains"], "--tls", "off", *served)

    done = run_tool(version, "mariadb-binlog", *connection_options(primary), *asked, "binlog-000000.ibb")

    assert done.returncode == 1
    assert text in done.stderr


def connection_options(primary: Primary | ibbmaster.RunningPrimary) -> list[str]:
    return ["--read-from-remote-server", "--protocol=TCP", *login_options(primary), "--skip-ssl"]


def wait_for_bytes(directory: Path, tool: subprocess.Popen[bytes], *, at_least: int) -> None:
    """Wait until a running tool has written so much; a tool that ends first fails the test."""
    end = time.monotonic() + 30
    while sum(path.stat().st_size for path in directory.iterdir()) < at_least:
        assert time.monotonic() < end, f"fewer than {at_least} bytes after 30 s"
        with contextlib.suppress(subprocess.TimeoutExpired):
            pytest.fail(f"the tool ended with {tool.wait(0.02)}")


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def first_gtid(path: Path) -> str:
    return next(str(decode_gtid_event(event).gtid) for event in events_in(path) if event[4] == EventType.GTID)


def test_the_tool_prints_each_round_of_a_recording(version, run_tool, fixtures):
    rounds = 3
    with ibbmaster.open(fixtures / "ibb/large-groups") as log, contextlib.ExitStack() as stack:
        part = log.through(until=str(log.position))
        played = part.played("max", rounds=rounds)
        count = len(list(part))
        server = stack.enter_context(ibbmaster.serve(played, password="secret", tls="off", at_end="close"))
        done = run_tool(
            version, "mariadb-binlog", *connection_options(server), "--start-position=0-1-1", "binlog-000000.ibb"
        )
    assert done.returncode == 0, done.stderr
    assert re.findall(r"\bGTID (\S+)", done.stdout) == [f"0-1-{number}" for number in range(2, rounds * count + 1)]
