"""A new server for one command: it starts in an empty directory, or one line says why not. docs/restore.md runs one."""

from pathlib import Path

import pytest

from ibbmaster.commands.cli.new_server import new_server
from ibbmaster.errors import RestoreError


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
