"""`ibbmaster record`: as a process it relays, ends at a signal or in time, and leaves what it has when it is killed."""

import json
import signal
import socket
import subprocess
import sys

import pytest

from ibbmaster.commands.cli.main import main
from ibbmaster.commands.cli.record import parse_source
from ibbmaster.testkit import FixturePrimary
from ibbmaster.testkit.scenario import read_scenario
from tests.tap import listen_in

SOURCES = {
    "db1.example.com": ("db1.example.com", 3306),
    "10.0.0.5:3307": ("10.0.0.5", 3307),
    "[::1]": ("::1", 3306),
    "[::1]:3307": ("::1", 3307),
    "::1": ("::1", 3306),
}


@pytest.mark.parametrize(("text", "expected"), SOURCES.items())
def test_the_address_of_a_primary_is_read(text, expected):
    assert parse_source(text) == expected


def test_an_address_that_is_taken_is_said_and_nothing_is_made(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = ["--from", "h", "--to", str(tmp_path / "new" / "r"), "--listen", f"127.0.0.1:{port}"]
        assert main(["record", *options]) == 2
    error = capsys.readouterr().err
    assert f"cannot listen on 127.0.0.1:{port}: " in error
    assert "Traceback" not in error
    assert not (tmp_path / "new").exists()


def started(primary, directory, *options):
    command = [sys.executable, "-m", "ibbmaster", "record", "--from", f"127.0.0.1:{primary.port}"]
    process = subprocess.Popen(
        [*command, "--listen", "127.0.0.1:0", "--to", str(directory), "--json", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return process, json.loads(process.stdout.readline())["port"]


@pytest.mark.parametrize("end", ["SIGTERM", "SIGKILL", "seconds"])
def test_however_it_ends_what_it_has_can_be_served(end, tmp_path):
    with FixturePrimary(server_id=3) as primary:
        primary.table("shop.orders", id="int primary key").insert(id=1)
        primary.fault("after commit", gtid="0-3-3", action="cut")
        process, port = started(primary, tmp_path / "r", *(["--seconds", "3"] if end == "seconds" else []))
        with process:
            found = [listen_in(port).data for _ in range(2)]
            if end != "seconds":
                process.send_signal(signal.Signals[end])
            told, _ = process.communicate(timeout=120)
    if end != "SIGKILL":
        assert process.returncode == 0
        counts = {"groups": 3, "faults": 1, "connections": 2, "problem": None}
        assert json.loads(told) == {**counts, "scenario": str(tmp_path / "r" / "scenario.toml")}
    with read_scenario(tmp_path / "r" / "scenario.toml").serving() as again:
        assert [listen_in(again.port).data for _ in range(2)] == found
