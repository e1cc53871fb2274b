"""A test that Spark has ended for want of time runs again, and one that fails by itself does not."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest
from tests.slow_workers import SLOW_WORKER

RUNS = []

@pytest.fixture
def java(tmp_path):
    RUNS.append(tmp_path)

def test_the_worker_is_slow_twice(java, tmp_path):
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "made").touch()
    assert len(RUNS) == 3, SLOW_WORKER

def test_nothing_is_slow(java):
    assert len(RUNS) != 4, "it fails"
    raise AssertionError("it has run again")

def test_the_worker_is_always_slow(java):
    raise AssertionError(SLOW_WORKER)

def test_without_spark():
    raise AssertionError(SLOW_WORKER + f" {len(RUNS)} runs")
"""


def test_a_test_whose_worker_was_slow_runs_again(tmp_path: Path) -> None:
    (tmp_path / "test_slow.py").write_text(TESTS)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.slow_workers", "--basetemp", tmp_path / "made"],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "3 failed, 1 passed" in done.stdout, done.stdout
    assert "AssertionError: it fails" in done.stdout
    assert "10 runs" in done.stdout  # three of the first test, one of the second, six of the third
