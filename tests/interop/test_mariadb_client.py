"""What an operator sees who asks with the `mariadb` client."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from lanes.primary import IbbPrimary, login_options

RunTool = Callable[..., subprocess.CompletedProcess[str]]

VERSIONS = ["10.11", "11.8"]
_DATA = json.loads(Path(__file__).with_suffix(".json").read_text())
ANSWERS = _DATA["answers"]  # statement: the answer in --batch form; a dot stands for anything


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("statement", "lines"), ANSWERS.items(), ids=ANSWERS)
def test_the_client_prints_the_answer(statement, lines, version, captures, new_ibb_primary, run_tool):
    done = ask(run_tool, version, new_ibb_primary(captures["10.11/domains"]), statement)

    assert (done.returncode, done.stderr) == (0, "")
    printed = [line.split("\t") for line in done.stdout.splitlines()]
    expected = [line.split("\t") for line in lines]
    assert [len(line) for line in printed] == [len(line) for line in expected]
    for got, wanted in zip(printed, expected, strict=True):
        assert all(one == other or other == "." for one, other in zip(got, wanted, strict=True)), got


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_no_statement_of_a_primary_is_an_error(version, captures, new_ibb_primary, run_tool):
    done = ask(run_tool, version, new_ibb_primary(captures["10.11/domains"]), "DROP TABLE everything")

    assert done.returncode == 1
    assert "\nERROR 1290 (HY000) at line 1: " in done.stderr


def ask(run_tool: RunTool, version: str, primary: IbbPrimary, statement: str) -> subprocess.CompletedProcess[str]:
    """Run one statement with the client of a version, with that version's TLS defaults."""
    return run_tool(version, "mariadb", "--protocol=TCP", *login_options(primary), "--batch", "-e", statement)
