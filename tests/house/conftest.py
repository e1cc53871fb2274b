"""Suites that tests run themselves."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def fresh():
    """The lines that a program prints in an interpreter of its own, with arguments."""

    def run(program: str, *arguments: object) -> list[str]:
        command = [sys.executable, "-c", program, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

    return run


@pytest.fixture
def run_suite(tmp_path):
    """What pytest prints of tests in a file of their own, with plugins of ours."""

    def run(text: str, *options: str, **environment: str) -> str:
        (tmp_path / "test_in_a_suite.py").write_text(text)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
        env = {**inherited, **environment, "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False).stdout

    return run
