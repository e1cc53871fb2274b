"""The checks of the whole tree, and its scripts.

What tools want is in pyproject.toml. `.ci/prepare` asks apt for packages of another release from the mirror that apt is
set up with.
"""

import json
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(sysconfig.get_path("scripts"))  # of the environment the tests run in

CHECKS = {
    "ruff check": ["ruff", "check", "src", "tests"],
    "ruff format": ["ruff", "format", "--check", "src", "tests"],
    "mypy": ["mypy"],
    "import contracts": ["lint-imports"],
}


@pytest.mark.parametrize("command", CHECKS.values(), ids=CHECKS)
def test_the_tree_passes(command: list[str]) -> None:
    done = subprocess.run([PROGRAMS / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("script", ["prepare", "run"])
def test_the_scripts_of_the_checkout_are_no_gibberish_to_their_shell(script: str) -> None:
    shell = {"prepare": "sh", "run": "bash"}[script]

    done = subprocess.run([shell, "-n", ROOT / ".ci" / script], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


PREPARE = (ROOT / ".ci" / "prepare").read_text()

DEB822 = Path(__file__).with_name("apt.sources").read_text()
ONE_LINE = """\
# deb http://nowhere.example/debian bookworm main
deb http://mirror.example/debian bookworm main contrib # ours
  deb\t[ signed-by=/etc/keys/own.asc arch=amd64 ]  http://own.example/debian/ stable main
deb [trusted=yes] file:/srv/debian bookworm main
"""

ENTRIES = json.loads(Path(__file__).with_suffix(".json").read_text())


def function(name: str) -> str:
    found = re.search(rf"^{name}\(\) \{{\n.*?^\}}\n", PREPARE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[0]


def run(program: str, *arguments: str, path: str = "/usr/bin:/bin") -> list[str]:
    done = subprocess.run(
        ["sh", "-euc", program, "sh", *arguments], env={"PATH": path}, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(("file", "number", "lines"), ENTRIES.values(), ids=ENTRIES)
def test_an_entry_of_apt_stays_as_it_is_but_for_its_suite(file, number, lines, tmp_path) -> None:
    path = tmp_path / file
    path.write_text(DEB822 if file.endswith(".sources") else ONE_LINE)

    assert run(function("entry_for_suite") + 'entry_for_suite "$@"\n', str(path), str(number), "trixie") == lines


TARGETS = """\
Packages|main|Debian|bookworm|bookworm|/etc/apt/sources.list.d/debian.sources:1
DEP-11|main|Debian|bookworm|bookworm|/etc/apt/sources.list.d/debian.sources:1
Packages|contrib|Debian|bookworm|bookworm|/etc/apt/sources.list.d/debian.sources:1
Packages|main|Debian|bookworm-updates|bookworm-updates|/etc/apt/sources.list.d/debian.sources:1
Packages|main|Debian-Security|bookworm-security|bookworm-security|/etc/apt/sources.list.d/debian.sources:2
Packages|main|Somebody|bookworm|bookworm|/etc/apt/sources.list.d/other.list:1
Packages|main|Debian|oldstable|bookworm|/etc/apt/sources.list:3
Packages|main||bookworm||/etc/apt/sources.list.d/never read.list:7
"""


def test_the_mirrors_are_those_that_apt_has_this_release_from(tmp_path) -> None:
    (tmp_path / "os-release").write_text("ID=debian\nVERSION_CODENAME=bookworm\n")
    (tmp_path / "apt-get").write_text(f"#!/bin/sh\ncat <<'EOF'\n{TARGETS}EOF\n")
    (tmp_path / "apt-get").chmod(0o755)
    program = function("debian_entries").replace("/etc/os-release", str(tmp_path / "os-release")) + "debian_entries\n"
    path = f"{tmp_path}:/usr/bin:/bin"

    assert run(program, path=path) == [
        "/etc/apt/sources.list.d/debian.sources:1",
        "/etc/apt/sources.list:3",
        "/etc/apt/sources.list.d/never read.list:7",
    ]
    (tmp_path / "os-release").write_text("ID=ubuntu\nVERSION_CODENAME=bookworm\n")
    assert run(program, path=path) == []


def test_it_names_no_mirror_of_its_own() -> None:
    code = [line for line in PREPARE.splitlines() if not line.startswith("#")]

    assert [line for line in code if "://" in line] == []
