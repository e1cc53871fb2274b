"""A run of tests leaves nothing among the temporary files of the machine, and says what its tests have left."""

from pathlib import Path

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
