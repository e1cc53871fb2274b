import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GIVEN = """
import pytest

def test_it_writes_and_serves(ibb_primary, ibb_log):
    orders = ibb_primary.table("shop.orders", id="bigint unsigned primary key", total="decimal(10,2)")
    with ibb_primary.transaction(domain=1):
        orders.insert(id=1, total="9.90")
    assert ibb_primary.log is ibb_log
    assert str(ibb_log.position) == "0-1-2,1-1-1"
    assert ibb_primary.port

def test_each_test_has_its_own(ibb_log):
    assert str(ibb_log.position) == ""

@pytest.mark.parametrize("ibb_options", [{"profile": "classic-10.11"}, {"profile": "classic-11.8"}])
def test_it_has_options(ibb_primary, ibb_options):
    assert ibb_options["profile"].removeprefix("classic-") in ibb_primary.server_version
"""
DAMAGED = """
def test_that_leaves_a_damaged_log(ibb_primary):
    ibb_primary.ddl("CREATE DATABASE shop")
    ibb_primary.log.bring_to_files()
    file = ibb_primary.log.path / "binlog-000000.ibb"
    data = bytearray(file.read_bytes())
    data[16384 + 50] ^= 1
    file.write_bytes(data)
"""
REPLACING = """
import pytest
from ibbmaster.testkit import FixturePrimary, fixture_log

@pytest.fixture
def ibb_log(tmp_path):
    with fixture_log(tmp_path / "mine", state="0-9-41") as log:
        yield log
"""
REPLACED = """
def test_a_replaced_log_is_served(ibb_primary):
    ibb_primary.ddl("CREATE DATABASE shop")
    assert str(ibb_primary.log.position) == "0-1-42"
"""


@pytest.fixture
def run(tmp_path):
    """Run tests in a directory of their own, with this plugin and no other; gives what pytest prints."""

    def run(**files: str) -> str:
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "ibbmaster.pytest_plugin", "-p", "no:cacheprovider", "."],
            cwd=tmp_path,
            env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return done.stdout

    return run


def test_the_fixtures_are_there_and_a_damaged_log_fails_its_test(run):
    printed = run(test_given=GIVEN, test_damaged=DAMAGED)
    assert "5 passed, 1 error" in printed
    assert "ERROR at teardown of test_that_leaves_a_damaged_log" in printed
    assert "has 1 faults: " in printed


def test_a_conftest_replaces_a_fixture(run):
    assert "1 passed" in run(conftest=REPLACING, test_replaced=REPLACED)


def test_the_tests_in_the_documents_pass(run):
    blocks = [
        block
        for path in (ROOT / "README.md", ROOT / "docs" / "testkit.md")
        for block in re.findall(r"^```python\n(def test_.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL)
    ]
    assert len(blocks) == 2
    assert "2 passed" in run(**{f"test_document_{number}": block for number, block in enumerate(blocks)})


def test_it_works_by_being_installed_and_costs_nothing_until_it_is_used():
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    assert points == {"ibbmaster": "ibbmaster.pytest_plugin"}
    program = "import sys, ibbmaster.pytest_plugin; print({'trio', 'numpy', 'pymysql'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "set()\n"


REWRITTEN = """
import sys

def test_of_this_package_only_the_plugin_is_rewritten(ibb_primary):
    modules = {name: module for name, module in sys.modules.items() if name.startswith("ibbmaster")}
    assert "ibbmaster.testkit.primary" in modules
    rewritten = {name for name, module in modules.items() if type(module.__loader__).__module__.startswith("_pytest")}
    assert rewritten == {"ibbmaster", "ibbmaster.pytest_plugin"}
"""


def test_the_first_run_does_not_wait_until_the_package_is_rewritten(installed, tmp_path):
    (tmp_path / "test_rewritten.py").write_text(REWRITTEN)
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_DISABLE_PLUGIN_AUTOLOAD"}
    done = subprocess.run(
        [installed("server", "pytest") / "pytest", "-q", "-p", "no:cacheprovider", "test_rewritten.py"],
        cwd=tmp_path,
        env={**environment, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout
