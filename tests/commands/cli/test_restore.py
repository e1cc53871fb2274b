"""`ibbmaster restore` says what it would do; tests/interop/test_restore.py lets it do it."""

import json
from pathlib import Path

import pytest

import ibbmaster
from ibbmaster.commands.cli.restore import new_server
from ibbmaster.errors import RestoreError


@pytest.fixture
def log(tmp_path):
    with ibbmaster.create(tmp_path / "log") as log:
        log.append("0-1-1", "CREATE DATABASE shop")
        log.append("1-1-1", ["INSERT INTO shop.t VALUES (1)", "DELETE FROM shop.u"])
        log.append("0-1-2", "DROP DATABASE shop")
    return tmp_path / "log"


def test_a_dry_run_shows_the_last_transaction_and_the_next(run, log, tmp_path):
    asked = "restore", log, "--until", "0-1-2", "--before", "--into", "new", "--datadir", tmp_path / "new", "--dry-run"
    code, said, problems = run(*asked, "--skip", "0-1-1", "--json")
    found = json.loads(said)
    assert (code, problems, (tmp_path / "new").exists()) == (0, "", False)
    assert (found["from"], found["to"], found["groups"], found["skipped"]) == ("", "0-1-1,1-1-1", 2, ["0-1-1"])
    assert found["last"]["changes"] == ["INSERT INTO shop.t VALUES (1)", "DELETE FROM shop.u"]
    assert (found["next"]["gtid"], found["next"]["changes"]) == ("0-1-2", ["DROP DATABASE shop"])
    said = run(*asked)[1].splitlines()
    assert said[0] == f"{tmp_path}/new is at [] (an empty server), and would be at [0-1-1,1-1-1]"
    assert said[2].endswith(": INSERT INTO shop.t VALUES (1), DELETE FROM shop.u")


@pytest.mark.parametrize("options", [("--into", "new"), ("--into", "mysql://root@db2", "--datadir", "new")])
def test_a_new_server_needs_a_directory_and_only_that(run, log, options):
    code, said, problem = run("restore", log, "--until", "0-1-2", *options)
    assert (code, said, problem) == (2, "", "ibbmaster: --into new and --datadir DIR belong together\n")


def program(directory: Path, name: str, text: str) -> None:
    (directory / name).write_text(f"#!/bin/sh\n{text}\n")
    (directory / name).chmod(0o755)


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Where its programs are looked for, beside a shell's."""
    directory = tmp_path / "programs"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))
    program(directory, "mariadb-install-db", "/bin/mkdir -p ${2#--datadir=}")
    program(
        directory,
        "mariadbd",
        "echo one > ${2#--datadir=}/restore.err; echo 'out of luck' >> ${2#--datadir=}/restore.err",
    )
    return directory


def refusal(datadir: Path) -> str:
    with pytest.raises(RestoreError) as refused, new_server(datadir):
        pytest.fail("it has started")
    return str(refused.value)


def test_programs_that_are_missing_are_named(programs, tmp_path):
    (programs / "mariadbd").unlink()
    assert refusal(tmp_path / "new") == "--into new needs mariadbd: apt install mariadb-server-core, or name a server"


def test_a_directory_with_something_in_it_stays_as_it_is(programs, tmp_path):
    assert refusal(programs) == f"{programs}: expected an empty directory, or none"
    assert refusal(programs / "mariadbd") == f"{programs}/mariadbd: expected an empty directory, or none"


def test_programs_that_fail_are_quoted(programs, tmp_path):
    assert refusal(tmp_path / "new") == "mariadbd: one / out of luck"
    program(programs, "mariadb-install-db", "echo 'no room'; exit 1")
    assert refusal(tmp_path / "other") == "mariadb-install-db: no room"
