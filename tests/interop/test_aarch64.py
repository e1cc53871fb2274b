"""Kernels that are compiled here for ARM's servers do there what their references do."""

import json
import re
import subprocess
import sys

import pytest
from lanes.aarch64 import Aarch64MissingError, run_on_aarch64

from ibbmaster.kernel.cache import ENVIRONMENT, KernelCache

ASK = """
import json
from ibbmaster.kernel import cache, ready_made
print(json.dumps([cache.cache_key(), [name for name, kind in ready_made.CPU_KINDS.items() if kind.runs_here()]]))
"""
COMPARISONS = (  # of kernels and references; without those that need what only this machine's Python has
    "tests/kernel/test_groups.py",
    "tests/kernel/test_node_search.py",
    "tests/kernel/test_classic_framing.py",
    # without what draws long at random, and with one of two long logs of headers: QEMU takes its time
    *("-k", "not any_size and not damaged_file and not (next_page and state)"),
)


def test_kernels_for_arm_do_there_what_their_references_do(tmp_path):
    try:
        asked = run_on_aarch64("-c", ASK, environment={})
    except Aarch64MissingError as error:
        pytest.skip(str(error))
    assert asked.returncode == 0, asked.stderr
    key, runnable = json.loads(asked.stdout)
    assert runnable == ["aarch64"]
    cache = KernelCache(tmp_path / key)
    assert cache.make()
    compiled = subprocess.run(
        [sys.executable, "-m", "ibbmaster.kernel.ready_made", str(cache.path), "--kind", "aarch64"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert compiled.stderr == ""

    done = run_on_aarch64(
        *("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *COMPARISONS),
        environment={ENVIRONMENT: str(tmp_path)},
    )

    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"^(\d+) passed, ", done.stdout, re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) > 40
