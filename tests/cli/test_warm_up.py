"""`ibbmaster warm-up`, and which commands load kernels before they begin."""

import json
import threading
from pathlib import Path

import pytest

from ibbmaster.cli.main import main
from ibbmaster.kernel import loading
from ibbmaster.kernel.cache import ENVIRONMENT
from ibbmaster.kernel.parts import KernelSet

FIXTURES = Path(__file__).parents[2] / "fixtures"
BINLOGS = str(FIXTURES / "classic" / "11.8" / "domains")
IBB = str(FIXTURES / "ibb" / "types")


@pytest.fixture
def loaded(monkeypatch):
    """The sets that commands have loaded."""
    calls = []
    monkeypatch.setattr(loading, "load", lambda *sets, progress: calls.extend(sets))
    return calls


def test_it_compiles_once_and_says_where(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))
    assert main(["warm-up", "import", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["directory"], answer["sets"], answer["compiled"]) == (str(tmp_path), ["import"], True)
    assert main(["warm-up", "import"]) == 0
    assert capsys.readouterr() == (f"kernels for import in {tmp_path}: were there already\n", "")


def test_it_says_what_each_kernel_took(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))
    assert main(["warm-up", "verify", "--timings"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" s  ")[1] for line in lines[:-1]] == [
        "check, read_pages",
        "check, check_table",
        "check, split_node",
        "check, check_classic_groups",
        "check, check_long_group",
        "check, machine code",
    ]
    assert all(float(line.split()[0]) > 0 for line in lines[:-1])


def test_a_directory_that_cannot_be_written_is_named(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "file"))
    assert main(["warm-up"]) == 2
    assert capsys.readouterr().err == (
        f"ibbmaster: {tmp_path}/file cannot be written: let {ENVIRONMENT} name a directory that can be\n"
    )


def test_a_set_that_is_none_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["warm-up", "everything"])
    assert "'everything' is none of serve, import, export, verify, read" in capsys.readouterr().err


COMMANDS = {
    "import": (["import", BINLOGS, "--to", "DIR"], KernelSet.IMPORT),
    "verify": (["verify", IBB], KernelSet.VERIFY),
}


@pytest.mark.parametrize(("command", "kernel_set"), COMMANDS.values(), ids=COMMANDS)
def test_large_work_begins_when_its_kernels_are_there(tmp_path, monkeypatch, loaded, command, kernel_set):
    monkeypatch.setattr(loading, "WORK_TO_COMPILE", 1)
    assert main([str(tmp_path / "new") if part == "DIR" else part for part in command]) == 0
    assert loaded == [kernel_set]


@pytest.mark.parametrize(("command", "kernel_set"), COMMANDS.values(), ids=COMMANDS)
def test_small_work_waits_for_none_and_starts_no_thread(tmp_path, loaded, command, kernel_set):
    before = threading.enumerate()
    assert main([str(tmp_path / "new") if part == "DIR" else part for part in command]) == 0
    assert loaded == []
    assert threading.enumerate() == before
