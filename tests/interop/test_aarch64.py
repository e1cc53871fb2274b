"""Kernels that are compiled here for ARM's servers do there what their references do."""

import importlib.util
import os
import re
import shutil
import sysconfig
from pathlib import Path

import pytest
from lanes.primary import run_program

from ibbmaster.kernel.building import build
from ibbmaster.user_cache import program_directory

ENVIRONMENT = "IBBMASTER_LANE_AARCH64"
EMULATOR = "qemu-aarch64-static"
TIMEOUT_S = 900
ROOT = Path(__file__).parents[2]
COMPARISONS = (  # of kernels and references; without those that need what only this machine's Python has
    *("tests/kernel/test_groups.py", "tests/kernel/test_node_search.py", "tests/kernel/test_classic_framing.py"),
    # without what draws long at random, and with one of two long logs of headers: QEMU takes its time
    *("-k", "not any_size and not damaged_file and not (next_page and state)"),
)


def test_kernels_for_arm_do_there_what_their_references_do():
    """In a Python for ARM with NumPy, which `.ci/prepare tests` unpacks and QEMU runs; the rest is pure Python."""
    named, emulator = os.environ.get(ENVIRONMENT), shutil.which(EMULATOR)
    root = Path(named) if named else program_directory() / "aarch64"
    packages = root / "packages"
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("no compiler for other CPUs: the package ziglang")
    if emulator is None or not packages.is_dir():
        pytest.skip(f"no {EMULATOR}, or no Python for ARM in {root}: sh .ci/prepare tests")
    build("aarch64")
    path = os.pathsep.join(map(str, (ROOT / "src", packages, sysconfig.get_path("purelib"))))
    python = [emulator, "-L", root, root / "usr/bin/python3.11"]
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "--assert=plain"]  # it takes long there to write tests anew
    command = [*python, "-m", "pytest", *options, *COMPARISONS]
    said = run_program(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, timeout=TIMEOUT_S)
    passed = re.search(r"^(\d+) passed, ", said, re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) > 40
