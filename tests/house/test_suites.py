"""What plugins of the suite do: a test that Spark has ended for want of time runs again, and one that fails by itself
does not; nothing is left among the temporary files of the machine; ^C ends the suite at once; of cases that differ only
in the version of a server a short run has one; and each test is given to one process.
"""

import re
import signal
import subprocess
import sys
from functools import partial
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


LEAVING = """
import os, subprocess, sys, tempfile

def test_it_leaves_two_files():
    tempfile.mkstemp(prefix="of-python-")
    made = subprocess.check_output(["mktemp", "--tmpdir", "of-a-shell-XXXXXX"], text=True)
    assert os.path.dirname(made) == tempfile.gettempdir()
    with open(os.path.join(os.environ["SPARK_CONF_DIR"], "spark-defaults.conf")) as conf:
        assert f"-Djava.io.tmpdir={tempfile.gettempdir()}/java" in conf.read()
"""


def test_what_tests_leave_is_shown_and_removed(run_suite, tmp_path: Path) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    printed = run_suite(LEAVING, "-n", "1", "-p", "tests.left_behind", TMPDIR=str(place))

    assert "1 passed" in printed, printed
    shown = printed.partition("left among the temporary files")[2]
    assert "of-python-" in shown
    assert "of-a-shell-" in shown
    assert "... 2 in all" in shown
    assert [path.name for path in place.iterdir() if not path.name.startswith("pytest-of-")] == []


def test_an_interrupt_ends_the_suite_without_a_traceback() -> None:
    suite = Path(__file__).with_name("interrupted.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", str(suite)]
    ignoring = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)  # as a shell does for what it begins with `&`
    done = subprocess.run(command, preexec_fn=ignoring, capture_output=True, text=True, timeout=600, check=False)

    said = done.stdout + done.stderr
    assert done.returncode == 2, said
    assert "! KeyboardInterrupt !" in said
    assert "Traceback" not in said
    assert "failed" not in said


def test_each_case_beside_real_servers_is_tried_with_one_version() -> None:
    suite = Path(__file__).parents[1] / "interop" / "test_replica_options.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "--collect-only", str(suite)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    cases = re.findall(r"::(\w+)\[(?:10\.11|11\.8)(-.+)?\]$", said, re.MULTILINE)
    assert len(cases) == len(set(cases)) > 20


GROUPED = """
import os
import pytest

@pytest.mark.parametrize("number", range(300))
def test_it_is_run_once(number, tmp_path_factory):
    (tmp_path_factory.getbasetemp().parent / f"run-{number}").mkdir()

@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("number", range(3))
def test_a_group_has_a_process(number, tmp_path_factory):
    (tmp_path_factory.getbasetemp().parent / f"in-{os.environ['PYTEST_XDIST_WORKER']}").mkdir(exist_ok=True)
"""


def test_each_test_is_given_to_a_process_once_and_a_group_to_one(run_suite, tmp_path: Path) -> None:
    made = tmp_path / "made"
    options = "-n", "2", "--dist=loadgroup", "-p", "tests.quick_groups", "--basetemp", str(made)
    printed = run_suite(GROUPED, *options)

    assert "303 passed" in printed, printed
    assert len([*made.glob("run-*")]) == 300
    assert len([*made.glob("in-*")]) == 1
