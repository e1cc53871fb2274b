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
