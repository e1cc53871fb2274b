"""`ibbmaster follow` says what it follows and what it has, and ends with one line where it cannot."""

import json
import os
import signal
import subprocess
import sys

import pytest

import ibbmaster


@pytest.fixture
def primary(tmp_path):
    with ibbmaster.create(tmp_path / "primary") as log:
        log.append("0-1-1", "CREATE DATABASE shop")
        with ibbmaster.serve(log, password="x", tls="off") as served:
            yield served


def follow(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "ibbmaster", "follow", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
        timeout=600,
    )


def test_it_ends_with_what_the_primary_has_logged_and_goes_on_later(primary, tmp_path):
    source = f"mysql://repl@{primary.host}:{primary.port}"
    (tmp_path / "password").write_text("x\n")
    (tmp_path / "password").chmod(0o600)
    first = follow(source, "--to", tmp_path / "log", "--until-end", "--source-password-file", tmp_path / "password")
    assert (first.returncode, first.stdout) == (
        0,
        f"following {primary.host}:{primary.port} into {tmp_path}/log after nothing\n"
        f"1 transactions stored; {tmp_path}/log ends at 0-1-1\n",
    )
    again = follow(source, "--to", tmp_path / "log", "--until-end", "--json", IBBMASTER_SOURCE_PASSWORD="x")
    assert [json.loads(line) for line in again.stdout.splitlines()] == [
        {"event": event, "path": f"{tmp_path}/log", "groups": 0, "gtid_state": "0-1-1"}
        for event in ("following", "ended")
    ]


def test_it_ends_at_a_signal_with_all_it_has(primary, tmp_path):
    command = [sys.executable, "-m", "ibbmaster", "follow", primary.dsn, "--to", str(tmp_path / "log")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("following ")
    with ibbmaster.open(tmp_path / "log") as log:
        while not log.state:
            log.engine.wait_for_growth(60.0)
    process.send_signal(signal.SIGTERM)
    said, problems = process.communicate(timeout=600)
    assert (process.returncode, said) == (0, f"1 transactions stored; {tmp_path}/log ends at 0-1-1\n"), problems


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("db1", "'db1': expected mysql://USER@HOST[:PORT][,HOST…], as in mysql://repl@db1,db2"),
        ("mysql://127.0.0.1:1", "127.0.0.1:1: Can't connect to MySQL server on '127.0.0.1'"),
    ],
)
def test_what_cannot_be_followed_is_said_in_one_line(source, problem, tmp_path):
    done = follow(source, "--to", tmp_path / "log")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"ibbmaster: {problem}")


def test_a_log_of_another_history_is_refused_with_both(primary, tmp_path):
    with ibbmaster.create(tmp_path / "log") as log:
        log.append("0-7-1", "CREATE DATABASE other")
    done = follow(primary.dsn, "--to", tmp_path / "log", "--until-end")
    assert done.returncode == 2
    assert "domain 0 is at 0-1-1 there, and at 0-7-1 here. It is another history" in done.stderr


def test_at_sighup_it_reads_the_password_of_its_primary_for_the_next_connection(tmp_path):
    file = tmp_path / "password"
    file.touch(mode=0o600)
    file.write_text("x\n")
    with ibbmaster.create(tmp_path / "primary") as log:
        log.append("0-1-1", "CREATE DATABASE one")
        with ibbmaster.serve(log, password="x", tls="off") as first:
            source = f"mysql://repl@{first.host}:{first.port}"
            command = [sys.executable, "-m", "ibbmaster", "follow", source, "--to", str(tmp_path / "log")]
            command += ["--source-password-file", str(file)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            assert process.stdout.readline().startswith("following ")
            while f"following {first.host}" not in (line := process.stderr.readline()):
                assert line
            file.write_text("y\n")
            process.send_signal(signal.SIGHUP)
            while "SIGHUP: options were read again" not in (line := process.stderr.readline()):
                assert line
        log.append("0-1-2", "CREATE DATABASE two")
        with ibbmaster.serve(log, password="y", tls="off", port=first.port):
            with ibbmaster.open(tmp_path / "log") as followed:
                while str(followed.state) != "0-1-2":
                    assert process.poll() is None
                    followed.engine.wait_for_growth(1.0)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=600)
    assert process.returncode == 0
