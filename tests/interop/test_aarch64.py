"""Kernels that are compiled here for ARM's servers do there what their references do."""

import importlib.util
import re

import pytest
from lanes.aarch64 import Aarch64MissingError, run_on_aarch64

from ibbmaster.kernel.building import build

COMPARISONS = (  # of kernels and references; without those that need what only this machine's Python has
    "tests/kernel/test_groups.py",
    "tests/kernel/test_node_search.py",
    "tests/kernel/test_classic_framing.py",
    # without what draws long at random, and with one of two long logs of headers: QEMU takes its time
    *("-k", "not any_size and not damaged_file and not (next_page and state)"),
)


def test_kernels_for_arm_do_there_what_their_references_do():
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("no compiler for other CPUs: the package ziglang")
    build("aarch64")
    try:
        done = run_on_aarch64("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *COMPARISONS, environment={})
    except Aarch64MissingError as error:
        pytest.skip(str(error))

    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"^(\d+) passed, ", done.stdout, re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) > 40
