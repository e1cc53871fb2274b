"""The directory for temporary files of a run: what tests leave in it is shown at the end, and removed.

Killed processes leave files there, and the JVMs of Spark leave libraries and blocks.
"""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

SPARK_CONF = Path(__file__).with_name("spark_conf")
PLACE = pytest.StashKey[Path]()
OF_JAVA = "java"
SHOWN_MAX = 20


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):  # it has the directory of the run by its environment
        return
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())  # what failed tests made is kept
    place = config.stash[PLACE] = Path(tempfile.mkdtemp(prefix="ibbmaster-tests-"))
    os.environ["TMPDIR"] = str(place)
    tempfile.tempdir = None  # look again
    _lead_spark_to(place / OF_JAVA)


def _lead_spark_to(place: Path) -> None:
    """Have each Spark of the run keep its files in a directory, and everything else as `spark_conf` says."""
    conf = place / "conf"
    shutil.copytree(SPARK_CONF, conf)
    defaults = conf / "spark-defaults.conf"
    lines = [
        f"{line} -Djava.io.tmpdir={place}" if "JavaOptions" in line else line
        for line in defaults.read_text().splitlines()
    ]
    defaults.write_text("\n".join([*lines, f"spark.local.dir {place}", ""]))
    os.environ["SPARK_CONF_DIR"] = str(conf)


def left_in(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir() if path.name != OF_JAVA)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if PLACE not in config.stash:
        return
    left = left_in(config.stash[PLACE])
    if left:
        terminalreporter.section("left among the temporary files, and removed")
        terminalreporter.line("\n".join([*left[:SHOWN_MAX], f"... {len(left)} in all"]))


def pytest_unconfigure(config: pytest.Config) -> None:
    if PLACE in config.stash:
        shutil.rmtree(config.stash[PLACE], ignore_errors=True)
