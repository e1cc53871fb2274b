"""Archives verified on a cluster, whose executors have another working directory than the driver."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

CLUSTER = "local-cluster[1,1,1024]"  # one executor, a process of its own


@pytest.mark.usefixtures("java")
def test_a_relative_directory_is_verified_on_a_cluster(fixtures, tmp_path):
    shutil.copytree(fixtures / "ibb/domains", tmp_path / "log")
    command = [sys.executable, "-m", "ibbmaster", "lake", "verify", "log", "--master", CLUSTER]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("155 event groups, 0 out-of-band records: no faults\n"), done.stderr
    assert done.returncode == 0
