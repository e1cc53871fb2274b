"""What importing the package brings in: nothing that a part of it alone needs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {"trio", "pyspark", "numpy", "pymysql", "cryptography", "nacl", "tqdm"}

SCRIPT = """
import importlib, json, sys
importlib.import_module(sys.argv[1])
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@pytest.mark.parametrize("module", ["ibbmaster", "ibbmaster.gtid", "ibbmaster.log.directory", "ibbmaster.cli.main"])
def test_importing_it_loads_nothing_heavy(module: str) -> None:
    assert not HEAVY & loaded_by(module)


def test_a_dialogue_needs_no_trio() -> None:
    assert "trio" not in loaded_by("ibbmaster.dump.session") | loaded_by("ibbmaster.wire.connection")


def loaded_by(module: str) -> set[str]:
    """The top-level packages a fresh interpreter has after importing a module."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, module], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))
