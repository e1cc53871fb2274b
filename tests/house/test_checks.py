"""The checks of the whole tree; what they want is in pyproject.toml."""

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
