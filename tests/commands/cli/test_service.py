"""What systemd is told by a process of its own, as it would start one."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ibbmaster.commands.cli.service import notify

DOMAINS = Path(__file__).parents[3] / "fixtures" / "classic" / "10.11" / "domains"


@pytest.fixture
def systemd(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(60)
        yield listener


def test_without_systemd_nobody_is_told(monkeypatch, tmp_path):
    for place in ("", str(tmp_path / "nobody"), "@nobody"):
        monkeypatch.setenv("NOTIFY_SOCKET", place)
        notify("READY=1")


def test_an_abstract_address_is_one(monkeypatch):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(name := f"\0ibbmaster-test-{os.getpid()}")
        listener.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name[1:]}")
        notify("READY=1")
        assert listener.recv(100) == b"READY=1"


def test_a_primary_says_when_it_is_ready_alive_and_ending(systemd):
    command = [sys.executable, "-m", "ibbmaster", "serve", str(DOMAINS), "--listen", "127.0.0.1:0", "--tls", "off"]
    environment = {**os.environ, "NOTIFY_SOCKET": systemd.getsockname()}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        heard = [systemd.recv(100)]
        while heard[-1] != b"READY=1":
            heard.append(systemd.recv(100))
        while heard[-1] != b"WATCHDOG=1":
            heard.append(systemd.recv(100))
        process.send_signal(signal.SIGTERM)
        while heard[-1] != b"STOPPING=1":
            heard.append(systemd.recv(100))
        assert process.wait(60) == 0


def test_what_has_not_ended_at_its_deadline_ends_then():
    stuck = """
import logging, threading
from ibbmaster.commands.cli.service import ending_within
logging.basicConfig()
with ending_within(0.1) as beat:
    beat(False)
    beat(True)
    beat(True)
    threading.Event().wait()
"""
    done = subprocess.run([sys.executable, "-c", stuck], capture_output=True, text=True, timeout=600)
    assert (done.returncode, "not ended 0.1 s after the signal" in done.stderr) == (1, True), done.stderr


def test_what_ends_in_time_is_left_alone():
    ended = "from ibbmaster.commands.cli.service import ending_within\nwith ending_within(3600) as beat: beat(True)"
    assert subprocess.run([sys.executable, "-c", ended], timeout=600).returncode == 0


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1e12"])
@pytest.mark.parametrize("command", [("serve", DOMAINS), ("follow", "mysql://repl@h", "--to", "log")])
def test_a_deadline_that_makes_no_sense_is_refused(run, command, text):
    code, _, problem = run(*command, "--stop-within", text, "--check-config")
    assert (code, problem.count("\n")) == (2, 1)
    assert "--stop-within" in problem
