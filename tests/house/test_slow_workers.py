"""A test that Spark has ended for want of time runs again, and one that fails by itself does not."""

from pathlib import Path

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


def test_a_test_whose_worker_was_slow_runs_again(run_suite, tmp_path: Path) -> None:
    printed = run_suite(TESTS, "-p", "tests.slow_workers", "--basetemp", str(tmp_path / "made"))

    assert "3 failed, 1 passed" in printed, printed
    assert "AssertionError: it fails" in printed
    assert "10 runs" in printed  # three of the first test, one of the second, six of the third
